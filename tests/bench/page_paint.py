# SPDX-License-Identifier: BSD-2-Clause
"""How soon the page of pyprofd-serve shows an hour of a node: the windows of the fleet of
store_day.py, recorded for five minutes and put one behind the other."""
import json
import os
import shutil
import subprocess
import time

import harness
import store_day

HERE = os.path.dirname(os.path.abspath(__file__))
WEB = os.path.join(os.path.dirname(HERE), "web")
TOOLS = os.path.join(os.path.dirname(HERE), "tools")
SERVE = os.path.join(os.path.dirname(harness.PYPROFD), "pyprofd-serve")
SLOTS = 12  # of five minutes
PACKAGE = "websocket-client"


def lacking(build):
    """Why it cannot be measured; None when all is there."""
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    if not any(map(shutil.which, names)):
        return "no chromium (Debian: chromium)"
    python = os.path.join(build, "bench-venv/bin/python")
    if subprocess.run([os.path.join(TOOLS, "pip.sh"), python, PACKAGE], capture_output=True,
                      check=False).returncode:
        return "no " + PACKAGE
    return None


def section(build, quick, say):
    why = lacking(build)
    if why:
        say("page     skipped: " + why)
        return {"skipped": why}
    recorded, store = harness.temporary(), harness.temporary()
    store_day.record(recorded, 60 if quick else store_day.SLOT_S + 20)
    first_s = int(time.time()) // 10 * 10 - SLOTS * store_day.SLOT_S
    store_day.replay(recorded, store, first_s, SLOTS)
    windows = sum(rest.endswith("-cpu.pb.gz") for _, _, rest in store_day.windows_of(store))
    done = subprocess.run([
        os.path.join(build, "bench-venv/bin/python"), os.path.join(WEB, "page_paint.py"), SERVE,
        store, str(first_s + SLOTS * store_day.SLOT_S), "2" if quick else "5"
    ], check=True, stdout=subprocess.PIPE)
    found = json.loads(done.stdout)
    say("page     an hour of %d programs (%d windows): the strip after %.2f s (wanted <= 1), "
        "summed after %.2f s, the profile after %.2f s"
        % (store_day.PROGRAMS, windows, found["strip_ms"] / 1000, found["strip_whole_ms"] / 1000,
           found["frame_ms"] / 1000))
    return dict(found, programs=store_day.PROGRAMS, windows=windows)
