# -*- coding: utf-8 -*-
# SPDX-License-Identifier: BSD-2-Clause
"""Runs inside the other interpreter."""
import os


def sub_leaf():
    total = 0
    for number in range(100000):
        total += number * number
    return total


def in_sub(directory):
    while not os.path.exists(os.environ["E2E_DIR"] + "/stop"):
        sub_leaf()
