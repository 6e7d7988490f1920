# SPDX-License-Identifier: BSD-2-Clause
"""Programs of an unprivileged user that try to read others' data through pyprofd."""
import bisect
import contextlib
import os
import re
import subprocess
import time

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
        self.directory = harness.temporary()
        os.chown(self.directory, user, user)
        self.path = os.path.join(self.directory, "program.py")
        with open(self.path, "w") as f:
            f.write(source)
        # Who is not root may not reach the other interpreters.
        self.process = subprocess.Popen(
            list(wrap) + ["/usr/bin/python3", self.path], cwd=self.directory,
            stdout=subprocess.PIPE, preexec_fn=lambda: self.begin(user))
        self.pid = self.process.pid
        if before:
            before(self)
        assert self.process.stdout.readline() == b"ready\n"

    @staticmethod
    def begin(user):
        harness.forget_perf_map(os.getpid())
        become(user)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        harness.forget_perf_map(self.pid)


def agent(directory, *options):
    """A pyprofd that records all kinds into a store, and serves a socket."""
    return test_dump.agent(directory, "store/", 199, options)


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
    directory = harness.temporary()
    process, path = agent(directory)
    with Program(CALLS) as program:
        for user in (0, NOBODY):
            found = []
            requests = ("top all", "top all kinds=cpu", "top all kinds=offcpu",
                        "top all kinds=wall")
            for request, windows in zip(requests, test_dump.at_once([
                    (lambda r: list(live_windows(path, user, r)), r) for r in requests])):
                frames = [f for w in windows for s in w.samples for f in s.frames
                          if s.labels["pid"] == program.pid]
                assert any(f.kind == "kernel" for f in frames), (request, user, frames)
                found += [symbols.known(w) for w in windows]
                if user:
                    far = [m for w in windows for m in w.mappings.values()
                           if (m.start | m.limit) >> 63]
                    assert not far, far
            assert not any(found) if user else all(found), (user, found)
        words = ("--live", "--socket", path, "--pid", program.pid, "--for", 1)
        verbs = [("dump", "--pid", program.pid, "--socket", path),
                 ("top", "--socket", path, "--count", 2, "--pid", program.pid),
                 ("report", ) + words, ("tree", ) + words]
        outs = [os.path.join(program.directory, "out-" + kind) for kind in (
            "folded", "speedscope", "chrome", "csv", "json", "callgrind")]
        verbs += [("export", "--format", out.rsplit("out-", 1)[1]) + words + ("-o", out)
                  for out in outs]
        said = test_dump.at_once([
            (lambda verb, *words: ask(*words, verb=verb, user=NOBODY), *verb) for verb in verbs])
        for out in outs:
            with open(out, encoding="utf-8", errors="replace") as f:
                said.append(f.read())
        for text in said:
            numbers = [int(n, 16) for n in re.findall(r"\b(?:0x)?([0-9a-f]{16})\b", text)]
            numbers += [int(n) for n in re.findall(r"\b([0-9]{19,20})\b", text)]
            assert not [n for n in numbers if n >> 47 == (1 << 17) - 1], text
    harness.finish(process, signal_number=2)


# ---------------------------------------------------------------- perf maps

# Machine code at the address that root's file tells of: it counts down and returns.
JIT = """
import ctypes, mmap, os, sys, time
ADDRESS = 0x10000000
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + 3 * [ctypes.c_int] + [ctypes.c_long]
at = libc.mmap(ADDRESS, 4096, 7, 0x32, -1, 0)
assert at == ADDRESS, at
code = b"\\xb9\\x00\\x00\\x00\\x04\\xff\\xc9\\x75\\xfc\\xc3"
ctypes.memmove(at, code, len(code))
burn = ctypes.CFUNCTYPE(None)(at)
%s
print("ready", flush=True)
while True:
    burn()
    time.sleep(0.1)
"""
SECRET = "the_secret_of_root"
OWN = "name_of_its_own"


def jit_functions(programs):
    """What `pyprof report --live` of nobody's shows of each of nobody's JITs, and what the agent
    says.  With capabilities in a namespace of its own a program is root's to see, until it drops
    them."""
    harness.need(os.uname().machine == "x86_64", "the machine code is x86-64's")
    process, path = agent(harness.temporary())

    def report(program, wrap):
        return ask("--live", "--socket", path, "--pid", program.pid, "--for", 2, "--top", 0,
                   verb="report", user=None if wrap else NOBODY)
    with contextlib.ExitStack() as stack:
        running = [(stack.enter_context(Program(JIT % how, before=before, wrap=wrap)), wrap)
                   for how, before, wrap in programs]
        outs = test_dump.at_once([(report, *one) for one in running])
        for program, _ in running:
            harness.forget_perf_map(program.pid)
    for out in outs:
        assert "[anon]" in out or OWN in out or SECRET in out, out
    return outs, harness.finish(process, signal_number=2).err


