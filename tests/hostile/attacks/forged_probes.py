# SPDX-License-Identifier: BSD-2-Clause
"""Files that claim to be a CPython, with probes where none can be: semaphores outside of the file
and on top of code, a million small notes, one site a hundred thousand times, a site at each byte of
the code, arguments that point anywhere, and files that are overwritten and cut off while they are
probed."""
import os
import time

import craft

EVENTS = True
PAGE = craft.PAGE
BEGIN, END = b"import__find__load__start", b"import__find__load__done"
SITE = PAGE + len(craft.BURN)
CODE = b"\x90" * 64 + b"\xc3"


def everywhere():
    """Semaphores: beyond the file, at its last byte, odd, on code, where is only read, wrapping."""
    places = [1 << 40, 4 * PAGE - 1, 3 * PAGE + 1, SITE, 2 * PAGE, (1 << 64) - 1, (1 << 64) - PAGE]
    return b"".join(craft.note(BEGIN, SITE + i, at) for i, at in enumerate(places))


def arguments():
    texts = [b"8@-8(%rsp)", b"8@(%rdi,%rsi,8)", b"8@$-1", b"8@$0x7fffffffffff", b"1@%rip",
             b"8@-0x7fffffffffffffff(%rdi)", b"4@_PyRuntime(%rip)", b"8@" + b"(" * 900, b"16@%xmm0",
             b"8@%fs:0", b"-8@(%rsp,%rsp,8)", b""]
    return b"".join(
        craft.note(name, SITE + 2 * i + k, 0, text) for i, text in enumerate(texts)
        for k, name in enumerate((b"gc__start", BEGIN)))


NOTES = (
    everywhere,
    arguments,
    lambda: craft.note(b"", 0, 0, b"", b"") * 1000000,
    lambda: craft.note(BEGIN, SITE) * 100000,
    lambda: b"".join(craft.note(BEGIN, PAGE + i) for i in range(len(craft.BURN) + len(CODE))),
    lambda: b"".join(craft.note(BEGIN, PAGE + i) for i in range(0, PAGE, 2)),
    lambda: craft.note(BEGIN, SITE, 3 * PAGE + 64) + craft.note(END, SITE + 1, 3 * PAGE + 64),
    lambda: craft.note(BEGIN, SITE, 3 * PAGE + 64) + craft.note(END, SITE + 1, 3 * PAGE + 66),
)


def change(path, turn, is_cut):
    """Its code, its notes and its length, while it is mapped and probed."""
    with open(path, "r+b") as file:
        size = os.path.getsize(path)
        file.seek(PAGE + len(craft.BURN))
        file.write(bytes([0xcc if turn % 2 else 0x90]) * 64)
        file.seek(4 * PAGE)
        file.write(craft.note(b"gc__start", PAGE + turn % 60))
        if is_cut:
            file.truncate(PAGE)
            file.truncate(size)
            with open(path + ".whole", "rb") as whole:
                file.seek(0)
                file.write(whole.read())


def run(path, number):
    base = craft.map_fake(path)
    for turn in range(1 << 30):
        craft.call(base + PAGE)
        craft.call(base + SITE)
        if number >= len(NOTES) - 2:
            change(path, turn, number == len(NOTES) - 1)
        time.sleep(0.02)


def attack(box):
    craft.needs_x86()
    for number, notes in enumerate(NOTES):
        path = craft.fake_interpreter(os.path.join(box.directory, "libpython%d.so" % number),
                                      unique=number, code=CODE, notes=notes())
        with open(path, "rb") as file, open(path + ".whole", "wb") as whole:
            whole.write(file.read())
        if os.fork() == 0:
            # Each may die of what it does to itself, and comes again.
            while os.fork():
                os.wait()
                time.sleep(0.05)
            run(path, number)
    time.sleep(1)
    box.ready()
    os.wait()
