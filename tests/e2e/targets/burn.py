# -*- coding: utf-8 -*-
# SPDX-License-Identifier: BSD-2-Clause
"""burn.py SECONDS [KIND] [COMM]   Uses so much CPU time (0: until `stop`, which ends kind threads,
too) and writes how much it was to cpu.json at its very end.  KIND: python, light (python, a quarter
of the time), kernel, mixed, threads."""
import os
import sys
import threading
import time

import common


def burn_python(end):
    total = 0
    while time.process_time() < end:
        for number in range(3000):
            total += number * number
    return total


def burn_light(end):
    while time.process_time() < end:
        burn_python(time.process_time() + 0.02)
        time.sleep(0.06)


def burn_kernel(end):
    with open("/dev/zero", "rb", 0) as zero:
        buffer = bytearray(1 << 20)
        while time.process_time() < end:
            zero.readinto(buffer)


def burn_mixed(end):
    while time.process_time() < end and not common.stopped():
        now = time.process_time()
        burn_python(now + 0.02)
        burn_kernel(now + 0.04)


def burn_threads(end):
    threads = [threading.Thread(target=burn_mixed, args=(end,), name="burner-%d" % i)
               for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


KINDS = {
    "python": burn_python, "light": burn_light, "kernel": burn_kernel, "mixed": burn_mixed,
    "threads": burn_threads
}


def main(seconds, kind="python", comm=""):
    if comm:
        with open("/proc/self/comm", "w") as file:
            file.write(comm)
    common.ready()
    begin = time.process_time()
    if seconds:
        KINDS[kind](begin + seconds)
    else:
        while not common.stopped():
            KINDS[kind](time.process_time() + (0.02 if kind == "light" else 0.1))
    common.write("cpu.json", {"cpu_s": time.process_time(), "pid": os.getpid()})


if __name__ == "__main__":
    main(float(sys.argv[1]), *sys.argv[2:])
