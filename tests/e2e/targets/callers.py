# SPDX-License-Identifier: BSD-2-Clause
"""callers.py PERIOD SHORT LONG: two callers of one wait.  first() and second() both call
wait_once(), which reads a pipe.  Another process ends the waits: after SHORT seconds those of
first(), after LONG every PERIOD-th, second()'s. callers.json: caller -> [begin, end, length,
voluntary switches, preemptions] of each of its waits, in ns of CLOCK_REALTIME and by the kernel's
own counters of the thread.  3.7 and later."""
import os
import resource
import sys
import time

import common

PERIOD, SHORT, LONG = int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])
TO_REAL_NS = time.time_ns() - time.monotonic_ns()


def feed(pipe):
    number = 0
    while os.getppid() != 1:
        number += 1
        time.sleep(LONG if number % PERIOD == 0 else SHORT)
        os.write(pipe, b"x")


def wait_once(pipe):
    os.read(pipe, 1)


def first(pipe):
    wait_once(pipe)


def second(pipe):
    wait_once(pipe)


def switches():
    usage = resource.getrusage(resource.RUSAGE_THREAD)
    return usage.ru_nvcsw, usage.ru_nivcsw


def main():
    fed, feeding = os.pipe()
    found, number = {"first": [], "second": []}, 0
    if not os.fork():
        os.close(fed)
        feed(feeding)
        os._exit(0)
    os.close(feeding)
    common.ready()
    while number % 100 or not common.stopped():
        number += 1
        caller = second if number % PERIOD == 0 else first
        before = switches()
        begin = time.monotonic_ns()
        caller(fed)
        end = time.monotonic_ns()
        after = switches()
        found[caller.__name__].append((begin + TO_REAL_NS, end + TO_REAL_NS, end - begin,
                                       after[0] - before[0], after[1] - before[1]))
    common.write("callers.json", found)


main()
