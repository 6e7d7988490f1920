# SPDX-License-Identifier: BSD-2-Clause
"""One attack against the built pyprofd: programs of uid 65534 against an agent of root's, beside
victims of another uid.

attacks/NAME.py says in its docstring what it tries, and has
    attack(box)         the attack, in a process of its own; box: craft.Box.  It calls box.ready()
                        when it is under way.
and may have
    prepare(rig)        what root does before the agent starts; may raise harness.Skip
    meanwhile(rig)      what root does while it is under way
    check(rig)          what else must hold afterwards
    QUICK = True        one of `make check`
    SECONDS = 3         for how long the attack is measured
    USERS = (65534,)    the attack runs once for each of them
    OPTIONS = ()        of pyprofd
    SUBUIDS = None      the text of /etc/subuid, as the agent sees it
    LIMITS = {}         of pyprofd: {resource.RLIMIT_NOFILE: 512}
    CPU_SHARE = None    the most of a CPU that the agent may take
    TIME_HIGH = 1.1     the most that a victim's named CPU time may be of what its own clock says
    GROWTH = 96 MiB     the most that it and its children may grow
    EVENTS = True       victims with collections, imports and memory of their own are there, too
                        (events.py), whose files have SETTLE_S = 1.5 to be probed, and one of
                        whose imports takes LONG_S = 3
    PROGRAM = name      of attacks/PROGRAM.c, which is built for the attack (its own name)

What is held is in Rig.judge().
"""
import concurrent.futures
import glob
import importlib
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
E2E = os.path.join(os.path.dirname(HERE), "e2e")
for place in (E2E, os.path.join(HERE, "attacks"), HERE):
    if place not in sys.path:
        sys.path.append(place)
import craft  # noqa: E402
import events  # noqa: E402
import harness  # noqa: E402
import machine  # noqa: E402
import test_counts  # noqa: E402
import waits  # noqa: E402
from test_dump import PYPROF, become  # noqa: E402

ATTACKER, VICTIM = 65534, 65533
HZ = 499
STALL_S = 0.25
COMPLETE = 0.99
GROWTH = 96 << 20
SECRET = "secret_of_roots"
PYTHON = "/usr/bin/python3"  # who is not root may not reach the other interpreters
LOOK_S = 5  # of one report that asks for a second
# Before the machine's other work; the agent runs at -10.
VICTIM_NICE, MONITOR_NICE = -5, -15
# While others have all CPUs the agent cannot empty its rings: this much of a wait for a CPU is
# usual, and what is more excuses the samples that a victim has in that time.
USUAL_S, DUTY, BLUR = 0.05, 1 / 6, 0.15
# A few of them, as a victim has some hundred samples only.
TORN_SAMPLES = 3
# Of the victims' CPU time, by their own clocks; what is left out here is not complete either.
TIME_LOW, TIME_HIGH = 0.9, 1.1


class Program:
    """A program of a user's that prints `ready`, and is told what to do on its standard input."""

    def __init__(self, words, user, directory, nice=None):
        def begin():
            if nice is not None:
                os.setpriority(os.PRIO_PROCESS, 0, nice)
            become(user)

        log = os.path.join(directory, "log-%d" % len(os.listdir(directory)))
        self.user, self.log = user, open(log, "w+b")
        self.process = subprocess.Popen(
            words, cwd=directory, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log,
            start_new_session=True, preexec_fn=begin,
            env=dict(os.environ, PYTHONDONTWRITEBYTECODE="1", HOME=directory, TMPDIR=directory))
        self.pid = self.process.pid

    def wait_ready(self, limit_s=30):
        """What it says after `ready`."""
        timer = threading.Timer(limit_s, self.kill)
        timer.start()
        line = self.process.stdout.readline().decode()
        timer.cancel()
        harness.need(not line.startswith("skip"), line[5:].strip())
        assert line.startswith("ready"), "no `ready`: %s%s" % (line, self.errors())
        return line[len("ready"):].split()

    def errors(self):
        self.log.seek(0)
        return self.log.read().decode("utf-8", "replace")[-2000:]

    def go(self):
        self.process.stdin.write(b"go\n")
        self.process.stdin.flush()

    def end(self, limit_s=10):
        """Ends its input; returns what it said last."""
        self.process.stdin.close()
        timer = threading.Timer(limit_s, self.kill)
        timer.start()
        said = self.process.stdout.read().decode("utf-8", "replace")
        self.process.wait()
        timer.cancel()
        return said

    def kill(self):
        """It and what it started, in its session and out of it."""
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except OSError:
            pass

    def is_alive(self):
        return self.process.poll() is None


