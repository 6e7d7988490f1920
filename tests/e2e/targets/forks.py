# -*- coding: utf-8 -*-
# SPDX-License-Identifier: BSD-2-Clause
"""Forks one child after another; each works 30 ms and is gone."""
import os
import time

import common


def forked_leaf(end):
    total = 0
    while time.process_time() < end:
        for number in range(1000):
            total += number * number


def forked_work():
    forked_leaf(0.03)  # a child's clock starts at 0


def main():
    pids = []
    common.ready()
    while not common.stopped():
        pid = os.fork()
        if pid == 0:
            forked_work()
            os._exit(0)
        pids.append(pid)
        os.waitpid(pid, 0)
    common.write("pids.json", pids)


if __name__ == "__main__":
    main()
