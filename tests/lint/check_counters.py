#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""check_counters.py   Counters of losses in userspace/ that are written and never read: nothing is
lost silently, so each has a way to a user (a row of PP_LOSSES in include/pyprofd/stops.h, a line of
the log).

Fields of structs whose names say so (*_refused, lost, bad_*, ...) are looked at, by name: a name
that is read anywhere counts as read.  What tests alone read is not read.
"""
import collections
import pathlib
import re
import sys

WORDS = ("bad", "cut", "dropped", "exhausted", "failed", "failures", "full", "lost", "missed",
         "refused", "torn", "unread", "space")
LOSS = re.compile(r"(.*_)?(%s)(_\w+)?$" % "|".join(WORDS))
NUMBER = r"(?:uint\d+_t|size_t|unsigned int|int|unsigned long)"
STRUCT = re.compile(r"\bstruct\s*\w*\s*\{(.*?)\n\t*\}", re.S)
FIELD = re.compile(r"^\s*%s\s+([^;(]+);" % NUMBER, re.M)
ACCESS = re.compile(r"(?:->|\.)\s*(\w+)\b(?:\[[^\]]*\])?")
WRITES_BEHIND = re.compile(r"\s*(?:(?:\+\+|--)\s*;|\+=|-=|=(?!=))")
WRITES_BEFORE = re.compile(r"[;{}\n]\s*(?:\+\+|--)[\w.>\[\]-]*$")


def source_text(path):
    text = path.read_text(encoding="utf-8")
    return re.sub(r'/\*.*?\*/|"(?:\\.|[^"\\\n])*"', lambda m: re.sub(r"[^\n]", " ", m.group()),
                  text, flags=re.S)


def fields(texts):
    """{name of a counter of losses: files that declare one}"""
    found = collections.defaultdict(set)
    for path, text in texts.items():
        for struct in STRUCT.finditer(text):
            for declared in FIELD.finditer(struct.group(1)):
                for name in declared.group(1).split(","):
                    name = re.sub(r"\[.*|:.*", "", name).strip(" *\n\t")
                    if LOSS.match(name):
                        found[name].add(str(path))
    return found


def main():
    texts = {path: source_text(path) for path in sorted(pathlib.Path("userspace").glob("*/*.[ch]"))}
    counters = fields(texts)
    writes, reads = collections.defaultdict(list), set()
    for path, text in texts.items():
        for access in ACCESS.finditer(text):
            name = access.group(1)
            if name not in counters:
                continue
            before = text[max(0, access.start() - 80):access.start()]
            if WRITES_BEHIND.match(text, access.end()) or WRITES_BEFORE.search(before):
                writes[name].append("%s:%d" % (path, text.count("\n", 0, access.start()) + 1))
            else:
                reads.add(name)
    silent = sorted(set(writes) - reads)
    for name in silent:
        print("%s: counted (%s) and read by nobody; declared in %s" % (
            name, ", ".join(writes[name][:3]), ", ".join(sorted(counters[name]))))
    # A check that saw nothing has checked nothing.
    if len(counters) < 20:
        print("%d counters of losses found: does this read the sources?" % len(counters))
        return 1
    return 1 if silent else 0


if __name__ == "__main__":
    sys.exit(main())
