#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""run.py [-k REGEX] [--shots DIRECTORY]   Tests the page of the flame graph, and that of
pyprofd-serve, in Chromium without a window.

$PAGE is the program that puts JSON into the page, $SERVE pyprofd-serve, $VENV where the one Python
package that is needed is kept.  Prints `ok`, `not ok` or `skip`, and sums up; skips all with the
reason where there is no Chromium.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, HERE)
PACKAGE = "websocket-client"


def skip(reason):
    print("skip web: %s\n0 passed, 0 failed, 1 skipped" % reason)
    sys.exit(0)


def have_package(python):
    return subprocess.run([python, "-c", "import websocket"], capture_output=True,
                          check=False).returncode == 0


def in_venv():
    """Goes on in a Python that has the package."""
    venv = os.environ.get("VENV", os.path.join(tempfile.gettempdir(), "pyprof-web-venv"))
    python = venv + "/bin/python"
    if os.environ.get("IN_VENV"):
        skip("the package is not found in %s" % venv)
    if not (os.path.exists(python) and have_package(python)):
        made = subprocess.run([sys.executable, "-m", "venv", venv], capture_output=True, text=True,
                              check=False)
        if made.returncode == 0:
            made = subprocess.run([os.path.join(HERE, "../tools/pip.sh"), python, PACKAGE],
                                  capture_output=True, text=True, check=False)
        if made.returncode:
            skip("no %s: %s" % (PACKAGE, (made.stdout + made.stderr).strip().splitlines()[-1:]))
    os.execve(python, [python] + sys.argv, dict(os.environ, IN_VENV="1"))


def have_chromium():
    import browser
    if not browser.find() and os.geteuid() == 0:
        subprocess.run([
            "apt-get", "install", "-y", "-q", "--no-install-recommends", "chromium",
            "fonts-dejavu-core"
        ], capture_output=True, check=False)
    return browser.find()


def suites(options):
    """(module, what its tests get), one behind the other."""
    import test_history
    import test_page
    with tempfile.TemporaryDirectory() as directory:
        yield test_page, test_page.Pages(os.environ["PAGE"], directory, options.shots)
    with tempfile.TemporaryDirectory() as directory:
        yield test_history, test_history.Pages(os.environ["SERVE"], directory, options.shots)


def run_all(module, pages, wanted):
    """(passed, failed, skipped)"""
    passed = failed = skipped = 0
    for name, function in list(vars(module).items()):
        if not name.startswith("test_") or not re.search(wanted, name):
            continue
        began = time.monotonic()
        try:
            reason = function(pages)
            pages.no_errors()
            if reason:
                skipped += 1
                print("skip web.%s: %s" % (name[5:], reason))
                continue
            passed += 1
            print("ok web.%s (%.1f s)" % (name[5:], time.monotonic() - began))
        except Exception:
            traceback.print_exc(file=sys.stdout)
            failed += 1
            print("not ok web.%s" % name[5:])
    return passed, failed, skipped


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-k", default=".", metavar="REGEX")
    parser.add_argument("--shots", help="keep pictures of the views here")
    options = parser.parse_args()
    try:
        import websocket  # noqa: F401
    except ImportError:
        in_venv()
    if not have_chromium():
        skip("no chromium (Debian: chromium)")
    passed = failed = skipped = 0
    for module, pages in suites(options):
        try:
            counts = run_all(module, pages, options.k)
        finally:
            pages.close()
        passed, failed, skipped = map(sum, zip((passed, failed, skipped), counts))
    print("%d passed, %d failed, %d skipped" % (passed, failed, skipped))
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