def secret_file(directory):
    path = os.path.join(directory, "shadow")
    with open(path, "w") as f:
        f.write("10000000 1000 %s\n" % SECRET)
    os.chmod(path, 0o600)
    return path


OWN_MAP = """
with open("/tmp/perf-%%d.map" %% os.getpid(), "w") as f:
    f.write("10000000 1000 %s\\n")
""" % OWN


def test_perf_map_is_its_own_and_no_way_to_other_files():
    harness.need(os.geteuid() == 0, "only root can become somebody else")
    secret = secret_file(harness.temporary())
    fifo = secret + ".fifo"
    os.mkfifo(fifo, 0o600)
    kept = os.open(fifo, os.O_RDWR | os.O_NONBLOCK)
    line = ("10000000 1000 %s\n" % SECRET).encode()
    os.write(kept, line)
    links = ['os.symlink("%s", "/tmp/perf-%%d.map" %% os.getpid())' % target
             for target in (secret, fifo)]
    # A name that it made while it could; a file that it mounted where it may.
    whys = [("a link leads to it", links[0], None, ()), ("a link leads to it", links[1], None, ()),
            ("another user's", "", lambda p: os.link(secret, "/tmp/perf-%d.map" % p.pid), ())]
    if subprocess.call(["unshare", "-Urm", "true"], preexec_fn=lambda: become(NOBODY),
                       stderr=subprocess.DEVNULL) == 0:
        mount = """
path = "/tmp/perf-%%d.map" %% os.getpid()
open(path, "w").close()
assert libc.mount(b"%s", path.encode(), None, 4096, None) == 0
""" % secret
        whys.append(("another user's", mount, None, ("unshare", "-Urm")))
    (own, *outs), said = jit_functions([(OWN_MAP, None, ())] + [why[1:] for why in whys])
    assert OWN in own, own
    for (why, *_), out in zip(whys, outs):
        assert SECRET not in out and "[anon]" in out, (why, out)
        assert why in said and "perf_maps_refused" in said, (why, said)
    assert os.read(kept, 100) == line, "a pipe was read"
    os.close(kept)


# ---------------------------------------------------------------- who a file is

LIBRARY = """
__attribute__((noinline)) void %s(void)
{
	for (volatile int i = 0; i < 10000000; i++)
		;
}
__attribute__((noinline)) void %s(void)
{
	%s();
}
"""
CALLER = """
import ctypes, sys, time
call = getattr(ctypes.CDLL("%s"), "%s")
print("ready", flush=True)
while True:
    call()
    time.sleep(0.06)
"""


def build_libraries(directory):
    """Two with one build-id: root's, and nobody's forgery of it."""
    harness.need(subprocess.call(["gcc", "--version"], stdout=subprocess.DEVNULL) == 0, "no gcc")
    found = []
    for name, inner, outer in (("honest", "honest_inner", "honest_outer"),
                               ("forged", "forged_inner", "forged_outer")):
        place = os.path.join(directory, name)
        os.mkdir(place)
        source = os.path.join(place, "lib.c")
        with open(source, "w") as f:
            f.write(LIBRARY % (inner, outer, inner))
        path = os.path.join(place, "lib%s.so" % name)
        subprocess.check_call(["gcc", "-O1", "-fno-optimize-sibling-calls", "-shared", "-fPIC",
                               "-Wl,--build-id=0x1234567890abcdef1234567890abcdef12345678",
                               "-o", path, source])
        found.append((path, outer))
    os.chown(found[1][0], NOBODY, NOBODY)
    return found


def test_forged_build_id_names_nobody_else():
    harness.need(os.geteuid() == 0, "only root can become somebody else")
    (honest, honest_call), (forged, forged_call) = build_libraries(harness.temporary())
    directory = harness.temporary()
    process, path = agent(directory)
    try:
        with Program(CALLER % (forged, forged_call)) as attacker:
            ask("--live", "--socket", path, "--pid", attacker.pid, "--for", 2, verb="report")
            with Program(CALLER % (honest, honest_call), user=54321) as victim:
                pids = [attacker.pid, victim.pid]
                out = dict(zip(pids, test_dump.at_once([
                    (lambda pid: ask("--live", "--socket", path, "--pid", pid, "--for", 2, "--top",
                                     0, verb="report"), pid) for pid in pids])))
        assert "forged_inner" in out[attacker.pid] and "libforged" in out[attacker.pid], out
        assert "honest_inner" in out[victim.pid] and "libhonest" in out[victim.pid], out[victim.pid]
        assert "forged" not in out[victim.pid], out[victim.pid]
        assert "honest" not in out[attacker.pid], out[attacker.pid]
    finally:
        harness.finish(process, signal_number=2)


# ---------------------------------------------------------------- memory that never comes

