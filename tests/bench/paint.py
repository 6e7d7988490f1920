# SPDX-License-Identifier: BSD-2-Clause
"""How long the page of 200,000 distinct stacks takes to be drawn, compared with speedscope."""
import json
import os
import shutil
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
WEB = os.path.join(os.path.dirname(HERE), "web")
TOOLS = os.path.join(os.path.dirname(HERE), "tools")
SPEEDSCOPE = "1.25.0"
PACKAGE = "websocket-client"
# speedscope needs a minute and a half for 200,000 on a quiet machine.
STACKS, QUICK_STACKS = 200000, 20000


def lacking(build):
    """Why it cannot be measured; None when all is there."""
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    if not any(map(shutil.which, names)):
        return "no chromium (Debian: chromium)"
    if not shutil.which("npm"):
        return "no npm for speedscope"
    python = os.path.join(build, "bench-venv/bin/python")
    if subprocess.run([os.path.join(TOOLS, "pip.sh"), python, PACKAGE], capture_output=True,
                      check=False).returncode:
        return "no " + PACKAGE
    directory = os.path.join(build, "speedscope-" + SPEEDSCOPE)
    packed = subprocess.run([os.path.join(TOOLS, "speedscope.sh"), directory], capture_output=True,
                            text=True, check=False)
    return (packed.stderr.strip().splitlines() or ["?"])[-1] if packed.returncode else None


def section(build, quick, say):
    why = lacking(build)
    if why:
        say("paint    skipped: " + why)
        return {"skipped": why}
    subprocess.run(["make", "--no-print-directory", "BUILD=" + build, "web-page"], check=True,
                   capture_output=True, cwd=os.path.dirname(os.path.dirname(HERE)))
    stacks = QUICK_STACKS if quick else STACKS
    page, theirs = os.path.join(build, "paint.html"), os.path.join(build, "paint.speedscope.json")
    data = subprocess.run([
        os.path.join(WEB, "make_profile.py"), "--stacks",
        str(stacks), "--write-speedscope", theirs
    ], check=True, stdout=subprocess.PIPE).stdout
    with open(page, "wb") as out:
        subprocess.run([os.path.join(build, "tests/web/page"), "paint"], input=data, stdout=out,
                       check=True)
    done = subprocess.run([
        os.path.join(build, "bench-venv/bin/python"),
        os.path.join(WEB, "first_paint.py"), page, theirs,
        os.path.join(build, "speedscope-" + SPEEDSCOPE, "package"), "1" if quick else "3"
    ], check=True, stdout=subprocess.PIPE)
    found = json.loads(done.stdout)
    say("paint    %d stacks drawn after %.2f s; speedscope %s: %.2f s, of which its import %.2f s; "
        "ratio %.3f"
        % (stacks, found["ours_ms"] / 1000, SPEEDSCOPE, found["speedscope_ms"] / 1000,
           (found["speedscope_import_ms"] or 0) / 1000, found["ratio"]))
    return dict(found, stacks=stacks)
