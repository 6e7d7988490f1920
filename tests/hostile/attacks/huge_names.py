# SPDX-License-Identifier: BSD-2-Clause
"""Functions whose names have a million characters, control characters and halves of surrogates, a
new one each time."""
import craft  # noqa: F401

QUICK = True


def attack(box):
    kinds = ["x", "\x1b[2J", "\n", "\u202e", "\ud800", "\U0001f600", "\0"]
    made, count = {}, 0

    def pattern():
        for _ in range(20000):
            pass
    box.ready()
    while True:
        name = (kinds[count % len(kinds)] * (1 << 20 >> count % 3 * 8)) + str(count)
        code = pattern.__code__.replace(co_name=name, co_filename=name[::-1])
        if hasattr(code, "co_qualname"):
            code = code.replace(co_qualname=name)
        made[count % 50] = type(pattern)(code, {})
        made[count % 50]()
        count += 1
