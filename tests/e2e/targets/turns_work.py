# -*- coding: utf-8 -*-
# SPDX-License-Identifier: BSD-2-Clause
"""What each interpreter of subinterpreter_turns.py does: it waits, and computes without the GIL, in
turn."""
import json
import os
import time
import zlib

try:
    from _hashlib import pbkdf2_hmac
except ImportError:
    pbkdf2_hmac = None  # an interpreter without OpenSSL: hashlib's own keeps the GIL

TO_REAL_S = time.time() - time.monotonic()
DATA = bytes(1 << 22)
spent = {"wait": [], "digest": []}


def stopped():
    return os.path.exists(os.environ["E2E_DIR"] + "/stop")


def wait_here():
    time.sleep(0.005)


def digest_here():
    """Not always as long: turns of one length can keep pace with the sampling clock."""
    part = 0.5 + time.monotonic() * 1e4 % 1
    if pbkdf2_hmac:
        pbkdf2_hmac("sha256", b"word", b"salt", int(3000 * part))
    else:
        zlib.crc32(memoryview(DATA)[:int(len(DATA) * part / 1.5)])


def timed(what, clock, function):
    begin, before = time.monotonic(), time.clock_gettime(clock)
    function()
    end, after = time.monotonic(), time.clock_gettime(clock)
    spent[what].append([int((t + TO_REAL_S) * 1e9)
                        for t in (begin, end)] + [int((after - before) * 1e9)])


def turns():
    for _ in range(10):
        timed("wait", time.CLOCK_MONOTONIC, wait_here)
        timed("digest", time.CLOCK_THREAD_CPUTIME_ID, digest_here)


def in_main():
    turns()


def in_sub():
    turns()


def in_other():
    turns()


def sleep_long():
    time.sleep(1000)


def main_sleeps():
    sleep_long()


def sub_sleeps():
    sleep_long()


def write(name):
    with open(os.environ["E2E_DIR"] + "/" + name + ".json", "w") as file:
        json.dump(spent, file)
