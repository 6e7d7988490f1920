#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""mutants.py [--only AREA,...] [-n COUNT] [--seed N] [--file REGEX] [--list]   Do the unit tests
notice a small change?

Draws COUNT changes (mutator.py) in turns over the areas, by a seed that is printed.  Each changed
file is compiled apart, below $BUILD/mutants, and linked into the unit programs that have the file,
one program after the other until one fails; two changes are tried at a time.  No source file is
ever changed: the programs are built from a copy of the tree, so the checkout may be edited
meanwhile.  What is changed is compiled with address and undefined sanitizers, all else without.

As root each program runs by apart.py: in namespaces of its own, where it can write only to a new
/tmp, with a bound of time and memory.

A change is caught when a program fails, is killed or does not end.  Drawn again are changes that
the compiler refuses, those of which it makes the same code as before (as the tests are built, or at
-O2), and those that equivalent.tsv lists with a reason.  Areas in parentheses (--list) are drawn
from only when --only names them.

Prints a line for each change, the survivors once more, and a table of areas.  Exit status 1: fewer
than 95 % were caught."""
import argparse
import collections
import concurrent.futures
import hashlib
import json
import os
import queue
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True
import apart  # noqa: E402
import mutator  # noqa: E402

WANTED = 0.95
PROGRAMS = 12  # at most, for one change
AT_A_TIME = 2
SLOW_S = 2
LIMIT_S = 10  # for one program, and ten times what it takes without a change
MEMORY_MIB = 2000  # for it and all that it starts
# Name of an area: the files that it is.  A file may move to another directory some day; an area
# without files is an error.
AREAS = {
    "walk": r"bpf/lib/(walk(_native|_python|_state|_clock)?|frames|thread_state|code)\.bpf\.h$",
    "budget": r"bpf/lib/budget\.bpf\.h$|/(budget|rate|probe_bounds)\.c$",
    "unwind": r"/(unwind|finish)/(row|cfi|rule|fde|stack_)\w*\.c$",
    "python": r"/python/(line_table|python_(code|text|objects|info|frames|tls)|thread_names)\.c$",
    "ledger": r"/ledger/\w+\.c$",
    "window": r"/(live_windows|window|window_facts|samples|tables|profile|stack_table)\.c$",
    "labels": r"/(labels|profiles|identify_process)\.c$",
    "diff": r"/diff/(significance|statistics|rule|table|comparable)\.c$",
    "store": r"/store/\w+\.c$",
    "live": r"/live/(access|request|record)\.c$",
}
# Those that are drawn from only by name.
MORE_AREAS = {
    "agent": r"/(agent|processes|windows|probes|gpu|doctor)/(?!main)\w+\.c$",
    "finish": r"/finish/\w+\.c$",
    "pprof": r"/pprof/\w+\.c$",
    "facts": r"/profile/facts\.c$",
    "serve": r"/live/(client|feed|model|server)\.c$",
    "options": r"/options/\w+\.c$",
    "config": r"/config/\w+\.c$|/(agent|doctor)/(rate|reload|findings|doctor_sinks)\.c$",
    "symbolize": r"/symbolize/\w+\.c$",
    "timeline": r"/timeline/\w+\.c$",
    "render": r"/render/\w+\.c$",
    "export": r"/export/\w+\.c$",
    "collectors": (r"/collectors/(collector|queue|series|session|settings)\.c$|"
                   r"/(remote|base/collectors)\.c$"),
    "http": r"/serve/(exchange|metrics|peer|places|request)\.c$",
    "query": r"/query/(?!live_windows)\w+\.c$",
    "reader": r"/reader/(?!main)\w+\.c$",
    "base": r"/base/\w+\.c$",
    "attach": r"/attach/\w+\.c$",
    "discover": r"/discover/\w+\.c$",
    "drain": r"/drain/\w+\.c$",
    "elf": r"/elf/\w+\.c$",
    "identity": r"/identity/\w+\.c$",
    "files": r"/files/\w+\.c$",
    "peek": r"/peek/\w+\.c$",
    "child": r"/child/\w+\.c$",
    # What users share, in the kernel and in the agent.
    "shares": (r"bpf/lib/(slot|user)_share\.bpf\.h$|/(user_quota|profile_shares|process_shares|"
               r"stack_intake|incomplete_queue)\.c$"),
}
# All that make reads, and what unit programs are built from.
TREE = ("Makefile", "bpf", "include", "userspace", "tests/unit", "tests/bpf", "tests/*.mk",
        "tests/*/*.mk", "tests/fakes", "tests/gpu", "tests/interpreters", "tests/web/page.c")
# Sources ask for the address sanitizer, whose library is in the programs, by its macro.
FLAGS = "-O0 -g0 -D__SANITIZE_ADDRESS__"
# Of the changed object and of tests' own, whose arrays it may read beside; the heap is everybody's.
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
APART = ["unshare", "-m", "-p", "-n", "-i", "--fork", "--kill-child", sys.executable, "-I", "-S",
         os.path.join(HERE, "apart.py")]


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def read_bytes(path):
    with open(path, "rb") as file:
        return file.read()


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


class Tree:
    """A copy of what is built, with a build directory of its own.  It is brought up to date once,
    and not changed then."""

    def __init__(self, directory):
        self.directory = os.path.join(directory, "tree")
        names = subprocess.check_output(
            ["git", "-C", TOP, "ls-files", "-co", "--exclude-standard", *TREE],
            universal_newlines=True).split("\n")
        self.names = {name for name in names if name and os.path.exists(os.path.join(TOP, name))}
        for name in self.names:
            self.copy(name)
        for base, _, files in os.walk(self.directory):
            for name in files:
                path = os.path.relpath(os.path.join(base, name), self.directory)
                if not path.startswith("build") and path not in self.names:
                    os.unlink(os.path.join(self.directory, path))
        self.texts = {
            name: read(os.path.join(self.directory, name)) for name in self.names
            if name.endswith((".c", ".h"))
        }

    def copy(self, name):
        source, copy = os.path.join(TOP, name), os.path.join(self.directory, name)
        if not os.path.exists(copy) or read_bytes(source) != read_bytes(copy):
            os.makedirs(os.path.dirname(copy), exist_ok=True)
            shutil.copyfile(source, copy)
            shutil.copymode(source, copy)

    def make(self, *words):
        return subprocess.run([
            "make", "--no-print-directory", "-C", self.directory, "BUILD=build", "CI=",
            "CFLAGS=" + FLAGS, "UNIT_CFLAGS=" + " ".join(SANITIZERS), "LDFLAGS=" + SANITIZERS[0],
            *words
        ], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True, check=False)

    def read_commands(self, programs):
        """What make would do to build them all from nothing: what compiles, by object, and what
        links, by program."""
        self.compiles, self.links = {}, {}
        for line in self.make("-n", "-B", "V=1", *programs).stdout.split("\n"):
            words = shlex.split(line.split(" > ")[0]) if " -o build/" in line else []
            if "-o" in words:
                of = words[words.index("-o") + 1]
                (self.compiles if "-c" in words else self.links)[of] = words

    def commands(self, name, program):
        """([what compiles the file, or the program's own file for a header], [what links the
        program])"""
        of = program + ".o" if name.endswith(".h") else "build/" + name[:-2] + ".o"
        if of not in self.compiles or program not in self.links:
            sys.exit("make does not say how %s gets into %s" % (name, program))
        return self.compiles[of], self.links[program]


class Place:
    """A directory for one of the changes that are tried at a time: the changed file, what is made
    of it, what programs write."""

    def __init__(self, tree, directory):
        self.tree, self.directory, self.sums = tree, directory, {}
        self.temporary = os.path.join(directory, "tmp")
        shutil.rmtree(directory, ignore_errors=True)
        os.makedirs(self.temporary)
        shutil.copytree(os.path.join(tree.directory, "bpf"), os.path.join(directory, "source/bpf"))

    def execute(self, words, limit, asan=None):
        """(exit status or None, output) of a unit program, if options of the sanitizer are given,
        or of a tool.  Whatever it started ends with it."""
        output, temporary = os.path.join(self.directory, "output"), self.temporary
        is_apart = asan is not None and os.geteuid() == 0
        if is_apart:
            os.chmod(temporary, 0o1777)
            words = [*APART, str(limit), str(MEMORY_MIB), temporary,
                     os.path.join("/tmp", os.path.basename(words[0])), *words[1:]]
            temporary = "/tmp"
            limit += 10
        else:
            # An endless loop shall not fill the disk; sparse files of tests have 2 GiB.
            words = ["sh", "-c", 'ulimit -f 4500000; exec "$@"', "sh", *words]
        with open(output, "wb") as file:
            child = subprocess.Popen(
                words, cwd=self.tree.directory, stdin=subprocess.DEVNULL, stdout=file,
                stderr=subprocess.STDOUT, start_new_session=True,
                env=dict(os.environ, CMOCKA_MESSAGE_OUTPUT="TAP",
                         TMPDIR=temporary,
                         ASAN_OPTIONS="allocator_may_return_null=1" + (asan or "")))
            try:
                child.wait(limit)
            except subprocess.TimeoutExpired:
                pass
            finally:
                try:
                    os.killpg(child.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            status = child.poll()
            child.wait()
        return None if is_apart and status == apart.OUT_OF_TIME else status, read_bytes(output)

    def compile(self, name, text, words, is_plain):
        """The object's sum, None when the compiler refuses.  Plain: at -O2 without sanitizers."""
        source, thing = os.path.join(self.directory, "source"), os.path.join(
            self.directory, "changed.o")
        words = [word for word in words if word not in ("-MMD", "-MP", "-Wall", "-Wextra")]
        # Before the flags of the file, which may take one of them back.
        words = [*words, "-O2"] if is_plain else [words[0], *SANITIZERS, *words[1:]]
        words[words.index("-o") + 1] = thing
        if name.startswith("bpf/"):
            words[words.index("bpf")] = os.path.join(source, "bpf")
        else:
            words[words.index("-c") + 1] = os.path.join(source, name)
        try:
            write(os.path.join(source, name), text)
            status, _ = self.execute([*words, "-w", "-ffile-prefix-map=%s/=" % source], 300)
        finally:
            write(os.path.join(source, name), self.tree.texts[name])
        return hashlib.sha256(read_bytes(thing)).hexdigest() if status == 0 else None

    def is_same(self, name, text, words, is_plain):
        """None when the compiler refuses it.  The last object compiled is the changed one."""
        key = name, words[words.index("-o") + 1], is_plain
        if key not in self.sums:
            self.sums[key] = self.compile(name, self.tree.texts[name], words, is_plain)
        found = self.compile(name, text, words, is_plain)
        return None if found is None else found == self.sums[key]

    def link(self, program, words, replaced=None):
        """The path of the program, with the changed object in place of the one that is named."""
        linked = os.path.join(self.temporary, os.path.basename(program))
        if replaced:
            # Before the archive, of whose own object nothing is asked for then.
            at = words.index(replaced if replaced in words else "build/libpyprofd.a")
            words = [*words[:at], os.path.join(self.directory, "changed.o"),
                     *words[at + (replaced in words):]]
        words = list(words)
        words[words.index("-o") + 1] = linked
        status, said = self.execute(words, 300)
        if status != 0:
            sys.exit("%s does not link:\n%s" % (program, said.decode()[-2000:]))
        return linked

    def run(self, program, limit, asan, *link):
        """(exit status or None, output) of the program, which is linked for that alone."""
        linked = self.link(program, *link)
        try:
            return self.execute([linked], limit, asan)
        finally:
            shutil.rmtree(self.temporary, ignore_errors=True)
            os.makedirs(self.temporary)

    def attempt(self, mutant, programs):
        """What caught it, "" when nothing did, None when it is no change."""
        lines = self.tree.texts[mutant.path].split("\n")
        lines[mutant.line - 1] = mutant.after
        text, tried, is_compiled = "\n".join(lines), [], False
        for program in programs.of(mutant.path):
            takes_s, asan = programs.time(program, self)
            if takes_s is None:
                continue
            compiles, links = self.tree.commands(mutant.path, program)
            # A header is compiled with each program.
            if mutant.path.endswith(".h") or not is_compiled:
                same, is_compiled = self.is_same(mutant.path, text, compiles, False), True
                if same is None:
                    return None
                if same:
                    continue
            tried.append(compiles)
            status, output = self.run(program, LIMIT_S + 10 * takes_s, asan, links,
                                      compiles[compiles.index("-o") + 1])
            if status is None:
                return "%s: no end" % os.path.basename(program)
            if status:
                failed = re.findall(rb"^not ok \d+ - (\S+)", output, re.M)
                return "%s: %s" % (os.path.basename(program),
                                   failed[0].decode() if failed else "exit status %d" % status)
        if all(self.is_same(mutant.path, text, compiles, True) for compiles in tried):
            return None
        return ""


