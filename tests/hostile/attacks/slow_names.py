# SPDX-License-Identifier: BSD-2-Clause
"""Programs that end at once with 24 files whose names each take the child that parses them a tenth
of a second: .gnu_debugdata without repetitions, which unpacks slowly."""
import lzma
import os
import random
import time

import craft

PAGE = craft.PAGE
UNPACKED = 3 << 20
FILES = 24
SECONDS = 6
# No window ends before the files of an ended program are closed, and named for that.
OPTIONS = ("--interval", "20")


def run(paths):
    places = [craft.map_file(path) for path in paths]
    for _ in range(20):
        for at in places:
            craft.call(at)


def attack(box):
    craft.needs_x86()
    inner = os.path.join(box.directory, "inner")
    with open(craft.burner().write(inner), "rb") as file:
        plain = file.read()
    # Bytes of six random bits are not stored, and the decoder takes each of them by itself.
    filler = random.Random(1).randbytes(UNPACKED).translate(bytes(i & 0x3f for i in range(256)))
    packed = lzma.compress(plain + filler, preset=0)
    paths = []
    for i in range(FILES):
        elf = craft.burner(3 * PAGE)
        elf.put(2 * PAGE, packed)
        elf.section(".gnu_debugdata", craft.SHT_PROGBITS, 0, 2 * PAGE, len(packed), flags=0)
        paths.append(elf.write(os.path.join(box.directory, "slow%d.so" % i)))
    box.ready()
    while True:
        if os.fork() == 0:
            run(paths)
            os._exit(0)
        os.wait()
        time.sleep(3)
