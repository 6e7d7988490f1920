# SPDX-License-Identifier: BSD-2-Clause
"""Shared by all end-to-end tests: programs to profile, runs of pyprofd, access to samples.

Python 3.9 and the standard library.  Tests ask for a third of the samples that a quiet machine
gives, so that neighbours do not fail them; test_accuracy.py, which runs alone, counts exactly.
run.py forks a process for each test, so module state here belongs to one test; its temporary
directories and left-over processes are removed by run.py.
"""
import collections
import contextlib
import fcntl
import glob
import importlib.util
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
PYPROFD = os.path.abspath(
    os.environ.get("PYPROFD") or os.path.join(TOP,
                                              os.environ.get("BUILD") or "build", "pyprofd"))
TARGETS = os.path.join(HERE, "targets")
TARGET_DIRECTORIES = [TARGETS]  # the benchmark adds its own
TMP_PREFIX = "pyprofd-e2e."

sys.path.insert(0, HERE)

# Root frames: where a native stack begins.
NATIVE_ROOT = re.compile(
    r"^(_start|_dl_start_user|(__)?clone3?|thread_start|__libc_start.*)(\.|@|$)")

STRIPPED_LIBC = re.compile(r"^\[(libc|libpthread)[-.0-9]*\.so[.0-9]*\]$")


# Before a program whose CPU time is what a test looks at: the machine's other work takes little of
# it.
AHEAD = ("nice", "-n", "-15")


class Skip(Exception):
    """Raised by a test that cannot run here; the text is the reason."""


def need(condition, reason):
    if not condition:
        raise Skip(reason)


