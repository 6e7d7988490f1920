# SPDX-License-Identifier: BSD-2-Clause
"""Files of 100 KiB whose .gnu_debugdata unpacks to 512 MiB, in one stream and in many; one that is
cut off, and one that asks for a dictionary of 1.5 GiB."""
import binascii
import lzma
import os

import craft

PAGE = craft.PAGE
MIB = 1 << 20
UNPACKED_MIB = 512


def bombs():
    packer = lzma.LZMACompressor(lzma.FORMAT_XZ, lzma.CHECK_NONE, filters=[
        {"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": MIB}])
    one = b"".join([packer.compress(bytes(MIB)) for _ in range(UNPACKED_MIB)]) + packer.flush()
    small = lzma.compress(bytes(16 * MIB), check=lzma.CHECK_CRC64, preset=0)
    # The property byte of LZMA2's dictionary is the last of the first block's filters; its head has
    # a checksum.
    greedy = bytearray(lzma.compress(bytes(PAGE), preset=0))
    greedy[16] = 39
    head = bytes(greedy[12:12 + (greedy[12] + 1) * 4 - 4])
    greedy[12 + len(head):12 + len(head) + 4] = binascii.crc32(head).to_bytes(4, "little")
    return [one, small * (UNPACKED_MIB // 16), one[:len(one) // 2], bytes(greedy)]


def attack(box):
    craft.needs_x86()
    places = []
    for i, packed in enumerate(bombs()):
        elf = craft.burner(3 * PAGE)
        elf.put(2 * PAGE, packed)
        elf.section(".gnu_debugdata", craft.SHT_PROGBITS, 0, 2 * PAGE, len(packed), flags=0)
        places.append(craft.map_file(elf.write(os.path.join(box.directory, "bomb%d.so" % i))))
    box.ready()
    while True:
        for at in places:
            craft.call(at)
