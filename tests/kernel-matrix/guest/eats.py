# SPDX-License-Identifier: BSD-2-Clause
"""Takes memory until the kernel ends it, at most of a CPU, once it is told to."""
import os
import time


def fill_memory(held):
    end = time.process_time() + 0.02
    while time.process_time() < end:
        pass
    held.append(bytearray(b"x") * (1 << 20))


def main():
    held = []
    open("/tmp/eats-ready", "w").close()
    while not os.path.exists("/tmp/eats-go"):
        time.sleep(0.1)
    while True:
        fill_memory(held)


main()
