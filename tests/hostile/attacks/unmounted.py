# SPDX-License-Identifier: BSD-2-Clause
"""Runs files on a file system of its own, in a user and mount namespace of its own, and takes it
away while they run, again and again."""
import glob
import os
import time

import craft

PAGE = craft.PAGE
FILES = 20
SECONDS = 4


def attack(box):
    craft.needs_x86()
    mounted = os.path.join(box.directory, "mounted")
    os.mkdir(mounted)
    pid = os.fork()
    if pid == 0:
        craft.become_root_of_nobody()
        os._exit(0)
    if os.waitpid(pid, 0)[1]:
        craft.skip("no user namespaces for users")
    box.ready()
    count = 0
    while True:
        pid = os.fork()
        if pid == 0:
            craft.become_root_of_nobody()
            craft.check(craft.libc.mount(b"none", mounted.encode(), b"tmpfs", 0, None),
                        "mount of a tmpfs")
            places = [
                craft.map_file(craft.burner().write("%s/gone%d-%d" % (mounted, count, i)))
                for i in range(FILES)
            ]
            for i, at in enumerate(places):
                if i == FILES // 2:
                    craft.check(craft.libc.umount2(mounted.encode(), 2), "umount")
                craft.call(at)
            if count % 2:
                for at in places:
                    craft.libc.munmap(at, PAGE)
                end = time.monotonic() + 0.05
                while time.monotonic() < end:
                    pass
            os._exit(0)
        os.waitpid(pid, 0)
        count += 1


def held(pid):
    """How many files of theirs the agent has open."""
    count = 0
    for path in glob.glob("/proc/%d/fd/*" % pid):
        try:
            count += "/gone" in os.readlink(path)
        except OSError:
            pass
    return count


def meanwhile(rig):
    time.sleep(4)
    for attacker in rig.attackers:
        attacker.kill()
    end = time.monotonic() + 10
    before = held(rig.agent.pid)
    while held(rig.agent.pid) and time.monotonic() < end:
        time.sleep(0.1)
    left = held(rig.agent.pid)
    print("%d files of theirs were open, after %.1f s %d"
          % (before, time.monotonic() - end + 10, left))
    assert not left, "%d files are kept open, and with them their file systems" % left
