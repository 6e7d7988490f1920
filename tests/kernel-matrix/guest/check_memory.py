# SPDX-License-Identifier: BSD-2-Clause
"""check_memory.py PROFILE MIB MISSED   Is the memory counted that memory.py touched and copied, at
the lines that did so?  MISSED: how many allocations the kernel did not tell, because the program
was running on that CPU already; where it can be preempted those may be any of ours."""
import os
import sys

import pprof

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "memory.py")
MB = 1 << 20
PAGE = 4096
TOLERANCE = 0.03
LITTLE = 2  # MiB


def marks():
    """{line: its mark}"""
    return {number: line.split("# L:")[1].strip()
            for number, line in enumerate(open(SOURCE), 1) if "# L:" in line}


def mark_of(sample, names):
    """The mark of the innermost line of memory.py; elsewhere: None."""
    for frame in sample.frames:
        if frame.kind == "python" and frame.file.endswith("memory.py"):
            return names.get(frame.line)
    return None


def main(path, mib, missed):
    profile = pprof.load(path)
    types = [name for name, _ in profile.sample_types]
    names, found, faults = marks(), {}, {}
    for sample in profile.samples:
        name = mark_of(sample, names)
        for kind in ("first_touch", "cow") if name else ():
            amount = sample.values[types.index(kind)]
            found[name, kind] = found.get((name, kind), 0) + amount / MB
            if amount:
                faults[name, kind] = (faults.get((name, kind), 0)
                                      + sample.values[types.index("faults")])
    wanted = {("fill", "first_touch"): mib, ("read", "first_touch"): mib, ("write_to", "cow"): mib}
    missing = missed * PAGE / MB
    good = all(-missing <= found.get(key, 0) - (1 - TOLERANCE) * size <= 2 * TOLERANCE * size
               for key, size in wanted.items())
    good &= all(size < LITTLE for key, size in found.items() if key not in wanted)
    # Pages of 4 KiB, but where the kernel has taken huge ones.
    good &= all(0 < faults.get(key, 0) <= (1 + TOLERANCE) * size * MB / PAGE
                for key, size in wanted.items())
    print("guest: memory: %s MiB each, %d allocations missed: %s" % (mib, missed, ", ".join(
        "%s of line %s %.1f in %d pages" % (kind, name, size, faults.get((name, kind), 0))
        for (name, kind), size in sorted(found.items()))))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], float(sys.argv[2]), int(sys.argv[3])))
