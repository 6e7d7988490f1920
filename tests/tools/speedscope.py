#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""speedscope.py PACKAGE PROFILE...   What speedscope (its npm package, unpacked) reads out of
profiles: its page is opened in Chromium as its own command opens it, and the table of its view
"Sandwich" is read.  Prints one line of JSON for each: {"title", "rows": [[symbol, total %, self
%]]}; the symbol is followed by the place where speedscope tells one."""
import base64
import json
import os
import re
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../web"))
from browser import Browser  # noqa: E402

OPENED = ("/.+ - speedscope/.test(document.title) || "
          "document.body && /Something went wrong/.test(document.body.innerText)")
ROWS = "[...document.querySelectorAll('table')].at(-1).innerText"


def percent(text):
    """Of "60.0ms (8.2%)"."""
    return float(re.search(r"\(<?([\d.]+)%\)", text).group(1))


def read(browser, index, profile, directory):
    with open(profile, "rb") as file:
        content = base64.b64encode(file.read()).decode("ascii")
    script = os.path.join(directory, "profile.js")
    with open(script, "w", encoding="ascii") as out:
        out.write("speedscope.loadFileFromBase64(%s, %s)" % tuple(
            map(json.dumps, (os.path.basename(profile), content))))
    browser.open(index, "#view=sandwich&localProfilePath=" + script, OPENED)
    title = browser.run("document.title")
    if " - speedscope" not in title:
        return {"error": " ".join(browser.said[-2:])}
    browser.wait("%s.split('\\n').length > 1" % ROWS)
    words = [word.strip() for word in re.split(r"[\t\n]+", browser.run(ROWS)) if word.strip()]
    if words[:3] == ["Total", "Self", "Symbol Name"]:
        del words[:3]
    return {"title": title, "rows": [[words[i + 2], percent(words[i]), percent(words[i + 1])]
                                     for i in range(0, len(words) - 2, 3)]}


def main():
    index = os.path.join(sys.argv[1], "dist/release/index.html")
    browser = Browser()
    try:
        with tempfile.TemporaryDirectory() as directory:
            for profile in sys.argv[2:]:
                print(json.dumps(read(browser, index, profile, directory)))
    finally:
        browser.close()


if __name__ == "__main__":
    main()
