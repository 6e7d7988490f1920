#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""run.py [-k REGEX] [-v] [--list] [FILE...]   Runs the end-to-end tests.

Functions test_* of test_*.py, each in its own process; a function with an attribute `cases` (a
callable that gives [(label, argument)]) runs once for each.  Executable test_*.sh are one test each:
exit status 0 is ok, 77 skips.  Prints `ok`, `not ok` or `skip` with the time of each, and sums up.
"""
import argparse
import glob
import importlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True
import harness  # noqa: E402

DEFAULT_LIMIT_S = 120
SKIPPED = 77


def collect(files):
    """[(name, callable, limit in seconds)]"""
    found = []
    for path in files:
        base = os.path.basename(path)
        if base.endswith(".sh"):
            found.append((base[:-3], lambda path=path: shell(path), DEFAULT_LIMIT_S))
            continue
        module = importlib.import_module(base[:-3])
        for key, function in list(vars(module).items()):
            if not key.startswith("test_") or not callable(function):
                continue
            limit = getattr(function, "limit_s", DEFAULT_LIMIT_S)
            name = base[len("test_"):-3] + "." + key[len("test_"):]
            if hasattr(function, "cases"):
                for label, argument in function.cases():
                    found.append(("%s[%s]" % (name, label),
                                  lambda f=function, a=argument: f(a), limit))
            else:
                found.append((name, function, limit))
    return found


def shell(path):
    rc = subprocess.call([path], stdin=subprocess.DEVNULL, env=dict(os.environ, PYPROFD=harness.PYPROFD))
    if rc == SKIPPED:
        raise harness.Skip("see its output")
    assert rc == 0, "exit status %d" % rc


def child(function, log, tmp):
    """The test's own process: its group is killed when it ends."""
    os.setpgid(0, 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.environ["E2E_TMP"] = tmp
    rc = 1
    try:
        function()
        rc = 0
    except harness.Skip as reason:
        print("skip: %s" % reason)
        rc = SKIPPED
    except AssertionError as error:
        trace = traceback.extract_tb(sys.exc_info()[2])
        last = [t for t in trace if os.path.basename(t.filename).startswith("test_")] or trace
        print("%s:%d: %s" % (os.path.basename(last[-1].filename), last[-1].lineno,
                             error or last[-1].line))
    except BaseException:
        traceback.print_exc(file=sys.stdout)
    finally:
        try:
            harness.clean_up()
        except BaseException:
            traceback.print_exc(file=sys.stdout)
        sys.stdout.flush()
        os._exit(rc)


def run_one(function, limit_s):
    """(exit status or None for a timeout, what it said)"""
    tmp = tempfile.mkdtemp(prefix=harness.TMP_PREFIX)
    os.chmod(tmp, 0o755)
    try:
        with tempfile.TemporaryFile() as log:
            sys.stdout.flush()
            pid = os.fork()
            if pid == 0:
                child(function, log.fileno(), tmp)
            end = time.monotonic() + limit_s
            status = None
            while status is None and time.monotonic() < end:
                done, code = os.waitpid(pid, os.WNOHANG)
                if done:
                    status = os.WEXITSTATUS(code) if os.WIFEXITED(code) else 128 + os.WTERMSIG(code)
                else:
                    time.sleep(0.02)
            try:
                os.killpg(pid, signal.SIGKILL)
            except OSError:
                pass
            if status is None:
                os.waitpid(pid, 0)
            log.seek(0)
            return status, log.read().decode("utf-8", "replace").strip()
    finally:
        unmount_below(tmp)
        shutil.rmtree(tmp, ignore_errors=True)


def unmount_below(folder):
    with open("/proc/self/mounts", encoding="utf-8", errors="replace") as file:
        points = [line.split()[1] for line in file]
    for point in sorted((p for p in points if p.startswith(folder + "/")), reverse=True):
        subprocess.call(["umount", "-l", point])


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*")
    parser.add_argument("-k", metavar="REGEX", default="", help="tests whose name matches")
    parser.add_argument("-v", action="store_true", help="what passing tests print, too")
    parser.add_argument("--list", action="store_true", help="names only")
    parser.add_argument("--repeat", type=int, default=1, metavar="N", help="each test N times")
    options = parser.parse_args()
    files = options.files or sorted(glob.glob(os.path.join(HERE, "test_*.py"))
                                    + [p for p in glob.glob(os.path.join(HERE, "test_*.sh"))
                                       if os.access(p, os.X_OK)])
    tests = [t for t in collect(files) if re.search(options.k, t[0])]
    if options.list:
        print("\n".join(t[0] for t in tests))
        return 0
    if os.geteuid() != 0:
        print("# not root: nothing can be profiled")
        print("0 passed, 0 failed, %d skipped" % len(tests))
        return 1
    if not os.access(harness.PYPROFD, os.X_OK):
        print("no %s: build it first" % harness.PYPROFD, file=sys.stderr)
        return 1
    passed, failed, skipped = 0, [], 0
    for name, function, limit in tests * options.repeat:
        begin = time.monotonic()
        status, said = run_one(function, limit)
        took = "(%.1f s)" % (time.monotonic() - begin)
        if status == 0:
            passed += 1
            print("ok", name, took)
            if options.v and said:
                print("    " + said.replace("\n", "\n    "))
        elif status == SKIPPED:
            skipped += 1
            print("skip", name, said.rpartition("skip: ")[2])
        else:
            failed.append(name)
            reason = "no end within %d s\n" % limit if status is None else ""
            print("not ok", name, took)
            print("    " + (reason + said).replace("\n", "\n    "))
        sys.stdout.flush()
    for name in failed:
        print("# failed: " + name)
    print("%d passed, %d failed, %d skipped" % (passed, len(failed), skipped))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
