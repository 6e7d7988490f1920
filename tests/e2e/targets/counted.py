# SPDX-License-Identifier: BSD-2-Clause
"""Twenty functions whose calls are counted: counted.py [cprofile OUT | light]   waits for a line on
stdin.

Recursion, generators, exceptions through frames, threads.  Each function has a loop of its own, so
that of two neighbours in the order of own time one has 1.4 times the other's; with `light` none has
any to speak of.  Prints the length of each thread's outermost call, in ns."""
import cProfile
import os
import random
import sys
import threading
import time

LEAST_TURNS, RATIO = 0 if sys.argv[1:] == ["light"] else 15000, 1.4
# How often each loop runs
LOOPS = {
    "fib": 1943, "even": 100, "odd": 110, "numbers": 300, "chained": 60, "closed": 60,
    "receiver": 102, "raiser": 60, "passer": 60, "catcher": 60, "__init__": 200, "move": 800,
    "wrapper": 120, "inner": 120, "key": 250, "shared": 300, "short": 2500, "left": 1, "right": 1,
    "work": 1,
}
ORDER = [
    "catcher", "odd", "right", "passer", "key", "closed", "inner", "even", "left", "raiser",
    "wrapper", "receiver", "work", "chained", "__init__", "numbers", "shared", "move", "short",
    "fib",
]
TURNS = {name: int(LEAST_TURNS * RATIO**at / LOOPS[name]) for at, name in enumerate(ORDER)}
lengths = []


def fib(n):
    for _ in range(TURNS["fib"]):
        pass
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def even(n):
    for _ in range(TURNS["even"]):
        pass
    return n == 0 or odd(n - 1)


def odd(n):
    for _ in range(TURNS["odd"]):
        pass
    return n != 0 and even(n - 1)


def numbers(n):
    for i in range(n):
        for _ in range(TURNS["numbers"]):
            pass
        yield i


def chained(n):
    for _ in range(TURNS["chained"]):
        pass
    yield from numbers(n)
    for _ in range(TURNS["chained"]):
        pass


def closed():
    try:
        while True:
            for _ in range(TURNS["closed"]):
                pass
            yield
    finally:
        pass


def receiver():
    while True:
        try:
            for _ in range(TURNS["receiver"]):
                pass
            yield
        except KeyError:
            pass


def raiser():
    for _ in range(TURNS["raiser"]):
        pass
    raise ValueError


def passer():
    for _ in range(TURNS["passer"]):
        pass
    raiser()


def catcher():
    for _ in range(TURNS["catcher"]):
        pass
    try:
        passer()
    except ValueError:
        pass


class Point:
    def __init__(self):
        for _ in range(TURNS["__init__"]):
            pass

    def move(self):
        for _ in range(TURNS["move"]):
            pass


def decorate(function):
    def wrapper(*args):
        for _ in range(TURNS["wrapper"]):
            pass
        return function(*args)
    return wrapper


@decorate
def inner():
    for _ in range(TURNS["inner"]):
        pass


def shared():
    for _ in range(TURNS["shared"]):
        pass


def short():
    for _ in range(TURNS["short"]):
        pass


def key(n):
    for _ in range(TURNS["key"]):
        pass
    return -n


def left():
    for _ in range(TURNS["left"]):
        pass
    for _ in range(100):
        shared()


def right():
    for _ in range(TURNS["right"]):
        pass
    for _ in range(100):
        shared()


def work():
    chance = random.Random(14)
    for _ in range(TURNS["work"]):
        pass
    steps = ([lambda: fib(8)] * 29 + [lambda: even(9), lambda: odd(10)] * 10
             + [lambda: sum(chained(10))] * 30 + [catcher] * 60 + [inner] * 120)
    chance.shuffle(steps)
    for step in steps:
        step()
    for _ in range(200):
        point = Point()
        for _ in range(4):
            point.move()
    for _ in range(30):
        ending = closed()
        next(ending), next(ending)
        ending.close()
    asking = receiver()
    next(asking)
    for _ in range(50):
        asking.throw(KeyError), next(asking)
    sorted(range(250), key=key)
    for _ in range(100):
        shared()
    for _ in range(2500):
        short()


def outermost(function):
    began = time.perf_counter_ns()
    function()
    lengths.append(time.perf_counter_ns() - began)


def run(function, profiles):
    if profiles is None:
        outermost(function)
        return
    profile = cProfile.Profile(builtins=False)
    profile.enable()
    outermost(function)
    profile.disable()
    profile.create_stats()
    profiles.append(profile)


def run_all(profiles):
    threads = [
        threading.Thread(target=run, args=(function, profiles)) for function in (left, right)
    ]
    run(work, profiles)
    for thread in threads:
        thread.start()
        thread.join()


def main():
    try:
        # Nobody else's time is to be in ours.
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except OSError:
        pass
    profiles = [] if sys.argv[1:2] == ["cprofile"] else None
    print("ready", flush=True)
    sys.stdin.readline()
    run_all(profiles)
    if profiles is not None:
        import pstats
        pstats.Stats(*profiles).dump_stats(sys.argv[2])
    print(*lengths, flush=True)
    sys.stdin.readline()


main()
