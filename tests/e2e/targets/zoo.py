# -*- coding: utf-8 -*-
# SPDX-License-Identifier: BSD-2-Clause
"""Every kind of Python frame, and what the interpreter itself says about them.  2.7, 3.6 to 3.15.

In a first round each function asks the interpreter for its own callers (names, files and the lines
that they are at, from sys._getframe) and for the lines that its code object has.  The rounds after
that only work; the test compares what was sampled with truth.json."""
import os
import sys
import threading
import time

import common

HAVE_3 = sys.version_info[0] >= 3
chains = {}  # (names, files and lines of callers, root first; name and file of the leaf) -> 1
codes = {}  # (name, file, first line) -> lines that have instructions


def lines_of(code):
    if hasattr(code, "co_lines"):
        found = set(line for _, _, line in code.co_lines() if line)
    else:
        import dis
        found = set(line for _, line in dis.findlinestarts(code) if line)
    found.add(code.co_firstlineno)
    return sorted(found)


def name_of(code):
    return getattr(code, "co_qualname", code.co_name)


def record():
    """Notes the caller of record() and all of its callers."""
    frame = sys._getframe(1)
    chain = []
    while frame is not None:
        code = frame.f_code
        chain.append([name_of(code), code.co_filename, frame.f_lineno])
        codes[name_of(code), code.co_filename, code.co_firstlineno] = lines_of(code)
        frame = frame.f_back
    chain.reverse()
    chain[-1][2] = 0  # the leaf's line moves on
    chains[tuple(tuple(c) for c in chain)] = 1
    return 0


mark = record  # int afterwards: a call that makes no Python frame


def burn(count):
    mark()
    total = 0
    for number in range(count):
        total += number * number
        total ^= (number
                  + 1)
    return total


class Animal(object):
    def method(self, count):
        mark()
        return burn(count)

    @classmethod
    def of_class(cls, count):
        mark()
        return burn(count)

    @staticmethod
    def of_nobody(count):
        mark()
        return burn(count)

    @property
    def attribute(self):
        mark()
        return burn(900)

    def __add__(self, other):
        mark()
        return burn(900)


def nested(count):
    mark()

    def inside(number):
        mark()

        def deeper(n):
            mark()
            return burn(n)
        return deeper(number)

    return inside(count)


def comprehension(count):
    mark()
    first = [mark() or burn(n) for n in (count, count)]
    second = {n: mark() or burn(n) for n in (count, count + 1)}
    return first, second, {
        mark() or burn(n)
        for n in (count,
                  count)}


def generator(count):
    mark()

    def numbers():
        mark()
        for n in (count, count, count):
            yield burn(n)
            mark()

    return sum(numbers()) + sum(mark() or burn(n) for n in (count, count))


def callback(count):
    mark()
    return sorted([2, 1, 3],
                  key=lambda number: mark() or burn(count))


def lambdas(count):
    mark()
    twice = lambda number: mark() or burn(number)  # noqa: E731
    return list(map(twice, [count,
                            count]))


def deep(depth, count):
    mark()
    return burn(count) if depth == 0 else deep(depth - 1, count)


def raising(count):
    mark()
    try:
        burn(count)
        raise ValueError
    except ValueError:
        burn(count)
    finally:
        burn(count)


SOURCE = """
def from_string(count):
    mark()


    return burn(count)
mark()
from_string(600)
"""
STRING = compile(SOURCE, "<string>", "exec")


def executed():
    mark()
    exec(STRING, {"mark": mark, "burn": burn})


if HAVE_3:
    import zoo_unicode


def one_round():
    mark()
    animal = Animal()
    animal.method(700)
    Animal.of_class(700)
    Animal.of_nobody(700)
    animal.attribute
    animal + animal
    nested(700)
    comprehension(400)
    generator(400)
    callback(400)
    lambdas(500)
    deep(30, 700)
    raising(400)
    executed()
    if HAVE_3:
        zoo_unicode.call_all(mark, burn)


def worker():
    mark()
    while not common.stopped():
        # More than half of the work is the main thread's.
        for _ in range(3):
            burn(700)
        time.sleep(0.002)


def publish():
    global mark
    mark = int
    common.write("truth.json", {
        "chains": sorted(chains), "codes": [list(k) + [v] for k, v in sorted(codes.items())],
        "version": list(sys.version_info[:3])})
    common.ready()


def main():
    thread = threading.Thread(target=worker, name="zoo-worker")
    thread.daemon = True
    mark()
    thread.start()
    rounds = 0
    while rounds % 20 or not common.stopped():
        one_round()  # the only call: the line that was noted holds for all rounds
        rounds += 1
        if rounds == 1:
            time.sleep(0.3)  # the worker has noted its callers
            publish()


if __name__ == "__main__":
    main()
