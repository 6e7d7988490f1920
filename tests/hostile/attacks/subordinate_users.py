# SPDX-License-Identifier: BSD-2-Clause
"""Set-user-ID files that a user has made in a user namespace run outside of it as 16 others, whose
ids are his in /etc/subuid: together they map more interpreters than there are numbers, and hold
sixteen watchers.  A new interpreter of another user has its frames, and he is answered."""
import os
import select
import shutil
import subprocess
import sys
import time

import craft

FIRST, TENANTS, INTERPRETERS, WATCHERS = 300000000, 16, 18, 16
SUBUIDS = "65534:%d:65536\n" % FIRST
SERVED_S = 8  # a report of a second


def prepare(rig):
    """As newuidmap and a namespace of the attacker's let him."""
    home = rig.folder("attacker-65534", 65534)
    for i in range(TENANTS):
        tenant = os.path.join(home, "tenant-%d" % i)
        shutil.copy(os.path.realpath("/usr/bin/python3"), tenant)
        os.chown(tenant, FIRST + i, FIRST + i)
        os.chmod(tenant, 0o4755)


def tenant(number, directory, socket):
    """What each of them does."""
    from idle_watchers import watch
    for i in range(INTERPRETERS):
        if os.fork():
            time.sleep(0.02)
            continue
        path = craft.fake_interpreter(
            os.path.join(directory, "libpython-%d-%d.so" % (number, i)), 0x030b08f0,
            unique=number * INTERPRETERS + i)
        base = craft.map_fake(path)
        while True:
            craft.call(base + craft.PAGE)
            time.sleep(2)
    clients = [None] * (number < WATCHERS)
    print("there", flush=True)
    poll = select.poll()
    while True:
        for i, client in enumerate(clients):
            poll.register(client, select.POLLRDHUP) if client else None
            if not client or poll.poll(0):
                clients[i] = watch(socket)
            if client:
                poll.unregister(client)
        time.sleep(0.05)


def attack(box):
    craft.needs_x86()
    forged = os.path.join(box.directory, "forged")
    os.mkdir(forged)
    os.chmod(forged, 0o777)
    script = ("import sys; sys.path.insert(0, sys.argv[1]); import subordinate_users; "
              "subordinate_users.tenant(int(sys.argv[2]), *sys.argv[3:])")
    for i in range(TENANTS):
        one = subprocess.Popen([os.path.join(box.directory, "tenant-%d" % i), "-c", script,
                                box.directory, str(i), forged, box.socket], stdout=subprocess.PIPE)
        # Some at a time: what one user's programs cost is not the question here.
        if i % 4 == 3:
            assert one.stdout.readline() == b"there\n"
    time.sleep(2)
    box.ready()
    while True:
        time.sleep(60)


def meanwhile(rig):
    from test_dump import PYPROF, become  # not there for who attacks
    began = time.monotonic()
    said = subprocess.run([PYPROF, "report", "--socket", rig.socket, "--live", "--for", "1"],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=30, check=False,
                          preexec_fn=lambda: become(65533))
    took = time.monotonic() - began
    print("the victim's report took %.1f s" % took, file=sys.stdout)
    assert said.returncode == 0, "another user is not answered: %s" % said.stdout.decode()
    assert took < SERVED_S + rig.excess_s(), "he waits %.1f s" % took
