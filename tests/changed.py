#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""changed.py BASE   Which parts of `make check` look at the files that differ from commit BASE, by
tests/changed.tsv, as assignments for a shell: all=1, or steps, e2e (a regular expression) and unit
(tests' sources).  Files that are not committed count, too."""
import glob
import os
import re
import shlex
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def changed(base):
    """Paths; OSError or CalledProcessError where that cannot be told."""
    def git(*words):
        return subprocess.run(["git", "-C", TOP, *words], check=True, stderr=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, universal_newlines=True).stdout.splitlines()
    return sorted(set(git("diff", "--name-only", base)
                      + git("ls-files", "--others", "--exclude-standard")))


def rows():
    with open(os.path.join(TOP, "tests/changed.tsv"), encoding="utf-8") as file:
        for line in file:
            if line.strip() and not line.startswith("#"):
                paths, steps, e2e = line.rstrip("\n").split("\t")
                yield re.compile(paths), steps, e2e


def choose(paths):
    """(steps, regular expressions of end-to-end tests); None: everything."""
    table, steps, tests = list(rows()), set(), set()
    for path in paths:
        found = [row for row in table if row[0].search(path)]
        if not found:
            print("# %s is in no row of tests/changed.tsv: everything runs" % path,
                  file=sys.stderr)
            return None
        for _, more, e2e in found:
            steps.update(more.replace("-", "").split())
            tests.update([e2e] if e2e != "-" else [])
        of_test = re.match(r"tests/e2e/test_(\w+)\.py$", path)
        tests.update([r"^%s\." % of_test.group(1)] if of_test else [])
    return steps, tests


def linked_objects(build, test):
    """The product's objects in a unit program, as its last link told."""
    try:
        with open(os.path.join(build, test[:-2] + ".linked"), encoding="utf-8") as file:
            return set(re.findall(r"\buserspace/\S+\.o$", file.read(), re.M))
    except OSError:
        return set()


def unit_tests(paths):
    """Sources of the unit programs that are linked with a changed file, include one, or were never
    linked."""
    build = os.path.join(TOP, os.environ.get("BUILD") or "build")
    objects = {path[:-2] + ".o" for path in paths if re.match(r"userspace/.*\.c$", path)}
    of_bpf = any(path.startswith(("bpf/", "tests/bpf/", "include/")) for path in paths)
    found = []
    for path in sorted(glob.glob(TOP + "/tests/unit/*/test_*.c")
                       + glob.glob(TOP + "/tests/bpf/host/test_*.c")):
        name = os.path.relpath(path, TOP)
        with open(path, encoding="utf-8") as file:
            head = file.read(16384)
        linked = linked_objects(build + "-asan", name) or linked_objects(build, name)
        included = re.findall(r'^#include "([^"]+)"', head, re.M)
        headers = set(included) | {"userspace/" + header for header in included}
        beside = {os.path.basename(p) for p in paths if os.path.dirname(p) == os.path.dirname(name)}
        if (name in paths or not linked or linked & objects or headers & (set(paths) | beside)
                or of_bpf and name.startswith("tests/bpf/")):
            found.append(name)
    return found


def main():
    try:
        paths = changed(sys.argv[1])
    except (OSError, subprocess.CalledProcessError):
        print("all=1")
        return
    chosen = choose(paths)
    if chosen is None:
        print("all=1")
        return
    print("all= steps=%s e2e=%s unit=%s files=%d" % (
        shlex.quote(" ".join(sorted(chosen[0]))), shlex.quote("|".join(sorted(chosen[1]))),
        shlex.quote(" ".join(unit_tests(paths))), len(paths)))


if __name__ == "__main__":
    main()
