#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""times.py DIRECTORY SECONDS   Whether the windows of a run in which the clock was set a year on
and two back follow each other: without a gap under the names of each year, without a burst, and as
long in all as the run was at least."""
import os
import re
import sys

YEAR_MS = 365 * 86400 * 1000
NAME = re.compile(r"^(\d+)-(\d+)-cpu\.pb\.gz$")


def main():
    windows = sorted(tuple(map(int, match.groups())) for _, _, names in os.walk(sys.argv[1])
                     for match in map(NAME.match, names) if match)
    print(windows)
    years = {}
    for start, length in windows:
        years.setdefault(round((start - windows[0][0]) / YEAR_MS), []).append((start, length))
    assert sorted(years) == [0, 1, 2], "three times of a year each: %s" % sorted(years)
    for found in years.values():
        for (start, length), (follower, _) in zip(found, found[1:]):
            assert abs(start + length - follower) < 10, (start, length, follower)
    covered_s = sum(length for _, length in windows) / 1000
    assert covered_s > float(sys.argv[2]), covered_s
    assert len(windows) <= covered_s / 2 + 2, len(windows)


if __name__ == "__main__":
    main()