def need_tool(name):
    """The path of a program of build/tools: BASE, or BASE-WHAT, that BASE.sh of tests/tools
    builds.  While somebody does, with a lock on BASE.lock, that is waited for."""
    folder, base = os.path.join(os.path.dirname(PYPROFD), "tools"), name.split("-")[0]
    with contextlib.suppress(FileNotFoundError), open(os.path.join(folder, base + ".lock"),
                                                      encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
    path = os.path.join(folder, name)
    need(os.path.exists(path), "no %s: tests/tools/%s.sh %s" % (name, base, folder))
    return path


def need_fakes(variant=""):
    """The directory of the stand-ins of CUDA's libraries (tests/fakes/README.md).  Programs of
    targets/ find fakecuda.py beside them."""
    sources = os.path.join(TOP, "tests", "fakes")
    path = os.path.join(os.path.dirname(PYPROFD), "tests", "fakes", variant)
    need(os.path.exists(os.path.join(path, "libcuda.so.1")), "no %s: make fakes" % path)
    if sources not in TARGET_DIRECTORIES:
        TARGET_DIRECTORIES.append(sources)
    return path


def need_no_pyprofd():
    """Nobody answers where pyprof asks when it is not told where.  A killed pyprofd leaves its
    socket there."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        need(client.connect_ex("/run/pyprofd/live.sock"), "a pyprofd runs already")


# ---------------------------------------------------------------- interpreters

Interpreter = collections.namedtuple("Interpreter", "label command version root")
_interpreters = None


def interpreters():
    """Every CPython at hand, oldest first."""
    global _interpreters
    if _interpreters is None:
        spec = importlib.util.spec_from_file_location(
            "interpreters_list", os.path.join(TOP, "tests", "interpreters", "list.py"))
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        _interpreters = [
            Interpreter(label, command, version, command[1] if command[0] == "chroot" else "")
            for label, command, version in module.at_hand(module.default_directory())]
    return _interpreters


def interpreter(minimum=(3, 8), maximum=(3, 99), chroot=False, prefer=(3, 12)):
    """One that fits, `prefer` if it is there; else the newest."""
    fit = [i for i in interpreters() if minimum <= i.version <= maximum and (chroot or not i.root)]
    need(fit, "no CPython %d.%d or later at hand" % minimum)
    for i in fit:
        if i.version == prefer:
            return i
    return fit[-1]


def times(few, many):
    """How often, or for how many seconds: in `make check`, and in `make check-long`."""
    return many if os.environ.get("CHECK_LONG") else few


# ------------------------------------------------ what `make check` runs of a test's cases
#
# Each takes cases [(label, argument)], oldest interpreter first, and gives some of them: for a
# test's attribute `few` (run.py --few).  check-long runs all.  That the layout of each version is
# right is what interpreters.frames tells, which has one of each version in `make check`, too; other
# tests need one of each way that the code they look at can go.

def version_of(argument):
    """The version of the interpreter that a case's argument is or begins with."""
    return (argument if isinstance(argument, Interpreter) else argument[0]).version


def each_version(every):
    """One of each minor version: the first."""
    return list(
        {version_of(argument): (label, argument) for label, argument in reversed(every)}.values())


def each_chain(every):
    """One of each way from a frame to its caller (enum pp_chain, the GIL's and the collector's
    place): frame objects to 3.10, 3.11's interpreter frames, those with shims since 3.12.  The
    oldest of the first, the newest of the last."""
    groups = [[case for case in every if low <= version_of(case[1]) <= high]
              for low, high in (((2, 7), (3, 10)), ((3, 11), (3, 11)), ((3, 12), (3, 99)))]
    return [group[-1 if number == 2 else 0] for number, group in enumerate(groups) if group]


def ends(every):
    """The oldest and the newest."""
    return every[:1] + every[1:][-1:]


def newest(every):
    return every[-1:]


# ---------------------------------------------------------------- programs to profile

_running = []


def temporary(root=""):
    base = root + "/tmp" if root else os.environ.get("E2E_TMP") or tempfile.gettempdir()
    directory = tempfile.mkdtemp(prefix=TMP_PREFIX, dir=base)
    os.chmod(directory, 0o755)
    return directory


def wait_for(condition, limit_s=30.0, what="condition", step_s=0.01):
    """What takes long to look at is looked at less often: others need the CPU."""
    end = time.monotonic() + limit_s
    began = time.monotonic()
    while began < end:
        value = condition()
        if value:
            return value
        time.sleep(max(step_s, min(4 * (time.monotonic() - began), 0.5)))
        began = time.monotonic()
    raise AssertionError("%s: not within %g s" % (what, limit_s))


def forget_perf_map(pid):
    """Removes what a process of this number has left for perf: the next one may be another
    user's."""
    try:
        os.unlink("/tmp/perf-%d.map" % pid)
    except FileNotFoundError:
        pass


class Target:
    """A script of targets/ under one interpreter.  It gets its directory in $E2E_DIR, makes `ready`
    there when its work has begun, and ends when `stop` appears."""

    def __init__(self, script, *args, python=None, env=None, options=(), wrap=(), ready=True,
                 directory=None, session=False):
        self.python = python or interpreter()
        self.directory = directory or temporary(self.python.root)
        self.inside = self.directory[len(self.python.root):]
        for source in TARGET_DIRECTORIES:
            for name in os.listdir(source):
                if name.endswith(".py"):
                    shutil.copy(os.path.join(source, name), self.directory)
        environment = dict(os.environ, E2E_DIR=self.inside, PYTHONDONTWRITEBYTECODE="1",
                           PYTHONIOENCODING="utf-8", **(env or {}))
        environment.pop("PYTHONPATH", None)
        self.script = os.path.join(self.inside, script)
        command = list(wrap) + list(self.python.command) + list(options) + [self.script]
        command += [str(a) for a in args]
        self.log = open(os.path.join(self.directory, "log"), "wb")
        self.process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL,
                                        stdout=self.log, stderr=subprocess.STDOUT,
                                        cwd=self.directory, start_new_session=session)
        self.pid = self.process.pid
        _running.append(self)
        if ready:
            self.wait("ready")

    def path(self, name):
        return os.path.join(self.directory, name)

    def wait(self, name, limit_s=30.0):
        def there():
            if os.path.exists(self.path(name)):
                return True
            if self.process.poll() is not None:
                raise AssertionError("the target ended with %s: %s"
                                     % (self.process.returncode, self.output()[-2000:]))
            return False
        wait_for(there, limit_s, "%s of %s" % (name, self.script))

    def output(self):
        if not self.log.closed:
            self.log.flush()
        with open(self.path("log"), encoding="utf-8", errors="replace") as file:
            return file.read()

    def read(self, name):
        """A JSON file that the target wrote."""
        with open(self.path(name), encoding="utf-8") as file:
            return json.load(file)

    def ask_to_stop(self):
        open(self.path("stop"), "w").close()

    def stop(self, limit_s=20.0):
        """Asks it to end; returns its exit status."""
        if self.process.poll() is None:
            self.ask_to_stop()
            try:
                self.process.wait(limit_s)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.log.close()
        forget_perf_map(self.pid)
        return self.process.returncode

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def light(comm="", **options):
    """A program for a test that needs samples but no whole CPU, which others have then: a quarter
    of a CPU, which it also gets on a busy machine.  Where so many samples are asked for, more Hz
    give them."""
    return Target("burn.py", 0, "light", comm, **options)


