#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""lanes.py RUN.pftrace START LENGTH > lanes.svg   Draws a part of a timeline (milliseconds from its
beginning), a thread below the other, three lanes each."""
import html
import os
import sys

sys.path.insert(
    0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tests", "e2e"))
import trace  # noqa: E402

WIDTH, LEFT, LANE, GAP, FONT = 1180, 150, 20, 10, 11
COLOURS = {
    "on CPU": "#93c47d", "run queue": "#f9cb9c", "Holding GIL": "#6fa8dc",
    "Waiting for GIL": "#e06666", "sleep": "#d9d9d9", "lock": "#b4a7d6"
}
TITLES = {"function": "", "cpu": "CPU", "gil": "GIL"}


def text(x, y, words, anchor="start", weight="normal"):
    return '<text x="%.1f" y="%.1f" text-anchor="%s" font-weight="%s">%s</text>' % (
        x, y, anchor, weight, html.escape(words))


def box(slices, begin, scale, y):
    for s in slices:
        left = LEFT + max(0.0, s.start - begin) * scale
        right = min(WIDTH - 4.0, LEFT + (s.end - begin) * scale)
        if right <= left:
            continue
        colour = COLOURS.get(s.name, "#ffe599" if s.lane == "function" else "#cccccc")
        print(
            '<g><title>%s: %.3f ms</title><rect x="%.2f" y="%d" width="%.2f" height="%d" '
            'fill="%s"/>'
            % (html.escape(s.name), 1000 *
               (s.end - s.start), left, y, max(right - left - 0.3, 0.4), LANE - 2, colour))
        fits = int((right - left) / 6.3)
        if fits >= min(len(s.name), 5):
            print(text(left + 3, y + 13,
                       s.name if len(s.name) <= fits else s.name[:fits - 1] + "…"))
        print("</g>")


def main():
    found = trace.load(sys.argv[1])
    begin = min(s.start for s in found.slices) + float(sys.argv[2]) / 1000
    length = float(sys.argv[3]) / 1000
    scale = (WIDTH - LEFT - 4) / length
    shown = [s for s in found.slices if s.end > begin and s.start < begin + length]
    threads = sorted({(s.tid, s.thread) for s in shown})
    height = 24 + len(threads) * (3 * LANE + GAP)
    print(
        '<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" '
        'font-size="%d">'
        '<rect width="100%%" height="100%%" fill="#ffffff"/>' % (WIDTH, height, FONT))
    for tick in range(11):
        x = LEFT + (WIDTH - LEFT - 4) * tick / 10
        print('<line x1="%.1f" y1="16" x2="%.1f" y2="%d" stroke="#e8e8e8"/>' % (x, x, height))
        print(
            text(x, 12, "%.0f ms" % (1000 * length * tick / 10), "end" if tick == 10 else "middle"))
    for row, (tid, thread) in enumerate(threads):
        top = 20 + row * (3 * LANE + GAP)
        print(text(6, top + 13, thread, weight="bold"))
        for number, lane in enumerate(trace.LANES):
            y = top + number * LANE
            print(text(LEFT - 6, y + 13, TITLES[lane], "end"))
            box([s for s in shown if s.tid == tid and s.lane == lane], begin, scale, y)
        for s in found.instants:
            if s.tid == tid and begin <= s.start < begin + length:
                x = LEFT + (s.start - begin) * scale
                print('<path d="M%.1f %d l-3 -5 h6 z" fill="#333333"/>' % (x, top + 2))
    print("</svg>")


if __name__ == "__main__":
    main()
