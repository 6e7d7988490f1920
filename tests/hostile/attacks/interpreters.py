# SPDX-License-Identifier: BSD-2-Clause
"""Four hundred forged interpreters, each a file of its own, in programs that end at once and in
some that stay."""
import os
import time

import craft

COUNT, STAYING = 400, 100
VERSIONS = (0x030b08f0, 0x030c08f0, 0x030908f0, 0x03ff00f0)


def attack(box):
    craft.needs_x86()
    folder = os.path.join(box.directory, "forged")
    os.mkdir(folder)
    box.ready()
    count = 0
    while True:
        pid = os.fork()
        if pid == 0:
            path = craft.fake_interpreter(os.path.join(folder, "libpython%d.so" % count),
                                          VERSIONS[count % len(VERSIONS)], unique=count)
            base = craft.map_fake(path)
            while True:
                craft.call(base + craft.PAGE)
                if count % (COUNT // STAYING):
                    os._exit(0)
                time.sleep(1)
        elif count % (COUNT // STAYING):
            os.waitpid(pid, 0)
        count += 1
        if count == COUNT:
            time.sleep(60)
