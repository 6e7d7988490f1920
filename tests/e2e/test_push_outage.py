# SPDX-License-Identifier: BSD-2-Clause
"""A collector that is down, and a pyprofd that is killed meanwhile, with the pyprofd-serve that it
started: what of its windows arrives, and what is held until then."""
import collections
import contextlib
import functools
import os
import re
import socket
import statistics
import time

import collector
import harness
import pprof
from collector import CLOSED, Collector, Pusher, Store, fields

NAMES = {"cpu": "process_cpu", "offcpu": "off_cpu"}
STORE_MAX = 20000000
# What each may grow by when it has all its tables: an allocator's pages come and go, and the agent
# learns the files of whatever else the machine begins.
FLAT_KIB = {"pyprofd-serve": 1024, "pyprofd": 16384}
FLAT_READINGS = 100  # of a life that is long enough to tell


def profiles_in(_protocol, _headers, body):
    """([(name, begin, sum of the first value, id)], all bytes) of a push."""
    found = []
    for number, series in fields(body):
        assert number == 1, number
        parts = fields(series)
        labels = [dict(fields(label)) for number, label in parts if number == 1]
        name, = [label[2].decode() for label in labels if label[1] == b"__name__"]
        for sample in (dict(fields(part)) for number, part in parts if number == 2):
            profile = pprof.Profile(sample[1])
            found.append((name, profile.time_ns, sum(s.values[0] for s in profile.samples),
                          sample[2].decode()))
    return found, body


@functools.lru_cache(maxsize=None)
def window_of(path):
    """(begin, sum of the first value)"""
    profile = harness.load(path)
    return profile.time_ns, sum(sample.values[0] for sample in profile.samples)


def windows_of(store):
    """{(name as Pyroscope has it, begin): sum of the first value} of the files."""
    found = {}
    for folder, _, names in os.walk(store):
        for name in names:
            match = re.fullmatch(r"\d+-\d+-(cpu|offcpu)\.pb\.gz", name)
            if match:
                begin_ns, total = window_of(os.path.join(folder, name))
                found[NAMES[match.group(1)], begin_ns] = total
    return found


def bytes_of(directory):
    total = 0
    for folder, _, names in os.walk(directory):
        for name in names:
            with contextlib.suppress(FileNotFoundError):  # it has its own name now
                total += os.path.getsize(os.path.join(folder, name))
    return total


class Agent:
    """A pyprofd with a sink: it starts pyprofd-serve, whose cursor is in the store."""

    def __init__(self, store, pid, url, interval_s):
        self.socket = os.path.join(harness.temporary(), "serve.sock")
        self.process = harness.start(store + "/", pid, 99, options=[
            "--events", "cpu,offcpu", "--interval", "%ds" % interval_s,
            "--store-max", "%d" % STORE_MAX, "--set", "http.listen=unix:" + self.socket,
            "--set", "push.a.type=pyroscope", "--set", "push.a.url=" + url],
            env={"STATE_DIRECTORY": store})
        harness.wait_for(lambda: os.path.exists(self.socket), 60, "pyprofd-serve")

    def resident_kib(self):
        """{program: KiB} of the agent and of the pyprofd-serve that it runs."""
        found = {}
        for pid in [self.process.pid] + harness.children(self.process.pid):
            with contextlib.suppress(OSError), \
                    open("/proc/%d/status" % pid, encoding="utf-8", errors="replace") as file:
                status = file.read()
                name = re.search(r"^Name:\s+(\S+)", status).group(1)
                kib = re.search(r"^VmRSS:\s+(\d+)", status, re.M)  # none: it has ended
                if kib and (name == "pyprofd-serve" or pid == self.process.pid):
                    found[name] = int(kib.group(1))
        return found

    def metrics(self):
        """{reason or name: number} of what was pushed."""
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(self.socket)
            client.sendall(b"GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n")
            text = client.makefile("rb").read().decode()
        found = {}
        for name, reason, value in re.findall(
                r'^pyprofd_push_(\w+)_total\{sink="a"(?:,reason="(\w+)")?\} (\S+)$', text, re.M):
            found[reason or name] = float(value)
        return found

    def kill(self):
        self.process.kill()
        self.process.wait()


