# SPDX-License-Identifier: BSD-2-Clause
"""Four thousand sleeping processes of a user whose id differs from the victims' by 1,024: shares
that lay in rows by the id modulo that were one.  A process that a victim has
forked is followed."""
import os
import subprocess

import craft  # noqa: F401

ALONE = True  # four thousand processes come and go
COUNT = 4200
USERS = (65533 + 1024,)


def attack(box):
    program = subprocess.Popen([os.path.join(box.directory, "equal_ids"), str(COUNT)],
                               stdout=subprocess.PIPE)
    assert program.stdout.readline() == b"there\n"
    box.ready()
    program.wait()


def meanwhile(rig):
    name, user, words, folder = rig.build_victim("forked", 65533, native=True)
    victim = rig.start_victim((name, user, ["/bin/sh", "-c", '"$0"; exit $?'] + words, folder))
    with open("/proc/%d/task/%d/children" % (victim.pid, victim.pid), encoding="ascii") as file:
        victim.pid = int(file.read())
    victim.go()
