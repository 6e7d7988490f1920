# SPDX-License-Identifier: BSD-2-Clause
"""Numbers about a running program, and statistics of lists."""
import os
import random
import statistics
import time

PAGE = os.sysconf("SC_PAGE_SIZE")


def own_cpu_s(pid):
    """CPU time of all live threads: the scheduler's sums, in ns, without the tick's coarseness."""
    total = 0
    for task in os.listdir("/proc/%d/task" % pid):
        try:
            with open("/proc/%d/task/%s/schedstat" % (pid, task), encoding="ascii") as file:
                total += int(file.read().split()[0])
        except OSError:
            pass
    return total / 1e9


def status_kib(pid, key):
    with open("/proc/%d/status" % pid, encoding="utf-8", errors="replace") as file:
        for line in file:
            if line.startswith(key + ":"):
                return int(line.split()[1])
    return 0


def fd_count(pid):
    return len(os.listdir("/proc/%d/fd" % pid))


def median(values):
    return statistics.median(values) if values else float("nan")


def interval_95(values, rounds=4000, seed=1):
    """Bootstrap interval of the median."""
    if not values:
        return float("nan"), float("nan")
    chance = random.Random(seed)
    medians = sorted(
        statistics.median(chance.choices(values, k=len(values))) for _ in range(rounds))
    return medians[int(0.025 * rounds)], medians[int(0.975 * rounds) - 1]


def loadavg():
    return os.getloadavg()[0]


def quiet(limit_s=20):
    """Waits a little while other programs keep the machine busy; returns the share of idle time
    seen."""
    share = 0.0
    for _ in range(limit_s):
        before = cpu_times()
        time.sleep(1)
        after = cpu_times()
        share = (after[1] - before[1]) / max(1e-9, after[0] - before[0])
        if share > 0.9:
            break
    return share


def cpu_times():
    """(all, idle) in ticks"""
    with open("/proc/stat", encoding="ascii") as file:
        words = [int(w) for w in file.readline().split()[1:]]
    return sum(words[:8]), words[3] + words[4]
