# SPDX-License-Identifier: BSD-2-Clause
"""Puts a FIFO, then a link to a file of root's, in the place of the output file and of its lock, in
a directory open to all."""
import os
import stat

import craft  # noqa: F401

OUTPUT = "profile.pb.gz"


def prepare(rig):
    shared = rig.folder("shared", 0)
    os.chmod(shared, 0o777)
    rig.store = os.path.join(shared, OUTPUT)


def attack(box):
    shared = os.path.join(os.path.dirname(box.directory), "shared")
    os.chdir(shared)
    made = []
    for name in os.listdir("."):
        os.rename(name, name + ".taken")
        made.append(name)
    for name in {OUTPUT, OUTPUT + ".lock", ".pyprofd.tmp", *made}:
        os.mkfifo(name)
    os.symlink(box.secret, OUTPUT + ".tmp")
    box.ready(*made)
    os.wait() if os.fork() else os.execvp("sleep", ["sleep", "60"])


def check(rig):
    assert stat.S_ISREG(os.lstat(rig.store).st_mode), "the profile is no file"
    with open(rig.secret, encoding="ascii") as file:
        assert file.read().startswith("10000000"), "root's file was written to"
