# SPDX-License-Identifier: BSD-2-Clause
"""Pushing to a server with Pyroscope's own API and its measured limits, and what it then has."""
import collections
import gzip
import json
import os
import subprocess
import time

import harness
import pyroscope
from collector import Pusher, Store, message

PYPROF = os.path.join(os.path.dirname(harness.PYPROFD), "pyprof")
CANARY = "canary-5e1f9a"
KINDS = {"cpu": "process_cpu", "offcpu": "off_cpu", "gil": "gil"}
PUSH = "/push.v1.PusherService/Push"


def sections(server, *lines):
    return {"test": ["type=pyroscope", "url=" + server.url, *lines]}


def windows_of(store):
    """{kind: [path]}"""
    found = collections.defaultdict(list)
    for folder, _, names in os.walk(store):
        for name in names:
            if name.endswith(".pb.gz") and not name.startswith("."):
                found[name.split("-")[2].split(".")[0]].append(os.path.join(folder, name))
    return found


def is_sent(pusher, paths):
    return pusher.metrics()["pyprofd_push_windows_total", 'sink="test"'] == len(paths)


def sums_of(paths):
    """{sample type: sum}, without what no collector gets."""
    sums = collections.Counter()
    for path in paths:
        profile = harness.load(path)
        for sample in profile.samples:
            for (name, _), value in zip(profile.sample_types, sample.values):
                sums[name] += value
    sums.pop("effective", None)
    return dict(sums)


def pyprof_sum(store, kind):
    """(sample type, sum of it)"""
    done = subprocess.run([PYPROF, "export", "--json", "--kind", kind, store, "-o", "-"],
                          stdout=subprocess.PIPE, check=True)
    found = json.loads(done.stdout)
    return found["sampleType"], sum(found["samples"]["value"])


def stacks_of(profiles, index):
    """{(function, file, line), ...: sum of one value}"""
    found = collections.Counter()
    for profile in profiles:
        for sample in profile.samples:
            if sample.values[index]:
                found[tuple((f.name, f.file, f.line) for f in sample.frames)] += \
                    sample.values[index]
    return found


def test_all_that_is_in_the_store_arrives():
    """Of the whole machine, by a real pyprofd: sums by kind are those that pyprof gives, stacks are
    those of the files, series are named as documented, and a secret is in no byte."""
    server, store = pyroscope.Server(dump=True), os.path.join(harness.temporary(), "store")
    os.mkdir(store)
    pusher = Pusher(Folder(store), sections(server, "kinds=cpu,offcpu,gil")).begun("test")
    env = {"AWS_SECRET_ACCESS_KEY": CANARY, "OTEL_SERVICE_NAME": "shop"}
    with harness.Target("labelled.py", "plain", "--token=" + CANARY, env=env):
        harness.profile(None, out=store, duration=6,
                        options=["--events", "cpu,offcpu,gil", "--interval", "1s"])
    found = windows_of(store)
    assert len(found["cpu"]) >= 5 and set(found) <= set(KINDS), found
    pusher.until(lambda: is_sent(pusher, sum(found.values(), [])), "all windows")
    pusher.end()
    queried = server.profile(pyroscope.PROCESS_CPU)
    counts = server.stop()
    assert not counts["refused"] and not counts["repeated_ids"], counts
    assert not counts["truncated"] and not counts["nameless"], counts
    services = check_sums(store, found, counts["samples"])
    assert "shop" in services, services
    assert stacks_of([queried], 0) == stacks_of(map(harness.load, found["cpu"]), 1)
    with open(server.dump, "rb") as file:
        pushed = file.read()
    assert b"shop" in pushed and b"labelled.py" in pushed and CANARY.encode() not in pushed


class Folder:
    """What Pusher takes as a store."""

    def __init__(self, directory):
        self.directory = directory


def check_sums(store, found, series):
    """The services that there are."""
    arrived = collections.defaultdict(collections.Counter)
    services = set()
    for key, sums in series.items():
        labels = dict(pair.split("=", 1) for pair in key[1:-1].split(","))
        assert set(labels) == {"__name__", "service_name", "hostname"}, key
        arrived[json.loads(labels["__name__"])].update(sums)
        services.add(json.loads(labels["service_name"]))
    for kind, name in KINDS.items():
        assert dict(arrived.pop(name, {})) == sums_of(found[kind]), kind
        if found[kind]:
            sample_type, total = pyprof_sum(store, kind)
            assert total == sums_of(found[kind])[sample_type], kind
    assert not arrived, arrived
    return services


