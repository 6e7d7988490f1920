# SPDX-License-Identifier: BSD-2-Clause
"""Lines that are counted: lined.py [settrace OUT]   waits for a line on stdin, then works.

Prints the length of work() in ns.  With settrace the hits of each line are written to OUT as JSON:
{function: {line: hits}}, as line_profiler counts them, by the interpreter's own line events."""
import collections
import json
import os
import sys
import threading
import time

NAP_S, NAPS = 0.02, 10


class Model(object):
    def __init__(self, n):
        self.n = n

    def step(self, depth):
        total = 0
        for i in range(self.n):
            if i % 3 == 0:
                total += i
            elif i % 3 == 1:
                continue
            total += self.part(i)
        return total if not depth else total + self.step(depth - 1)

    def part(self, i):
        return i * 2


class Other(object):
    def step(self, depth):
        return depth


def countdown(n):
    while n:
        n -= 1
        yield n


def catches(n):
    caught = 0
    for i in range(n):
        try:
            raises(i)
        except ValueError:
            caught += 1
        finally:
            caught += 0
    return caught


def raises(i):
    if i % 2:
        raise ValueError(i)
    return i


def listed(n):
    squares = [i * i for i in range(n)]
    pairs = {i: str(i)
             for i in squares}
    return sum(
        squares,
        len(pairs),
    )


def one(n): return n + 1


def naps(n):
    for _ in range(n):
        time.sleep(NAP_S)
    return n


def fib(n):
    if n < 2:
        return n
    return fib(n - 1) + fib(n - 2)


def threaded(n):
    total = 0
    for i in range(n):
        total += i
    return total


def work():
    model = Model(300)
    model.step(4)
    Other().step(1)
    for _ in countdown(50):
        pass
    catches(60)
    listed(40)
    for i in range(25):
        one(i)
    fib(12)
    threads = [threading.Thread(target=threaded, args=(700, )) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return naps(NAPS)


def traced(out):
    hits = collections.defaultdict(lambda: collections.defaultdict(int))

    def on_event(frame, event, _):
        if os.path.basename(frame.f_code.co_filename) != "lined.py":
            return None
        if event == "line":
            hits[frame.f_code.co_name][frame.f_lineno] += 1
        return on_event

    threading.settrace(on_event)
    sys.settrace(on_event)
    work()
    sys.settrace(None)
    threading.settrace(None)
    with open(out, "w") as file:
        json.dump(hits, file)


def main():
    print("ready")
    sys.stdout.flush()
    sys.stdin.readline()
    began = time.time()
    if sys.argv[1:]:
        traced(sys.argv[2])
    else:
        work()
    print(int((time.time() - began) * 1e9))
    sys.stdout.flush()
    sys.stdin.readline()


if __name__ == "__main__":
    main()
