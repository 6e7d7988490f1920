# SPDX-License-Identifier: BSD-2-Clause
"""Forks and executes as fast as one process can, each time with another name and from another
file."""
import os
import shutil

import craft

QUICK = True


def attack(box):
    copies = [
        shutil.copy("/bin/true", os.path.join(box.directory, "true\x1b\n%d" % i)) for i in range(8)
    ]
    box.ready()
    count = 0
    while True:
        pid = os.fork()
        if pid == 0:
            craft.set_name(b"\x1b[%dm\n" % (count % 100))
            if count % 2:
                os._exit(0)
            os.execv(copies[count // 2 % 8], ["true"])
        os.waitpid(pid, 0)
        count += 1