class Programs:
    """Which unit programs look at a file."""

    def __init__(self, tree):
        self.tree, self.objects, self.ranked = tree, {}, {}
        self.texts = {
            "build/" + name[:-2]: text for name, text in tree.texts.items()
            if re.search(r"/test_\w+\.c$", name) and not name.endswith("_arm64.c")
        }
        begin = time.monotonic()
        print("# building %d unit programs" % len(self.texts))
        sys.stdout.flush()
        done = tree.make("-s", "-j%d" % AT_A_TIME, *sorted(self.texts))
        if done.returncode:
            sys.exit("the unit programs do not build:\n" + done.stdout[-2000:])
        for program in self.texts:
            linked = read(os.path.join(tree.directory, program + ".linked"))
            self.objects[program] = set(re.findall(r"^build/(userspace/\S+)\.o$", linked, re.M))
        tree.read_commands(sorted(self.texts))
        self.lock, self.locks = threading.Lock(), {}
        self.path = os.path.join(tree.directory, "build/unchanged.json")
        self.known = json.loads(read(self.path)) if os.path.exists(self.path) else {}
        print("# built in %.0f s" % (time.monotonic() - begin))
        sys.stdout.flush()

    def of(self, name):
        """Those of the file, the most special first, what takes long last."""
        if name not in self.ranked:
            self.ranked[name] = self.rank(name)
        return sorted(self.ranked[name], key=lambda p: self.seconds(p) > SLOW_S)

    def rank(self, name):
        base = os.path.basename(name).split(".")[0]
        if name.startswith("bpf/"):
            found = [p for p in self.texts if p.startswith("build/tests/bpf/")]
        else:
            found = [p for p in self.texts if name[:-2] in self.objects[p]]

        def rank(program):
            text, words = self.texts[program], set(
                os.path.basename(program)[len("test_"):].split("_"))
            return (os.path.basename(program) != "test_" + base,
                    not ("lib/%s.bpf.h:" % base in text or "lib/%s.bpf.h" % base in text[:600]),
                    -len(words & set(base.split("_"))), name.startswith("bpf/")
                    and -len(re.findall(r"\b%s" % base, text)), len(self.objects[program]), program)
        return sorted(found, key=rank)[:PROGRAMS]

    def seconds(self, program):
        """0: not known, or it fails."""
        return (self.known.get(program) or (0, 0))[1] or 0

    def time(self, program, place):
        """(seconds that it takes without a change, options of the address sanitizer); the first is
        None when it fails then, and is left out."""
        with self.lock:
            lock = self.locks.setdefault(program, threading.Lock())
        with lock:
            built = os.stat(os.path.join(self.tree.directory, program)).st_mtime
            if self.known.get(program, (0,))[0] != built:
                # What leaks in code that is not looked at, on purpose, must not hide the rest.
                for asan in ("", ":detect_leaks=0"):
                    started = time.monotonic()
                    status, output = place.run(program, 300, asan, self.tree.links[program])
                    takes_s = None if status != 0 else time.monotonic() - started
                    if status == 0:
                        break
                else:
                    print("# left out, as it fails without a change: %s\n%s"
                          % (program, output.decode(errors="replace")[-600:]))
                with self.lock:
                    self.known[program] = built, takes_s, asan
                    write(self.path, json.dumps(self.known))
            return self.known[program][1:]