RUNTIME = """
import ctypes, os
path = os.path.realpath("/proc/self/exe")
at = ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, "_PyRuntime"))
with open(path, "rb") as f:
    is_moved = f.read(17)[16] == 3
if is_moved:
    at -= min(int(line.split("-")[0], 16) for line in open("/proc/self/maps") if path in line)
print(path, hex(at))
"""


def test_memory_that_never_comes_holds_nobody_up():
    harness.need(os.geteuid() == 0, "userfaultfd is root's")
    harness.need(harness.shutil.which("gcc"), "no gcc")
    directory = harness.temporary()
    program = os.path.join(directory, "never_comes")
    subprocess.check_call(
        ["gcc", "-O1", "-o", program,
         os.path.join(harness.TARGETS, "never_comes.c")])
    path, address = subprocess.check_output(["/usr/bin/python3", "-c", RUNTIME], text=True).split()
    with subprocess.Popen([program, path, address], stdout=subprocess.PIPE) as trap:
        try:
            harness.need(trap.stdout.readline() == b"ready\n", "no userfaultfd")
            begun = time.monotonic()
            run = harness.profile(duration=3, hz=99, limit_s=20)
            took_s = time.monotonic() - begun
        finally:
            trap.kill()
    assert "memory_late" in run.err, run.err
    assert took_s < 15, (took_s, run.err)
    with open(run.out, "rb") as f:
        profile = pprof.Profile(f.read())
    # Its own code has names all the same.
    frames = {f.name for s in profile.samples if s.labels["pid"] == trap.pid for f in s.frames}
    assert "main" in frames, frames


# ---------------------------------------------------------------- names of code objects

PAY = """
def pay_salaries():
    n = 0
    while True:
        n += 1
"""

PAYING = """
PAY = %r
exec(compile(PAY, "/srv/pay.py", "exec"))
print("ready", flush=True)
pay_salaries()
"""

# The name of a code object was a hash of its content alone (bpf/lib/code.bpf.h), which can be
# undone: a last word in the line table, which nobody looks at, made it any other's.
LENDING = """
PAY = %r
M, C = (1 << 64) - 1, 0x9e3779b97f4a7c15
def mix(hash, word):
    hash = (hash ^ word) * C & M
    return hash ^ hash >> 29
def unmix(mixed):
    hash = mixed
    for _ in range(3):
        hash = mixed ^ hash >> 29
    return hash * pow(C, -1, 1 << 64) & M
def body(code):
    return (code.co_qualname + code.co_filename).encode() + code.co_linetable
def name(code, data):
    hash = mix(code.co_firstlineno, code.co_flags)
    for at in range(0, len(data), 8):
        hash = mix(hash, int.from_bytes((data + bytes(8))[at:at + 8], "little"))
    return hash
def idle_nothing():
    n = 0
    while True:
        n += 1
there = {}
exec(compile(PAY, "/srv/pay.py", "exec"), there)
wanted = there["pay_salaries"].__code__
code = idle_nothing.__code__.replace(co_filename="/usr/lib/lent.py")
table = code.co_linetable
table += bytes([0x80]) * (-len(body(code)) %% 8)
size = len(body(code.replace(co_linetable=table))) + 8
last = unmix(mix(name(wanted, body(wanted)), len(body(wanted))) | 1)
word = unmix(last ^ size) ^ name(code, body(code.replace(co_linetable=table)))
code = code.replace(co_linetable=table + word.to_bytes(8, "little"))
def whole_name(code):
    return mix(name(code, body(code)), len(body(code))) | 1
assert whole_name(code) == whole_name(wanted)
idle_nothing.__code__ = code
print("ready", flush=True)
idle_nothing()
"""


def test_code_object_made_like_anothers_lends_it_no_name():
    """Whoever is seen first gives a code object its name and lines; that holds for one user."""
    newer = "import sys; sys.exit(sys.version_info < (3, 11))"
    harness.need(not subprocess.call(["/usr/bin/python3", "-c", newer]), "no Python 3.11")
    out = os.path.join(harness.temporary(), "o.pb.gz")
    running = harness.start(out)
    harness.sampling(running)
    with Program(LENDING % PAY) as lender:
        harness.wait_for(lambda: harness.cpu_of(lender.pid) > 0.3, 20, "the first one's time")
        with Program(PAYING % PAY, user=NOBODY - 1) as victim:
            harness.wait_for(lambda: harness.cpu_of(victim.pid) > 0.5, 20, "the victim's time")
            harness.finish(running, signal_number=2)
    for program, own, other in ((victim, "pay_salaries", "idle_nothing"),
                                (lender, "idle_nothing", "pay_salaries")):
        samples = harness.samples(out, pid=program.pid)
        harness.expect_share(samples, lambda s, own=own: harness.holds(s, own), 0.9, own)
        assert not [s for s in samples if harness.holds(s, other)], other
