#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""page_paint.py SERVE STORE UNTIL [ROUNDS]   How long the page of pyprofd-serve takes from the
start of the navigation until the hour of the store that ends at UNTIL (seconds since 1970) is on
the screen: first the strip, as far as it is summed, then all of it, then the profile.  Each round
has a new server and a new browser, which know nothing yet.  Prints the medians."""
import json
import os
import statistics
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from browser import Browser  # noqa: E402
from test_history import Server  # noqa: E402

MARKS = ("strip", "strip-whole", "frame")
# Two frames after a mark the picture is on the screen.
OBSERVE = """window.painted = {}; new PerformanceObserver((list) => {
    for (const { name } of list.getEntries())
        requestAnimationFrame(() => requestAnimationFrame(() => {
            window.painted[name] ??= performance.now(); }));
}).observe({ type: "mark", buffered: true });"""


def measure(program, store, until, directory):
    server, browser = Server(program, store, directory), Browser()
    try:
        browser.call("Page.addScriptToEvaluateOnNewDocument", source=OBSERVE)
        browser.call("Page.navigate",
                     url=server.address("#range=%d-%d" % (until - 3600, until)))
        browser.wait(
            " && ".join("window.painted?.['pyprofd-%s']" % mark for mark in MARKS), 120)
        return [browser.run("window.painted['pyprofd-%s']" % mark) for mark in MARKS]
    finally:
        browser.close()
        server.close()


def main():
    program, store, until = sys.argv[1:4]
    rounds = int(sys.argv[4]) if len(sys.argv) > 4 else 5
    with tempfile.TemporaryDirectory() as directory:
        found = [measure(program, store, int(until), directory) for _ in range(rounds)]
    print(
        json.dumps({
            mark.replace("-", "_") + "_ms": round(statistics.median(column))
            for mark, column in zip(MARKS, zip(*found))
        }))


if __name__ == "__main__":
    main()
