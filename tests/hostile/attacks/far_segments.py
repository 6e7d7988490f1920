# SPDX-License-Identifier: BSD-2-Clause
"""Files whose segments lie terabytes apart, overlap, end before they begin, or claim all addresses
there are."""
import os

import craft

PAGE, TIB = craft.PAGE, 1 << 40
# (offset, address, bytes in the file, bytes in memory) of what is beside the page of code.
LAYOUTS = [
    [(0, 16 * TIB, PAGE, PAGE)],
    [(0, 1 << 47, PAGE, PAGE), (0, 64 * TIB, PAGE, 32 * TIB)],
    [(0, (1 << 64) - PAGE, PAGE, PAGE)],
    [(0, 0, PAGE, (1 << 64) - 1)],
    [(0, PAGE, 2 * PAGE, 127 * TIB)],
    [(PAGE, i * TIB, PAGE, PAGE) for i in range(1, 60)],
    [(PAGE, PAGE + i, PAGE, TIB) for i in range(60)],
    [(PAGE, 63 * TIB - i, (1 << 64) - PAGE, PAGE) for i in range(20)],
]


def attack(box):
    craft.needs_x86()
    places = []
    for i, layout in enumerate(LAYOUTS):
        for flags in 5, 4:
            elf = craft.burner(4 * PAGE)
            elf.put(3 * PAGE, craft.BURN)
            for offset, address, stored, claimed in layout:
                elf.segment(craft.PT_LOAD, flags, offset, address, stored, claimed)
            # Four KiB hold the heads of 60.
            assert 64 + 56 * len(elf.segments) <= PAGE
            path = elf.write(os.path.join(box.directory, "far%d-%d.so" % (i, flags)))
            places += [craft.map_file(path), craft.map_file(path, 3 * PAGE)]
    box.ready()
    while True:
        for at in places:
            craft.call(at)
