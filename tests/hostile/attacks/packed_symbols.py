# SPDX-License-Identifier: BSD-2-Clause
"""Files whose .gnu_debugdata has 10 KiB and unpacks to 64 MiB."""
import lzma
import os

import craft

PAGE = craft.PAGE
UNPACKED = 63 << 20
FILES = 20


def attack(box):
    craft.needs_x86()
    inner = os.path.join(box.directory, "inner")
    with open(craft.burner().write(inner), "rb") as file:
        plain = file.read()
    packed = lzma.compress(plain + bytes(UNPACKED - len(plain)), preset=6)
    places = []
    for i in range(FILES):
        elf = craft.burner(3 * PAGE)
        elf.put(2 * PAGE, packed)
        elf.section(".gnu_debugdata", craft.SHT_PROGBITS, 0, 2 * PAGE, len(packed), flags=0)
        places.append(craft.map_file(elf.write(os.path.join(box.directory, "packed%d.so" % i))))
    box.ready()
    while True:
        for at in places:
            craft.call(at)
