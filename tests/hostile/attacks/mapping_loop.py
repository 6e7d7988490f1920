# SPDX-License-Identifier: BSD-2-Clause
"""Maps executable files, calls into them and takes them away again, as fast as two processes
can."""
import os

import craft

FILES = 64
PAGE = craft.PAGE
SECONDS = 5


def attack(box):
    craft.needs_x86()
    paths = [
        craft.burner().write(os.path.join(box.directory, "mapped%d.so" % i)) for i in range(FILES)
    ]
    if os.fork():
        box.ready()
    while True:
        places = [craft.map_file(path) for path in paths]
        craft.call(places[0])
        for at in places:
            craft.libc.munmap(at, PAGE)
