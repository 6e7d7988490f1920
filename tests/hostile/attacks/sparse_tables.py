# SPDX-License-Identifier: BSD-2-Clause
"""Files of 8 GiB that store 20 KiB: symbols, their names, the index of FDEs or notes are holes of 2
GiB and more."""
import os
import struct

import craft

PAGE, GIB = craft.PAGE, 1 << 30
FAR = 2 * PAGE


def sparse(kind):
    elf = craft.burner(3 * PAGE)
    elf.size = 8 * GIB
    symbol = bytes(24) + struct.pack("<IBBHQQ", 1, 0x12, 0, 1, PAGE, 16)
    if kind in ("symtab", "strtab"):
        elf.put(FAR, symbol)
        names, size = (FAR + len(symbol), 2 * GIB) if kind == "strtab" else (PAGE + 64, 64)
        link = elf.section(".strtab", craft.SHT_STRTAB, 0, names, size)
        elf.section(".symtab", craft.SHT_SYMTAB, 0, FAR,
                    len(symbol) if kind == "strtab" else 4 * GIB // 24 * 24, link, 24)
    elif kind == "dynsym":
        elf.segment(craft.PT_LOAD, 4, FAR, FAR, 6 * GIB)
        link = elf.section(".dynstr", craft.SHT_STRTAB, FAR, FAR, 2 * GIB)
        elf.section(".dynsym", craft.SHT_DYNSYM, FAR, FAR, 4 * GIB // 24 * 24, link, 24)
    elif kind == "header":
        count = 2 * GIB // 8 - 16
        elf.put(FAR, struct.pack("<BBBBiI", 1, 0x1b, 3, 0x3b, 4 * PAGE, count))
        elf.segment(craft.PT_LOAD, 4, FAR, FAR, 2 * GIB)
        elf.segment(craft.PT_GNU_EH_FRAME, 4, FAR, FAR, 12 + 8 * count)
    elif kind == "notes":
        elf.put(FAR, struct.pack("<III", 4, 2 * GIB - 4 * PAGE, 3) + b"GNU\0")
        elf.segment(craft.PT_LOAD, 4, FAR, FAR, 4 * GIB)
        elf.segment(craft.PT_NOTE, 4, FAR, FAR, 4 * GIB, align=4)
        elf.section(".note.gnu.build-id", 7, FAR, FAR, 4 * GIB)
    elif kind == "zero_notes":  # notes of twelve bytes that are nothing but zeros
        elf.segment(craft.PT_LOAD, 4, FAR, FAR, 4 * GIB)
        elf.segment(craft.PT_NOTE, 4, FAR, FAR, 4 * GIB, align=4)
    return elf


def attack(box):
    craft.needs_x86()
    places = []
    for kind in ("symtab", "strtab", "dynsym", "header", "notes", "zero_notes"):
        for i in range(3):
            places.append(
                craft.map_file(
                    sparse(kind).write(os.path.join(box.directory, "%s%d.so" % (kind, i)))))
    box.ready()
    while True:
        for at in places:
            craft.call(at)
