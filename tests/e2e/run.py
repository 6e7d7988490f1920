#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""run.py [-k REGEX] [-v] [-j N] [--list] [--few] [--alone-after FILE] [FILE...]   Runs the
end-to-end tests.

Functions test_* of test_*.py, each in its own process; a function with an attribute `cases` (a
callable that gives [(label, argument)]) runs once for each.  Executable test_*.sh are one test
each: exit status 0 is ok, 77 skips.

--few is for `make check`: a function's attribute `few` is given the cases and gives those that run
(harness.py has ways to choose), and a function without cases whose `few` is False does not run.  A
line tells how many are left to check-long.

Two tests a CPU run at a time, as most of them wait for a profile's end.  A function (or module:
ALONE) with an attribute `alone` needs a quiet machine and comes last: "sleepers", whose programs
hardly compute, beside each other and beside "one a CPU", whose programs have one thread that
computes, as many at a time as there are CPUs; then those with True, one at a time.  With
--alone-after FILE they wait until nobody has a lock on FILE, which is held while other work would
disturb them.

Prints `ok`, `not ok` or `skip` with each test's time and the CPU time of its processes, and sums
up.  Failed tests are run once more, alone, when they are no more than a 25th (retries.py); the
closing line tells how many.  Exit status 2: no test matches.
"""
import argparse
import collections
import ctypes
import fcntl
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
import retries  # noqa: E402

DEFAULT_LIMIT_S = 120
SKIPPED = 77


Test = collections.namedtuple("Test",
                              "name function limit_s alone is_left")  # is_left: to check-long


def collect(files):
    """All of them; is_left says which of them --few leaves out."""
    found = []
    for path in files:
        base = os.path.basename(path)
        if os.path.dirname(os.path.abspath(path)) not in sys.path:
            sys.path.append(os.path.dirname(os.path.abspath(path)))
        if base.endswith(".sh"):
            found.append(
                Test(base[:-3], lambda path=path: shell(path), DEFAULT_LIMIT_S, False, False))
            continue
        module = importlib.import_module(base[:-3])
        for key, function in list(vars(module).items()):
            if not key.startswith("test_") or not callable(function):
                continue
            rest = (getattr(function, "limit_s", DEFAULT_LIMIT_S),
                    getattr(function, "alone", getattr(module, "ALONE", False)))
            name = base[len("test_"):-3] + "." + key[len("test_"):]
            if hasattr(function, "cases"):
                every = list(function.cases())
                kept = {label for label, _ in getattr(function, "few", list)(every)}
                for label, argument in every:
                    found.append(
                        Test("%s[%s]" % (name, label), lambda f=function, a=argument: f(a), *rest,
                             label not in kept))
            else:
                found.append(Test(name, function, *rest, not getattr(function, "few", True)))
    return found


def tell_left(tests):
    """What --few leaves out, by function.  check.sh adds these numbers up."""
    count = collections.Counter(t.name.partition("[")[0] for t in tests if t.is_left)
    if count:
        print("# left to check-long: %d (%s)" % (sum(count.values()), ", ".join(
            "%s %d" % (name, n) for name, n in sorted(count.items()))))


def shell(path):
    rc = subprocess.call([path], stdin=subprocess.DEVNULL, env=dict(
        os.environ, PYPROFD=harness.PYPROFD))
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


class Running:
    """One test's process, from its start to its end or its limit."""

    def __init__(self, test):
        self.test = test
        self.begin = time.monotonic()
        self.tmp = tempfile.mkdtemp(prefix=harness.TMP_PREFIX)
        os.chmod(self.tmp, 0o755)
        self.log = tempfile.TemporaryFile()
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid == 0:
            child(test.function, self.log.fileno(), self.tmp)
        self.status, self.said, self.is_late, self.cpu_s = None, "", False, 0.0

    def poll(self):
        """True when it has ended; then status, said and is_late are set."""
        done, code, usage = os.wait4(self.pid, os.WNOHANG)
        if not done and time.monotonic() - self.begin < self.test.limit_s:
            return False
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except OSError:
            pass
        if done:
            self.status = os.WEXITSTATUS(code) if os.WIFEXITED(code) else 128 + os.WTERMSIG(code)
        else:
            usage = os.wait4(self.pid, 0)[2]
            self.is_late = True
        self.cpu_s += usage.ru_utime + usage.ru_stime + reap_group(self.pid)
        self.log.seek(0)
        self.said = self.log.read().decode("utf-8", "replace").strip()
        self.log.close()
        unmount_below(self.tmp)
        shutil.rmtree(self.tmp, ignore_errors=True)
        return True


PR_SET_CHILD_SUBREAPER = 36  # include/uapi/linux/prctl.h


def reap_group(group, limit_s=5):
    """Waits for what a test left behind and was killed: its programs, which are ours now.  Returns
    the CPU time that they took."""
    taken_s, end = 0.0, time.monotonic() + limit_s
    while time.monotonic() < end:
        try:
            pid, _, usage = os.wait4(-group, os.WNOHANG)
        except ChildProcessError:
            break
        taken_s += usage.ru_utime + usage.ru_stime
        if not pid:
            time.sleep(0.01)
    return taken_s


def reap_orphans(running):
    """Programs whose parents have ended are ours; tests that wait for their end look into /proc."""
    tests = {run.pid: run for run in running}
    while True:
        try:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
        if not ended or ended.si_pid in tests:
            return
        group = os.getpgid(ended.si_pid)
        usage = os.wait4(ended.si_pid, 0)[2]
        if group in tests:
            tests[group].cpu_s += usage.ru_utime + usage.ru_stime


