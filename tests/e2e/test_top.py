# SPDX-License-Identifier: BSD-2-Clause
"""pyprof top: what runs at this moment, as text, and on a terminal with keys."""
import functools
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from fcntl import ioctl

import harness
import test_dump
from test_dump import PYPROF, USER, agent, become

# It computes for some ms and sleeps as long; a thread that only sleeps.
WORKER = """
import sys, threading, time
def idle():
    while True:
        time.sleep(0.05)
def work_hard():
    end = time.process_time() + 0.05
    while time.process_time() < end:
        sum(range(100))
threading.Thread(target=idle, name="idle", daemon=True).start()
print("ready", flush=True)
while True:
    work_hard()
    time.sleep(0.05)
"""
PROCESS = r"^ *([0-9.]+) +([0-9.]+) +([0-9.-]+)  %d (\S+)(.*)$"
FUNCTION = r"^ *([0-9.]+) +([0-9.]+) +([0-9.]+) +([0-9.-]+)    (\S+)  (\S+)$"


class Worker:
    source = WORKER
    command = None

    def __init__(self, user=None):
        self.directory = harness.temporary()
        os.chmod(self.directory, 0o755)
        self.path = os.path.join(self.directory, "worker.py")
        with open(self.path, "w") as f:
            f.write(self.source)
        os.chmod(self.path, 0o644)
        # Who is not root may not reach the other interpreters.
        command = self.command or (
            ["/usr/bin/python3"] if user else harness.interpreter().command)
        self.process = subprocess.Popen(list(command) + [self.path], stdout=subprocess.PIPE,
                                        preexec_fn=(lambda: become(user)) if user else None)
        assert self.process.stdout.readline() == b"ready\n"
        self.pid = self.process.pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


ask = functools.partial(test_dump.ask, verb="top")


def process_row(out, pid):
    found = re.search(PROCESS % pid, out, re.M)
    assert found, out
    return found


def cpu_share(pid, command):
    """What the command prints, and the share of a CPU that the process took in the time it tells
    of."""
    series = []
    with subprocess.Popen(command, stdout=subprocess.PIPE) as asking:
        while not select.select([asking.stdout], [], [], 0.05)[0]:
            series.append((time.monotonic(), harness.scheduled_s(pid)))
        series.append((time.monotonic(), harness.scheduled_s(pid)))
        out = asking.stdout.read().decode()
    assert asking.returncode == 0, out
    told_s = float(re.search(r"^pyprof top .*?  ([0-9.]+) s  ", out, re.M).group(1))
    first = min(series, key=lambda at: abs(at[0] - (series[-1][0] - told_s)))
    return out, 100 * (series[-1][1] - first[1]) / (series[-1][0] - first[0])


def run_and_check(*words):
    """The share of the process, and of the function that took it, is what the kernel has
    counted."""
    with Worker() as worker:
        out, truth = cpu_share(worker.pid, [PYPROF, "top", "--pid", str(worker.pid), "--interval",
                                            "3", "--count", "1"] + list(words))
        row = process_row(out, worker.pid)
        cpu = float(row.group(1))
        # 100 samples or so.
        assert abs(cpu - truth) <= 0.35 * truth + 2, (cpu, truth)
        rows = [f for f in re.findall(FUNCTION, out, re.M) if f[4] == "work_hard"]
        assert len(rows) == 1 and float(rows[0][0]) > 0.9 * cpu - 2, out
        assert rows[0][5].endswith("worker.py:6"), rows
        # On a machine that others use, it waits for a CPU as long as it sleeps.
        assert re.match(r"  waits: (run queue \d+ %, )?sleep \d\d+ %", row.group(5)), out


def test_text_of_a_running_pyprofd():
    directory = harness.temporary()
    process, path = agent(directory)
    run_and_check("--socket", path)
    harness.finish(process, signal_number=2)


def test_without_a_pyprofd():
    harness.need_no_pyprofd()
    run_and_check()


