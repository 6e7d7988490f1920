# SPDX-License-Identifier: BSD-2-Clause
"""A file system of the attacker's (FUSE) never answers for the memory of a forged _PyRuntime, in
one process after the other."""
import os
import signal
import time

import craft

PAGE = craft.PAGE
PROCESSES = 6
FUSE = "/dev/fuse"


def prepare(rig):
    """What fusermount does for a user.  A file system that he mounts in a user namespace of his own
    holds up only who has a user id there."""
    import harness  # not there for who attacks
    from test_dump import become
    harness.need(os.path.exists(FUSE), "no FUSE")
    user = 65534
    for number in range(PROCESSES):
        path = os.path.join(rig.directory, "trap%d" % number)
        with open(path, "wb"):
            pass
        fd = craft.mount_fuse(FUSE, path, user)
        pid = os.fork()
        if pid == 0:
            become(user)
            craft.answer_fuse(fd)
        os.close(fd)
        rig.at_end.append(lambda pid=pid, path=path: [
            os.kill(pid, signal.SIGKILL),
            os.waitpid(pid, 0),
            craft.libc.umount2(path.encode(), 2)
        ])


def attack(box):
    craft.needs_x86()
    for number in range(PROCESSES):
        if os.fork():
            continue
        base = craft.map_fake(
            craft.fake_interpreter(os.path.join(box.directory, "trapped%d.so" % number),
                                   unique=number))
        path = os.path.join(os.path.dirname(box.directory), "trap%d" % number)
        os.stat(path)  # its size is not known before
        craft.map_file(path, 0, PAGE, 3, base + craft.RUNTIME, 0x12)
        craft.keep_calling(base + PAGE)
    box.ready()
    time.sleep(60)


def check(rig):
    assert "memory_late" in rig.run.err, "nobody was trapped: %s" % rig.run.err
