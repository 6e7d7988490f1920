# -*- coding: utf-8 -*-
# SPDX-License-Identifier: BSD-2-Clause
"""many_stacks.py THREADS REST_S LIFE_S [WORK_S]   THREADS threads that wait for about REST_S each
time at one of 4,000 stacks, and live for LIFE_S (0: until `stop`); another one takes the place of
one that ends. After each wait they work for WORK_S of CPU time.  Writes what they did."""
import random
import sys
import threading
import time

import common

LEAVES, DEPTHS = 200, 20

CODE = """
def leaf_{0}(rest_s):
    time.sleep(rest_s)

def step_{0}(depth, leaf, rest_s):
    if depth:
        STEPS[(depth * 7 + {0}) % LEAVES](depth - 1, leaf, rest_s)
    else:
        leaf(rest_s)
"""

names = {"time": time, "LEAVES": LEAVES}
for number in range(LEAVES):
    exec(CODE.format(number), names)
STEPS = names["STEPS"] = [names["step_%d" % i] for i in range(LEAVES)]
PLACES = [names["leaf_%d" % i] for i in range(LEAVES)]


def burn(work_s):
    end = time.thread_time() + work_s
    while time.thread_time() < end:
        pass


def work(rest_s, life_s, work_s, stop):
    choose = random.Random(threading.get_ident())
    end = time.monotonic() + life_s
    while not stop.is_set() and (not life_s or time.monotonic() < end):
        choose.choice(STEPS)(choose.randrange(DEPTHS), choose.choice(PLACES),
                             rest_s * choose.uniform(0.5, 1.5))
        burn(work_s)


def main(count, rest_s, life_s, work_s):
    threading.stack_size(256 * 1024)
    stop = threading.Event()
    threads, started = [], 0
    common.ready()
    while not common.stopped():
        threads = [t for t in threads if t.is_alive()]
        for _ in range(count - len(threads)):
            threads.append(threading.Thread(target=work, args=(rest_s, life_s, work_s, stop)))
            threads[-1].start()
            started += 1
        time.sleep(0.01 if life_s else 0.1)
    stop.set()
    for thread in threads:
        thread.join()
    common.write("many_stacks.json", {"threads": started, "cpu_s": common.cpu_s()})


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3]), float((sys.argv[4:] or [0])[0]))
