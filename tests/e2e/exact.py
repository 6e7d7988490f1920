# SPDX-License-Identifier: BSD-2-Clause
"""What tests of exact calls and of exact lines have in common: CPythons with probes, a target that
works when it is told, a recording of that, and what is told where there can be none."""
import os
import re
import shutil
import signal
import subprocess
import time

import harness

PYPROF = os.path.join(os.path.dirname(harness.PYPROFD), "pyprof")
UNBOUND = ["--max-slowdown", "1000x"]


def with_probes():
    """CPythons with probes of functions and lines, as Debian's 3.9 and 3.11."""
    fit = []
    for one in harness.interpreters():
        if not (3, 6) <= one.version <= (3, 11):
            continue
        path = one.root + one.command[-1] if one.root else one.command[0]
        notes = subprocess.run(["readelf", "-nW", os.path.realpath(path)], check=False,
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
        if b"function__entry" in notes:
            fit.append(one)
    return fit


def native():
    """The newest of them that is not in a chroot."""
    fit = [one for one in with_probes() if not one.root]
    harness.need(fit, "no CPython with probes outside of a chroot")
    return fit[-1]


def path_of(name):
    return os.path.join(harness.HERE, "targets", name)


def source(name):
    with open(path_of(name), encoding="utf-8") as file:
        return file.read()


class Target:
    """A program of targets/ that says `ready`, and works once for each line that it is sent."""

    def __init__(self, name, python, *words):
        path = path_of(name)
        if python.root:
            path = shutil.copy(path, python.root + "/tmp/" + name)[len(python.root):]
        self.process = subprocess.Popen([*python.command, path, *words], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, cwd="/")
        self.pid = self.process.pid
        assert self.process.stdout.readline() == b"ready\n"

    def go(self):
        """Lets it work; what it says of that: lengths in ns."""
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()
        return [int(word) for word in self.process.stdout.readline().split()]

    def end(self):
        self.process.stdin.close()
        self.process.wait(20)


def start(pid, options):
    """A pyprofd that counts everything, and where its profile will be."""
    profile = os.path.join(harness.temporary(), "exact.pb.gz")
    return harness.start(profile, pid, hz=None, duration=60,
                         options=["-q", *options, *UNBOUND]), profile


def record(target, options):
    """Lets a target work while all of that is counted, and ends it: (the profile, what it said)"""
    pyprofd, profile = start(target.pid, options)
    harness.sampling(pyprofd)
    said = target.go()
    done = harness.finish(pyprofd, signal_number=signal.SIGINT)
    target.end()
    assert done.rc == 0 and not done.err, done.err
    return profile, said


def facts(profile, kind):
    """The profile's comment on exact calls or lines."""
    text = next(c for c in harness.load(profile).comments if c.startswith("exact=%s " % kind))
    return {key: int(value) for key, value in (word.split("=") for word in text.split()[1:])}


def semaphores(python):
    """Addresses of the counters that enable the probes of an interpreter linked to its address."""
    path = os.path.realpath(python.command[0])
    notes = subprocess.check_output(["readelf", "-nW", path]).decode()
    kind = subprocess.check_output(["readelf", "-hW", path]).decode()
    harness.need("EXEC" in kind, "%s is position-independent" % path)
    addresses = [
        int(at, 16) for name, at in
        re.findall(r"Name: (\S+)\s+Location: \S+, Base: \S+, Semaphore: (\S+)", notes)
        if name in ("function__entry", "function__return", "line")
    ]
    assert len(addresses) >= 3, addresses
    return addresses


def raised(pid, addresses):
    """The counters' sum in a process."""
    with open("/proc/%d/mem" % pid, "rb", buffering=0) as memory:
        return sum(os.pread(memory.fileno(), 2, at)[0] for at in addresses)


def start_enabled(pid, addresses, options):
    """A pyprofd that has enabled the probes."""
    pyprofd, _ = start(pid, options)
    harness.wait_for(lambda: pyprofd.poll() is not None or raised(pid, addresses) >= 3,
                     what="semaphores that are raised")
    assert pyprofd.poll() is None, harness.said(pyprofd)
    return pyprofd


def kill(pyprofd, pid, addresses):
    """kill -9: the probes are disabled again."""
    pyprofd.kill()
    pyprofd.wait()
    harness.wait_for(lambda: not raised(pid, addresses), what="semaphores that are back")


def ends_early(target, options, kind):
    """A run of a program that is slowed down too much, in a process that is then killed."""
    began = time.monotonic()
    done = harness.profile(target.pid, hz=None, duration=30,
                           options=["-q", *options, "--max-slowdown", "2x"])
    took = time.monotonic() - began
    target.kill()
    target.wait()
    assert took < 15 and "exact %s end here" % kind in done.err, (took, done.err)
    return harness.load(done.out).samples


def refused_without_probes(words, kind):
    """Yields (interpreter, what pyprof WORDS --exact says): one sentence that names the process,
    exit 2, nothing else."""
    fit = [one for one in harness.interpreters() if one.version in ((3, 12), (3, 13), (3, 15))]
    harness.need(fit, "no CPython 3.12, 3.13 or 3.15 at hand")
    for one in fit:
        target = subprocess.Popen([*one.command, "-c", "input()"], stdin=subprocess.PIPE)
        time.sleep(0.5)
        done = subprocess.run([PYPROF, *words, "--exact", "--pid", str(target.pid), "--for", "1"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        target.kill()
        target.wait()
        said = done.stderr.decode()
        assert done.returncode == 2 and not done.stdout, (one.label, done)
        assert said.count("\n") == 1 and "has no %s probes" % kind in said, said
        assert "--live --pid %d" % target.pid in said, said
        yield one, said