def clean_up():
    """Called by run.py after a test, whatever its end."""
    for target in _running:
        if target.process.poll() is None:
            # Its own children see `stop`, too.
            try:
                open(target.path("stop"), "w").close()
                target.process.wait(2)
            except (OSError, subprocess.TimeoutExpired):
                target.process.kill()
            target.process.wait()
        shutil.rmtree(target.directory, ignore_errors=True)


def at_rest(pid, threads, limit_s=30.0):
    """Waits until so many threads of the process sleep, and none had the CPU for a tenth of a
    second.
    """
    def turns():
        found = []
        for status in glob.glob("/proc/%d/task/*/status" % pid):
            with open(status, encoding="utf-8", errors="replace") as file:
                told = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
            found.append((told["State"][0], told["voluntary_ctxt_switches"]))
        return found

    def rests():
        before = turns()
        time.sleep(0.1)
        return before == turns() and [state for state, _ in before] == ["S"] * threads
    wait_for(rests, limit_s, "%d threads of %d at rest" % (threads, pid))


def children(pid):
    """Pids of the processes whose parent is `pid`."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open("/proc/%s/stat" % name, encoding="utf-8", errors="replace") as file:
                    if file.read().rpartition(")")[2].split()[1] == str(pid):
                        found.append(int(name))
            except OSError:
                pass
    return found


def cgroup2_mount():
    with open("/proc/self/mounts", encoding="utf-8", errors="replace") as file:
        for line in file:
            words = line.split()
            if words[2] == "cgroup2":
                return words[1]
    raise Skip("no cgroup2 is mounted")


# ---------------------------------------------------------------- runs of pyprofd

Run = collections.namedtuple("Run", "rc err out")


def arguments(out, pid=None, hz=None, duration=None, options=()):
    words = [PYPROFD]
    if hz:
        words += ["--hz", str(hz)]
    if pid:
        words += [
            "--pid", ",".join(str(p) for p in pid) if isinstance(pid, (list, tuple)) else str(pid)
        ]
    if duration:
        words += ["--duration", str(duration)]
    if out:
        words += ["-o", out]
    return words + [str(o) for o in options]


def start(out, pid=None, hz=499, duration=None, options=(), command=(), env=None, **popen):
    """pyprofd in the background; wait_started() tells when it samples."""
    words = arguments(out, pid, hz, duration, options) + (["--"] + list(command) if command else [])
    # Who called the tests through sudo is not whom a test's command or file is meant for.
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("SUDO_")
    }
    environment.update(env or {})
    log = tempfile.TemporaryFile()
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=popen.pop("stdout", log),
                               stderr=log, env=environment, **popen)
    process.e2e_log = log
    process.e2e_out = out
    return process


def fdinfos(process):
    """What the kernel tells of each file that a process has open, by key."""
    for path in glob.glob("/proc/%d/fdinfo/*" % process.pid):
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                told = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
        except OSError:
            continue
        yield told


def finish(process, limit_s=60.0, signal_number=None):
    """Waits for (or ends) a pyprofd that start() began."""
    if signal_number and process.poll() is None:
        process.send_signal(signal_number)
    try:
        process.wait(limit_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        raise AssertionError("pyprofd did not end within %g s: %s" % (limit_s, said(process)))
    return Run(process.returncode, said(process), process.e2e_out)


def said(process):
    # Not by seek() and read(): the position is that of pyprofd's next line, too.
    log = process.e2e_log.fileno()
    return os.pread(log, os.fstat(log).st_size, 0).decode("utf-8", "replace")


def profile(pid=None, hz=499, duration=2, options=(), command=(), out=None, env=None, check=True,
            limit_s=None, **popen):
    """Runs pyprofd to its end."""
    out = out or os.path.join(temporary(), "out.pb.gz")
    process = start(out, pid, hz, duration, options, command, env, **popen)
    run = finish(process, limit_s or (duration or 10) + 40)
    if check:
        assert run.rc == 0, "pyprofd ended with %d: %s" % (run.rc, run.err)
    return run


def profile_work(pid, cpu_s, hz=999, options=(), limit_s=30.0):
    """Runs pyprofd until the process has used so much CPU time: as many samples on a busy machine
    as on a quiet one."""
    process = start(os.path.join(temporary(), "out.pb.gz"), pid, hz, options=options)
    sampling(process, settle_s=0)
    end = cpu_of(pid) + cpu_s
    wait_for(lambda: process.poll() is not None or cpu_of(pid) >= end, limit_s,
             "%g s of CPU time of %d" % (cpu_s, pid))
    run = finish(process, signal_number=signal.SIGINT)
    assert run.rc == 0, "pyprofd ended with %d: %s" % (run.rc, run.err)
    return run


def cpu_of(pid):
    """CPU time of all threads of a process, in s; to a clock tick."""
    with open("/proc/%d/stat" % pid, encoding="utf-8", errors="replace") as file:
        user, system = [int(word) for word in file.read().rpartition(")")[2].split()[11:13]]
    return (user + system) / os.sysconf("SC_CLK_TCK")


def sampling(process, limit_s=20.0, settle_s=0.3):
    """Waits until a pyprofd in the background has its perf events open, which are enabled just
    after that.  On each CPU one tells of mappings, before the machine's programs are looked at, and
    one takes the samples, after that."""
    def attached():
        if process.poll() is not None:
            raise AssertionError("pyprofd ended with %d: %s" % (process.returncode, said(process)))
        count = 0
        for fd in os.listdir("/proc/%d/fd" % process.pid):
            try:
                count += "perf_event" in os.readlink("/proc/%d/fd/%s" % (process.pid, fd))
            except OSError:
                pass
        return count >= 2 * os.cpu_count()
    wait_for(attached, limit_s, "perf events of pyprofd")
    time.sleep(settle_s)


# ---------------------------------------------------------------- samples

Sample = collections.namedtuple("Sample", "count ns pid tid labels frames")  # frames: root first


def load(path):
    import pprof
    return pprof.load(path)


def samples(path, pid=None, pids=None):
    """The samples of a pprof file, root first; of `pid` or `pids` only."""
    wanted = {pid} if pid else set(pids) if pids is not None else None
    result = []
    loaded = load(path)
    for sample in loaded.samples:
        labels = sample.labels
        owner = int(labels.get("pid", 0))
        if wanted is not None and owner not in wanted:
            continue
        result.append(Sample(sample.values[0], sample.values[1], owner, int(labels.get("tid", 0)),
                             labels, sample.frames[::-1]))
    return result


def python_frames(sample):
    return [f for f in sample.frames if f.kind == "python"]


def native_frames(sample):
    return [f for f in sample.frames if f.kind == "native"]


def kernel_frames(sample):
    return [f for f in sample.frames if f.kind == "kernel"]


def names(sample):
    return [f.name for f in python_frames(sample)]


def scheduled_s(pid):
    """CPU time of the main thread, by the scheduler's own clock."""
    with open("/proc/%d/schedstat" % pid, encoding="ascii") as file:
        return int(file.read().split()[0]) / 1e9


