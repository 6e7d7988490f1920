# SPDX-License-Identifier: BSD-2-Clause
"""check_memory.py PROFILE MIB   Is the memory counted that memory.py touched and copied?"""
import sys

import pprof

MB = 1 << 20
TOLERANCE = 0.03
LITTLE = 2  # MiB


def main(path, mib):
    profile = pprof.load(path)
    types = [name for name, _ in profile.sample_types]
    found = {}
    for sample in profile.samples:
        for name in ("fill", "read", "write_to", "page_cache"):
            if any(f.name == name and f.kind == "python" for f in sample.frames):
                for kind in ("first_touch", "cow"):
                    key = name, kind
                    found[key] = found.get(key, 0) + sample.values[types.index(kind)] / MB
    wanted = {("fill", "first_touch"): mib, ("read", "first_touch"): mib, ("write_to", "cow"): mib}
    good = all(abs(found.get(key, 0) - size) <= TOLERANCE * size for key, size in wanted.items())
    good &= all(size < LITTLE for key, size in found.items() if key not in wanted)
    print("guest: memory: %s MiB each: %s" % (mib, ", ".join(
        "%s of %s %.1f" % (kind, name, size) for (name, kind), size in sorted(found.items()))))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], float(sys.argv[2])))
