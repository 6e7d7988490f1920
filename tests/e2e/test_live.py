# SPDX-License-Identifier: BSD-2-Clause
"""pyprof VERB --live: the verbs that read files, on what happens at this moment."""
import contextlib
import os
import pty
import re
import select
import signal
import socket
import subprocess
import time

import harness
import pprof
import test_dump
import test_top
from test_dump import PYPROF, USER, ask, at_once, become
from test_top import raw_windows

# Three quarters of its CPU time by its own clock; two threads of names, one of which sleeps.
WORKER = """
import threading, time
def burn(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(range(100))
def three_parts():
    burn(0.006)
def one_part():
    burn(0.002)
def idle():
    while True:
        time.sleep(0.05)
def work():
    while True:
        three_parts()
        one_part()
        time.sleep(0.012)
threading.Thread(target=idle, name="idler", daemon=True).start()
threading.Thread(target=work, name="toiler", daemon=True).start()
print("ready", flush=True)
threading.Event().wait()
"""


class Worker(test_top.Worker):
    source = WORKER


def agent(directory, *options, hz=299):
    """A pyprofd that records all kinds into a store, and serves a socket."""
    return test_dump.agent(directory, "store/", hz, options)


def machine_row(out, pid):
    """%CPU, Python, native, kernel, %WAIT of a process in the table of the machine."""
    table = out.split("FUNCTION")[0]
    found = re.search(r"^" + r" +([0-9.]+)" * 5 + r"  %d \S+(.*)$" % pid, table, re.M)
    assert found, out
    return [float(v) for v in found.groups()[:5]] + [found.group(6)]


def scheduled_s(pid):
    """CPU time of all threads, by the scheduler."""
    return sum(int(open("/proc/%d/task/%s/schedstat" % (pid, tid)).read().split()[0])
               for tid in os.listdir("/proc/%d/task" % pid)) / 1e9


def check_machine(worker, *words, user=None):
    """What the process took is what the scheduler says; on some machines its system calls cost
    much."""
    before, began = scheduled_s(worker.pid), time.monotonic()
    out = ask("--live", "--for", 4, *words, verb="report", user=user)
    truth = 100 * (scheduled_s(worker.pid) - before) / (time.monotonic() - began)
    cpu, python, native, kernel, wait, waits = machine_row(out, worker.pid)
    # The time of the report is within that of the two looks; the load is steady.
    assert abs(cpu - truth) <= 0.35 * truth, (cpu, truth, out)
    assert python + native + kernel <= cpu + 0.2 and 2 * (python + native) > kernel, out
    # Three threads: two wait nearly all of the time, the third waits or works.
    assert abs(cpu + wait - 300) <= 30 and re.match(r"  waits: \S.* \d+ %", waits), out
    return out


def test_report_begins_with_the_machine():
    harness.need(os.geteuid() == 0, "only root can become somebody else")
    folder = harness.temporary()
    with Worker(user=USER) as own, Worker(user=USER) as other, Worker() as worker:
        # Only these, so that all of them are among the few rows.
        process, path = agent(folder, "--pid", ",".join(str(w.pid) for w in (own, other, worker)))
        out = check_machine(worker, "--socket", path)
        assert re.search(
            r"^machine: \d+ % of " + str(os.sysconf("SC_NPROCESSORS_ONLN"))
            + r" CPUs? busy; 3 processes took [0-9.]+ % of one: Python \d+ %", out, re.M), out
        out = ask("--live", "--for", 1, "--socket", path, "--pid", worker.pid, verb="report")
        assert "machine:" not in out and " processes took " not in out, out
        out = check_machine(own, "--socket", path, user=USER)
        machine_row(out, other.pid)
        assert re.search(r"^2 processes took [0-9.]+ % of one CPU: Python ", out, re.M), out
        assert " %d " % worker.pid not in out and "machine:" not in out, out
        told = ask("--live", "--for", 2, "--kind", "ledger", "--by", "process", "--socket", path,
                   verb="report", user=USER)
        assert re.search(r" %d\b" % own.pid, told) and "others" not in told, told
        assert not re.search(r" %d\b" % worker.pid, told), told
    harness.finish(process, signal_number=2)