test_all_that_is_in_the_store_arrives.few = False


def test_windows_above_the_limits_arrive_in_parts():
    """20,000 stacks of one service, and a label that makes 40 series of each window."""
    server, store = pyroscope.Server(), Store()
    pusher = Pusher(store, sections(server, "labels=pod")).begun("test")
    store.put(1, [("app", "shop")], rows=20000)
    store.put(2, lambda row: [("app", "shop"), ("pod", "p%d" % (row % 40))], rows=400)
    pusher.until(lambda: is_sent(pusher, [1, 2]), "both windows")
    metrics = pusher.end()
    pods = server.query("LabelValues", name="pod", matchers=['{service_name="shop"}'], start=0,
                        end=0)["names"]
    one = server.profile(pyroscope.PROCESS_CPU, '{service_name="shop",pod="p7"}')
    counts = server.stop()
    assert metrics["pyprofd_push_dropped_profiles_total", 'sink="test",reason="poison"'] == 0
    assert set(counts["refused"]) <= {"rate"} and not counts["repeated_ids"], counts
    assert sum(sums["cpu"] for sums in counts["samples"].values()) == 7 * 20400
    assert sorted(pods) == sorted("p%d" % number for number in range(40)), pods
    assert sorted(f.name for s in one.samples for f in s.frames) == sorted(
        "window-2.%d" % row for row in range(7, 400, 40))


test_windows_above_the_limits_arrive_in_parts.few = False


def test_a_rate_that_is_too_high_for_the_collector_loses_nothing():
    """All windows come at once, which is six times what the tenant may push in a moment: each 429
    is tried again."""
    server, store = pyroscope.Server("-rate", "60000"), Store()
    pusher = Pusher(store, sections(server)).begun("test")
    pusher.end()
    for number in range(1, 9):
        store.put(number, rows=500)
    pusher = Pusher(store, sections(server), state=pusher.state)
    pusher.until(lambda: server.counts()["profiles"] == 8, "eight windows")
    pusher.end()
    counts = server.stop()
    assert counts["refused"].get("rate"), counts
    assert sum(sums["cpu"] for sums in counts["samples"].values()) == 7 * 8 * 500, counts


test_a_rate_that_is_too_high_for_the_collector_loses_nothing.few = False


# ---------------------------------------------------------------- the server's limits


def profile(rows=1, sample_labels=0, age_s=0, type_name="cpu", bytes_more=0):
    """A pprof message."""
    texts = ["", type_name, "nanoseconds", "f" * (bytes_more + 1)]
    texts += ["key%d" % number for number in range(sample_labels)]
    labels = [(3, message((1, 4 + number), (3, 1))) for number in range(sample_labels)]
    value_type = message((1, 1), (2, 2))
    return message(
        (1, value_type), *((2, message((1, 1), (2, 7), *labels)) for _ in range(rows)),
        (4, message((1, 1), (4, message((1, 1), (2, 5))))), (5, message((1, 1), (2, 3))),
        *((6, text.encode()) for text in texts), (9, int((time.time() - age_s) * 1e9)),
        (10, 10 ** 10), (11, value_type), (12, 1))


def push(labels, raw, number=1):
    return message((1, message(
        *((1, message((1, name.encode()), (2, value.encode()))) for name, value in labels),
        (2, message((1, raw), (2, b"00000000-0000-4000-8000-%012x" % number))))))


