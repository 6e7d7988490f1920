# SPDX-License-Identifier: BSD-2-Clause
"""Programs of an unprivileged user that try to learn through pyprofd what is not theirs."""
import bisect
import os
import re
import subprocess

import harness
import pprof
import test_dump
from test_dump import ask, become

NOBODY = 65534

# Most of its time is the kernel's, at several places.
CALLS = """
import os, time
zero = os.open("/dev/zero", os.O_RDONLY)
print("ready", flush=True)
while True:
    for i in range(200):
        os.read(zero, 1 << 16)
        os.stat("/")
    time.sleep(0.001)
"""


class Program:
    """A Python program of nobody's."""

    def __init__(self, source, user=NOBODY, wrap=(), before=None):
        self.folder = harness.temporary()
        os.chown(self.folder, user, user)
        self.path = os.path.join(self.folder, "program.py")
        with open(self.path, "w") as f:
            f.write(source)
        # Who is not root may not reach the other interpreters.
        self.process = subprocess.Popen(list(wrap) + ["/usr/bin/python3", self.path], cwd=self.folder,
                                        stdout=subprocess.PIPE, preexec_fn=lambda: become(user))
        self.pid = self.process.pid
        if before:
            before(self)
        assert self.process.stdout.readline() == b"ready\n"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def agent(folder, *options):
    """A pyprofd that records all kinds into a store, and serves a socket."""
    return test_dump.agent(folder, "store/", 499, options)


# ---------------------------------------------------------------- kernel addresses

class KernelSymbols:
    """Root's /proc/kallsyms."""

    def __init__(self):
        symbols = []
        with open("/proc/kallsyms", encoding="ascii", errors="replace") as f:
            for line in f:
                words = line.split()
                if words[1] in "tTwW":
                    symbols.append((int(words[0], 16), words[2]))
        symbols.sort()
        self.addresses = [s[0] for s in symbols]
        self.names = [s[1] for s in symbols]
        harness.need(self.addresses[-1], "the kernel hides its addresses from root")

    def known(self, profile):
        """How many locations of the profile tell where their function is."""
        count = 0
        for location in profile.locations.values():
            at = bisect.bisect_right(self.addresses, location.address) - 1
            names = [profile.functions[f].name for f, _ in location.lines]
            # Some functions have one address and several names.
            count += at >= 0 and location.address >> 63 and any(
                n in names for n in self.names[max(at - 4, 0):at + 5])
        return count


def live_windows(path, user, request, parts=2):
    """The profiles of the first parts as that user gets them."""
    script = """
import socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
s.sendall(b"pyprofd 1 %s\\n" % sys.argv[2].encode())
f = s.makefile("rb")
for _ in range(int(sys.argv[3])):
    words = f.readline().split(b"\\t")
    assert words[0] == b"window", words
    sys.stdout.buffer.write(words[1] + b"\\n" + f.read(int(words[1])))
"""
    told = subprocess.check_output(["/usr/bin/python3", "-c", script, path, request, str(parts)],
                                   preexec_fn=(lambda: become(user)) if user else None)
    while told:
        size, _, told = told.partition(b"\n")
        yield pprof.Profile(told[:int(size)])
        told = told[int(size):]


def test_kernel_addresses_are_roots():
    harness.need(os.geteuid() == 0, "only root can become somebody else")
    symbols = KernelSymbols()
    folder = harness.temporary()
    process, path = agent(folder)
    with Program(CALLS) as program:
        for user in (0, NOBODY):
            found = []
            for request in ("top all", "top all kinds=cpu", "top all kinds=offcpu",
                            "top all kinds=wall"):
                windows = list(live_windows(path, user, request))
                frames = [f for w in windows for s in w.samples for f in s.frames
                          if s.labels["pid"] == program.pid]
                assert any(f.kind == "kernel" for f in frames), (request, user, frames)
                found += [symbols.known(w) for w in windows]
                if user:
                    far = [m for w in windows for m in w.mappings.values()
                           if (m.start | m.limit) >> 63]
                    assert not far, far
            assert not any(found) if user else all(found), (user, found)
        words = ("--live", "--socket", path, "--pid", program.pid, "--for", 2)
        said = [ask("--pid", program.pid, "--socket", path, user=NOBODY),
                ask("--socket", path, "--count", 2, "--pid", program.pid, verb="top", user=NOBODY),
                ask(*words, verb="report", user=NOBODY), ask(*words, verb="tree", user=NOBODY)]
        for kind in ("--folded", "--speedscope", "--chrome", "--csv", "--json", "--callgrind"):
            out = os.path.join(program.folder, "out" + kind)
            ask(kind, *words, "-o", out, verb="export", user=NOBODY)
            with open(out, encoding="utf-8", errors="replace") as f:
                said.append(f.read())
        for text in said:
            numbers = [int(n, 16) for n in re.findall(r"\b(?:0x)?([0-9a-f]{16})\b", text)]
            numbers += [int(n) for n in re.findall(r"\b([0-9]{19,20})\b", text)]
            assert not [n for n in numbers if n >> 47 == (1 << 17) - 1], text
    harness.finish(process, signal_number=2)
