# -*- coding: utf-8 -*-
# SPDX-License-Identifier: BSD-2-Clause
"""30 ms of work."""
import time


def spawn_child_work():
    end = time.process_time() + 0.03
    total = 0
    while time.process_time() < end:
        for number in range(1000):
            total += number * number


spawn_child_work()
