# -*- coding: utf-8 -*-
# SPDX-License-Identifier: BSD-2-Clause
"""Stacks of code objects that no sample has seen before, without end.  3.8 and later."""
import collections
import sys
import time
import types

import common

DEPTH = 300
chain = []


def link(at):
    if at + 1 < len(chain):
        return chain[at + 1](at + 1)
    end = time.perf_counter() + 0.004
    while time.perf_counter() < end:
        pass
    return at


def fresh(turn, at):
    name = "never_seen_before_%d_%d_" % (turn, at)
    names = {"co_name": name + "x" * 180}
    if sys.version_info >= (3, 11):
        names["co_qualname"] = names["co_name"]
    return types.FunctionType(link.__code__.replace(**names), globals())


def main():
    common.ready()
    turn = 0
    # Not freed at once: new ones would lie where old ones did, and be taken for them.
    kept = collections.deque(maxlen=150)
    while not common.stopped():
        turn += 1
        chain[:] = [fresh(turn, at) for at in range(DEPTH)]
        kept.append(list(chain))
        chain[0](0)


if __name__ == "__main__":
    main()
