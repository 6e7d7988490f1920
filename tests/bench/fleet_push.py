# SPDX-License-Identifier: BSD-2-Clause
"""What a fleet pushes: windows of a node of 64 programs in 8 services are recorded, and pushed by
pyprofd-serve into a server with Pyroscope's own API and limits (tests/tools/pyroscope_stub); from
one node in several ways, and from 200 nodes at once, as fast as windows come."""
import ctypes
import os
import shutil
import socket
import subprocess
import time

import harness
import measure
import pyroscope
import store_day

SERVE = os.path.join(os.path.dirname(harness.PYPROFD), "pyprofd-serve")
NODES, SERVICES, PROGRAMS, CORES = 200, 8, 64, 0.8
HOUR_S = 3600
SETTLE_S = 6
# What is waited for after the last window, when the collector does not take all as it comes.
LATE_S = 240
CLONE_NEWUTS = 0x04000000
LIBC = ctypes.CDLL(None, use_errno=True)
# Label: seconds of a window, lines of [push].
WAYS = {
    "as by default": (10, []),
    "kinds=cpu": (10, ["kinds=cpu"]),
    "windows of 60 s": (60, []),
    "windows of 60 s, kinds=cpu": (60, ["kinds=cpu"]),
    "labels=pid": (10, ["labels=pid"]),
    "all programs one service": (10, ["relabel=target_label=service_name replacement=node"]),
    "half of the services dropped": (10, ["relabel=source_labels=service_name regex=.*[0-3] "
                                          "action=drop"]),
}


def record(seconds, intervals):
    """{window's seconds: store} of the same programs at the same time."""
    stores = {one: harness.temporary() for one in intervals}
    programs = [harness.Target("fleet.py", PROGRAMS // SERVICES, CORES / SERVICES,
                               env={"OTEL_SERVICE_NAME": "service%d" % number}, ready=False)
                for number in range(SERVICES)]
    for one in programs:
        one.wait("ready", 180)
    agents = [harness.start(store + "/", [one.pid for one in programs], 99, seconds + SETTLE_S,
                            options=["--interval", "%ds" % interval])
              for interval, store in stores.items()]
    for agent in agents:
        run = harness.finish(agent, seconds + 60)
        assert run.rc == 0, run.err
    for one in programs:
        one.stop()
    return stores


def whole_windows(store, interval):
    """[[(path, rest of the name)]]: the files of each whole window, in the order of time."""
    found = {}
    for path, start_ms, rest in store_day.windows_of(store):
        if int(rest.split("-")[0]) > 0.9 * interval * 1000:
            found.setdefault(start_ms, []).append((path, rest))
    return [found[start] for start in sorted(found)]