def test_report_of_the_machine_without_a_pyprofd():
    harness.need_no_pyprofd()
    with Worker():
        out = ask("--live", "--for", 1, verb="report")
        assert re.search(r"^machine: \d+ % of \d+ CPUs? busy; \d+ processes took ", out, re.M), out


def recorded(out):
    """Windows, and seconds recorded."""
    windows, seconds = re.search(r"of what runs now \((\d+) windows?\): .*?([0-9.]+) s recorded",
                                 out).groups()
    return int(windows), float(seconds)


def totals(out):
    """Function -> its share of all with what it calls."""
    return {m[1]: float(m[0]) for m in
            re.findall(r"^ *[0-9.]+ % +[0-9.?]+ +([0-9.]+) % .* (\S+)  \S+:\d+$", out, re.M)}


def check_shares(worker, *words):
    out = ask("--live", "--pid", worker.pid, "--python", "--for", 4, *words, verb="report")
    windows, seconds = recorded(out)
    # Each of the clients beside this one ends windows, too.
    assert 2 <= windows <= 12 and 3.5 <= seconds <= 7, out
    shares = totals(out)
    assert shares["work"] > 95, out
    # 99 samples a second in the worst case, of 0.4 CPUs.
    assert abs(shares["three_parts"] - 75) < 14 and abs(shares["one_part"] - 25) < 14, out


def test_without_a_pyprofd():
    harness.need_no_pyprofd()
    with Worker() as worker:
        began = time.monotonic()
        check_shares(worker)
        assert time.monotonic() - began < 15, "it begins at once"


def check_threads(worker, *words):
    """What sleeps is a thread with its name."""
    out = ask(*words, "--for", 3, "--kind", "wall", "--by", "thread-name", verb="report")
    _, seconds = recorded(out)
    found = {name: value for value, name in
             re.findall(r" ([0-9.]+) s thread (\S+)$", out, re.M)}
    assert {"idler", "toiler"} <= set(found), out
    for name in ("idler", "toiler"):
        assert abs(float(found[name]) - seconds) < 0.25 * seconds, out
    out = ask(*words, "--for", 1, "--kind", "offcpu", "--thread", "^idler$", "--group-by",
              "thread", verb="report")
    assert re.search(r"^pid %d .* thread \d+ idler: .* 100.0 %% of all" % worker.pid, out,
                     re.M), out
    assert "three_parts" not in out, out


def check_verbs(*words):
    out = ask(*words, "--for", 1, "--kind", "gil", verb="tree")
    assert out.startswith("gil_wait of what runs now"), out
    out = ask(*words, "--for", 1, verb="info")
    assert re.search(r"^stacks +[0-9.]+ % of \d+ samples complete", out, re.M), out
    assert re.search(r"^own cost ", out, re.M), out


def check_lines(worker, *words):
    out = ask("worker.py", *words, "--for", 2, verb="lines")
    assert worker.path in out, out
    # The source is there, its hottest line, and what a line waits for.
    assert re.search(r"^ +6 +[0-9.]+ %.*  sum\(range\(100\)\)$", out, re.M), out
    assert re.search(r"^ +13 .* s sleep +time\.sleep\(0\.05\)$", out, re.M), out


def test_shares_threads_kinds_and_lines():
    """Shares are those that the program knows; labels are those of files."""
    process, path = agent(harness.temporary(), hz=999)
    with Worker() as worker:
        words = ("--live", "--socket", path, "--pid", worker.pid)
        at_once([(check_shares, worker, "--socket", path), (check_threads, worker, *words),
                 (check_verbs, *words), (check_lines, worker, *words)])
    harness.finish(process, signal_number=2)


