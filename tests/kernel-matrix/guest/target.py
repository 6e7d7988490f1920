# SPDX-License-Identifier: BSD-2-Clause
"""A program whose stacks are known: <module> -> outer -> Worker.step -> inner, for ever.

check.py reads the marks `# L:name` for the lines of calls; the lines of inner() it asks of the
interpreter."""


def inner(count):
    total = 0
    for number in range(count):
        total += number * number
        total ^= number
    return total


class Worker:
    def step(self, count):
        return inner(count)  # L:step


def outer():
    worker = Worker()
    while True:
        worker.step(20000)  # L:outer


if __name__ == "__main__":
    Worker().step(10)
    open("/tmp/ready", "w").close()
    outer()  # L:module