def pass_by(agent, store, seconds):
    """Lets time go by; returns what the agent and its children held, each second."""
    held, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(1)
        assert agent.process.poll() is None, harness.said(agent.process)
        assert bytes_of(store) <= STORE_MAX
        held.append(agent.resident_kib())
    return held


def outage(down_s, interval_s):
    store, port, mood = os.path.join(harness.temporary(), "store"), collector.free_port(), {}

    def answer(_request):
        return CLOSED if mood.pop("lose", False) else None

    def sink():
        return Collector("pyroscope", answer, port=port, windows=profiles_in)

    os.mkdir(store)
    first = sink()
    with harness.light() as target:
        def start():
            return Agent(store, target.pid, first.url, interval_s)

        agent = start()
        harness.wait_for(lambda: len(first.requests) >= 4, 60 + 4 * interval_s, "four requests")
        mood["lose"] = True
        harness.wait_for(lambda: not mood and agent.metrics()["repeated_requests"] == 1,
                         60 + 2 * interval_s, "a request whose answer was lost", 0.1)
        harness.wait_for(lambda: all(first.taken[key] > 1 for key in first.lost), 60, "it again")
        first.close()
        held = []
        for life in range(3):
            if life:
                agent.kill()
                agent = start()
            held.append(pass_by(agent, store, down_s / 3))
        down = len(windows_of(store)) - len({key[:2] for key in first.taken})
        second = sink()
        wanted = windows_of(store)
        harness.wait_for(lambda: wanted.keys() <= {k[:2] for k in first.taken + second.taken},
                         60 + down_s / 2, "all that was written meanwhile", 0.1)
        metrics = agent.metrics()
        agent.kill()
        second.close()
    check_arrivals(first, second, wanted)
    assert down >= 0.8 * down_s / interval_s, (down, down_s)
    assert sum(metrics[reason] for reason in ("poison", "refused", "retention", "clock", "too_old",
                                              "unreadable")) == 0, metrics
    check_flat(held)


def check_arrivals(first, second, wanted):
    taken, lost = first.taken + second.taken, first.lost + second.lost
    for key, times in taken.items():
        assert times == 1 + lost[key], (key, times, lost[key])
    sums = collections.Counter()
    for name, begin_ns, value, _ in taken:
        sums[name, begin_ns] += value
    assert {key: sums[key] for key in wanted} == wanted


def check_flat(held):
    """The end of each life is as its second quarter, by medians."""
    for life in held:
        quarter = len(life) // 4
        for name, growth_kib in FLAT_KIB.items() if len(life) >= FLAT_READINGS else ():
            kib = [reading[name] for reading in life if name in reading]
            early, late = (statistics.median(part) for part in
                           (kib[quarter:2 * quarter], kib[-quarter:]))
            print("%s: %d KiB, then %d" % (name, early, late))
            assert late <= early + growth_kib, (name, kib)


def test_six_seconds_with_two_kills_of_the_agent():
    outage(6, 1)


def test_ten_minutes_with_two_kills_of_the_agent():
    outage(600, 5)


test_ten_minutes_with_two_kills_of_the_agent.limit_s = 1200
test_ten_minutes_with_two_kills_of_the_agent.few = False


def test_lag_is_that_of_the_newest_window_the_collector_has():
    store, sink = Store(), Collector("otlp")
    store.put(0)
    pusher = Pusher(store, {"test": ["type=otlp", "url=" + sink.url]}).begun("test")

    def lags(number):
        """Whether the lag is from the end of that window on."""
        lag_s = pusher.metrics()["pyprofd_push_lag_seconds", 'sink="test"']
        return abs(lag_s - (time.time() - store.at_ms(number + 1) / 1e3)) < 3
    # It begins behind what was there before.
    harness.wait_for(lambda: lags(0), what="the lag of a new sink", step_s=0.1)
    store.put(2)
    harness.wait_for(lambda: lags(2), what="the lag behind window 2", step_s=0.1)
    # What it refuses it does not have; the next one that it takes counts.
    sink.answer = lambda _: (400, {}, b"no")
    store.put(4)
    harness.wait_for(lambda: pusher.dropped("poison") == 1, what="a refusal", step_s=0.1)
    assert lags(2), pusher.said()
    sink.answer = None
    store.put(6)
    harness.wait_for(lambda: lags(6), what="the lag behind window 6", step_s=0.1)
    pusher.end()
    sink.close()
