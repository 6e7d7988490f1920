#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""make_profile.py [--stacks N | --folded FILE | --small | --hostile] [--base] [--write-speedscope
FILE] > data.json

Makes what the page of the flame graph reads: a small profile with known figures, a large one with N
distinct stacks, one with hostile names, or one of a folded file of pyprofd's.
"""
import argparse
import json
import os
import random
import re
import sys

PYTHON, NATIVE, KERNEL, GPU, OTHER = range(5)
PERIOD = 10101010


class Maker:
    """Strings, frames and the prefix tree; add() takes whole stacks, the root first."""

    def __init__(self, title, unit="nanoseconds"):
        self.title, self.unit = title, unit
        self.strings, self.frames, self.nodes = {"": 0}, {}, {}
        self.frame, self.parent, self.groups, self.samples = [0], [0], {}, {}
        self.short = {}  # file: what is shown for it
        self.sources = []
        self.times = None

    def string(self, text):
        return self.strings.setdefault(text, len(self.strings))

    def frame_id(self, name, file="", line=0, kind=PYTHON, module=""):
        row = (self.string(name), self.string(file), line, kind, self.string(module))
        return self.frames.setdefault(row, len(self.frames))

    def group(self, pid, comm, tid, thread):
        return self.groups.setdefault((pid, comm, tid, thread), len(self.groups))

    def add(self, stack, value, group=0, base=0):
        node = 0
        for frame in stack:
            at = self.nodes.get((node, frame))
            if at is None:
                at = self.nodes[(node, frame)] = len(self.frame)
                self.frame.append(frame)
                self.parent.append(node)
            node = at
        old = self.samples.get((node, group), (0, 0))
        self.samples[(node, group)] = (old[0] + value, old[1] + base)

    def data(self, with_base=False):
        groups = [{
            "label": "pid %d %s / thread %d %s" % key, "pid": key[0], "comm": key[1], "tid": key[2],
            "thread": key[3]
        } for key in self.groups]
        samples = {
            "node": [key[0] for key in self.samples], "group": [key[1] for key in self.samples],
            "value": [value[0] for value in self.samples.values()]
        }
        if with_base:
            samples["base"] = [value[1] for value in self.samples.values()]
        total = sum(samples["value"])
        return {
            "version": 1, "title": self.title, "unit": self.unit, "kind": "cpu",
            "sampleTypes": [{"type": "samples", "unit": "count"},
                            {"type": "cpu", "unit": "nanoseconds"}],
            "shortFiles": [[self.strings[file], text] for file, text in self.short.items()],
            "sources": self.sources, "times": self.times, "sampleType": "cpu",
            "duration_ns": 60 * 10**9, "period": PERIOD, "strings": list(
                self.strings), "frames": [list(row) for row in self.frames], "groups": groups,
            "stacks": {"frame": self.frame, "parent": self.parent}, "samples": samples,
            "windows": 12, "sampleCount": total // PERIOD
        }


def small():
    """Known figures: 1000 ms in all; `decode` has lines 10 and 12; `walk` is recursive."""
    made = Maker("train.py on host1")
    main_thread, worker = made.group(12, "python3", 12, "main"), made.group(
        12, "python3", 14, "loader-0")
    other = made.group(90, "uwsgi", 90, "uwsgi")
    train, libc, vmlinux = "/srv/app/train.py", "/usr/lib/x86_64-linux-gnu/libc.so.6", "[kernel]"
    main = made.frame_id("<module>", train, 3)
    fit = made.frame_id("Trainer.fit", train, 88)
    decode10 = made.frame_id("decode", "/srv/app/codec.py", 10)
    decode12 = made.frame_id("decode", "/srv/app/codec.py", 12)
    walk = made.frame_id("walk", "/srv/app/tree.py", 7)
    memcpy = made.frame_id("__memmove_avx_unaligned_erms", "", 0, NATIVE, libc)
    read = made.frame_id("vfs_read", "", 0, KERNEL, vmlinux)
    launch = made.frame_id("cudaLaunchKernel", "", 0, GPU, "libcudart.so.12")
    ms = 10**6
    made.add([main, fit, decode10], 200 * ms, main_thread, 100 * ms)
    made.add([main, fit, decode12], 100 * ms, main_thread, 150 * ms)
    made.add([main, fit, decode12, memcpy], 150 * ms, main_thread, 150 * ms)
    made.add([main, fit, launch], 50 * ms, main_thread, 50 * ms)
    made.add([main, fit], 100 * ms, main_thread, 200 * ms)
    made.add([main, walk, walk, walk], 120 * ms, worker, 120 * ms)
    made.add([main, walk], 80 * ms, worker, 80 * ms)
    made.add([main, decode10, read], 100 * ms, worker, 50 * ms)
    made.add([main, memcpy], 100 * ms, other, 100 * ms)
    return made


WHOLE = "/var/tmp/build-4711/venv/lib/python3.12/site-packages/"


def sources():
    """small() with the source of codec.py, whose line 12 calls memmove, and a note in the place of
    tree.py's."""
    made = small()
    made.sources = [{
        "file": "/srv/app/codec.py", "note": "", "lines": [[9, "def decode(block):"],
                                                           [10, "\tfor part in block:"],
                                                           [12, "\t\tcopy(part)  # </script>"]]
    }, {"file": "/srv/app/tree.py", "note": "The source has changed since it ran.", "lines": []}]
    return made


