# SPDX-License-Identifier: BSD-2-Clause
"""Four clients of one user ask without pause for the stacks of 4,000 threads.  Another user's dump
of one process is there soon."""
import os
import socket
import subprocess
import sys
import threading
import time

import craft  # noqa: F401

THREADS, CLIENTS = 4000, 4
SERVED_S = 4


def keep_asking(path, pid):
    while True:
        client = socket.socket(socket.AF_UNIX)
        try:
            client.connect(path)
            client.sendall(b"pyprofd 1 dump %d\n" % pid)
            while client.recv(1 << 16):
                pass
        except OSError:
            time.sleep(0.01)
        client.close()


def attack(box):
    threading.stack_size(64 << 10)
    forever = threading.Lock()
    forever.acquire()
    for _ in range(THREADS):
        threading.Thread(target=forever.acquire, daemon=True).start()
    pid = os.getpid()
    for _ in range(CLIENTS):
        # Programs without the threads.
        subprocess.Popen([
            sys.executable, "-c", "import sys; sys.path[:0] = sys.argv[1].split(':'); "
            "import many_dumps; many_dumps.keep_asking(sys.argv[2], int(sys.argv[3]))",
            ":".join(sys.path), box.socket, str(pid)])
    time.sleep(2)
    box.ready()
    time.sleep(3600)


def meanwhile(rig):
    from test_dump import PYPROF, become  # not there for who attacks
    mine = subprocess.Popen(["sleep", "100"], preexec_fn=lambda: become(65533))
    try:
        began = time.monotonic()
        said = subprocess.run([PYPROF, "dump", "--socket", rig.socket,
                               "--pid", str(mine.pid)],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=60, check=False,
                              preexec_fn=lambda: become(65533))
        took = time.monotonic() - began
    finally:
        mine.kill()
        mine.wait()
    print("the victim's dump took %.1f s" % took)
    assert said.returncode == 0, "another user is not answered: %s" % said.stdout.decode()
    assert took < SERVED_S + rig.excess_s(), "he waits %.1f s" % took
