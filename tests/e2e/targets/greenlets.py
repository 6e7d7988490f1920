# SPDX-License-Identifier: BSD-2-Clause
"""Two greenlets that a third one (as gevent's hub) switches to, each time from another depth."""
import time

import greenlet

import common


def greenlet_leaf(seconds):
    end = time.thread_time() + seconds
    count = 0
    while time.thread_time() < end:
        for _ in range(1000):
            count += 1
    return count


def greenlet_one():
    while True:
        greenlet_leaf(0.006)
        hub.switch()


def greenlet_other():
    while True:
        greenlet_leaf(0.002)
        hub.switch()


def from_depth(depth, to):
    if depth:
        # A function in C between: an activation of its own on the C stack.
        return max([depth], key=lambda _: from_depth(depth - 1, to))
    to.switch()
    return 0


def hub_run():
    turn = 0
    while not common.stopped():
        turn += 1
        from_depth(0 if turn < 3 else 12 + turn % 5, workers[turn % 2])


workers = [greenlet.greenlet(greenlet_one), greenlet.greenlet(greenlet_other)]
hub = greenlet.greenlet(hub_run)
common.ready()
hub.switch()