def times():
    """small() in four windows of 1, 2, 3 and 4 tenths of each sample."""
    made = small()
    values = [value for value, _ in made.samples.values()]
    made.times = {
        "start": [1795273200000 + i * 1000 for i in range(4)], "duration": [1000] * 4,
        "first": [i * len(values) for i in range(4)], "sample": list(range(len(values))) * 4,
        "value": [value // 10 * tenths for tenths in (1, 2, 3, 4) for value in values]
    }
    return made


def tenths():
    """20 s in windows of 100 ms: 10 ms of `quiet` each, and 100 ms of `busy` instead at the half of
    each second."""
    made = Maker("tenths")
    group = made.group(7, "python3", 7, "main")
    ms, file = 10**6, "/srv/app/beat.py"
    made.add([made.frame_id("quiet", file, 3)], 180 * 10 * ms, group)
    made.add([made.frame_id("busy", file, 9)], 20 * 100 * ms, group)
    made.times = {"start": [1795273200000 + i * 100 for i in range(200)], "duration": [100] * 200,
                  "first": list(range(200)), "sample": [int(i % 10 == 5) for i in range(200)],
                  "value": [(100 if i % 10 == 5 else 10) * ms for i in range(200)]}
    return made


def paths():
    """Two functions of installed packages: what is shown for their files, and a name too long for
    any column."""
    made = Maker("paths")
    group = made.group(7, "pip", 7, "pip")
    top = made.frame_id("main", WHOLE + "pip/_internal/cli/main.py", 46)
    made.add([top, made.frame_id("work", WHOLE + "d/" * 60 + "n" * 150 + ".py", 12345)], 10**9,
             group)
    made.short = {WHOLE + "pip/_internal/cli/main.py": "pip/_internal/cli/main.py",
                  WHOLE + "d/" * 60 + "n" * 150 + ".py": "d/" * 60 + "n" * 150 + ".py"}
    return made


HOSTILE = [
    "</script><script>window.broken=1</script>", "<!--<script>",
    "<img src=x onerror=window.broken=1>", "]]>", "&lt;b&gt;&amp;", "a\"b'c\\d", "\u202egpj.exe",
    "new\nline\tand\x00nul", "\u2028\u2029", "日本語の関数名 🎉" * 8, "x" * 10000, "__proto__",
    "constructor", "", " ", "${1+1}`", "\ud83d"
]


def hostile():
    made = Maker("</title><script>window.broken=1</script>")
    group = made.group(1, "<b>comm</b>", 2, "</script>")
    top = made.frame_id("<module>", "</textarea><script>window.broken=1</script>", 1)
    for i, name in enumerate(HOSTILE):
        made.add([top, made.frame_id(name, name, i, i % 5, name)], (i + 1) * 10**6, group)
    return made


def large(stacks, seed=1):
    """Distinct stacks as a service has them: few roots, most frames shared, long tails."""
    chance = random.Random(seed)
    made = Maker("%d distinct stacks" % stacks)
    groups = [
        made.group(100 + i // 4, "worker%d" % (i // 4), 200 + i, "thread-%d" % (i % 4))
        for i in range(16)
    ]
    functions = []
    for i in range(4000):
        kind = chance.choices((PYTHON, NATIVE, KERNEL), (70, 22, 8))[0]
        package = "package%02d" % (int(chance.random() ** 2 * 60))
        name = {PYTHON: "%s.handle_%d" % (package, i), NATIVE: "%s_native_%d" % (package, i),
                KERNEL: "sys_%d" % i}[kind]
        file = "/srv/%s/module%d.py" % (package, i % 40) if kind == PYTHON else ""
        module = "" if kind == PYTHON else "[kernel]" if kind == KERNEL else "lib%s.so" % package
        functions.append([
            made.frame_id(name, file, i % 700 + 1 + 3 * j if file else 0, kind, module)
            for j in range(3 if file else 1)
        ])
    done = set()
    live = [[functions[0][0]]]
    while len(done) < stacks:
        base = chance.choice(live)
        stack = base[:chance.randint(1, len(base))]
        for _ in range(min(chance.randint(1, 14), 48 - len(stack))):
            stack = stack + [chance.choice(functions[int(chance.random() ** 2.2 * len(functions))])]
        key = tuple(stack)
        if key in done:
            continue
        done.add(key)
        if len(live) < 3000:
            live.append(stack)
        else:
            live[chance.randrange(3000)] = stack
        times = max(1, int(chance.paretovariate(1.2)))
        made.add(stack, min(times, 5000) * PERIOD, chance.choice(groups), times * PERIOD)
    return made


def from_folded(path):
    """The agent's folded text: process; thread; frames as `name (file:line)` `name (module)` or
    `name_[k]`."""
    made = Maker(os.path.basename(path))
    with open(path, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            stack, _, count = line.rstrip("\n").rpartition(" ")
            process, thread, *names = stack.split(";")
            pid, comm = re.match(r"process (\d+): (.*)", process).groups()
            tid, name = re.match(r"thread (\d+): (.*)", thread).groups()
            frames = []
            for text in names:
                name_, place, line_ = re.match(r"(.*?)(?: \(([^()]*?)(?::(\d+))?\))?$",
                                               text).groups()
                if line_:
                    frames.append(made.frame_id(name_, place, int(line_)))
                elif name_.endswith("_[k]"):
                    frames.append(made.frame_id(name_[:-4], "", 0, KERNEL, "[kernel]"))
                else:
                    frames.append(made.frame_id(name_, "", 0, NATIVE, place or ""))
            made.add(frames, int(count) * PERIOD, made.group(int(pid), comm, int(tid), name))
    return made


def write_speedscope(made, path):
    """speedscope's own format, the one it reads fastest; frames by function, as it merges no
    lines."""
    strings, rows, functions = list(made.strings), list(made.frames), {}
    function = [functions.setdefault((row[0], row[1]), len(functions)) for row in rows]
    frames = [{"name": strings[name] or "[unknown]", "file": strings[file]}
              for name, file in functions]
    stacks = [[]]
    for node in range(1, len(made.frame)):
        stacks.append(stacks[made.parent[node]] + [function[made.frame[node]]])
    values = [value for value, _ in made.samples.values()]
    profile = {
        "type": "sampled", "name": made.title, "unit": made.unit, "startValue": 0,
        "endValue": sum(values), "samples": [stacks[node] for node, _ in made.samples],
        "weights": values
    }
    with open(path, "w", encoding="utf-8") as out:
        json.dump(
            {
                "$schema": "https://www.speedscope.app/file-format-schema.json",
                "shared": {"frames": frames}, "profiles": [profile]
            }, out, separators=(",", ":"))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stacks", type=int)
    parser.add_argument("--folded")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--hostile", action="store_true")
    parser.add_argument("--base", action="store_true", help="with values of a profile before")
    parser.add_argument("--write-speedscope", metavar="FILE", help="the same stacks for speedscope")
    options = parser.parse_args()
    made = (large(options.stacks) if options.stacks else from_folded(options.folded)
            if options.folded else hostile() if options.hostile else small())
    if options.write_speedscope:
        write_speedscope(made, options.write_speedscope)
    json.dump(made.data(options.base), sys.stdout, separators=(",", ":"))


if __name__ == "__main__":
    main()
