#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""check_circles.py BUILD   Files of userspace/ that use each other's symbols in a circle, from the
object files.

An edge is an undefined symbol of one object that another one defines.  Callbacks make none: who is
called back is not named by the caller.
"""
import pathlib
import subprocess
import sys


def symbols(build, sources):
    """{source: (defined, undefined)}"""
    objects = {str(pathlib.Path(build, source).with_suffix('.o')): source for source in sources}
    said = subprocess.run(['nm', '-A', '-P', '-g', *objects], check=True, capture_output=True,
                          text=True).stdout
    found = {source: (set(), set()) for source in sources}
    for line in said.splitlines():
        path, name, kind = line.split()[:3]
        defined, undefined = found[objects[path.rstrip(':')]]
        (undefined if kind in 'Uwv' else defined).add(name)
    return found


def graph(found):
    owner = {name: source for source, (defined, _) in found.items() for name in defined}
    return {source: {owner[name] for name in undefined if owner.get(name, source) != source}
            for source, (_, undefined) in found.items()}


def circles(edges):
    """Tarjan's strongly connected components of more than one file."""
    index, low, stack, found = {}, {}, [], []

    def visit(at):
        index[at] = low[at] = len(index)
        stack.append(at)
        for to in sorted(edges[at]):
            if to not in index:
                visit(to)
                low[at] = min(low[at], low[to])
            elif to in stack:
                low[at] = min(low[at], index[to])
        if low[at] == index[at]:
            members = []
            while not members or members[-1] != at:
                members.append(stack.pop())
            if len(members) > 1:
                found.append(sorted(members))

    for at in sorted(edges):
        if at not in index:
            visit(at)
    return found


def main():
    sources = sorted(str(path) for path in pathlib.Path('userspace').glob('*/*.c'))
    missing = [
        source for source in sources
        if not pathlib.Path(sys.argv[1], source).with_suffix('.o').exists()
    ]
    if missing:
        print(
            f'no object in {sys.argv[1]}, build first: {" ".join(missing[:3])} ... ({len(missing)})'
        )
        return 1
    found = symbols(sys.argv[1], sources)
    edges = graph(found)
    bad = circles(edges)
    for members in bad:
        print(f'{len(members)} files call each other in a circle: {" ".join(members)}')
        for a in members:
            for b in sorted(edges[a] & set(members)):
                names = sorted(found[a][1] & found[b][0])
                print(f'    {a} -> {b}: {" ".join(names)}')
    # A check that saw nothing has checked nothing.
    if sum(map(len, edges.values())) < len(sources):
        print(
            f'{len(sources)} files and only {sum(map(len, edges.values()))} edges: '
            'are these objects?'
        )
        return 1
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
