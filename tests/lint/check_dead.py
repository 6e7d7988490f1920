#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""check_dead.py BUILD   Functions and variables of userspace/ that no program uses, from the object
files.

A symbol is alive when another object names it that a program is linked with, or when its own source
does so besides the definition (a call that the compiler has inlined leaves no trace in the object).
Tests alone keep nothing alive: what they need to look inside belongs into tests/.
"""
import collections
import pathlib
import re
import subprocess
import sys

MAINS = ("agent", "reader", "serve", "collectors")


def symbols(build):
    """({symbol: object that defines it}, {object: symbols that it names})"""
    objects = sorted(pathlib.Path(build).glob("userspace/*/*.o"))
    objects += sorted(pathlib.Path(build).glob("gen/*.o"))
    objects = [o for o in objects if "gen" in o.parts or source_of(build, o).exists()]
    said = subprocess.run(["nm", "-A", "-P", "-g", *map(str, objects)], check=True,
                          capture_output=True, text=True).stdout
    defines, names = {}, collections.defaultdict(set)
    for line in said.splitlines():
        path, name, kind = line.split()[:3]
        path = path.rstrip(":")
        if kind in "Uwv":
            names[path].add(name)
        elif name != "main":
            defines[name] = path
    return defines, names


def source_of(build, path):
    return pathlib.Path(path).relative_to(build).with_suffix(".c")


def linked(build, defines, names):
    """The objects that any program is linked with."""
    todo = [str(pathlib.Path(build, "userspace", main, "main.o")) for main in MAINS]
    found = set()
    while todo:
        path = todo.pop()
        if path not in found:
            found.add(path)
            todo += [defines[name] for name in names[path] if name in defines]
    return found


def is_named(name, text):
    """Whether a source says the name more often than where it is defined; OWNED(x) is x_free."""
    if len(re.findall(r"\b%s\b" % name, text)) > 1:
        return True
    return name.endswith("_free") and "OWNED(%s)" % name[:-len("_free")] in text


def main():
    build = sys.argv[1]
    defines, names = symbols(build)
    alive = linked(build, defines, names)
    used = set().union(*(names[path] for path in alive))
    dead, text = [], {}
    for name, path in sorted(defines.items(), key=lambda item: (item[1], item[0])):
        if "/gen/" in path or name in used:
            continue
        if path not in text:
            source = source_of(build, path).read_text(encoding="utf-8")
            text[path] = re.sub(r'/\*.*?\*/|"(?:\\.|[^"\\\n])*"', " ", source, flags=re.S)
        if path not in alive or not is_named(name, text[path]):
            dead.append("%s: %s" % (source_of(build, path), name))
    if dead:
        print("no program uses:\n    " + "\n    ".join(dead))
    # A check that saw nothing has checked nothing.
    if len(used) < 1000:
        print("%d names in the programs' objects in %s: are these objects?" % (len(used), build))
        return 1
    return 1 if dead else 0


if __name__ == "__main__":
    sys.exit(main())