def total(chosen):
    return sum(s.count for s in chosen)


def share(chosen, condition):
    """Of `chosen` samples, the share that fulfils the condition; 0 when there are none."""
    everything = total(chosen)
    return sum(s.count for s in chosen if condition(s)) / everything if everything else 0.0


def plain(name):
    """The last part of a qualified name, for what every version says: 2.7 to 3.10 have no other."""
    return name.rpartition(".")[2] if not name.endswith(">") else name[name.rfind("<"):]


def holds(sample, *wanted):
    """Has Python frames of these plain names, in this order from the root, gaps allowed."""
    rest = iter(plain(n) for n in names(sample))
    return all(any(n == w for n in rest) for w in wanted)


def is_rooted(sample):
    """Native root is the program's or a thread's start.  Kernel-only samples have none to show."""
    user = [f for f in sample.frames if f.kind != "kernel"]
    if not user:
        return False
    # A stripped libc has no name for clone3: there a thread begins in [libc.so.6].
    is_stripped_clone = sample.tid != sample.pid and STRIPPED_LIBC.match(user[0].name)
    return bool(NATIVE_ROOT.match(user[0].name)) or bool(is_stripped_clone)


def is_python_rooted(sample):
    found = names(sample)
    return bool(found) and plain(
        found[0]) in ("<module>", "_bootstrap", "__bootstrap", "_run_module_as_main")


