# SPDX-License-Identifier: BSD-2-Clause
"""What the page asks pyprofd-serve for: who asks, labels, the ledger as waits."""
import glob
import json
import os
import re
import signal
import socket
import subprocess
import time

import harness
import pprof
import test_live
import waits
from test_dump import USER
from test_serve import TOKEN, Server

PYPROF = os.path.join(os.path.dirname(harness.PYPROFD), "pyprof")


def fetch(server, path):
    headers, body = server.get(path)
    assert headers["Content-Type"] == "application/json", headers
    return json.loads(body)


def recorded(server, seconds):
    """Waits until the store has that many windows, and ends the recording.  Returns its range."""
    harness.wait_for(lambda: json.loads(server.get("/api/v1/strip?from=1m")[1])[
        "windows"] >= seconds, 30, "the store's windows")
    server.agent.send_signal(signal.SIGINT)
    server.agent.wait(30)
    now_s = int(time.time()) + 1
    return "from=%d&until=%d" % (now_s - 60, now_s)


def check_self(server):
    said = fetch(server, "/api/v1/self")
    assert said["host"] == socket.gethostname() and said["uid"] == os.geteuid(), said
    assert re.fullmatch(r"[0-9]+\.[0-9]+\.[0-9]+.*", said["version"]), said
    assert said["sees"] == "all" and abs(said["now_ms"] / 1e3 - time.time()) < 5, said
    assert 1000 <= said["interval_ms"] < 1500, said  # what there is, on a busy machine
    strip = fetch(server, "/api/v1/strip?from=1m")
    store = said["store"]
    assert store["from_ms"] < store["until_ms"] <= said["now_ms"] + 1000, said
    assert store["until_ms"] - store["from_ms"] >= sum(strip["recorded_ms"]) * 0.9, said
    assert said["kinds"] == [{"kind": "cpu", "title": "CPU time", "unit": "nanoseconds"}]
    server.get("/api/v1/self?kind=cpu", rc=400)
    # A token is nobody's name; who asks on this machine is known besides.
    said = json.loads(server.get("/api/v1/self", Authorization="Bearer " + TOKEN)[1])
    assert said["sees"] == "all" and said["uid"] == os.geteuid(), said


def check_labels(server, span, worker, other):
    """They are those of the profile."""
    profile = pprof.Profile(server.get("/api/v1/profile?" + span)[1])
    expected = {}
    for sample in profile.samples:
        for key in ("comm", "thread_name", "pid"):
            if key in sample.labels:
                values = expected.setdefault(key, {})
                value = sample.labels[key]
                values[value] = values.get(value, 0) + sample.values[1]
    said = fetch(server, "/api/v1/labels?" + span)
    assert said["kind"] == "cpu", said
    assert said["total"] == sum(sample.values[1] for sample in profile.samples), said
    for key in ("comm", "thread_name"):
        label, = [label for label in said["labels"] if label["key"] == key]
        found = {value["value"]: value["total"] for value in label["values"]}
        assert len(found) + label["more"] == len(expected[key]), label
        assert all(expected[key][value] == total for value, total in found.items()), label
        totals = [value["total"] for value in label["values"]]
        assert totals == sorted(totals, reverse=True), label
    assert not {"pid", "tid"} & {label["key"] for label in said["labels"]}, said
    found = {process["pid"]: process for process in said["processes"]}
    assert len(found) + said["processes_more"] == len(expected["pid"]), said
    assert found[worker.pid]["total"] == expected["pid"][worker.pid]
    assert found[worker.pid]["comm"].startswith("python"), found[worker.pid]
    assert other.pid in found
    # A selection of it.
    said = fetch(server, "/api/v1/labels?%s&pid=%d" % (span, worker.pid))
    assert [process["pid"] for process in said["processes"]] == [worker.pid], said
    assert said["total"] == expected["pid"][worker.pid], said
    said = fetch(server, "/api/v1/labels?%s&pid=%d&label=thread_name:toiler" % (
        span, worker.pid))
    label, = [label for label in said["labels"] if label["key"] == "thread_name"]
    assert [value["value"] for value in label["values"]] == ["toiler"], label
    # Nobody recorded then.
    said = fetch(server, "/api/v1/labels?from=2000-01-01&until=2000-01-02")
    assert said["total"] == 0 and said["labels"] == [] and said["processes"] == [], said
    server.get("/api/v1/labels?from=1m&until=2m", rc=400)
    server.get("/api/v1/labels?format=pprof", rc=400)


def ledgers(server):
    """pid -> {state: milliseconds} of all windows."""
    found = {}
    for path in waits.windows(os.path.join(server.folder, "store"), "ledger"):
        for row in pprof.load(path).ledger:
            state, times = row.labels.get("state"), found.setdefault(row.labels.get("pid"), {})
            if state is not None:
                times[state] = times.get(state, 0) + row.values[0] / 1e6
    return found