def equivalent():
    """(base name, line before, line after), without their indentation."""
    rows = [
        line.split("\t") for line in read(os.path.join(HERE, "equivalent.tsv")).split("\n")
        if line and line[0] != "#"
    ]
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
    every = {**AREAS, **MORE_AREAS}
    wanted = only.split(",") if only else list(AREAS)
    unknown = [area for area in wanted if area not in every]
    if unknown:
        sys.exit("no area %s; there are %s" % (",".join(unknown), " ".join(every)))
    found = {
        area: [
            name for name in names if re.search(every[area], name) and not name.startswith("tests/")
            and re.search(file, name)
        ] for area in wanted
    }
    empty = [area for area in found if not found[area]]
    if empty and not file:
        sys.exit("no file belongs to %s: see AREAS" % ",".join(empty))
    return {area: names for area, names in found.items() if names}


def attempts(tree, programs, drawn, directory, first):
    """(area, Mutant, what caught it, seconds) in the order of the draw, whichever is ready
    first."""
    places = queue.Queue()
    for place in [first] + [
            Place(tree, os.path.join(directory, "place%d" % i)) for i in range(1, AT_A_TIME)
    ]:
        places.put(place)

    def attempt(mutant):
        begin, place = time.monotonic(), places.get()
        try:
            return place.attempt(mutant, programs), time.monotonic() - begin
        finally:
            places.put(place)
    pool, ahead = concurrent.futures.ThreadPoolExecutor(AT_A_TIME), collections.deque()
    try:
        for area, mutant in drawn:
            ahead.append((area, mutant, pool.submit(attempt, mutant)))
            if len(ahead) > AT_A_TIME:
                area, mutant, future = ahead.popleft()
                yield (area, mutant, *future.result())
        while ahead:
            area, mutant, future = ahead.popleft()
            yield (area, mutant, *future.result())
    finally:
        for _, _, future in ahead:
            future.cancel()
        pool.shutdown()


