#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""mutants.py [--only AREA,...] [-n COUNT] [--seed N] [--file REGEX] [--list]   Do the unit tests notice a small change?

Draws COUNT changes (mutator.py) over the areas, by a seed that is printed, applies one at a time to a copy of the tree
($BUILD/mutants), and builds and runs the unit programs that name the changed file until one fails, under address and
undefined sanitizers.  A change is caught when a program fails, is killed or does not end.  Changes that the compiler
refuses or that leave the object files as they were are drawn again; so are those of equivalent.tsv, which have a reason.

Prints a line for each, and those that survived once more at the end.  Exit status 1: fewer than 95 % were caught."""
import argparse
import collections
import hashlib
import os
import random
import re
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True
import mutator  # noqa: E402

WANTED = 0.95
PROGRAMS = 5  # at most, for one change
LIMIT_S = 90
# Name of an area: the files that it is.  A file may lie in another folder some day; an area without files is an error.
AREAS = {
    "walk": r"bpf/lib/(walk(_native|_python|_state|_clock)?|frames|thread_state|code)\.bpf\.h$",
    "budget": r"bpf/lib/budget\.bpf\.h$|/walk_budgets\.c$",
    "unwind": r"/(unwind|finish)/(row|cfi|rule|fde|stack_)\w*\.c$",
    "python": r"/python/(line_table|python_(code|text|objects|info|frames|tls)|thread_names)\.c$",
    "ledger": r"/ledger/\w+\.c$",
    "window": r"/(live_windows|window|window_facts|profile|stack_table)\.c$",
    "labels": r"/(labels|profiles|identify_process)\.c$",
    "diff": r"/diff/(significance|statistics|rule|table)\.c$",
    "store": r"/store/\w+\.c$",
    "live": r"/live/(access|request|record)\.c$",
}
SOURCES = re.compile(r"^/\* sources: (.*) \*/$", re.M)
TREE = ("Makefile", "bpf", "include", "userspace", "tests/unit", "tests/bpf", "tests/tests.mk", "tests/deps.mk", "tests/web/page.c")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


class Tree:
    """A copy of what is built, with a build folder of its own, in which one file at a time is changed."""

    def __init__(self, folder):
        self.folder = os.path.join(folder, "tree")
        names = subprocess.check_output(["git", "-C", TOP, "ls-files", "-co", "--exclude-standard", *TREE],
                                        universal_newlines=True).split("\n")
        self.names = {name for name in names if name and os.path.exists(os.path.join(TOP, name))}
        self.texts = {name: read(os.path.join(TOP, name)) for name in self.names if name.endswith((".c", ".h"))}
        for name in self.names:
            self.copy(name)
        for base, _, files in os.walk(self.folder):
            for name in files:
                path = os.path.relpath(os.path.join(base, name), self.folder)
                if not path.startswith("build") and path not in self.names:
                    os.unlink(os.path.join(self.folder, path))
        # As the asan step builds it.
        self.flags = "-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer"

    def copy(self, name):
        source, copy = os.path.join(TOP, name), os.path.join(self.folder, name)
        if not os.path.exists(copy) or read_bytes(source) != read_bytes(copy):
            os.makedirs(os.path.dirname(copy), exist_ok=True)
            shutil.copyfile(source, copy)
            shutil.copymode(source, copy)

    def write(self, name, text):
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
            file.write(text)

    def make(self, *targets):
        """(it was built, what the compiler said)"""
        done = subprocess.run(["make", "-s", "--no-print-directory", "-C", self.folder, "BUILD=build", "CI=", "-j%d" % (
            os.cpu_count() or 1), "CFLAGS=" + self.flags, *targets], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            universal_newlines=True, check=False)
        return done.returncode == 0, done.stdout

    def run(self, program):
        """None when it passes, else how it ended."""
        try:
            done = subprocess.run([os.path.join(self.folder, program)], cwd=self.folder, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIMIT_S, check=False,
                                  env=dict(os.environ, CMOCKA_MESSAGE_OUTPUT="TAP"))
        except subprocess.TimeoutExpired:
            return "no end within %d s" % LIMIT_S
        if not done.returncode:
            return None
        failed = re.findall(rb"^not ok \d+ - (\S+)", done.stdout, re.M)
        return failed[0].decode() if failed else "exit status %d" % done.returncode

    def objects(self, programs, name):
        """A sum over the objects that a change of the file can change."""
        found = hashlib.sha256()
        for path in ["build/" + name[:-2] + ".o"] if name.endswith(".c") and not name.startswith("bpf/") else [
                program + ".o" for program in programs]:
            found.update(read_bytes(os.path.join(self.folder, path)))
        return found.digest()


def read_bytes(path):
    with open(path, "rb") as file:
        return file.read()


class Programs:
    """Which unit programs look at a file."""

    def __init__(self, tree):
        self.tree, self.sources, self.texts, self.is_well = tree, {}, {}, {}
        for name in tree.names:
            if re.search(r"/test_\w+\.c$", name) and not name.endswith("_arm64.c"):
                text = tree.texts[name]
                found = SOURCES.search(text)
                self.sources["build/" + name[:-2]] = found.group(1).split() if found else []
                self.texts["build/" + name[:-2]] = text

    def of(self, name):
        """Those of the file, the most special first."""
        base = os.path.basename(name).split(".")[0]
        if name.startswith("bpf/"):
            found = [p for p in self.sources if p.startswith("build/tests/bpf/")]
        else:
            found = [p for p in self.sources if name[len("userspace/"):] in self.sources[p]]
            found = found or [p for p in self.sources if "all" in self.sources[p]]

        def rank(program):
            text, words = self.texts[program], set(os.path.basename(program)[len("test_"):].split("_"))
            return (os.path.basename(program) != "test_" + base,
                    not ("lib/%s.bpf.h:" % base in text or "lib/%s.bpf.h" % base in text[:600]),
                    -len(words & set(base.split("_"))),
                    name.startswith("bpf/") and -len(re.findall(r"\b%s" % base, text)), len(self.sources[program]), program)
        return sorted(found, key=rank)[:PROGRAMS]

    def pass_unchanged(self, programs):
        for program in programs:
            if program not in self.is_well:
                built, said = self.tree.make(program)
                if not built:
                    sys.exit("%s does not build:\n%s" % (program, said[-2000:]))
                self.is_well[program] = self.tree.run(program)
                if self.is_well[program]:
                    print("# %s fails without a change (%s) and is left out" % (program, self.is_well[program]))
        return [program for program in programs if not self.is_well[program]]


def try_one(tree, programs, mutant):
    """What caught it, "" when nothing did, None when it is no change."""
    well = programs.pass_unchanged(programs.of(mutant.path))
    if not well:
        return ""
    original = tree.texts[mutant.path]
    lines = original.split("\n")
    lines[mutant.line - 1] = mutant.after
    same = True
    try:
        # Each is built in its turn: most are caught by the first one.
        for program in well:
            tree.make(program)
            before = tree.objects([program], mutant.path)
            tree.write(mutant.path, "\n".join(lines))
            built, _ = tree.make(program)
            if not built:
                return None
            if tree.objects([program], mutant.path) != before:
                same = False
                how = tree.run(program)
                if how:
                    return "%s: %s" % (os.path.basename(program), how)
            tree.write(mutant.path, original)
    finally:
        tree.write(mutant.path, original)
    return None if same else ""


def equivalent():
    """(base name, line before, line after), without their indentation."""
    rows = [line.split("\t") for line in read(os.path.join(HERE, "equivalent.tsv")).split("\n") if line and line[0] != "#"]
    return {(row[0], row[1].strip(), row[2].strip()) for row in rows}


def draw(tree, files, generator):
    """Endless, in turns over the areas: (area, Mutant)."""
    known, pools = equivalent(), {}
    for area, names in files.items():
        pool = [m for name in sorted(names) for m in mutator.mutants(name, tree.texts[name])
                if (os.path.basename(name), m.before.strip(), m.after.strip()) not in known]
        generator.shuffle(pool)
        pools[area] = pool
    while any(pools.values()):
        for area, pool in pools.items():
            if pool:
                yield area, pool.pop()


def areas_of(names, only, file):
    wanted = only.split(",") if only else list(AREAS)
    unknown = [area for area in wanted if area not in AREAS]
    if unknown:
        sys.exit("no area %s; there are %s" % (",".join(unknown), " ".join(AREAS)))
    found = {area: [name for name in names if re.search(AREAS[area], name) and not name.startswith("tests/")
                    and re.search(file, name)] for area in wanted}
    empty = [area for area in found if not found[area]]
    if empty and not file:
        sys.exit("no file belongs to %s: see AREAS" % ",".join(empty))
    return {area: names for area, names in found.items() if names}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="AREA,...")
    parser.add_argument("-n", type=int, default=60, metavar="COUNT")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--file", default="", metavar="REGEX", help="of these files only")
    parser.add_argument("--list", action="store_true", help="areas, files and their programs")
    options = parser.parse_args()
    seed = random.SystemRandom().randrange(10**6) if options.seed is None else options.seed
    print("# seed %d" % seed)
    tree = Tree(os.path.join(TOP, os.environ.get("BUILD") or "build", "mutants"))
    programs = Programs(tree)
    files = areas_of(tree.names, options.only, options.file)
    if options.list:
        for area, names in files.items():
            for name in sorted(names):
                print("%-8s %-44s %s" % (area, name, " ".join(os.path.basename(p) for p in programs.of(name))))
        return 0
    count, survivors = collections.Counter(), []
    for area, mutant in draw(tree, files, random.Random(seed)):
        if count["caught"] + count["survived"] >= options.n:
            break
        begin = time.monotonic()
        how = try_one(tree, programs, mutant)
        if how is None:
            count["no change"] += 1
            continue
        count["caught" if how else "survived"] += 1
        text = "%-7s %s:%d: %s: `%s` -> `%s`" % (area, mutant.path, mutant.line, mutant.kind, mutant.before.strip(),
                                              mutant.after.strip())
        print("%s %s (%.0f s)%s" % ("ok" if how else "SURVIVED", text, time.monotonic() - begin, how and " by " + how))
        sys.stdout.flush()
        if not how:
            survivors.append(text)
    total = count["caught"] + count["survived"]
    if survivors:
        print("# survived:\n" + "\n".join(survivors))
    print("seed %d: %d of %d changes caught (%.0f %%), %d drawn again as they change nothing" % (
        seed, count["caught"], total, 100 * count["caught"] / max(total, 1), count["no change"]))
    return 0 if total and count["caught"] >= WANTED * total else 1


if __name__ == "__main__":
    sys.exit(main())