def test_windows_stay_whole():
    """Who watches cuts no profile: the one that is written has all of the time."""
    directory = harness.temporary()
    with Worker() as worker:
        path = os.path.join(directory, "live.sock")
        process = harness.start(os.path.join(directory, "store/"), hz=99,
                                options=["--interval", "2", "--live", path])
        harness.wait_for(lambda: os.path.exists(path), 30, "the live socket")
        ask("--pid", worker.pid, "--count", 4, "--socket", path)
        harness.finish(process, signal_number=2)
        store = os.path.join(directory, "store")
        out = subprocess.check_output([PYPROF, "report", store, "--kind", "wall", "--pid",
                                       str(worker.pid), "--by", "process"]).decode()
        windows, used_s, recorded_s = re.search(
            r"\((\d+) windows\): ([0-9.]+) s, ([0-9.]+) s recorded", out).groups()
        assert 2 <= int(windows) <= 3, out
        # Two threads, each all of the time.
        assert abs(float(used_s) - 2 * float(recorded_s)) <= 0.2 * float(recorded_s), out


def test_users_see_their_own():
    harness.need(os.geteuid() == 0, "only root can become somebody else")
    directory = harness.temporary()
    with Worker() as worker, Worker(user=USER) as own:
        process, path = agent(directory)
        words = ("--socket", path, "--interval", 2, "--count", 1, "--sort", "wait")
        out, all_of, *told_of = test_dump.at_once(
            [(lambda user: ask(*words, user=user), user) for user in (USER, 0)] +
            [(raw_windows, path, user) for user in (USER, 0)])
        assert process_row(out, own.pid).group(4).startswith("python3"), out
        assert not re.search(r"  %d " % worker.pid, out), out
        pids = [int(pid) for pid in re.findall(r"^ *[0-9.]+ +[0-9.]+ +[0-9.-]+  (\d+) ", out, re.M)]
        for pid in pids:
            try:
                assert os.stat("/proc/%d" % pid).st_uid == USER, out
            except FileNotFoundError:
                pass
        assert re.search(r"  %d " % worker.pid, all_of), "root sees all"
        # Nor is anything else of others among the bytes.
        for user, is_theirs, told in zip((USER, 0), (False, True), told_of):
            assert os.path.basename(own.directory).encode() in told
            assert (os.path.basename(worker.directory).encode() in told) == is_theirs
            # A directory's name, and what marks where a stack was cut, are no process.
            others = told.replace(b"pyprofd-e2e", b"").replace(b"[pyprofd]", b"")
            assert (b"pyprofd" in others) == is_theirs, (user, others)
        harness.finish(process, signal_number=2)


def raw_windows(path, user, request="top all"):
    """What two windows hold, unpacked, as that user gets them."""
    script = """
import socket, sys, zlib
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
s.sendall(b"pyprofd 1 %s\\n" % sys.argv[2].encode())
f = s.makefile("rb")
for _ in range(2):
    words = f.readline().split(b"\\t")
    assert words[0] == b"window", words
    sys.stdout.buffer.write(zlib.decompress(f.read(int(words[1])), 31))
"""
    return subprocess.check_output(["/usr/bin/python3", "-c", script, path, request],
                                   preexec_fn=(lambda: become(user)) if user else None)


# ---------------------------------------------------------------- on a terminal

class Terminal:
    """pyprof top on a terminal of its own; what it shows, as lines."""

    def __init__(self, *words):
        self.fd, slave = pty.openpty()
        self.before, self.after = termios.tcgetattr(self.fd), None
        ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        self.process = subprocess.Popen(
            [PYPROF, "top"] + [str(w) for w in words], stdin=slave, stdout=slave, stderr=slave,
            env=dict(os.environ, TERM="xterm", NO_COLOR=""), start_new_session=True,
            preexec_fn=lambda: ioctl(0, termios.TIOCSCTTY, 0))
        os.close(slave)
        self.bytes = b""

    def read(self, seconds):
        while select.select([self.fd], [], [], seconds)[0]:
            try:
                got = os.read(self.fd, 65536)
            except OSError:
                return False
            self.bytes += got
            seconds = 0.1
        return True

    def screen(self):
        """The last whole one."""
        pictures = self.bytes.decode().split("\033[H")
        whole = [p for p in pictures if p.endswith("\033[J")]
        return re.sub(r"\033\[[0-9;]*[A-Za-z]", "", whole[-1]).replace("\r", "") if whole else ""

    def wait_for(self, pattern, limit_s=20):
        end = time.monotonic() + limit_s
        while not re.search(pattern, self.screen(), re.M):
            assert time.monotonic() < end, "no %r in: %s" % (pattern, self.screen())
            self.read(0.2)
        return self.screen()

    def press(self, keys):
        os.write(self.fd, keys.encode())

    def end(self, signal_number=None, key=None):
        if key:
            self.press(key)
        else:
            self.process.send_signal(signal_number)
        end = time.monotonic() + 10
        while self.read(0.5) and time.monotonic() < end:
            pass
        self.after = termios.tcgetattr(self.fd)
        os.close(self.fd)
        return self.process.wait(10)


