# SPDX-License-Identifier: BSD-2-Clause
"""Four users hold four live watchers each, which ask for everything and read nothing; who is closed
comes again.  Root still has its answers."""
import select
import socket
import subprocess
import time

import craft  # noqa: F401

USERS = (65534, 65530, 65529, 65528)
EACH = 4
SERVED_S = 8  # a report of a second


def watch(path):
    client = socket.socket(socket.AF_UNIX)
    client.settimeout(1)
    try:
        client.connect(path)
        client.sendall(b"pyprofd 1 top all\n")
    except OSError:
        client.close()
        return None
    return client


def attack(box):
    clients = [watch(box.socket) for _ in range(EACH)]
    box.ready()
    poll = select.poll()
    while True:
        # Who hangs up is told without a read.
        for i, client in enumerate(clients):
            poll.register(client, select.POLLRDHUP) if client else None
            if not client or poll.poll(0):
                clients[i] = watch(box.socket)
            if client:
                poll.unregister(client)
        time.sleep(0.05)


def meanwhile(rig):
    from test_dump import PYPROF  # not there for who attacks
    for words in (["dump", "--all"], ["report", "--live", "--for", "1"], ["top", "--count", "1"]):
        began = time.monotonic()
        said = subprocess.run([PYPROF, words[0], "--socket", rig.socket] + words[1:],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=30, check=False)
        took = time.monotonic() - began
        print("root's %s took %.1f s" % (words[0], took))
        assert said.returncode == 0 and said.stdout, "%s: %s" % (words, said.stdout)
        assert took < SERVED_S + rig.excess_s(), "root waits %.1f s for %s" % (took, words[0])
