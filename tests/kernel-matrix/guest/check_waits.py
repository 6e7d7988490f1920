# SPDX-License-Identifier: BSD-2-Clause
"""check_waits.py FOLDED PID SECONDS   Is the time off the CPU where waits.py spends it?"""
import sys

# An emulated machine beside other work is late.
LEAST, MOST = 0.75, 1.15
WANTED = {"napper": "nap", "locker": "locker", "reader": "reader", "sleeper": "sleeper",
          "MainThread": "<module>"}


def main(path, pid, seconds):
    spent = dict.fromkeys(WANTED, 0)
    others = {}
    for line in open(path, encoding="utf-8", errors="replace"):
        stack, _, count = line.rstrip("\n").rpartition(" ")
        frames = stack.split(";")
        if not frames[0].startswith("process %s:" % pid):
            continue
        thread = frames[1].partition(": ")[2]
        names = [f.partition(" (")[0] for f in frames]
        if WANTED.get(thread) in names and names[-1].endswith("_[k]"):
            spent[thread] += int(count)
        else:
            others[stack] = int(count)
    good = all(LEAST <= ns / (float(seconds) * 1e9) <= MOST for ns in spent.values())
    print("guest: %s: seconds off the CPU of %s: %s" % (path.rpartition("/")[2], seconds, ", ".join(
        "%s %.2f" % (name, ns / 1e9) for name, ns in sorted(spent.items()))))
    if not good:
        for stack, count in sorted(others.items(), key=lambda item: -item[1])[:3]:
            print("guest: elsewhere (%.2f s): %s" % (count / 1e9, stack[:700]))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
