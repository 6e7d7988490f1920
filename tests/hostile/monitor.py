#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""monitor.py SOCKET AGENT_PID   Asks the agent for something cheap every 50 ms, until its standard
input ends.

Prints a line of JSON for each question: when it was asked, how long the answer took and what it
was, for how much of that time the machine (not the agent) is to blame, and what the agent and its
children have and took by then.  Run as root, by rig.py.
"""
import json
import os
import select
import socket
import sys
import time

EVERY_S = 0.05
# A version that no agent speaks: the loop itself answers, and no work is begun.
QUESTION = b"pyprofd 9 dump\n"
GIVE_UP_S = 15
PAGE = os.sysconf("SC_PAGESIZE")
TICK_S = 1.0 / os.sysconf("SC_CLK_TCK")


def read(path):
    with open(path, "rb") as file:
        return file.read().decode("utf-8", "replace")


def run_delay_s(pid):
    """For how long the process' main thread, or a child that it waits for, could run, and did
    not."""
    delay_s = 0.0
    for each in tree(pid):
        try:
            delay_s += int(read("/proc/%d/schedstat" % each).split()[1]) / 1e9
        except OSError:
            pass
    return delay_s


def steal_s():
    """The most that a hypervisor took of one CPU."""
    rows = [
        line.split() for line in read("/proc/stat").splitlines()
        if line[:3] == "cpu" and line[3] != " "
    ]
    return max(int(row[8]) for row in rows) * TICK_S


def tree(pid):
    found = [pid]
    for each in found:
        try:
            found += [
                int(child) for child in read("/proc/%d/task/%d/children" % (each, each)).split()
            ]
        except OSError:
            pass
    return found


def usage(pid):
    """Resident bytes and CPU seconds of a process and its children, of those that ended as well."""
    resident, cpu_s = 0, 0.0
    for each in tree(pid):
        try:
            resident += int(read("/proc/%d/statm" % each).split()[1]) * PAGE
            cpu_s += int(read("/proc/%d/schedstat" % each).split()[0]) / 1e9
            words = read("/proc/%d/stat" % each).rpartition(")")[2].split()
            cpu_s += (int(words[13]) + int(words[14])) * TICK_S
        except OSError:
            pass
    return resident, cpu_s


def ask(path):
    """The first word of the answer."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(GIVE_UP_S)
        try:
            client.connect(path)
            client.sendall(QUESTION)
            answer = b""
            while b"\n" not in answer:
                part = client.recv(4096)
                if not part:
                    break
                answer += part
        except OSError as error:
            return "%s" % error
    return answer.decode("utf-8", "replace").strip()


def main():
    path, agent = sys.argv[1], int(sys.argv[2])
    # As pyprof asks for root, who does not queue with everybody.
    if os.path.exists(path + ".root"):
        path += ".root"
    due = time.monotonic()
    while not select.select([sys.stdin], [], [], max(0, due - time.monotonic()))[0]:
        excuses = [run_delay_s(agent), run_delay_s(os.getpid()), steal_s()]
        began = time.monotonic()
        answer = ask(path)
        took = time.monotonic() - began
        # A child that has ended takes its own along.
        excuses = [
            max(0, b - a)
            for a, b in zip(excuses, [run_delay_s(agent),
                                      run_delay_s(os.getpid()),
                                      steal_s()])
        ]
        resident, cpu_s = usage(agent)
        print(json.dumps({"at": began, "took_s": took, "answer": answer, "excused_s": sum(excuses),
                          "resident_bytes": resident, "cpu_s": cpu_s}), flush=True)
        due = max(due + EVERY_S, time.monotonic())


if __name__ == "__main__":
    main()
