# SPDX-License-Identifier: BSD-2-Clause
"""The program that the guest's user runs."""
import os


def inner(count):
    total = 0
    for i in range(count):
        total += i * i
    return total


def outer():
    while True:
        inner(2000)


with open("pid", "w", encoding="ascii") as file:
    file.write(str(os.getpid()))
outer()
