# SPDX-License-Identifier: BSD-2-Clause
"""Memory that looks like a CPython whose lists of interpreters, threads and frames lead back to
themselves, and whose strings have no end."""
import os
import struct

import craft

QUICK = True


def attack(box):
    craft.needs_x86()
    for i, version in enumerate((0x030b08f0, 0x030a08f0, 0x030908f0)):
        if os.fork():
            continue
        base = craft.map_fake(
            craft.fake_interpreter(os.path.join(box.directory, "cyclic%d.so" % i), version,
                                   unique=i))
        # Whatever a word is read as, it leads to itself, or to a state that leads back.
        page = base + craft.RUNTIME
        huge = craft.anonymous(1 << 24, protection=3)
        craft.write_at(page, struct.pack("<QQ", page, huge) * (0x700 // 16))
        craft.write_at(huge, struct.pack("<QQ", huge, page) * (1 << 17))
        craft.keep_calling(base + craft.PAGE)
    box.ready()
    os.wait()