def run_all(tests, jobs, alone_after=None):
    """Yields each Running at its end.  alone_after: a file; who holds a lock on it is waited
    for."""
    cpus = min(jobs, os.cpu_count())
    at_a_time = {False: jobs, "sleepers": jobs, "one a CPU": cpus, True: 1}
    for kinds in (False, ), ("sleepers", "one a CPU"), (True, ):
        # The longest limits first, so that no long one is left for the end.
        waiting = sorted((t for t in tests if t.alone in kinds), key=lambda t: -t.limit_s)
        if waiting and kinds != (False, ) and alone_after:
            wait_for_lock(alone_after)
        running = []
        # One sleeper beside those that take a CPU each, which measure what they get of it.
        most = jobs if kinds == (False, ) else min(jobs, cpus + 1)
        while waiting or running:
            for test in list(waiting):
                alike = [r for r in running if r.test.alone == test.alone]
                if len(running) < most and len(alike) < at_a_time[test.alone]:
                    waiting.remove(test)
                    running.append(Running(test))
            ended = [r for r in running if r.poll()]
            running = [r for r in running if r not in ended]
            reap_orphans(running)
            yield from ended
            time.sleep(0.02)


def wait_for_lock(path):
    with open(path, "a", encoding="ascii") as file:
        fcntl.flock(file, fcntl.LOCK_EX)


def unmount_below(directory):
    with open("/proc/self/mounts", encoding="utf-8", errors="replace") as file:
        points = [line.split()[1] for line in file]
    for point in sorted((p for p in points if p.startswith(directory + "/")), reverse=True):
        subprocess.call(["umount", "-l", point])


class Tally:
    """Prints each result and counts it."""

    def __init__(self, verbose):
        self.verbose, self.passed, self.failed, self.skipped = verbose, 0, [], 0

    def add(self, run, is_retry=False):
        name, said = run.test.name, run.said
        took = "(%.1f s, %.1f s of CPU)" % (time.monotonic() - run.begin, run.cpu_s)
        if run.status == 0:
            self.passed += 1
            print("ok", name, took)
            if self.verbose and said:
                print("    " + said.replace("\n", "\n    "))
        elif run.status == SKIPPED and not is_retry:
            self.skipped += 1
            print("skip", name, said.rpartition("skip: ")[2])
        else:
            self.failed.append(name)
            reason = "no end within %d s\n" % run.test.limit_s if run.is_late else ""
            print("not ok", name, took)
            print("    " + (reason + said).replace("\n", "\n    "))
        sys.stdout.flush()


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*")
    parser.add_argument("-k", metavar="REGEX", default="", help="tests whose name matches")
    parser.add_argument("-v", action="store_true", help="what passing tests print, too")
    parser.add_argument("--list", action="store_true", help="names only")
    parser.add_argument("--few", action="store_true", help="leave out what is left to check-long")
    parser.add_argument("--unchanged", metavar="REGEX",
                        help="leave out those whose name matches: they look at what is as it was")
    parser.add_argument("-j", type=int, default=2 * os.cpu_count(), metavar="N",
                        help="tests at a time (two a CPU)")
    parser.add_argument("--alone-after", metavar="FILE",
                        help="before those that run alone and retries: wait for this lock")
    parser.add_argument("--no-retry", action="store_true", help="what fails fails: for sanitizers")
    parser.add_argument("--repeat", type=int, default=1, metavar="N", help="each test N times")
    options = parser.parse_args()
    files = options.files or sorted(glob.glob(os.path.join(HERE, "test_*.py"))
                                    + [p for p in glob.glob(os.path.join(HERE, "test_*.sh"))
                                       if os.access(p, os.X_OK)])
    tests = [t for t in collect(files) if re.search(options.k, t.name)]
    if not tests:
        print("no test matches %s" % options.k, file=sys.stderr)
        return 2
    left = tests if options.few else []
    tests = [t for t in tests if not (options.few and t.is_left)]
    if options.unchanged:
        count = len(tests)
        tests = [t for t in tests if not re.search(options.unchanged, t.name)]
        print("# unchanged since the last green run: %d (%s)" % (count - len(tests),
                                                                  options.unchanged))
    if options.list:
        print("\n".join(t.name for t in tests))
        return 0
    tell_left(left)
    if os.geteuid() != 0:
        print("# not root: nothing can be profiled")
        print("0 passed, 0 failed, %d skipped" % len(tests))
        return 1
    if not os.access(harness.PYPROFD, os.X_OK):
        print("no %s: build it first" % harness.PYPROFD, file=sys.stderr)
        return 1
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    tally = Tally(options.v)
    for run in run_all(tests * options.repeat, max(1, options.j), options.alone_after):
        tally.add(run)
    names = [] if options.no_retry or options.repeat > 1 else retries.chosen(
        sorted(set(tally.failed)), len(tests))
    if names:
        # Shares and counts are samples of a shared machine: once more, alone.  Both results are
        # shown.
        if options.alone_after:
            wait_for_lock(options.alone_after)
        for name in names:
            tally.failed.remove(name)
        for run in run_all([t for t in tests if t.name in names], 1):
            tally.add(run, is_retry=True)
        again = retries.judged([n for n in names if n not in tally.failed], len(tests))
        tally.passed -= len(again)
        tally.failed += again
    passed, failed, skipped = tally.passed, tally.failed, tally.skipped
    for name in failed:
        print("# failed: " + name)
    print(
        "%d passed, %d failed, %d skipped%s" % (passed, len(failed), skipped, retries.said(names)))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
