#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""flame.py STACKS.folded > flame.svg   Draws the README's picture from pyprofd's folded text."""
import html
import re
import sys

WIDTH, ROW, FONT = 1180, 17, 11
COLOURS = {"python": "#f6b26b", "native": "#9fc5e8", "kernel": "#d5a6bd"}


def kind(name):
    if name.endswith("_[k]"):
        return "kernel"
    return "python" if re.search(r"\((.*\.py|<.*>):\d+\)$", name) else "native"


def tree(lines):
    root = {"n": 0, "kids": {}}
    for line in lines:
        stack, _, count = line.rpartition(" ")
        node = root
        for name in [None] + stack.split(";")[2:]:
            if name is not None:
                node = node["kids"].setdefault(name, {"n": 0, "kids": {}})
            node["n"] += int(count)
    return root


def label(name):
    return re.sub(r"\((?:.*/)?([^/]*)\)$", r"(\1)", name).replace("_[k]", "")


def draw(node, x, level, scale, out):
    for name, kid in sorted(node["kids"].items()):
        width = kid["n"] * scale
        if width >= 0.8:
            out.append((x, level, width, name, kid["n"]))
            draw(kid, x, level + 1, scale, out)
        x += width


def write(lines, unit="samples", kind_of=kind):
    root, boxes = tree(lines), []
    draw(root, 0, 0, WIDTH / root["n"], boxes)
    height = (max(b[1] for b in boxes) + 1) * ROW + 4
    print(
        '<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" '
        'font-size="%d">'
        % (WIDTH, height, FONT))
    for x, level, width, name, count in boxes:
        y = height - (level + 1) * ROW
        print(
            '<g><title>%s: %d %s</title><rect x="%.1f" y="%d" width="%.1f" height="%d" '
            'fill="%s" rx="1"/>'
            % (html.escape(name), count, unit, x, y, max(width - 0.4, 0.4), ROW - 1,
               COLOURS[kind_of(name)]))
        text = label(name)
        fits = int(width / 6.2)
        if fits >= 3:
            print(
                '<text x="%.1f" y="%d">%s</text>' %
                (x + 3, y + 12, html.escape(text if len(text) <= fits else text[:fits - 1] + "…")))
        print("</g>")
    print("</svg>")


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        write(file.read().splitlines())


if __name__ == "__main__":
    main()
