# -*- coding: utf-8 -*-
# SPDX-License-Identifier: BSD-2-Clause
"""Starts threads with all sorts of names, prints what `threading` knows of them, then waits.

    PID <pid>
    V <major>.<minor>
    N <ident> <native id or 0> <name: UTF-8 in hex>
    END
"""
import binascii
import os
import sys
import threading
import time

go = threading.Event()


class Worker(threading.Thread):
    """A subclass whose instances do not all have the same attributes in the same order."""

    def __init__(self, number):
        if number % 2:
            self.before = number
        threading.Thread.__init__(self, name="worker-%d" % number)
        for extra in range(number):
            setattr(self, "extra_%d" % extra, extra)

    def run(self):
        go.wait()


class Slotted(threading.Thread):
    __slots__ = ("a", "b")


class Mixed(int, threading.Thread):
    """Of variable size: before 3.12 the place of __dict__ counts from the object's end."""

    def __new__(cls, value):
        return int.__new__(cls, value)

    def __init__(self, value):
        threading.Thread.__init__(self, target=go.wait, name="mixed")

    __hash__ = object.__hash__


def threads():
    for number in range(14):
        yield Worker(number)
    for name in ("plain", "", "x" * 63, "y" * 64, "z" * 300, "a b\nc"):
        yield threading.Thread(target=go.wait, name=name)
    if sys.version_info >= (3,):
        for name in (u"caf\u00e9", u"\u03b1\u03b2\u03b3", u"\u4e2d\u6587" * 20,
                     u"py\U0001f40d" * 15, u"\udcff"):
            yield threading.Thread(target=go.wait, name=name)
    yield Slotted(target=go.wait, name="slotted")
    try:
        yield Mixed(1 << 40)
    except TypeError:
        pass
    named = threading.Thread(target=go.wait)
    named.__dict__["late"] = 1
    yield named
    swapped = threading.Thread(target=go.wait, name="swapped")
    swapped.__dict__ = dict(swapped.__dict__)
    yield swapped
    crowded = threading.Thread(target=go.wait, name="crowded")
    for extra in range(300):
        setattr(crowded, "attribute_%d" % extra, extra)
    yield crowded


def main():
    started = list(threads())
    for thread in started:
        thread.daemon = True
        thread.start()
    # Dead entries and a table of many generations.
    for _ in range(50):
        short = threading.Thread(target=int)
        short.start()
        short.join()
    started[0].name = "renamed"
    out = ["PID %d" % os.getpid(), "V %d.%d" % sys.version_info[:2]]
    for thread in threading.enumerate():
        name = thread.name
        if not isinstance(name, bytes):
            name = "".join(u"\ufffd" if 0xd800 <= ord(c) < 0xe000 else c
                           for c in name).encode("utf-8")
        out.append("N %d %d %s" % (thread.ident, getattr(thread, "native_id", 0) or 0,
                                   binascii.hexlify(name).decode() or "-"))
    print("\n".join(out + ["END"]))
    sys.stdout.flush()
    time.sleep(120)


main()