def label_keys(path, pid):
    samples = [s for s in pprof.load(path).samples if s.labels.get("pid") == pid]
    assert samples, path
    # Whether the collector ran is chance, and of waits whether one began with the GIL held, by a
    # preemption, or before pyprofd.
    chance = {"gc"} if any(
        "wait" not in s.labels for s in samples) else {"gc", "gil", "stack", "swept"}
    return {key for s in samples for key in s.labels} - chance


def test_windows_are_those_of_files():
    """The same labels, sample types and period as what is written meanwhile."""
    directory = harness.temporary()
    process, path = agent(directory, "--interval", "2")
    with Worker() as worker:
        kinds = ("cpu", "offcpu")
        at_once([(lambda kind: ask(
            "--live", "--socket", path, "--pid", worker.pid, "--for", 3, "--kind", kind, "-o",
            os.path.join(directory, kind + ".pb.gz"), verb="export"), kind) for kind in kinds])
        then = os.path.join(directory, "then.pb.gz")
        for kind in kinds:
            now = os.path.join(directory, kind + ".pb.gz")
            ask(os.path.join(directory, "store"), "--pid", worker.pid, "--kind", kind,
                "-o", then, verb="export")
            keys = label_keys(now, worker.pid), label_keys(then, worker.pid)
            assert keys[0] == keys[1], keys
            a, b = pprof.load(now), pprof.load(then)
            assert a.sample_types == b.sample_types and a.period == b.period
    harness.finish(process, signal_number=2)


def test_users_see_their_own():
    harness.need(os.geteuid() == 0, "only root can become somebody else")
    process, path = agent(harness.temporary())
    with Worker() as worker, Worker(user=USER) as own:
        def report(user, *which):
            return ask("--live", "--socket", path, "--for", 2, *which, verb="report", user=user)
        table = ("--by", "process", "--top", 0)
        out, none, all_of = at_once([(report, USER, *table), (report, USER, "--pid", worker.pid),
                                     (report, 0, *table)])
        assert "pid %d " % own.pid in out and "pid %d " % worker.pid not in out, out
        assert "No samples" in none, none
        assert "pid %d " % own.pid in all_of and "pid %d " % worker.pid in all_of, all_of
        # Nor is anything else of others among the bytes; nor what the agent tells of itself.
        asked = [(user, kind) for user in (USER, 0) for kind in ("cpu", "offcpu", "wall")]
        for (user, kind), told in zip(asked, at_once([
                (raw_windows, path, user, "top all kinds=" + kind) for user, kind in asked])):
            is_theirs = not user
            assert os.path.basename(own.directory).encode() in told
            assert (os.path.basename(worker.directory).encode() in told) == is_theirs
            assert (b"elapsed_ns=" in told) == is_theirs
    harness.finish(process, signal_number=2)


class Eventful(test_top.Worker):
    """Collects garbage, imports and touches memory all the time, by an interpreter that has
    probes."""
    command = ["/usr/bin/python3"]
    source = """
import gc, mmap, sys, time
print("ready", flush=True)
while True:
    gc.collect()
    sys.modules.pop("this", None)
    sys.stdout = None
    import this
    # Not malloc, which would keep what was touched once.
    with mmap.mmap(-1, 1 << 20) as block:
        block.write(bytes(1 << 20))
    time.sleep(0.02)
"""


def window_with(path, user, kind, name, limit_s=30):
    """The bytes of the first window that has the name: programs of probes are loaded beside the
    loop."""
    end = time.monotonic() + limit_s
    while True:
        told = raw_windows(path, user, "top all kinds=" + kind)
        if name in told:
            return told
        assert time.monotonic() < end, (kind, user)


def test_users_see_their_own_events():
    harness.need(os.geteuid() == 0, "only root can become somebody else")
    with open("/usr/bin/python3", "rb") as f:
        harness.need(b"gc__start" in f.read(), "/usr/bin/python3 has no USDT probes")
    kinds = ("gc", "import", "mem")
    process, path = agent(harness.temporary(), "--events", ",".join(("cpu",) + kinds))
    with Eventful() as worker, Eventful(user=USER) as own:
        ours, theirs = (os.path.basename(w.directory).encode() for w in (own, worker))
        for kind, told in zip(kinds, at_once([
                (window_with, path, USER, kind, ours) for kind in kinds])):
            assert theirs not in told, kind
        at_once([(window_with, path, 0, kind, name) for kind in kinds for name in (ours, theirs)])
    harness.finish(process, signal_number=2)


