# SPDX-License-Identifier: BSD-2-Clause
"""One process maps four thousand executable files of 8 KiB, each another one, and calls into
all."""
import os
import resource

import craft

FILES = 4000
# Fewer descriptors than files: some are closed and opened again.
LIMITS = {resource.RLIMIT_NOFILE: 1024}


def attack(box):
    craft.needs_x86()
    folder = os.path.join(box.directory, "many")
    os.mkdir(folder)
    paths = [craft.burner().write(os.path.join(folder, "small%d.so" % i)) for i in range(FILES)]
    box.ready()
    places = [craft.map_file(path) for path in paths]
    while True:
        for at in places:
            craft.call(at)
