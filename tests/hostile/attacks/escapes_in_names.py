# SPDX-License-Identifier: BSD-2-Clause
"""A process whose name and files have escape sequences, newlines and a forged priority gets them
into the log."""
import os

import craft

QUICK = True
NAMES = [b"\x1b[31mred\x1b[0m", b"a\n<0>forged", b"b\r\x07\x9b2J", b"\xff\xfe\x00"]


def attack(box):
    craft.needs_x86()
    for i, name in enumerate(NAMES):
        path = craft.fake_interpreter(os.path.join(box.directory, "py\x1b[2J\n<0>%d" % i), unique=i)
        if os.fork() == 0:
            craft.set_name(name)
            base = craft.map_fake(path)
            craft.make_refused(base)
            with open(craft.perf_map(), "wb") as file:
                file.write(b"%x 1000 \x1b[2Jname\n" % (base + craft.PAGE))
            craft.keep_calling(base + craft.PAGE)
    box.ready()
    os.wait()


def check(rig):
    said = rig.run.err
    assert "Python frames are not available" in said, said
    bad = [c for c in said if (c < " " and c not in "\n\t") or 0x7f <= ord(c) < 0xa0]
    assert not bad, "raw bytes in the log: %s: %r" % (bad, said)
    assert not [line for line in said.split("\n") if line.startswith("<")], said
