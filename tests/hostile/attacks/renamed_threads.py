# SPDX-License-Identifier: BSD-2-Clause
"""A thousand threads that give themselves new names all the time: escape sequences, halves of
characters, others' names."""
import threading
import time

import craft

COUNT = 1000
# Not late_inner: that is what the attacker may not see.
NAMES = [
    b"\x1b]0;x\x07", b"\n<0>forged", b"\xff\xc3", b"late_outer", b"kworker/0:1", b"\xf0\x9f\x98",
    b"%s%n%p", b"a" * 15
]


def attack(box):
    threading.stack_size(1 << 16)

    def live(number):
        for i in range(1 << 30):
            craft.set_name(NAMES[(number + i) % len(NAMES)] + b"%d" % (i % 1000))
            sum(range(500))
            time.sleep(1)  # as many that run would only leave no CPU to anybody
    for i in range(COUNT):
        threading.Thread(target=live, args=(i,), daemon=True).start()
    box.ready()
    time.sleep(60)


def check(rig):
    said = rig.run.err
    bad = [c for c in said if (c < " " and c not in "\n\t") or 0x7f <= ord(c) < 0xa0]
    assert not bad, "raw bytes in the log: %s: %r" % (bad, said)