NAMED = [("__name__", "process_cpu"), ("service_name", "shop")]
MANY = [("l%d" % number, "x") for number in range(28)]
# What the real server was seen to answer: body, status, a part of the text.
LIMITS = {
    "taken": (push(NAMED + MANY, gzip.compress(profile())), 200, b""),
    "not packed": (push(NAMED, profile()), 200, b""),
    "no service": (push(NAMED[:1], profile()), 200, b""),
    "no name": (push(NAMED[1:], profile()), 400, b"invalid metric name"),
    "31 labels": (push(NAMED + MANY + [("more", "x")], profile()), 400, b"invalid_argument"),
    "long value": (push(NAMED + [("l", "x" * 2049)], profile()), 400, b"invalid_argument"),
    "long name": (push(NAMED + [("l" * 1025, "x")], profile()), 400, b"invalid_argument"),
    "dash in a type": (push(NAMED, profile(type_name="off-cpu")), 400, b"invalid_argument"),
    "junk": (push(NAMED, b"junk"), 500, b"unknown"),
    "junk in gzip": (push(NAMED, gzip.compress(profile())[:-9]), 500, b"unexpected EOF"),
    "an hour old": (push(NAMED, profile(age_s=3700)), 400, b"invalid_argument"),
    "eleven minutes ahead": (push(NAMED, profile(age_s=-660)), 400, b"invalid_argument"),
    "5 MiB": (push(NAMED, gzip.compress(profile(bytes_more=5 << 20))), 400, b"invalid_argument"),
    "3 MiB": (push(NAMED, gzip.compress(profile(bytes_more=3 << 20))), 429,
              b"resource_exhausted"),
    "16001 samples": (push(NAMED, profile(rows=16001)), 400, b"invalid_argument"),
    "101 labels of a sample": (push(NAMED, profile(sample_labels=101)), 400,
                               b"invalid_argument"),
    "no message": (b"\xff", 400, b"invalid_argument"),
}


def test_the_stub_is_as_strict_as_the_server():
    """Else the tests above would prove nothing."""
    server = pyroscope.Server()
    for name, (body, status, text) in LIMITS.items():
        found = server.ask(PUSH, body)
        assert found[0] == status and text in found[1], (name, found)
    taken = push(NAMED, profile())
    assert server.ask(PUSH, taken, headers={"Content-Type": "application/x-protobuf"})[0] == 415
    assert server.ask(PUSH, taken, headers={"Content-Encoding": "zstd"})[0] == 501
    assert server.ask(PUSH, gzip.compress(taken), headers={"Content-Encoding": "gzip"})[0] == 200
    assert server.ask(PUSH)[0] == 405
    counts = server.stop()
    assert counts["profiles"] == 4 and counts["repeated_ids"] == 3, counts
    assert '{__name__="process_cpu",service_name="unknown_service"}' in counts["samples"]
    server = pyroscope.Server("-multitenant")
    assert server.ask(PUSH, taken)[0] == 401
    assert server.ask(PUSH, taken, headers={"X-Scope-OrgID": "team1"})[0] == 200
    server.stop()


test_the_stub_is_as_strict_as_the_server.few = False


def test_the_stub_answers_what_was_asked_for():
    """By type, labels and time."""
    server = pyroscope.Server()
    for number, (service, age_s) in enumerate((("a", 60), ("a", 30), ("b", 30))):
        labels = NAMED[:1] + [("service_name", service)]
        assert server.ask(PUSH, push(labels, profile(age_s=age_s), number))[0] == 200
    now_ms = int(time.time() * 1000)

    def count(type_id, selector, since_s):
        found = server.profile(type_id, selector, now_ms - since_s * 1000, now_ms)
        return sum(sample.values[0] for sample in found.samples)

    for selector, since_s, wanted in (("{}", 90, 21), ('{service_name="a"}', 90, 14),
                                      ('{service_name="a"}', 45, 7),
                                      ('{service_name=~"a|b"}', 45, 14),
                                      ('{service_name!~"a.*"}', 90, 7), ("{}", 20, 0)):
        assert count(pyroscope.PROCESS_CPU, selector, since_s) == wanted, (selector, since_s)
    assert count(pyroscope.OFF_CPU, "{}", 90) == 0
    types = server.query("ProfileTypes", start=now_ms - 90000, end=now_ms)["profileTypes"]
    assert [one["ID"] for one in types] == [pyroscope.PROCESS_CPU]
    assert server.query("LabelNames", start=0, end=0)["names"] == ["__name__", "service_name"]
    series = server.query("Series", matchers=['{service_name="b"}'], labelNames=["service_name"],
                          start=0, end=0)["labelsSet"]
    assert series == [{"labels": [{"name": "service_name", "value": "b"}]}], series
    status, body = server.ask("/querier.v1.QuerierService/SelectMergeProfile",
                              message((1, b"cpu"), (2, b"{}"), (3, now_ms), (4, now_ms)))
    assert status == 400 and b"profile-type" in body, (status, body)
    server.stop()


test_the_stub_answers_what_was_asked_for.few = False