class Node:
    """A pyprofd-serve with a host's name and a store of its own, which pushes to the server."""

    def __init__(self, number, server, lines=()):
        self.directory = harness.temporary()
        self.store, self.state = self.path("store"), self.path("state")
        os.mkdir(self.store)
        self.put_windows = 0
        words = [SERVE, "--store", self.store, "--state", self.state, "--set",
                 "push.a.type=pyroscope", "--set", "push.a.url=" + server.url]
        for line in lines:
            words += ["--set", "push.a." + line]

        def own_name():
            assert not LIBC.unshare(CLONE_NEWUTS), os.strerror(ctypes.get_errno())
            socket.sethostname("node%03d" % number)

        self.process = subprocess.Popen(words, preexec_fn=own_name, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        harness._running.append(self)

    def path(self, name):
        return os.path.join(self.directory, name)

    def begun(self):
        harness.wait_for(lambda: os.path.exists(os.path.join(self.state, "a.cursor")), 60,
                         "a cursor")
        return self

    def put(self, files, start_ms):
        for path, rest in files:
            place = store_day.place(self.store, start_ms, rest)
            shutil.copy(path, place + ".made")
            os.rename(place + ".made", place)
        self.put_windows += 1

    def cpu_s(self):
        return measure.own_cpu_s(self.process.pid)

    def end(self):
        self.process.terminate()
        assert self.process.wait(60) == 0
        said = self.process.stderr.read().decode()
        self.process.stderr.close()
        return said


def arrived(server, profiles, limit_s):
    """Waits for so many profiles; returns the counts."""
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        counts = server.counts()
        if counts["profiles"] >= profiles:
            return counts
        time.sleep(1)
    return server.counts()


def one_way(windows, interval, lines):
    """What one node pushes, an hour."""
    server = pyroscope.Server("-forget", "-rate", "1e9")
    node = Node(0, server, lines).begun()
    begin_ms = int(time.time() * 1000) - 20 * 60 * 1000
    before = node.cpu_s()
    for number, files in enumerate(windows):
        node.put(files, begin_ms + number * interval * 1000)
    last, counts = None, server.counts()
    while counts["pushes"] != last or not counts["pushes"]:  # and nothing for three seconds
        last = counts["pushes"]
        time.sleep(3)
        counts = server.counts()
    cpu_s = node.cpu_s() - before
    said = node.end()
    server.stop()
    share = HOUR_S / (len(windows) * interval)
    return {"series": counts["series"], "pushes": counts["pushes"] * share,
            "bytes": counts["bytes"] * share, "raw_bytes": counts["raw_bytes"] * share,
            "profiles": counts["profiles"] * share, "cpu_s": cpu_s * share, "said": said,
            "windows": len(windows)}


def many(windows, count, rate):
    """All nodes at once, each with a window in ten seconds, their beginnings spread over them."""
    server = pyroscope.Server("-forget", "-rate", str(rate))
    nodes = [Node(number, server) for number in range(count)]
    for node in nodes:
        node.begun()
    time.sleep(2)
    server_cpu_s = measure.own_cpu_s(server.process.pid)
    cpu_s = sum(node.cpu_s() for node in nodes)
    begin, wall_ms = time.monotonic(), int(time.time() * 1000)
    for number, files in enumerate(windows):
        for index, node in enumerate(nodes):
            at_s = 10 * (number + index / count)
            time.sleep(max(0.0, begin + at_s - time.monotonic()))
            node.put(files, wall_ms + int(1000 * at_s) - 60000)
    late_s = max(0.0, time.monotonic() - begin - 10 * len(windows))
    wanted = count * SERVICES * sum("-cpu." in rest or "-offcpu." in rest
                                    for files in windows for _, rest in files)
    last_s = time.monotonic()
    counts = arrived(server, wanted, LATE_S)
    result = {"nodes": count, "rate": rate, "windows": len(windows), "late_s": late_s,
              "seconds": time.monotonic() - begin, "after_s": time.monotonic() - last_s,
              "server_cpu_s": measure.own_cpu_s(server.process.pid) - server_cpu_s,
              "server_rss_mib": measure.status_kib(server.process.pid, "VmHWM") / 1024,
              "cpu_s": sum(node.cpu_s() for node in nodes) - cpu_s,
              "rss_mib": max(measure.status_kib(node.process.pid, "VmHWM")
                             for node in nodes) / 1024}
    counts.pop("samples")
    result.update(counts, wanted=wanted)
    for node in nodes:
        node.end()
    server.stop()
    return result


def say_many(say, one):
    refused = sum(one["refused"].values())
    say("push     %d nodes, %d windows each, at most %.0f MB/s unpacked: %d of %d profiles "
        "arrived, %d of %d pushes refused at first (%s), the last %.0f s after the last window"
        % (one["nodes"], one["windows"], one["rate"] / 1e6, one["profiles"], one["wanted"],
           refused, one["pushes"], ", ".join(one["refused"]) or "none", one["after_s"]))
    hours = one["nodes"] * one["seconds"] / HOUR_S
    say("push     in all %.1f MB/s, %.1f MB/s unpacked, %.0f requests a second, %d series; the "
        "stub takes %.0f %% of a core and %.0f MiB, our pushing %.2f s of CPU a node-hour (%.3f %% "
        "of a core) and %.1f MiB"
        % (one["bytes"] / one["seconds"] / 1e6, one["raw_bytes"] / one["seconds"] / 1e6,
           one["pushes"] / one["seconds"], one["series"],
           100 * one["server_cpu_s"] / one["seconds"], one["server_rss_mib"],
           one["cpu_s"] / hours, 100 * one["cpu_s"] / hours / HOUR_S, one["rss_mib"]))


def section(quick, say):
    seconds = 60 if quick else 190
    stores = record(seconds, (10, 60))
    windows = {interval: whole_windows(store, interval) for interval, store in stores.items()}
    result = {"ways": {}, "fleet": {}}
    for label, (interval, lines) in WAYS.items():
        if not windows[interval]:
            continue
        result["ways"][label] = one = one_way(windows[interval], interval, lines)
        say("push     a node-hour, %s: %.1f MB (%.1f unpacked), %.0f requests, %d series, %.2f s "
            "of CPU" % (label, one["bytes"] / 1e6, one["raw_bytes"] / 1e6, one["pushes"],
                        one["series"], one["cpu_s"]))
    # The real limit, and one that is below what comes.
    for rate in (4e6, ) if quick else (4e6, 1e6):
        one = many(windows[10][:3 if quick else 12], 20 if quick else NODES, rate)
        result["fleet"]["%.0f" % rate] = one
        say_many(say, one)
    return result
