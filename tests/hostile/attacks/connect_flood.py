# SPDX-License-Identifier: BSD-2-Clause
"""Connects to the live socket and leaves again, as fast as two processes can: some 30,000 times a
second."""
import os
import socket
import time

import craft  # noqa: F401

SECONDS = 5
CPU_SHARE = 0.25


def attack(box):
    os.fork()
    parent = os.getppid()
    tried, connected, told = 0, 0, time.monotonic()
    box.ready()
    seen = open("rate-%d" % os.getpid(), "w", encoding="ascii")
    while os.getppid() == parent:
        client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        try:
            client.connect(box.socket)
            connected += 1
        except OSError:
            pass
        client.close()
        tried += 1
        if tried == 1 << 14:
            now = time.monotonic()
            seen.write("%.0f of %.0f a second\n" % (connected / (now - told), tried / (now - told)))
            seen.flush()
            tried, connected, told = 0, 0, now


def check(rig):
    for attacker in rig.attackers:
        for name in sorted(os.listdir(os.path.join(rig.directory, "attacker-%d" % attacker.user))):
            if name.startswith("rate-"):
                with open(os.path.join(rig.directory, "attacker-%d" % attacker.user, name),
                          encoding="ascii") as file:
                    print("connected: " + ", ".join(file.read().split("\n")[:4]))