def test_waits_are_the_ledger():
    with Server(events="cpu,offcpu") as server, test_live.Worker() as worker:
        span = recorded(server, 4)
        said = fetch(server, "/api/v1/waits?" + span)
        process, = [p for p in said["processes"] if p["pid"] == worker.pid]
        parts = sum(process["running_ms"].values())
        assert parts > 100 and abs(process["ms"]["running"] - parts) <= 4, process
        running = [p["ms"]["running"] for p in said["processes"]]
        assert running == sorted(running, reverse=True), running
        written = ledgers(server)
        for one in said["processes"]:
            expected = written[one["pid"]]
            for name, ms in {**one["ms"], **one["running_ms"]}.items():
                if name != "running":
                    assert abs(ms - expected.get(name, 0)) <= 1, (one, expected)
        # As pyprof shows it, whose figures are percent of the time that was recorded.
        since, until = re.fullmatch(r"from=(\d+)&until=(\d+)", span).groups()
        report = subprocess.run([PYPROF, "report", os.path.join(server.folder, "store"),
                                 "--since", "@" + since, "--until", "@" + until],
                                stdout=subprocess.PIPE, check=True).stdout.decode()
        recorded_s = float(re.search(r"([0-9.]+) s recorded", report).group(1))
        rows = re.findall(r"^ *([0-9.]+) +([0-9.]+) +([0-9.]+) +([0-9.]+) +([0-9.]+)  "
                          r"([0-9]+) (?!more )",
                          report, re.M)
        assert len(rows) >= 3, report
        for *shown, pid in rows:
            one = next((p for p in said["processes"] if p["pid"] == int(pid)), None)
            assert one, (pid, report, said["more"], [p["pid"] for p in said["processes"]])
            expected = [one["ms"]["running"]] + [
                one["running_ms"][part] for part in ("python", "native", "kernel")] + [
                sum(ms for name, ms in one["ms"].items() if name != "running")]
            # It has a row for each name of a process, which an exec changes: a row is no more than
            # all of it.  The seconds have one decimal place.
            for percent, ms in zip(map(float, shown), expected):
                assert percent - ms / 10 / recorded_s < 1 + 0.03 * percent, (pid, shown, expected)
        # One process has no others beside it.
        one = fetch(server, "/api/v1/waits?%s&pid=%d" % (span, worker.pid))
        assert one["processes"] == [process] and one["more"] == 0 and "others" not in one, one
        assert set(said["others"]["ms"]) == set(process["ms"]), said
        said = fetch(server, "/api/v1/waits?from=2000-01-01&until=2000-01-02")
        assert said["processes"] == [] and said["more"] == 0, said
        server.get("/api/v1/waits?kind=cpu", rc=400)


def check_broken(server, span):
    """The strip tells what it cannot read."""
    path = glob.glob(os.path.join(server.folder, "store", "*", "*", "*-cpu.pb.gz"))[0]
    start_ms = int(os.path.basename(path).split("-")[0])
    for number, mode in ((1, 0), (2, 0o600)):
        other = path.replace("/%d-" % start_ms, "/%d-" % (start_ms + number))
        with open(other, "wb") as copy:
            copy.write(open(path, "rb").read() if mode == 0 else b"no profile")
        os.chmod(other, mode)
    for _ in range(2):
        strip = fetch(server, "/api/v1/strip?" + span)
        assert (strip["unreadable"], strip["broken"], strip["pending"]) == (1, 1, 0), strip
        assert strip["full"] is False and strip["full_ms"] == 0, strip
    for name in ("pid=1", "label=app:x"):
        _, body = server.get("/api/v1/strip?" + name, rc=400)
        assert b"there are from, until, kind, points" in body, body


def check_users(server):
    for path in ("/api/v1/labels?from=1m", "/api/v1/waits?from=1m"):
        assert server.get_as(USER, path)[0] == 403
        assert server.get_as(USER, path + "&token=" + TOKEN)[0] == 200
    status, body = server.get_as(USER, "/api/v1/self")
    said = json.loads(body)
    assert status == 200 and said["uid"] == USER and said["sees"] == "own", said
    assert said["store"] is None and "cpu" in [kind["kind"] for kind in said["kinds"]], said


def test_self_labels_and_what_users_get():
    harness.need(os.geteuid() == 0, "only root can become somebody else, and the store is root's")
    with Server() as server, test_live.Worker() as worker, test_live.Worker() as other:
        span = recorded(server, 4)
        check_self(server)
        check_labels(server, span, worker, other)
        check_users(server)
        check_broken(server, span)  # the last, as it breaks files