class Victim(Program):
    """Functions of known names, and a clock of its own."""

    def __init__(self, name, user, words, folder):
        super().__init__(words, user, folder, VICTIM_NICE)
        self.name, self.took_s = name, None

    def stop(self):
        """Sets took_s."""
        said = self.end()
        assert self.process.returncode == 0, "victim %s ended with %s: %s" % (
            self.name, self.process.returncode, self.errors())
        self.took_s = float(said)

    def is_named(self, sample):
        wanted = iter([self.name + part for part in ("_outer", "_middle", "_inner")])
        left = next(wanted)
        for frame in sample.frames:
            if frame.name.rpartition(".")[2] == left:
                left = next(wanted, None)
        return left is None


class Rig:
    def __init__(self, name):
        self.name, self.attack = name, importlib.import_module(name)
        self.directory = harness.temporary()
        self.store = os.path.join(self.shm(), "store/")
        self.socket = os.path.join(self.directory, "live.sock")
        self.secret = os.path.join(self.directory, "shadow")
        with open(self.secret, "w", encoding="ascii") as file:
            file.write("10000000 1000 %s\n" % SECRET)
        os.chmod(self.secret, 0o600)
        self.agent, self.programs, self.attackers, self.victims = None, [], [], []
        self.looks, self.rows, self.run, self.at_end = [], [], None, []
        self.evented = []
        self.machine = None  # what it did while the victims worked

    def get(self, name, default=None):
        return getattr(self.attack, name, default)

    def shm(self):
        """Profiles go to memory, if that is there: the disk's own stalls are no fault of the
        agent."""
        base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else self.directory
        found = os.path.join(base, os.path.basename(self.directory))
        os.makedirs(found, exist_ok=True)
        return found

    def folder(self, name, user):
        path = os.path.join(self.directory, name)
        os.makedirs(path, exist_ok=True)
        os.chown(path, user, user)
        return path

    # ---- what runs

    def start_agent(self):
        options = ["--live", self.socket, "--interval", "2"] + list(self.get("OPTIONS", ()))
        limits, subuids = self.get("LIMITS", {}), self.get("SUBUIDS")
        if subuids:
            path = os.path.join(self.directory, "subuid")
            with open(path, "w", encoding="ascii") as file:
                file.write(subuids)
            harness.need(os.path.exists("/etc/subuid"), "no /etc/subuid to mount over")

        def begin():
            for which, most in limits.items():
                resource.setrlimit(which, (most, most))
            if subuids:
                craft.mount_over(path, "/etc/subuid")

        self.agent = harness.start(self.store, hz=HZ, options=options, preexec_fn=begin)

        def there():
            assert self.agent.poll() is None, "pyprofd ended: " + harness.said(self.agent)
            return os.path.exists(self.socket)
        harness.wait_for(there, 30, "the live socket")
        harness.sampling(self.agent)

    def build_victim(self, name, user, native=False, python=PYTHON):
        """What start_victim() needs."""
        folder = self.folder("victim-" + name, user)
        source = os.path.join(HERE, "victim.c" if native else "victim.py")
        if not native:
            return name, user, [python, shutil.copy(source, folder), name], folder
        path = os.path.join(folder, name)
        subprocess.check_call(
            ["gcc", "-O1", "-fno-optimize-sibling-calls", "-DNAME=" + name, "-o", path, source])
        return name, user, [path], folder

    def start_victim(self, built):
        victim = Victim(*built)
        self.programs.append(victim)
        self.victims.append(victim)
        victim.wait_ready()
        return victim

    def start_attacker(self, user):
        home = self.folder("attacker-%d" % user, user)
        for source in [os.path.join(HERE, "craft.py")] + [
                os.path.join(HERE, "attacks", each)
                for each in os.listdir(os.path.join(HERE, "attacks"))]:
            if source.endswith(".py"):
                shutil.copy(source, home)
        program = self.get("PROGRAM", self.name)
        source = os.path.join(HERE, "attacks", program + ".c")
        if os.path.exists(source):
            subprocess.check_call(
                ["gcc", "-O1", "-pthread", "-o", os.path.join(home, program), source])
        told = {"directory": home, "socket": self.socket, "secret": self.secret,
                "victims": [victim.pid for victim in self.victims]}
        script = ("import json, sys; sys.path.insert(0, sys.argv[1]); import craft, %s; "
                  "%s.attack(craft.Box(json.loads(sys.argv[2])))" % (self.name, self.name))
        attacker = Program([PYTHON, "-c", script, home, json.dumps(told)], user, home)
        self.programs.append(attacker)
        self.attackers.append(attacker)
        return attacker

    def look(self):
        """What the attacker sees through the live socket."""
        user = self.attackers[0].user
        for words in (["dump", "--all"], ["report", "--live", "--for", "1", "--top", "0"],
                      ["export", "--format", "folded", "--live", "--for", "1"]):
            try:
                said = subprocess.run([PYPROF, words[0], "--socket", self.socket] + words[1:],
                                      stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, timeout=LOOK_S, check=False,
                                      preexec_fn=lambda: become(user)).stdout
            except subprocess.TimeoutExpired as late:
                # What it made dear is dear for itself.
                said = late.output or b"late"
            self.looks.append(said.decode("utf-8", "replace"))

    def play(self):
        if self.get("prepare"):
            self.attack.prepare(self)
        # They begin before the agent, and work from `go` on, which their clocks tell of.
        before = [self.start_victim(built) for built in (
            self.build_victim("early", VICTIM), self.build_victim("native", VICTIM, native=True),
            self.build_victim(SECRET, 0))]
        # Files that the agent has not seen, an interpreter among them.
        python = shutil.copy(PYTHON, self.folder("victim-late", VICTIM))
        late = [
            self.build_victim("late", VICTIM, python=python),
            self.build_victim("late_native", VICTIM, native=True)
        ]
        self.start_agent()
        monitor = Program(
            [sys.executable, os.path.join(HERE, "monitor.py"), self.socket, str(self.agent.pid)],
            0, self.folder("monitor", 0), MONITOR_NICE)
        self.programs.append(monitor)
        first = monitor.process.stdout.readline()  # what the agent has before all
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            told = pool.submit(monitor.process.stdout.readlines)
            try:
                reading = machine.read()
                for victim in before:
                    victim.go()
                time.sleep(1)
                self.run_attack(pool, late)
                self.machine = machine.since(reading)
            finally:
                monitor.process.stdin.close()
            self.rows = [json.loads(line) for line in [first] + told.result()]
        for attacker in self.attackers:
            attacker.kill()
        self.run = harness.finish(self.agent, 30, signal.SIGINT)

    def run_attack(self, pool, late):
        """From its begin to the end of the victims."""
        self.began = time.monotonic()
        for user in self.get("USERS", (ATTACKER,)):
            self.start_attacker(user)
        for attacker in self.attackers:
            attacker.said = attacker.wait_ready()
        self.ready = time.monotonic()
        look = pool.submit(self.look)
        for built in late:
            self.start_victim(built).go()
        if self.get("EVENTS"):
            self.evented = events.begin(self, VICTIM)
        if self.get("meanwhile"):
            self.attack.meanwhile(self)
        time.sleep(self.get("SECONDS", 3))
        look.result()
        for victim in self.victims:
            victim.stop()
        events.end(self.evented)
        self.ended = time.monotonic()

    def end(self):
        for program in self.programs:
            program.kill()
        if self.agent and self.agent.poll() is None:
            self.agent.kill()
            self.agent.wait()
        for each in self.at_end:
            each()
        for path in glob.glob("/tmp/perf-*.map"):
            pid = re.findall(r"\d+", path)[-1]
            if os.lstat(path).st_uid == ATTACKER and not os.path.exists("/proc/" + pid):
                os.unlink(path)
        if self.store.startswith("/dev/shm/"):
            shutil.rmtree(os.path.dirname(self.store.rstrip("/")), ignore_errors=True)

    # ---- what is held

    def outputs(self):
        """Paths of the CPU profiles."""
        return waits.windows(self.store, "cpu") if self.store.endswith("/") else [self.store]

    def longest_turn_s(self):
        """As the agent tells, but for its first window: that is when it starts, and nobody asks it
        yet."""
        turns = [
            test_counts.facts(harness.load(path)).get("loop_stall_max_ns", 0)
            for path in self.outputs()[1:]
        ]
        return max(turns, default=0) / 1e9

    def judge(self):
        """Asserts, and prints the figures."""
        print("the machine let the agent wait for %.2f s, and %.2f s were stolen from all" % (
            self.excess_s(), self.machine.stolen_ns / 1e9))
        assert self.run.rc == 0, "pyprofd ended with %d: %s" % (self.run.rc, self.run.err)
        samples = [s for path in self.outputs() for s in harness.samples(path)]
        for victim in self.victims:
            self.judge_victim(victim, [s for s in samples if s.pid == victim.pid])
        self.judge_loop()
        self.judge_usage()
        self.judge_secrets()
        events.judge(self, self.evented)
        if self.get("check"):
            self.attack.check(self)

    def excess_s(self):
        """For how long the machine let the agent wait for a CPU, beyond what is usual."""
        return sum(max(0, row["excused_s"] - USUAL_S) for row in self.rows)

    def judge_victim(self, victim, own):
        named = [s for s in own if victim.is_named(s)]
        whole = harness.total(named) + harness.total(
            s for s in own if s not in named and harness.is_whole(s))
        count, told_s = harness.total(own), sum(s.ns for s in named) / 1e9
        excess_s = DUTY * self.excess_s()
        print("%s: %.2f %% of %d samples whole, %.3f s of %.3f s named" % (
            victim.name, 100.0 * whole / max(count, 1), count, told_s, victim.took_s))
        torn = [s for s in own if s not in named and not harness.is_whole(s)]
        allowed = (1 - COMPLETE) * count + TORN_SAMPLES + excess_s * HZ
        assert count - whole <= allowed, "%s is not whole:%s" % (victim.name, harness.show(torn))
        low = TIME_LOW * victim.took_s - excess_s
        high = self.get("TIME_HIGH", TIME_HIGH) * victim.took_s + excess_s
        high += machine.stolen_part_ns(self.machine, victim.took_s * 1e9) / 1e9
        assert low <= told_s <= high, "%s: %.3f s of %.3f s have its functions' names:%s" % (
            victim.name, told_s, victim.took_s, harness.show([s for s in own if s not in named]))

    def judge_loop(self):
        wrong = [row["answer"] for row in self.rows if not row["answer"].startswith("error")]
        assert self.rows and not wrong, "root is not answered: %s" % wrong[:3]
        longest = max(self.rows, key=lambda row: row["took_s"] - row["excused_s"])
        # What it computed since the answer before: the loop's own work, or a wait for something
        # else.
        before = self.rows[max(self.rows.index(longest) - 1, 0)]
        told_s = self.longest_turn_s()
        excused_s = max(row["excused_s"] for row in self.rows)
        print(
            "longest answer %.0f ms (and %.0f ms that the machine took; the agent computed %.0f "
            "ms), longest turn of the loop %.0f ms, %d answers" %
            (1e3 * (longest["took_s"] - longest["excused_s"]), 1e3 * excused_s,
             1e3 * (longest["cpu_s"] - before["cpu_s"]), 1e3 * told_s, len(self.rows)))
        # A wait of seconds is not measured to the millisecond.
        not_excused_s = longest["took_s"] - (1 + BLUR) * longest["excused_s"]
        assert not_excused_s < STALL_S, "no answer for %.3f s: %s" % (longest["took_s"], longest)
        assert told_s - excused_s < STALL_S, "a turn of the loop took %.3f s" % told_s
        # Long silences have few answers.
        wanted = 0.5 * (self.ended - self.began) / 0.05 / (1 + 4 * excused_s)
        assert len(self.rows) >= wanted, len(self.rows)

    def judge_usage(self):
        before = [row for row in self.rows if row["at"] < self.began]
        after = [row for row in self.rows if self.ready <= row["at"] <= self.ended]
        grown = max(row["resident_bytes"] for row in self.rows) - before[-1]["resident_bytes"]

        share = (after[-1]["cpu_s"] - after[0]["cpu_s"]) / (after[-1]["at"] - after[0]["at"])
        print("the agent grew by %.1f MiB and took %.1f %% of a CPU" % (grown / 2**20, 100 * share))
        assert grown <= self.get("GROWTH", GROWTH), "the agent grew by %.1f MiB" % (grown / 2**20)
        most = self.get("CPU_SHARE")
        assert most is None or share <= most, "the agent takes %.1f %% of a CPU" % (100 * share)

    def judge_secrets(self):
        """Nothing of others, and no kernel address, in what the attackers saw and wrote."""
        told = list(self.looks)
        for attacker in self.attackers:
            home = os.path.join(self.directory, "attacker-%d" % attacker.user)
            for name in os.listdir(home):
                path = os.path.join(home, name)
                is_own = os.path.isfile(path) and not os.path.islink(path)
                if is_own and not name.endswith(".py") and os.stat(path).st_size < 1 << 20:
                    with open(path, "rb") as file:
                        told.append(file.read().decode("utf-8", "replace"))
        assert any(self.looks), "the attacker was told nothing at all"
        for text in told:
            for name in [SECRET] + [victim.name + "_inner" for victim in self.victims]:
                assert name not in text, "the attacker sees %s: %s" % (
                    name, text[max(0, text.index(name) - 300):][:600])
            far = [
                n for n in re.findall(r"\b(?:0x)?([0-9a-f]{16})\b", text)
                if int(n, 16) >> 47 == (1 << 17) - 1
            ]
            assert not far, "the attacker sees kernel addresses: %s" % far[:5]


def play(name):
    harness.need(os.geteuid() == 0, "only root can become somebody else")
    harness.need(shutil.which("gcc"), "no gcc")
    rig = Rig(name)
    try:
        rig.play()
        rig.judge()
    finally:
        rig.end()