class Terminal:
    """A verb whose standard error is a terminal."""

    def __init__(self, *words):
        self.fd, slave = pty.openpty()
        self.process = subprocess.Popen([PYPROF] + [str(w) for w in words], stderr=slave,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        os.close(slave)
        self.said = b""

    def wait_for(self, pattern, limit_s=20):
        end = time.monotonic() + limit_s
        while not re.search(pattern, self.said):
            assert time.monotonic() < end, self.said
            if select.select([self.fd], [], [], 0.2)[0]:
                self.said += os.read(self.fd, 65536)

    def end(self):
        out = self.process.communicate(timeout=30)[0].decode()
        while select.select([self.fd], [], [], 0.2)[0]:
            try:
                self.said += os.read(self.fd, 65536)
            except OSError:
                break
        os.close(self.fd)
        return out


def test_progress_and_an_early_end():
    process, path = agent(harness.temporary())
    with Worker() as worker:
        terminal = Terminal("report", "--live", "--socket", path, "--pid", worker.pid, "--for", 600,
                            "--python")
        terminal.wait_for(rb"watching: [2-9] of 600 s; Ctrl-C ends it")
        terminal.process.send_signal(signal.SIGINT)
        out = terminal.end()
        assert terminal.process.returncode == 0, (out, terminal.said)
        assert recorded(out)[0] in range(1, 8) and "three_parts" in out, out
        assert terminal.said.endswith(b"\r\033[K"), terminal.said
    harness.finish(process, signal_number=2)


def test_the_agent_ends_meanwhile():
    process, path = agent(harness.temporary())
    with Worker() as worker:
        asking = subprocess.Popen([
            PYPROF, "report", "--live", "--socket", path, "--pid",
            str(worker.pid), "--for", "600", "--python"
        ], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        time.sleep(2.5)
        harness.finish(process, signal_number=2)
        out, err = asking.communicate(timeout=30)
        assert asking.returncode == 0 and b"three_parts" in out, (out, err)
        assert err == b"pyprof: pyprofd has ended: this is what came before\n", err


def refuse(*words, verb="report", user=None):
    """One line that says why."""
    said = ask(*words, verb=verb, user=user, rc=2)
    assert said.count("\n") == 1 and said.startswith("pyprof: "), said
    return said


def test_what_cannot_be_asked():
    assert "--live reads no profile" in refuse("--live", "p.pb.gz")
    assert "--since and --until" in refuse("--live", "--since", "1h")
    assert "--since and --until" in refuse("--live", "--until", "1h")
    assert "--for works only with --live" in refuse("--for", 3, "p.pb.gz")
    assert "--socket works only with --live" in refuse("--socket", "/x", "p.pb.gz")
    assert "No such file" in refuse("--live", "--socket", "/nonexistent/live.sock")
    assert re.search("wall, gil, gc, .* and [a-z_]+ only", refuse("--live", "--kind", "waker"))
    assert "no process has" in refuse("--live", "--pid", "0", "--socket", "/nonexistent")
    assert "or --live" in refuse()
    assert "not from 1 to 3600" in ask("--live", "--for", 0, verb="report", rc=2)
    assert "unrecognized option '--live'" in ask("a", "b", "--live", verb="diff", rc=2)
    for verb in ("flame", "tree", "lines", "calls", "gpu", "why", "export", "info"):
        words = {"lines": ["w.py"], "export": ["--format", "csv"]}.get(verb, [])
        assert "reads no profile" in refuse(*words, "--live", "p.pb.gz", verb=verb)


def test_without_a_pyprofd_and_without_privilege():
    harness.need(os.geteuid() == 0, "only root can become somebody else")
    harness.need_no_pyprofd()
    assert "no pyprofd is running" in refuse("--live", user=USER)


def test_kinds_that_are_not_recorded():
    directory = harness.temporary()
    path = os.path.join(directory, "live.sock")
    process = harness.start(os.path.join(directory, "p.pb.gz"), hz=99,
                            options=["--events", "offcpu", "--live", path])
    harness.wait_for(lambda: os.path.exists(path), 30, "the live socket")
    words = ("--live", "--socket", path, "--for", 1)
    assert "choose with --kind from offcpu" in refuse(*words)
    assert "does not record kind cpu" in refuse("w.py", *words, verb="lines")
    assert ask(*words, "--kind", "offcpu", verb="report").startswith("off_cpu of what runs now")
    harness.finish(process, signal_number=2)


# Another test's pyprofd would answer, if it wrote into a directory.
for _test in (test_report_of_the_machine_without_a_pyprofd, test_without_a_pyprofd,
              test_without_a_pyprofd_and_without_privilege):
    _test.alone = True


# ---------------------------------------------------------------- users who are in the way

# Four clients that watch, and then nothing.
WATCH = """
import socket, sys, time
watching = []
for _ in range(4):
    s = socket.socket(socket.AF_UNIX)
    s.connect(sys.argv[1])
    s.sendall(b"pyprofd 1 top all\\n")
    watching.append(s)
print("ready", flush=True)
time.sleep(600)
"""
# As many connections as go.
FLOOD = """
import socket, sys
count = 0
print("ready", flush=True)
while True:
    s = socket.socket(socket.AF_UNIX)
    s.setblocking(False)
    try:
        s.connect(sys.argv[1])
    except BlockingIOError:
        pass
    s.close()
"""


@contextlib.contextmanager
def programs(source, path, users):
    started = [subprocess.Popen(["/usr/bin/python3", "-c", source, path], stdout=subprocess.PIPE,
                                preexec_fn=lambda user=user: become(user)) for user in users]
    try:
        for process in started:
            assert process.stdout.readline() == b"ready\n"
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()
            process.stdout.close()


def test_four_users_who_watch_lock_nobody_out():
    harness.need(os.geteuid() == 0, "only root can become somebody else")
    process, path = agent(harness.temporary())
    with programs(WATCH, path, range(60000, 60004)):
        assert "process" in ask("--all", "--socket", path)
        # Root's name among others', as an older pyprof would ask.
        with socket.socket(socket.AF_UNIX) as plain:
            plain.connect(path)
            plain.sendall(b"pyprofd 1 dump 1\n")
            assert plain.makefile("rb").readline().startswith((b"process\t", b"end\t"))
        for _ in range(3):
            with programs("print('ready', flush=True); import time; time.sleep(600)", path, [USER]):
                assert "uid %d" % USER in ask("--all", "--socket", path, user=USER)
    said = harness.finish(process, signal_number=2).err
    assert said.count("loses one to a user who has fewer") == 1, said


def cpu_seconds(pid):
    with open("/proc/%d/stat" % pid, encoding="utf-8", errors="replace") as file:
        words = file.read().rsplit(")", 1)[1].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def test_a_loop_of_connections_costs_little():
    harness.need(os.geteuid() == 0, "only root can become somebody else")
    process, path = agent(harness.temporary())

    def cost(seconds):
        before = cpu_seconds(process.pid)
        time.sleep(seconds)
        return (cpu_seconds(process.pid) - before) / seconds
    quiet = cost(2)
    with programs(FLOOD, path, [60000, 60001]):
        flooded = cost(2)
        began = time.monotonic()
        assert "process" in ask("--all", "--socket", path)
        answer_s = time.monotonic() - began
        other = ask("--all", "--socket", path, user=USER)
    print("# %.1f %% of a CPU without, %.1f %% with; root's dump took %.2f s"
          % (quiet * 100, flooded * 100, answer_s))
    assert flooded - quiet < 0.10, (quiet, flooded)
    assert "uid %d" % USER in other, other
    said = harness.finish(process, signal_number=2).err
    assert said.count("connections a second") == 1, said
