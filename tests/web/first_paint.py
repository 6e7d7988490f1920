#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""first_paint.py PAGE.html PROFILE.speedscope.json SPEEDSCOPE_DIRECTORY [ROUNDS]   How long a
profile takes from the start of the navigation until it is drawn: our page, and speedscope (its npm
package, unpacked) on the same stacks in the same browser, in turn.  Prints both medians and their
ratio; and what speedscope says of its import alone, as without a GPU (software WebGL) its drawing
is slower than on a desktop."""
import base64
import json
import os
import re
import statistics
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from browser import Browser  # noqa: E402

# The profile's name in the title comes with the first picture; two frames later it is on the
# screen.
PAINTED = ("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => "
           "done(performance.now()))))")


def prepare(profile, directory):
    """What speedscope's own command writes: a script that hands the file over."""
    with open(profile, "rb") as file:
        text = base64.b64encode(file.read()).decode("ascii")
    path = os.path.join(directory, "profile.js")
    with open(path, "w", encoding="ascii") as out:
        out.write("speedscope.loadFileFromBase64(%s, %s)"
                  % (json.dumps("profile.json"), json.dumps(text)))
    return path


def measure(browser, path, fragment, until):
    browser.open(path, fragment, until, 300)
    return browser.run(PAINTED)


def main():
    page, profile, speedscope = sys.argv[1:4]
    rounds = int(sys.argv[4]) if len(sys.argv) > 4 else 3
    index = os.path.join(speedscope, "dist/release/index.html")
    found = {"ours": [], "speedscope": [], "speedscope_import": []}
    with tempfile.TemporaryDirectory() as directory:
        script = prepare(profile, directory)
        for _ in range(rounds):
            # A new browser each: no cache, no garbage of the other.
            browser = Browser()
            try:
                found["ours"].append(measure(browser, page, "", "window.pyprof"))
            finally:
                browser.close()
            browser = Browser()
            try:
                found["speedscope"].append(measure(browser, index, "#localProfilePath=" + script,
                                                   "/.+ - speedscope/.test(document.title)"))
                imported = re.search(r"import: ([0-9.]+) ?(m?s)", "\n".join(browser.said))
                if imported:
                    found["speedscope_import"].append(
                        float(imported[1]) * (1 if imported[2] == "ms" else 1000))
            finally:
                browser.close()
    ours, theirs = (statistics.median(found[name]) for name in ("ours", "speedscope"))
    imported = statistics.median(found["speedscope_import"] or [float("nan")])
    print(
        json.dumps({
            "ours_ms": round(ours), "speedscope_ms": round(theirs), "ratio": round(
                ours / theirs,
                3), "speedscope_import_ms": round(imported) if imported == imported else None,
            "rounds": {name: [round(value) for value in values] for name, values in found.items()}
        }))


if __name__ == "__main__":
    main()