def frame_text(frame):
    if frame.kind == "python":
        return "%s (%s:%s)" % (frame.name, os.path.basename(frame.file), frame.line)
    return "%s [%s]" % (frame.name, frame.kind[0] + ":" + os.path.basename(frame.module))


def text(sample):
    words = [frame_text(f) for f in sample.frames]
    if len(words) > 24:
        words[12:-12] = ["... %d frames ..." % (len(words) - 24)]
    return "%dx pid %d %s: %s" % (sample.count, sample.pid, sample.labels, ";".join(words))


def show(chosen, count=3):
    """The heaviest samples, for the message of an assertion."""
    heavy = sorted(chosen, key=lambda s: -s.count)[:count]
    return "\n  " + "\n  ".join(text(s)[:1500] for s in heavy) if heavy else " (none)"


def expect_share(chosen, condition, low, what, high=1.0):
    """Asserts on a share, and shows samples that break the claim."""
    got = share(chosen, condition)
    if not low <= got <= high:
        rest = [s for s in chosen if bool(condition(s)) == (got > high)]
        raise AssertionError("%s: %.2f %% of %d samples, wanted %.2f to %.2f %%; others:%s" % (
            what, 100 * got, total(chosen), 100 * low, 100 * high, show(rest)))


def expect_whole(chosen, low=0.97):
    """The stacks are complete, and every frame has a name or a module."""
    assert chosen, "no samples"
    user = [s for s in chosen if any(f.kind != "kernel" for f in s.frames)]
    expect_share(user, is_rooted, low, "native root")
    for s in chosen:
        for f in s.frames:
            assert f.name and "[unknown]" not in f.name, "a frame without a name: " + text(s)


def is_whole(sample, root=None):
    """By its frames alone: it begins where a program or a thread does, or at a frame of this name
    or module, and nothing says that frames are missing.  A sample in the kernel with nothing of
    user space is a kernel thread's, or one that ends."""
    if any(re.search(r"\bgap\b|truncated|\[unknown", f.name) for f in sample.frames):
        return False
    user = [f for f in sample.frames if f.kind != "kernel"]
    return not user or is_rooted(sample) or bool(
        root and re.search(root, user[0].name + " " + user[0].module))


def expect_told_complete(said, samples, low, root=None):
    """The closing line's share of complete stacks is true of the stacks, and so many are."""
    expect_share(samples, lambda s: is_whole(s, root), low, "whole stacks")
    told = re.search(r"([0-9.]+) % complete", said)
    got = 100 * share(samples, lambda s: is_whole(s, root))
    assert told and float(told.group(1)) <= got + 1, "%.1f %% by their frames: %s" % (got, said)
