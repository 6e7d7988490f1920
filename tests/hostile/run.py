#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""run.py [-k REGEX] [-v] [-j N] [--quick] [--list]   Attacks the built pyprofd, by programs of an
unprivileged user.

Each file of attacks/ is one test (rig.py says what is held), and so is each function test_* of the
files here.  --quick takes those that `make check` has room for.  Output as tests/e2e/run.py: a
test's line, and a closing line that sums up. With --quick one that fails is run once more, alone,
and told (tests/e2e/retries.py): the machine of `make check` is shared.
"""
import argparse
import ast
import glob
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(os.path.dirname(HERE), "e2e")]
import harness  # noqa: E402
import retries  # noqa: E402
import run as e2e  # noqa: E402
sys.path.append(HERE)
import rig  # noqa: E402

LIMIT_S = 120


def says(path, name):
    """Whether the file sets this constant to True."""
    with open(path, encoding="utf-8") as file:
        return any(
            isinstance(node, ast.Assign) and node.targets[0].id == name and node.value.value is True
            for node in ast.parse(file.read()).body if isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name) and isinstance(node.value, ast.Constant))


def attacks(quick):
    for path in sorted(glob.glob(os.path.join(HERE, "attacks", "*.py"))):
        if not quick or says(path, "QUICK"):
            name = os.path.basename(path)[:-3]
            yield e2e.Test(name, lambda name=name: rig.play(name), LIMIT_S, says(path, "ALONE"),
                           False)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-k", metavar="REGEX", default="", help="attacks whose name matches")
    parser.add_argument("-v", action="store_true", help="the figures of those that passed, too")
    parser.add_argument("-j", type=int, default=os.cpu_count(), metavar="N",
                        help="attacks at a time (one a CPU)")
    parser.add_argument("--quick", action="store_true", help="a minute of them")
    parser.add_argument("--list", action="store_true", help="names only")
    parser.add_argument("--repeat", type=int, default=1, metavar="N", help="each attack N times")
    options = parser.parse_args()
    tests = list(attacks(options.quick))
    count = len(list(attacks(False))) - len(tests)
    if not options.quick:
        tests += e2e.collect(sorted(glob.glob(os.path.join(HERE, "test_*.py"))))
    tests = [t for t in tests if re.search(options.k, t.name)]
    if options.list or not tests:
        print("\n".join(t.name for t in tests) or "no attack matches %s" % options.k)
        return 0 if tests else 2
    if os.geteuid() != 0 or not os.access(harness.PYPROFD, os.X_OK):
        print("# not root, or no %s: nothing can be attacked" % harness.PYPROFD)
        print("0 passed, 0 failed, %d skipped" % len(tests))
        return 1
    if count:
        print("# left to check-long: %d attacks (make hostile)" % count)
    tally = e2e.Tally(options.v)
    for run in e2e.run_all(tests * options.repeat, max(1, options.j)):
        tally.add(run)
    again = retries.chosen(sorted(set(tally.failed)),
                           len(tests)) if options.quick and options.repeat == 1 else []
    for name in again:
        tally.failed.remove(name)
    for run in e2e.run_all([t for t in tests if t.name in again], 1) if again else []:
        tally.add(run, is_retry=True)
    for name in tally.failed:
        print("# failed: " + name)
    print("%d passed, %d failed, %d skipped%s" % (tally.passed, len(
        tally.failed), tally.skipped, retries.said(again)))
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())
