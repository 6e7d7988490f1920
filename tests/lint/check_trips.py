#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""check_trips.py   What the pages on the data flow name in backticks is there.

It reads all of data-flow.md and losses.md, and the steps (`| w1 | ...`) of the pages on waits,
probes, memory and the GPU; of everything else below docs/ the names of our files alone.

`dir/file.c` and `dir/`: below userspace/, bpf/, include/pyprofd/ or the root, or a file's name
alone; `file.c: function`: defined in that file; `function()`, `struct name`, `--option`, `[text]`
and words with an underscore, as maps, counters and members: somewhere in the sources.  Other words
are not looked at.
"""
import pathlib
import re
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
# The least names that each page has.
PAGES = {"data-flow.md": 60, "losses.md": 80, "offcpu.md": 20, "probes.md": 20, "memory.md": 10,
         "gpu.md": 30}
WHOLE = "data-flow.md", "losses.md"
# Of files, and of what is in them, in any page; of others' sources those have other directories.
DIRECTORIES = "|".join(["bpf", "lib"] + [path.name for path in (TOP / "userspace").iterdir()])
OURS = re.compile(r"(?!test_|.*\.skel\.h)(?:(?:%s)/)?[a-z][a-z0-9_.]*\.[ch](?:: \w+)?"
                  % DIRECTORIES)
STEP = re.compile(r"\| [wpmgn]\d+[a-z]? \|")
ROOTS = "userspace", "bpf", "include/pyprofd", "."
SOURCES = [path for root in ROOTS[:3] for path in sorted((TOP / root).rglob("*.[ch]"))]
TEXT = {path: path.read_text(encoding="utf-8") for path in SOURCES}
EVERYTHING = "\n".join(TEXT.values())
STRINGS = re.sub(r'"\s*\n\s*"', "", EVERYTHING)
WORDS = set(re.findall(r"\w+", EVERYTHING))


def defines(path, function):
    """A definition or a declaration begins its line."""
    return re.search(r"^(?:\w.*\b|int BPF_PROG\()%s[(,)]" % re.escape(function), TEXT[path], re.M)


def find_files(name):
    return [TOP / root / name for root in ROOTS if (TOP / root / name).exists()] or [
        path for path in SOURCES if path.name == name]


def problem_of(name):
    """Why it is wrong, or None."""
    match = re.fullmatch(r"([\w./-]+\.[ch])(?:: (\w+))?", name)
    if match:
        path, function = match.groups()
        files = find_files(path)
        if len(files) != 1:
            return "no such file" if not files else "%d such files" % len(files)
        if function and not defines(files[0].resolve(), function):
            return "it defines no such function"
    elif re.fullmatch(r"[a-z][\w./-]*/", name):
        return None if find_files(name) else "no such directory"
    elif name.startswith("struct "):
        return None if re.search(r"\b%s \{" % name, EVERYTHING) else "no such structure"
    elif name.startswith("--"):
        return None if '"%s"' % name[2:] in EVERYTHING else "no such option"
    elif name.startswith("["):
        words = re.sub(r"\bN ", "", name.strip("[]"))
        return None if words in STRINGS else "nobody shows it"
    elif re.fullmatch(r"\w+\(\)", name) or ("_" in name and re.fullmatch(r"[\w.\[\]]+", name)):
        for word in re.findall(r"\w+", name):
            if not {word, re.sub(r"_N$", "_0", word)} & WORDS:
                return "%s is nowhere in the sources" % word
    return None


def main():
    problems = 0
    pages = sorted(str(path.relative_to(TOP / "docs")) for path in (TOP / "docs").rglob("*.md"))
    for page in pages:
        names, expected = 0, PAGES.get(page, 0)
        lines = (TOP / "docs" / page).read_text(encoding="utf-8").split("\n")
        for number, line in enumerate(lines, 1):
            is_step = page in WHOLE or (expected and STEP.match(line) is not None)
            for name in re.findall(r"`([^`]+)`", line):
                if not is_step and not OURS.fullmatch(name):
                    continue
                names += bool(is_step)
                problem = problem_of(name)
                if problem:
                    print("%s:%d: `%s`: %s" % (page, number, name, problem))
                    problems += 1
        if names < expected:
            print("%s: only %d names: is that the page?" % (page, names))
            problems += 1
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
