# SPDX-License-Identifier: BSD-2-Clause
"""check.py FOLDED PID   Do the stacks of target.py have the right names, order and lines?"""
import os
import sys

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "target.py")
MINIMUM_SAMPLES = 60  # of 297; an emulated machine is slow
MINIMUM_WHOLE = 0.97
MINIMUM_DEEP = 0.9  # that reach inner(), where nearly all of the time is spent


def truth():
    """(lines of calls by mark, lines of inner() as the interpreter gives them)."""
    text = open(SOURCE).read()
    marks = {}
    for number, line in enumerate(text.split("\n"), 1):
        if "# L:" in line:
            marks[line.split("# L:")[1].strip()] = number
    codes = [c for c in compile(text, SOURCE, "exec").co_consts if hasattr(c, "co_lines")]
    inner = [c for c in codes if c.co_name == "inner"][0]
    # The line of RESUME is the def's: an instruction as any other.
    return marks, {line for _, _, line in inner.co_lines() if line}


def frame_of(text):
    """('name', line) of `name (…target.py:12)`; (text, None) of all others."""
    name, _, rest = text.rpartition(" (")
    path, _, line = rest.rstrip(")").rpartition(":")
    if name and path.endswith("target.py") and line.isdigit():
        return name, int(line)
    return text, None


def stacks(path, pid):
    for line in open(path, encoding="utf-8", errors="replace"):
        stack, _, count = line.rstrip("\n").rpartition(" ")
        frames = stack.split(";")
        head = frames[0]
        if head.startswith("process %s:" % pid) or head.startswith("process %s " % pid):
            yield frames, int(count)


def main(path, pid):
    marks, inner_lines = truth()
    calls = [("<module>", marks["module"]), ("outer", marks["outer"]),
             ("Worker.step", marks["step"])]
    total = whole = native = deep = 0
    seen = set()
    wrong = {}
    for frames, count in stacks(path, pid):
        total += count
        native += count if any(f.startswith("_start") for f in frames) else 0
        python = [f for f in map(frame_of, frames) if f[1]]
        names = [name for name, _ in python]
        expected = [name for name, _ in calls] + ["inner"]
        # A sample between two calls sees a part of the chain only: then its leaf's line is free.
        if not names or names != expected[:len(names)]:
            wrong[";".join(frames)] = count
        elif python[:len(names) - 1] != calls[:len(names) - 1]:
            wrong[";".join(frames)] = count
        elif len(names) == 4 and python[3][1] not in inner_lines:
            wrong[";".join(frames)] = count
        else:
            whole += count
            if len(names) == 4:
                deep += count
                seen.add(python[3][1])
    print("guest: %s: %d samples, %d right, %d to inner(), %d from _start, lines of inner %s"
          % (os.path.basename(path), total, whole, deep, native, sorted(seen)))
    for stack, count in sorted(wrong.items(), key=lambda item: -item[1])[:3]:
        print("guest: wrong (%d): %s" % (count, stack[:700]))
    good = (total >= MINIMUM_SAMPLES and whole >= MINIMUM_WHOLE * total
            and deep >= MINIMUM_DEEP * total and native >= MINIMUM_WHOLE * total and len(seen) >= 3)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
