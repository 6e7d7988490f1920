# SPDX-License-Identifier: BSD-2-Clause
"""Touches and copies known amounts of memory, a function each, at a line that is
marked; check_memory.py knows them."""
import os
import sys
import time

MB = 1 << 20
FILE = "/tmp/data"


def fill(size):
    return bytearray(b"x") * size  # L:fill


def read(size):
    with open(FILE, "rb", buffering=0) as file:
        return file.read(size)  # L:read


def write_to(buffer):
    for at in range(0, len(buffer), 4096):
        buffer[at] = 1  # L:write_to


def page_cache(size):
    buffer = bytes(MB)
    with open(FILE, "wb", buffering=0) as file:
        for _ in range(size // MB):
            file.write(buffer)  # L:page_cache


def main(size):
    while not os.path.exists("/tmp/go"):
        time.sleep(0.05)
    page_cache(size)
    filled, held = fill(size), read(size)
    child = os.fork()
    if not child:
        write_to(filled)
        os._exit(0)
    os.waitpid(child, 0)
    # The child has ended: nothing is copied.
    write_to(filled)
    return held


if __name__ == "__main__":
    main(int(sys.argv[1]) * MB)
