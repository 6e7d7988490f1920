#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""faults.py [--points N] [-j N] [-v] [CALL...]   Lets one malloc, open, mmap, read, write, fsync,
bpf or perf_event_open of a short run of pyprofd fail (faults.c, by LD_PRELOAD): the first one from
each place in the program, which is told by the addresses of the six innermost calls.  --points: so
many places of each CALL.

And lets pyprofd run within limits (RLIMIT_NOFILE, RLIMIT_AS) from far too little to enough.

Each run either goes on and writes a profile that parses, or ends with an exit status and says why.
A crash, a hang, a silent end or a profile that does not parse is a failure.  Prints how many places
there are, were tried, and the outcomes.  A place that a later run does not come to (which it does
is a matter of time, too) is tried twice more.
"""
import argparse
import collections
import concurrent.futures
import os
import resource
import struct
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "e2e"))
import harness  # noqa: E402
import pprof  # noqa: E402

CALLS = ("malloc", "open", "mmap", "read", "write", "fsync", "bpf", "perf_event_open")
# By setrlimit(2): what runs within it, from far too little to enough.
LIMITS = {
    "descriptors": (resource.RLIMIT_NOFILE,
                    list(range(3, 64, 3)) + [80, 100, 120, 139, 140, 150, 200, 256]),
    "address_space": (resource.RLIMIT_AS, [
        mib << 20 for mib in list(range(8, 160, 8)) + [192, 256, 384, 512, 1024]
    ])
}
LIMIT_S = 30
GOES_ON, ENDS, FAILURE = "goes on", "ends and says why", "failure"

ATTEMPTS = 3

Outcome = collections.namedtuple("Outcome", "kind said reached")


def run(library, directory, pid, call, number, places):
    """A run of a fifth of a second: its exit status (None: no end), what it said, its profile's
    path.  number: a limit, or a place."""
    out = os.path.join(directory, "%s-%d.pb.gz" % (call, number))
    is_limit = call in LIMITS
    words = dict(os.environ)
    if not is_limit:
        words.update(LD_PRELOAD=library, FAULT_CALL=call, FAULT_PLACES=places,
                     FAULT_PLACE=str(number))
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            [harness.PYPROFD, "-d", "0.2", "--hz", "499", "--pid",
             str(pid), "-o", out], stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=words,
            preexec_fn=lambda: is_limit and resource.setrlimit(LIMITS[call][0], (number, number)))
        try:
            rc = process.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            rc = None
        log.seek(0)
        return rc, log.read().decode("utf-8", "replace"), out


def judge(rc, said, out):
    """The kind of the outcome, and what was said."""
    if rc is None:
        return FAILURE, "no end within %d s: %s" % (LIMIT_S, said[-300:])
    if rc < 0:
        return FAILURE, "signal %d: %s" % (-rc, said[-300:])
    there = os.path.exists(out)
    if there:
        try:
            pprof.load(out)
        except (ValueError, OSError, EOFError) as error:
            return FAILURE, "exit status %d and a profile that does not parse: %s: %s" % (
                rc, error, said[-300:])
        os.unlink(out)
    if rc == 0:
        return (GOES_ON, said.strip()[-400:]) if there else (
            FAILURE, "exit status 0 without a profile: %s" % said[-300:])
    if not any(len(line.split()) > 2 for line in said.splitlines()):
        return FAILURE, "exit status %d without a word that says why: %s" % (rc, said)
    return ENDS, said.strip()[-400:]


def try_one(library, directory, pid, call, number):
    """A run with that fault, or within that limit."""
    places = os.path.join(directory, "reached-%s-%d" % (call, number))
    for _ in range(ATTEMPTS):
        kind, said = judge(*run(library, directory, pid, call, number, places))
        reached = call in LIMITS or os.path.getsize(places) > 0
        if reached or kind == FAILURE:
            break
    return Outcome(kind, said, reached)


def points(library, directory, pid, call):
    """[place], in the order of the first call from each; and how many calls there were."""
    if call in LIMITS:
        return LIMITS[call][1], len(LIMITS[call][1])
    places = os.path.join(directory, "places-" + call)
    rc, said, out = run(library, directory, pid, call, 0, places)
    assert rc == 0 and os.path.exists(out), "without a fault: %s: %s" % (rc, said)
    with open(places, "rb") as file:
        found = [place for (place,) in struct.iter_unpack("<Q", file.read())]
    return list(dict.fromkeys(found)), len(found)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("calls", nargs="*", metavar="CALL",
                        help="of %s" % ", ".join(CALLS + tuple(LIMITS)))
    parser.add_argument("--points", type=int, default=0, metavar="N",
                        help="places of each call at most; 0: all")
    parser.add_argument("-j", type=int, default=os.cpu_count(), metavar="N")
    parser.add_argument("-v", action="store_true", help="each fault's outcome")
    options = parser.parse_args()
    if os.geteuid() != 0:
        print("skip faults: not root\n0 passed, 0 failed, 1 skipped")
        return 0
    failed = passed = 0
    with tempfile.TemporaryDirectory() as directory, concurrent.futures.ThreadPoolExecutor(
            options.j) as pool:
        library = os.path.join(directory, "faults.so")
        subprocess.check_call([
            "gcc", "-O1", "-shared", "-fPIC", "-o", library,
            os.path.join(HERE, "faults.c"), "-ldl"
        ])
        victim = subprocess.Popen([sys.executable, "-c", "while True: sum(range(1000))"])
        try:
            for call in options.calls or CALLS + tuple(LIMITS):
                numbers, count = points(library, directory, victim.pid, call)
                # Evenly over the run: its end is as much of interest as its begin.
                chosen = numbers[::max(1,
                                       len(numbers) //
                                       options.points)] if options.points else numbers
                outcomes = list(
                    pool.map(lambda n, c=call: try_one(library, directory, victim.pid, c, n),
                             chosen))
                kinds = collections.Counter(outcome.kind for outcome in outcomes if outcome.reached)
                unreached = sum(not outcome.reached for outcome in outcomes)
                bad = [(n, o.said) for n, o in zip(chosen, outcomes) if o.kind == FAILURE]
                print(
                    "%s %s: %d calls at %d places, %d tried: %d go on, %d end and say why, %d "
                    "failures, %d not reached"
                    % ("not ok" if bad else "ok", call, count, len(numbers), len(chosen),
                       kinds[GOES_ON], kinds[ENDS], len(bad), unreached),
                    flush=True)
                for number, said in bad:
                    print("    %s %d: %s" % (call, number, said.replace("\n", "\n        ")))
                if options.v:
                    for number, outcome in zip(chosen, outcomes):
                        print("    %d: %s%s: %s" % (number, outcome.kind, "" if outcome.reached else
                                                    ", not reached", outcome.said))
                passed, failed = passed + (not bad), failed + bool(bad)
        finally:
            victim.kill()
            victim.wait()
    print("%d passed, %d failed, 0 skipped" % (passed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