def report(results, files, seed, nothing):
    """Prints who survived, and how many in each area; returns the share that was caught."""
    survivors = [text for _, how, text in results if not how]
    if survivors:
        print("# survived:\n" + "\n".join(survivors))
    for area in files:
        of = [how for other, how, _ in results if other == area]
        if of:
            print("# %-9s %3d of %3d caught (%3.0f %%)" % (area, sum(map(
                bool, of)), len(of), 100 * sum(map(bool, of)) / len(of)))
    caught = len(results) - len(survivors)
    share = caught / max(len(results), 1)
    print("seed %d: %d of %d changes caught (%.0f %%), %d drawn again as they change nothing" % (
        seed, caught, len(results), 100 * share, nothing))
    return share


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="AREA,...")
    parser.add_argument("-n", type=int, default=60, metavar="COUNT")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--file", default="", metavar="REGEX", help="of these files only")
    parser.add_argument("--list", action="store_true", help="areas, files and their programs")
    options = parser.parse_args()
    seed = random.SystemRandom().randrange(10**6) if options.seed is None else options.seed
    # Signals that would end Python at once end it in order: programs and compilers are children.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    directory = os.path.abspath(os.path.join(TOP, os.environ.get("BUILD") or "build", "mutants"))
    tree = Tree(directory)
    programs = Programs(tree)
    if options.list:
        for area, names in areas_of(tree.names, options.only or ",".join([*AREAS, *MORE_AREAS]),
                                    options.file).items():
            for name in sorted(names):
                print("%-11s %-44s %s" % (area if area in AREAS else "(%s)" % area, name, " ".join(
                    os.path.basename(p) for p in programs.of(name))))
        return 0
    files = areas_of(tree.names, options.only, options.file)
    print("# seed %d" % seed)
    first = Place(tree, os.path.join(directory, "place0"))
    results, nothing = [], 0
    found = attempts(tree, programs, draw(tree, files, random.Random(seed)), directory, first)
    try:
        for area, mutant, how, took_s in found if options.n > 0 else ():
            if how is None:
                nothing += 1
                continue
            text = "%-7s %s:%d: %s: `%s` -> `%s`" % (area, mutant.path, mutant.line, mutant.kind,
                                                     mutant.before.strip(), mutant.after.strip())
            results.append((area, how, text))
            print(
                "[%d/%d] %s %s (%.0f s)%s" % (len(results), options.n, "ok" if how else "SURVIVED",
                                              text, took_s, how and " by " + how))
            sys.stdout.flush()
            if len(results) >= options.n:
                break
    finally:
        # Also when it is ended early: what was tried is told.
        share = report(results, files, seed, nothing)
    found.close()
    return 0 if results and share >= WANTED else 1


if __name__ == "__main__":
    sys.exit(main())
