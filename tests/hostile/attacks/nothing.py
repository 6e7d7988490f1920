# SPDX-License-Identifier: BSD-2-Clause
"""No attack: what holds under one holds without, and the rig asks for nothing that a quiet agent
does not give."""
import time

import craft  # noqa: F401

QUICK = True


def attack(box):
    box.ready()
    time.sleep(60)