def test_keys():
    directory = harness.temporary()
    with Worker() as worker:
        process, path = agent(directory)
        terminal = Terminal("--pid", worker.pid, "--socket", path)
        terminal.wait_for(r"^ .*work_hard  .*worker\.py:6$")
        assert "\033[1m" in terminal.bytes.decode(), "colours"
        terminal.press("1")
        terminal.wait_for(r"%d \S+  waits: .*\n\Z" % worker.pid)
        terminal.press("2w")
        assert "    idle  worker.py:" in terminal.wait_for(r"by wait")
        terminal.press("/^work\r")
        out = terminal.wait_for(r"by wait  /\^work/")
        assert "    work_hard  worker.py:" in out and "    idle  " not in out, out
        terminal.press("\033")
        terminal.wait_for(r"by wait$")
        terminal.press(" ")
        frozen = terminal.wait_for(r"frozen")
        terminal.read(2.5)
        assert terminal.screen() == frozen
        terminal.press(" ")
        terminal.wait_for(r"by wait$")
        terminal.press("?")
        terminal.wait_for(r"freeze, and go on")
        assert terminal.end(key="q") == 0
        harness.finish(process, signal_number=2)


def test_the_terminal_is_as_it_was():
    directory = harness.temporary()
    process, path = agent(directory)
    for number, key in ((None, "q"), (None, "\003"), (signal.SIGTERM, None),
                        (signal.SIGINT, None), (signal.SIGHUP, None)):
        terminal = Terminal("--socket", path)
        terminal.wait_for(r"pyprof top ")
        assert termios.tcgetattr(terminal.fd)[3] & (termios.ECHO | termios.ICANON) == 0
        assert terminal.end(number, key) == 0, (number, key)
        assert terminal.after == terminal.before, (number, key)
        tail = terminal.bytes.decode()
        assert tail.endswith("\033[?7h\033[?25h\033[?1049l"), repr(tail[-80:])
    harness.finish(process, signal_number=2)


def test_what_is_private_leaves_nothing():
    """Killed in the middle, the capture of its own ends, too."""
    harness.need_no_pyprofd()
    before = {f for f in os.listdir("/tmp") if f.startswith("pyprof-")}
    top = subprocess.Popen([PYPROF, "top"], stdout=subprocess.PIPE)
    assert top.stdout.readline().startswith(b"pyprof top ")
    children = subprocess.check_output(["ps", "-o", "pid=", "--ppid", str(top.pid)]).split()
    assert len(children) == 1, children
    top.kill()
    top.wait()
    top.stdout.close()
    harness.wait_for(lambda: not os.path.exists("/proc/%d" % int(children[0])), 10, "its end")
    left = {f for f in os.listdir("/tmp") if f.startswith("pyprof-")} - before
    assert not {f for f in left if not f.startswith("pyprof-web")}, left


def test_what_cannot_be_asked():
    assert "reads no profile" in ask("p.pb.gz", rc=2)
    assert "not cpu, gil, wait or name" in ask("--sort", "colour", rc=2)
    assert "not a regular expression" in ask("--focus", "(", rc=2)
    assert "not from 1 to 3600" in ask("--interval", "0", rc=2)
    assert "No such file" in ask("--socket", "/nonexistent/live.sock", rc=2)


# Another test's pyprofd would answer, if it wrote into a directory.
test_without_a_pyprofd.alone = True
test_what_is_private_leaves_nothing.alone = True  # it looks for what others may leave as well
