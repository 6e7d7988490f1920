# SPDX-License-Identifier: BSD-2-Clause
"""check_probes.py counts FOLDED PID FUNCTION NUMBER   Was the function hit so often?
check_probes.py stacks FOLDED PID   Are the stacks of `probed` of one thread each, and whole?"""
import re
import sys

WHOLE_LEAST = 0.9  # the others may be torn, or come late on an emulated machine


def stacks(path, pid):
    for line in open(path, encoding="utf-8", errors="replace"):
        stack, _, count = line.rstrip("\n").rpartition(" ")
        frames = stack.split(";")
        if frames[0].startswith("process %s:" % pid):
            # Frames of the kernel come last.
            yield [f.partition(" (")[0] for f in frames[1:] if not f.endswith("_[k]")], int(count)


def counts(path, pid, function, number):
    # Hits while all of a CPU's slots were lent to threads that were preempted have no stack.
    got = sum(count for frames, count in stacks(path, pid)
              if frames and frames[-1] in (function, "[other stacks]"))
    print("guest: %s: %s was hit %d times of %s" % (path.rpartition("/")[2], function, got, number))
    return got == int(number)


def is_whole(frames):
    """thread_NN, five calls and the sleep: nothing of another thread's, nothing left out."""
    threads = [i for i, f in enumerate(frames) if re.match(r"thread_\d\d$", f)]
    called = frames[threads[0] + 1:] if threads else []
    return len(threads) == 1 and called[:5] == ["probed_again"] * 5 and "sleep" in called[-1]


def whole(path, pid):
    total = good = mixed = 0
    bad = {}
    for frames, count in stacks(path, pid):
        if not any("sleep" in f for f in frames):
            continue
        total += count
        mixed += count * (len({f for f in frames if re.match(r"thread_\d\d$", f)}) > 1)
        if is_whole(frames):
            good += count
        else:
            bad[";".join(frames)] = count
    print("guest: %s: %d in probed functions, %d whole, %d of two threads"
          % (path.rpartition("/")[2], total, good, mixed))
    for stack, count in sorted(bad.items(), key=lambda item: -item[1])[:3]:
        print("guest: not whole (%d): %s" % (count, stack[:300]))
    return total > 30 and good >= WHOLE_LEAST * total and not mixed


if __name__ == "__main__":
    sys.exit(0 if (counts if sys.argv[1] == "counts" else whole)(*sys.argv[2:]) else 1)
