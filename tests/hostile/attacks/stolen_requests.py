# SPDX-License-Identifier: BSD-2-Clause
"""Asks the live socket for everything at once, in requests of all shapes: too long ones, halves,
other versions, processes of others, bytes that are no text."""
import random
import socket

import craft  # noqa: F401

QUICK = True


def attack(box):
    requests = [
        b"pyprofd 1 dump all\n", b"pyprofd 1 top all\n",
        b"pyprofd 1 top all kinds=cpu,offcpu,wall,gil\n", b"x" * 5000 + b"\n",
        b"pyprofd 1 dump " + b",".join(b"%d" % i for i in range(300)) + b"\n", b"\0" * 100,
        b"pyprofd 1 dump %d\n" % box.victims[0], b"pyprofd 99999999999999999999 dump all\n",
        b"pyprofd 1 top",
        b"pyprofd 1 top %d kinds=cpu\n" % box.victims[-1], b"\xff\xfe\n", b"\n",
        b"pyprofd 1 dump -1\n"
    ]
    seen = open("answers", "wb")
    box.ready()
    while True:
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(0.5)
            try:
                client.connect(box.socket)
                client.sendall(random.choice(requests))
                if random.random() < 0.3:
                    answer = client.recv(1 << 16)
                    if seen.tell() < 1 << 19:
                        seen.write(answer)
            except OSError:
                pass
