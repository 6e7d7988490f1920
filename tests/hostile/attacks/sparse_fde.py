# SPDX-License-Identifier: BSD-2-Clause
"""A file of 2 GiB that stores 20 KiB: one FDE, nearly all of which is a hole."""
import os
import struct

import craft

QUICK = True
PAGE = craft.PAGE
SIZE = 2 << 30


def attack(box):
    craft.needs_x86()
    elf = craft.burner(3 * PAGE)
    frame, header = 2 * PAGE, PAGE + 0x200
    cie = bytes.fromhex("017a5200017810011b0c070890010000")
    cie = struct.pack("<II", len(cie) + 4, 0) + cie
    fde, length = frame + len(cie), SIZE - 4 * PAGE
    elf.put(frame, cie + struct.pack("<IIiIB", length, fde + 4 - frame, PAGE - (fde + 8), PAGE, 0))
    index = struct.pack("<BBBBiIii", 1, 0x1b, 3, 0x3b, frame - (header + 4), 1, PAGE - header,
                        fde - header)
    elf.put(header, index)
    elf.size = SIZE
    elf.segments.clear()
    elf.segment(craft.PT_LOAD, 5, PAGE, PAGE, SIZE - PAGE)
    elf.segment(craft.PT_GNU_EH_FRAME, 4, header, header, len(index))
    elf.section(".eh_frame", craft.SHT_PROGBITS, frame, frame, len(cie) + 4 + length)
    at = craft.map_file(elf.write(os.path.join(box.directory, "sparse.so")))
    box.ready()
    craft.keep_calling(at)
