# SPDX-License-Identifier: BSD-2-Clause
"""Pushing: what arrives, how often, and what becomes of each answer.

The answers are those that Pyroscope, Parca and the OpenTelemetry collector gave
(docs/design/collectors.md).
"""
import base64
import email.utils
import gzip
import json
import os
import re
import socket
import subprocess
import threading
import time

import collector
import harness
from collector import CLOSED, Collector, Pusher, Store, message, private
from test_pyprof import python_with

PROTOCOLS = ["pyroscope", "parca", "otlp"]


def each_protocol():
    return [(name, name) for name in PROTOCOLS]


def sections(protocol, url, *lines):
    return {"test": ["type=" + protocol, "url=" + url, *lines]}


def pushed(store, protocol, sink, numbers, *lines, **options):
    """A pusher that has sent these windows."""
    pusher = Pusher(store, sections(protocol, sink.url, *lines), **options).begun("test")
    for number in numbers:
        store.put(number)
    pusher.until(lambda: sink.has(numbers), what="windows %s; %s" % (numbers, pusher.said()))
    return pusher


# ---------------------------------------------------------------- what arrives


def test_windows_arrive_once_and_in_order(protocol):
    store, sink = Store(), Collector(protocol)
    store.put(0)  # was there before the sink was configured
    pusher = pushed(store, protocol, sink, range(1, 6))
    metrics = pusher.end()
    found = [request.windows for request in sink.requests]
    assert found == [[n] for n in range(1, 6)], (found, pusher.said())
    assert metrics["pyprofd_push_windows_total", 'sink="test"'] == 5
    assert metrics["pyprofd_push_requests_total", 'sink="test",code="200"'] == 5
    # A restart repeats nothing.
    pusher = pushed(store, protocol, sink, [6], state=pusher.state)
    pusher.end()
    sink.close()
    assert sink.taken == {n: 1 for n in range(1, 7)}, sink.taken


test_windows_arrive_once_and_in_order.cases = each_protocol


def test_requests_are_what_the_collector_wants(protocol):
    store, sink = Store(), Collector(protocol)
    pusher = Pusher(store, sections(protocol, sink.url + "/", "labels=pod", "tenant=team1",
                                    "header=X-Extra: a b")).begun("test")
    labels = [("app", "shop"), ("pod", "p1"), ("comm", "secret-comm"),
              ("thread_name", "secret-thread"), ("tid", 7)]
    store.put(1, labels)
    store.put(2, labels, kind="offcpu")
    pusher.until(lambda: sink.has([1, 2]), "windows")
    pusher.end()
    sink.close()
    for request in sink.requests:
        assert request.path == collector.PATHS[protocol], request.path
        assert request.headers["X-Scope-OrgID"] == "team1"
        assert request.headers["X-Extra"] == "a b"
        assert "Authorization" not in request.headers
        assert request.headers["Content-Type"] == {"pyroscope": "application/proto",
                                                   "parca": "application/json",
                                                   "otlp": "application/x-protobuf"}[protocol]
        assert b"secret" not in request.plain and b"effective" not in request.plain
        for text in (b"shop", b"p1", b"node1"):
            assert text in request.plain, text
    if protocol == "pyroscope":
        assert b"process_cpu" in sink.requests[0].plain
        assert b"off_cpu" in sink.requests[1].plain


test_requests_are_what_the_collector_wants.cases = each_protocol


def test_the_parca_stub_refuses_what_breaks_the_real_one():
    def pushed_body(*profile, labels=("__name__", "a")):
        raw = base64.b64encode(gzip.compress(message(*profile))).decode()
        return json.dumps({"series": [{"labels": {"labels": [{"name": name} for name in labels]},
                                       "samples": [{"rawProfile": raw}]}]})

    kind = message((1, 1), (2, 2))
    texts = [(6, b""), (6, b"cpu"), (6, b"nanoseconds")]
    whole = [(1, kind), *texts, (10, 5), (11, kind)]
    fault = collector.parca_fault
    assert fault(pushed_body(*whole)) is None
    assert fault(pushed_body(*whole[:-1]))[0] == 500  # no period type
    assert fault(pushed_body(*whole[:-2], whole[-1]))[0] == 500  # no duration
    assert fault(pushed_body(*whole[1:]))[0] == 500  # no sample type
    assert fault(pushed_body(whole[0], (6, b""), (6, b"off-cpu"), *whole[3:]))[0] == 500
    assert fault(pushed_body(*whole, labels=("a", )))[0] == 400
    assert fault(pushed_body(*whole, labels=("__name__", "a", "a")))[0] == 400


OTLP_DECODER = '''
import sys
from opentelemetry.proto.collector.profiles.v1development import profiles_service_pb2 as s
request = s.ExportProfilesServiceRequest.FromString(sys.stdin.buffer.read())
d = request.dictionary
text = d.string_table
for resource in request.resource_profiles:
    about = {a.key: a.value.string_value for a in resource.resource.attributes}
    scope = resource.scope_profiles[0]
    assert scope.HasField("scope") and not d.stack_table[0].location_indices
    for p in scope.profiles:
        assert p.HasField("period_type") and len(p.profile_id) == 16
        names = sorted(text[d.function_table[d.location_table[d.stack_table[x.stack_index]
                       .location_indices[0]].lines[0].function_index].name_strindex]
                       for x in p.samples)
        keys = {text[d.attribute_table[i].key_strindex]: d.attribute_table[i].value.string_value
                for x in p.samples for i in x.attribute_indices}
        print(about["service.name"], about["host.name"], text[p.sample_type.type_strindex],
              sum(x.values[0] for x in p.samples), ",".join(names), keys)
'''


def test_otlp_pushes_are_what_the_schema_says():
    python = python_with(
        "opentelemetry.proto.collector.profiles.v1development.profiles_service_pb2")
    store, sink = Store(), Collector("otlp")
    pusher = Pusher(store, sections("otlp", sink.url, "labels=pod")).begun("test")
    store.put(1, [("app", "shop"), ("pod", "p1")], rows=2)
    pusher.until(lambda: sink.has([1]), "window 1")
    pusher.end()
    sink.close()
    said = subprocess.run([python, "-c", OTLP_DECODER], input=sink.requests[0].plain,
                          stdout=subprocess.PIPE, check=True).stdout.decode().splitlines()
    assert said == ["shop node1 %s 14 window-1.0,window-1.1 {'k8s.pod.name': 'p1'}" % kind
                    for kind in ("samples", "cpu")], said


def test_rules_rename_and_leave_out(protocol="pyroscope"):
    store, sink = Store(), Collector(protocol)
    pusher = Pusher(store, sections(protocol, sink.url, "labels=team",
                                    "relabel=source_labels=app regex=tmp action=drop",
                                    "relabel=source_labels=unit regex=(.*).service "
                                    "target_label=team")).begun("test")
    store.put(1, [("app", "tmp"), ("comm", "x")])
    store.put(2, [("app", "shop"), ("unit", "web.service"), ("tid", 77)])
    pusher.until(lambda: sink.has([2]), "window 2")
    pusher.end()
    sink.close()
    assert [request.windows for request in sink.requests] == [[2]]
    assert b"\n\4team\x12\3web" in sink.requests[0].body


def test_one_users_programs_leave_other_users_their_series(protocol="pyroscope"):
    def crowd(row):
        return ("comm", "evil%d" % row), ("user", "mallory")

    def crowd_and_one(row):
        if row < 598:
            return crowd(row)
        return ("comm", "victim"), ("user", "alice" if row == 599 else "mallory")

    store, sink = Store(), Collector(protocol)
    pusher = Pusher(store, sections(protocol, sink.url)).begun("test")
    store.put(1, crowd, rows=600)
    pusher.until(lambda: sink.has([1]), "window 1")
    store.put(2, crowd_and_one, rows=600)
    pusher.until(lambda: sink.has([2]), "window 2")
    pusher.end()
    sink.close()
    bodies = b"".join(request.body for request in sink.requests)
    assert b"\n\x0cservice_name\x12\6victim" in bodies and b"mallory" not in bodies
    # Who takes his name has no part in his series.
    assert b"\n\4user\x12\5alice" in bodies, pusher.said()
    assert bodies.count(b"\x12\x0eother_services") == 2, pusher.said()


def test_merged_files_are_sent_from_the_first_window_that_was_not(protocol):
    store, sink = Store(), Collector(protocol)
    pusher = pushed(store, protocol, sink, [1, 2, 3])
    pusher.end()
    for number in (1, 2, 3):
        os.unlink(store.path(number))
    store.put(1, windows=6)
    pusher = Pusher(store, sections(protocol, sink.url), state=pusher.state)
    pusher.until(lambda: sink.has(range(1, 7)), "windows")
    metrics = pusher.end()
    sink.close()
    assert sink.taken == {n: 1 for n in range(1, 7)}, sink.taken
    assert [request.windows for request in sink.requests] == [[n] for n in range(1, 7)]
    assert metrics["pyprofd_push_windows_total", 'sink="test"'] == 3


test_merged_files_are_sent_from_the_first_window_that_was_not.cases = each_protocol


def test_a_broken_file_is_passed_over(protocol="pyroscope"):
    store, sink = Store(), Collector(protocol)
    pusher = Pusher(store, sections(protocol, sink.url)).begun("test")
    with open(store.put(1), "wb") as file:
        file.write(b"no profile")
    store.put(2)
    pusher.until(lambda: sink.has([2]), "windows")
    assert pusher.dropped("unreadable") == 1
    pusher.end()
    sink.close()
    assert "not sent (unreadable): '%s" % store.directory in pusher.said(), pusher.said()


def test_windows_too_old_for_pyroscope_are_counted():
    store, sink = Store(age_s=7200), Collector("pyroscope")
    pusher = Pusher(store, sections("pyroscope", sink.url)).begun("test")
    store.put(1)
    store.put(710)  # nearly now
    pusher.until(lambda: sink.has([710]), "windows")
    assert pusher.dropped("too_old") == 1
    pusher.end()
    sink.close()
    assert set(sink.taken) == {710}


def test_a_clock_that_is_set_back_stops_nothing():
    """The cursor is a day ahead of the clock; windows that begin from now on are sent, and what
    the collector may have of them is counted and told once."""
    store, sink, state = Store(age_s=-20), Collector("parca"), harness.temporary()
    with open(os.path.join(state, "test.cursor"), "w", encoding="utf-8") as file:
        file.write("pyprofd push cursor 1\nsent cpu %d\nend\n" % ((time.time() + 86400) * 1000))
    for number in (1, 2, 3):
        store.put(number)
    pusher = Pusher(store, sections("parca", sink.url), state=state)
    pusher.until(lambda: sink.has([1, 2, 3]), "three windows")
    store.put(4)
    metrics = pusher.until(lambda: sink.has([4]), "window 4").end()
    sink.close()
    assert metrics["pyprofd_push_repeated_files_total", 'sink="test"'] == 3, metrics
    said = re.findall(r"the clock was set back: .*", pusher.said())
    assert len(said) == 1 and "now; 3 files with later ones are sent" in said[0], pusher.said()


def test_windows_behind_a_clock_that_was_set_back_are_counted():
    store, sink = Store(), Collector("parca")
    pusher = pushed(store, "parca", sink, [5])
    store.put(3)
    pusher.until(lambda: pusher.dropped("clock") == 1, "the drop")
    store.put(6)
    pusher.until(lambda: sink.has([6]), "window 6").end()
    sink.close()
    assert sink.taken == {5: 1, 6: 1}, sink.taken
    assert "not sent (clock): the clock was set back: 1 windows" in pusher.said(), pusher.said()


def test_a_window_that_begins_anew_after_a_restart_is_counted(requests):
    """What was sent of it were other bytes, or more requests than it has now."""
    store, sink, state = Store(), Collector("parca"), harness.temporary()
    with open(os.path.join(state, "test.cursor"), "w", encoding="utf-8") as file:
        file.write("pyprofd push cursor 1\nsent cpu %d\nopen cpu %d %d 00000000deadbeef resting\n"
                   "end\n" % (store.at_ms(0), store.at_ms(1), requests))
    store.put(1)
    pusher = Pusher(store, sections("parca", sink.url), state=state)
    pusher.until(lambda: sink.has([1]), "window 1")
    metrics = pusher.end()
    sink.close()
    assert metrics["pyprofd_push_repeated_requests_total", 'sink="test"'] == requests, metrics


test_a_window_that_begins_anew_after_a_restart_is_counted.cases = lambda: [("1", 1), ("9", 9)]


def test_a_cursor_that_is_no_cursor_begins_anew():
    store, sink, state = Store(), Collector("parca"), harness.temporary()
    path = os.path.join(state, "test.cursor")
    with open(path, "wb") as file:
        file.write(b"\0" * 100)

    def is_replaced():
        with open(path, "rb") as file:
            return file.read().startswith(b"pyprofd push cursor")

    pusher = Pusher(store, sections("parca", sink.url), state=state)
    pusher.until(is_replaced, "a cursor")
    assert "beginning with what comes now" in pusher.said(), pusher.said()
    store.put(1)
    pusher.until(lambda: sink.has([1]), "window 1").end()
    sink.close()


def test_two_pushers_of_one_state_are_told():
    store, sink = Store(), Collector("parca")
    pusher = Pusher(store, sections("parca", sink.url)).begun("test")
    second = Pusher(store, sections("parca", sink.url), state=pusher.state)
    assert second.process.wait(20) == 2
    assert "another process pushes from here" in second.said(), second.said()
    pusher.end()
    sink.close()


# ---------------------------------------------------------------- outages


def test_outage_with_two_kills_loses_nothing(protocol):
    """Answers that are lost, a collector that is down, and two kill -9, one of them between a
    request and its answer."""
    store, port = Store(age_s=900), collector.free_port()
    hang, hung = threading.Event(), threading.Event()
    mood = {"next": None}

    def answer(request):
        mode, mood["next"] = mood["next"], None
        if mode == "hang":
            hung.set()
            hang.wait(30)
            return CLOSED
        return CLOSED if mode == "lose" else None

    sink = Collector(protocol, answer, port=port)
    lines = sections(protocol, sink.url)
    pusher = Pusher(store, lines).begun("test")
    for number in range(1, 11):
        store.put(number)
    pusher.until(lambda: sink.has(range(1, 11)), "windows")
    mood["next"] = "lose"
    store.put(11)
    pusher.until(lambda: sink.taken[11] == 2, "window 11 again")
    assert pusher.metrics()["pyprofd_push_repeated_requests_total", 'sink="test"'] == 1
    sink.close()
    for number in range(12, 21):
        store.put(number)
    pusher.until(lambda: "trying again" in pusher.said().split("works again")[-1], "outage told")
    pusher.kill()
    second = Collector(protocol, answer, port=port)
    pusher = Pusher(store, lines, state=pusher.state)
    pusher.until(lambda: second.has(range(12, 21)), "the outage")
    mood["next"] = "hang"
    store.put(21)
    pusher.until(hung.is_set, "a request that hangs")
    pusher.kill()
    hang.set()
    pusher = Pusher(store, lines, state=pusher.state)
    for number in range(22, 31):
        store.put(number)
    pusher.until(lambda: second.has(range(21, 31)), "windows")
    metrics = pusher.end()
    second.close()
    assert metrics["pyprofd_push_repeated_requests_total", 'sink="test"'] == 1
    taken, lost = sink.taken + second.taken, sink.lost + second.lost
    assert set(taken) == set(range(1, 31))
    for number, times in taken.items():
        assert times == 1 + lost[number], (number, times, lost)
    assert lost == {11: 1, 21: 1}


test_outage_with_two_kills_loses_nothing.cases = each_protocol


def test_a_sink_that_never_answers_holds_up_no_other():
    store, sink = Store(), Collector("pyroscope")
    with socket.socket() as hole:
        hole.bind(("127.0.0.1", 0))
        hole.listen(16)
        hole_url = "http://127.0.0.1:%d" % hole.getsockname()[1]
        pusher = Pusher(store, {"dead": ["type=otlp", "url=" + hole_url],
                                "good": ["type=pyroscope", "url=" + sink.url]})
        pusher.begun("dead", "good")
        for number in range(1, 11):
            store.put(number)
        pusher.until(lambda: sink.has(range(1, 11)), "windows")
        begin = time.monotonic()
        metrics = pusher.end()  # and the end does not wait for the dead one's time limit
        assert time.monotonic() - begin < 15
    sink.close()
    assert metrics["pyprofd_push_windows_total", 'sink="dead"'] == 0


def test_catching_up_is_bounded():
    """A third of a megabyte a window, unpacked: no more than the bound a second, and all of it."""
    store, sink = Store(), Collector("parca")
    times = []
    sink.answer = lambda request: times.append((time.monotonic(), len(request.plain)))
    pusher = Pusher(store, sections("parca", sink.url)).begun("test")
    for number in range(1, 6):
        store.put(number, rows=8000)
    pusher.until(lambda: sink.has(range(1, 6)), "windows")
    pusher.end()
    sink.close()
    raw = sum(len(request.plain) - len(request.body) for request in sink.requests[:-1])
    assert raw > 1000000, raw
    assert times[-1][0] - times[0][0] > 0.95 * raw / 1000000, (times, raw)


# ---------------------------------------------------------------- answers

CODE = b'{"code":"%s","message":"%s"}'
# Label: protocol, answers in turn, what becomes of the window: "again", or the reason of the drop.
ANSWERS = {
    "pyroscope 400": ("pyroscope", [(400, {}, CODE % (b"invalid_argument", b"too old"))],
                      "poison"),
    "pyroscope 500 junk": ("pyroscope",
                           [(500, {}, CODE % (b"unknown", b"gzip reset: unexpected EOF"))] * 3,
                           "poison"),
    "pyroscope 500 unavailable":
        ("pyroscope", [(500, {}, CODE % (b"unknown", b"service is unavailable"))] * 4, "again"),
    "pyroscope 429": ("pyroscope", [(429, {}, CODE % (b"resource_exhausted", b"rate limit"))],
                      "again"),
    "pyroscope 429 size":
        ("pyroscope", [(429, {}, CODE % (b"resource_exhausted", b"message size 9 is larger"))],
         "poison"),
    "pyroscope 415": ("pyroscope", [(415, {}, b"")], "refused"),
    "pyroscope 405": ("pyroscope", [(405, {}, b"")], "refused"),
    "pyroscope 422 unavailable": ("pyroscope", [(422, {}, b"service is unavailable")], "again"),
    "parca 400": ("parca", [(400, {}, b'{"code":3,"message":"missing name"}')], "poison"),
    "parca 500": ("parca", [(500, {}, b'{"code":2,"message":"bad type"}')] * 3, "poison"),
    "parca 404": ("parca", [(404, {}, b"")], "refused"),
    "otlp 400 body": ("otlp", [(400, {}, b"http: request body too large")], "poison"),
    "otlp 404": ("otlp", [(404, {}, b"404 page not found")], "refused"),
    "otlp 413": ("otlp", [(413, {}, b"")], "poison"),
    "otlp 502": ("otlp", [(502, {}, b"")], "again"),
    "otlp 503 Retry-After": ("otlp", [(503, {"Retry-After": "2"}, b"")], "again"),
    "otlp 503 Retry-After a date": ("otlp", [(503, {"Retry-After": "in 3 s"}, b"")], "again"),
    "otlp 503 Retry-After of nothing": ("otlp", [(503, {"Retry-After": "soon"}, b"")], "again"),
    "otlp 504": ("otlp", [(504, {}, b"")], "again"),
    "otlp partial": ("otlp", [(200, {}, b"\n\2\10\3")], "rejected"),
}


def test_each_answer_has_its_consequence(name):
    protocol, answers, outcome = ANSWERS[name]
    left = list(answers)
    times = []

    def answer(_request):
        times.append(time.monotonic())
        if not left:
            return None
        status, head, body = left.pop(0)
        date = email.utils.formatdate(time.time() + 3, usegmt=True)
        return status, {name: value.replace("in 3 s", date) for name, value in head.items()}, body

    store, sink = Store(), Collector(protocol, answer)
    pusher = Pusher(store, sections(protocol, sink.url)).begun("test")
    store.put(1)
    store.put(2)
    pusher.until(lambda: sink.has([2]), "the next window")
    drops = {reason: pusher.dropped(reason) for reason in ("poison", "refused", "rejected")}
    pusher.end()
    sink.close()
    tries = [request.windows for request in sink.requests].count([1])
    if outcome == "again":
        assert sink.taken == {1: 1, 2: 1} and tries == len(answers) + 1, (sink.taken, tries)
        assert not any(drops.values()), drops
        assert "works again" in pusher.said()
        wish = {"in 3 s": 2, "soon": 1}.get(*[answers[0][1].get("Retry-After", 1)] * 2)
        assert times[1] - times[0] >= float(wish) - 0.05
    else:
        assert tries == len(answers)
        assert drops.pop(outcome) == (3 if outcome == "rejected" else 1)
        assert not any(drops.values()), drops
        assert "not sent (%s): " % outcome in pusher.said(), pusher.said()


test_each_answer_has_its_consequence.cases = lambda: [(name, name) for name in ANSWERS]
test_each_answer_has_its_consequence.few = lambda every: every[::4]


def test_a_redirect_is_not_followed_and_the_token_stays():
    store, other = Store(), Collector("pyroscope")
    sink = Collector("pyroscope", lambda _: (307, {"Location": other.url + "/x?canary"}, b""))
    token = os.path.join(harness.temporary(), "token")
    with open(token, "w", encoding="utf-8", opener=private) as file:
        file.write("secret-token\n")
    pusher = Pusher(store, sections("pyroscope", sink.url + "?key=canary",
                                    "token-file=" + token)).begun("test")
    store.put(1)
    pusher.until(lambda: pusher.dropped("refused") == 1, "the drop")
    pusher.end()
    sink.close()
    other.close()
    assert not other.requests
    assert sink.requests[0].headers["Authorization"] == "Bearer secret-token"
    assert "a redirect, which is not followed, to " + other.url in pusher.said(), pusher.said()
    assert sink.requests[0].path.endswith("Push?key=canary"), sink.requests[0].path
    assert "secret-token" not in pusher.said() and "canary" not in pusher.said(), pusher.said()


def test_a_page_of_somebody_else_is_no_success(protocol):
    store = Store()
    sink = Collector(protocol, lambda _: (200, {}, b"<html>Sign in</html>"))
    pusher = Pusher(store, sections(protocol, sink.url)).begun("test")
    store.put(1)
    pusher.until(lambda: "Sign in" in pusher.said(), "a line")
    metrics = pusher.end()
    sink.close()
    assert metrics["pyprofd_push_windows_total", 'sink="test"'] == 0
    assert metrics["pyprofd_push_up", 'sink="test"'] == 0


test_a_page_of_somebody_else_is_no_success.cases = each_protocol


# ---------------------------------------------------------------- who one is


def test_a_token_that_changes_is_taken_at_once():
    """Without a restart, and without waiting for the minutes of a refused one."""
    def answer(request):
        right = request.headers["Authorization"] == "Bearer right"
        return None if right else (401, {}, CODE % (b"unauthenticated", b"no"))

    store, sink = Store(), Collector("pyroscope", answer)
    token = os.path.join(harness.temporary(), "token")
    with open(token, "w", encoding="utf-8", opener=private) as file:
        file.write("wrong")
    pusher = Pusher(store, sections("pyroscope", sink.url, "token-file=" + token)).begun("test")
    store.put(1)
    pusher.until(lambda: "status 401" in pusher.said(), "a line")
    with open(token + ".new", "w", encoding="utf-8", opener=private) as file:
        file.write("right")
    os.rename(token + ".new", token)
    pusher.until(lambda: sink.has([1]), "the window")
    pusher.end()
    sink.close()
    assert len(sink.requests) == 2 and sink.taken == {1: 1}


def test_a_token_that_others_can_read_is_not_sent():
    store, sink = Store(), Collector("pyroscope")
    token = os.path.join(harness.temporary(), "token")
    with open(token, "w", encoding="utf-8", opener=private) as file:
        file.write("secret-token")
    os.chmod(token, 0o644)
    pusher = Pusher(store, sections("pyroscope", sink.url, "token-file=" + token)).begun("test")
    store.put(1)
    pusher.until(lambda: "chmod o=" in pusher.said(), "a line")
    os.chmod(token, 0o600)
    pusher.until(lambda: sink.has([1]), "the window")
    pusher.end()
    sink.close()


def test_a_user_has_the_token_as_password():
    store, sink = Store(), Collector("pyroscope")
    token = os.path.join(harness.temporary(), "token")
    with open(token, "w", encoding="utf-8", opener=private) as file:
        file.write("pass word:x")
    pushed(store, "pyroscope", sink, [1], "token-file=" + token, "user=1234").end()
    sink.close()
    wanted = "Basic " + base64.b64encode(b"1234:pass word:x").decode()
    assert sink.requests[0].headers["Authorization"] == wanted


def test_the_environment_stands_in_where_the_configuration_is_silent():
    store, sink = Store(), Collector("otlp")
    env = {"OTEL_EXPORTER_OTLP_ENDPOINT": sink.url,
           "OTEL_EXPORTER_OTLP_HEADERS": "X-One=a%20b,X-Two=c",
           "OTEL_EXPORTER_OTLP_COMPRESSION": "none", "OTEL_EXPORTER_OTLP_TIMEOUT": "5000"}
    pusher = Pusher(store, {"test": ["type=otlp"]}, env=env).begun("test")
    store.put(1)
    pusher.until(lambda: sink.has([1]), "the window")
    pusher.end()
    sink.close()
    headers = sink.requests[0].headers
    assert headers["X-One"] == "a b" and headers["X-Two"] == "c"
    assert "Content-Encoding" not in headers
    sink = Collector("parca")
    pushed(store, "parca", sink, [2], env={"PARCA_BEARER_TOKEN": "abc"}).end()
    sink.close()
    assert sink.requests[0].headers["Authorization"] == "Bearer abc"


# ---------------------------------------------------------------- the way there

OPENSSL_CA = """
[ca]
default_ca = ca
[ca]
database = index
serial = serial
new_certs_dir = .
default_md = sha256
policy = policy
copy_extensions = copy
unique_subject = no
[policy]
commonName = supplied
"""


def openssl(directory, *arguments):
    made = subprocess.run(["openssl", *arguments], cwd=directory, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    assert made.returncode == 0, (arguments, made.stdout.decode())


def authority():
    """A directory with ca.pem and certificates: server, client, expired, other (wrong name)."""
    directory = harness.temporary()
    with open(os.path.join(directory, "ca.cnf"), "w", encoding="utf-8") as file:
        file.write(OPENSSL_CA)
    for name, text in (("index", ""), ("serial", "01\n")):
        with open(os.path.join(directory, name), "w", encoding="utf-8") as file:
            file.write(text)
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    openssl(directory, "req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-subj",
            "/CN=test authority", "-days", "2")
    for name, alternative, end in (("server", "IP:127.0.0.1", "20990101000000Z"),
                                   ("client", "DNS:client", "20990101000000Z"),
                                   ("expired", "IP:127.0.0.1", "20200102000000Z"),
                                   ("other", "DNS:other.example", "20990101000000Z")):
        openssl(directory, "req", *key, "-keyout", name + ".key", "-out", name + ".csr", "-subj",
                "/CN=" + name, "-addext", "subjectAltName=" + alternative)
        openssl(directory, "ca", "-batch", "-config", "ca.cnf", "-cert", "ca.pem", "-keyfile",
                "ca.key", "-in", name + ".csr", "-out", name + ".pem", "-notext", "-startdate",
                "20200101000000Z", "-enddate", end)
    return directory


def test_tls_holds_or_nothing_is_sent():
    directory, store = authority(), Store()
    ca = "ca=" + os.path.join(directory, "ca.pem")
    for name, lines in (("expired", [ca]), ("other", [ca]), ("server", [])):  # the last: no ca=
        sink = Collector("pyroscope", tls=collector.server_tls(directory, name))
        pusher = Pusher(store, sections("pyroscope", sink.url, *lines)).begun("test")
        store.put(1)
        pusher.until(lambda: "trying again" in pusher.said(), "a line")
        metrics = pusher.end()
        sink.close()
        assert "certificate" in pusher.said() or "alternative" in pusher.said(), pusher.said()
        assert not sink.requests, name
        assert metrics["pyprofd_push_requests_total", 'sink="test",code="none"'] >= 1
        os.unlink(store.path(1))
    sink = Collector("pyroscope", tls=collector.server_tls(directory))
    pushed(store, "pyroscope", sink, [1], ca).end()
    sink.close()
    assert sink.taken == {1: 1}


def test_mutual_tls_wants_our_certificate():
    directory, store = authority(), Store()
    ca = os.path.join(directory, "ca.pem")
    sink = Collector("pyroscope", tls=collector.server_tls(directory, client_ca=ca))
    pusher = Pusher(store, sections("pyroscope", sink.url, "ca=" + ca)).begun("test")
    store.put(1)
    pusher.until(lambda: "trying again" in pusher.said(), "a line")
    pusher.end()
    assert not sink.taken
    own = ["%s=%s" % (key, os.path.join(directory, "client" + end))
           for key, end in (("cert", ".pem"), ("key", ".key"))]
    pusher = Pusher(store, sections("pyroscope", sink.url, "ca=" + ca, *own), state=pusher.state)
    pusher.until(lambda: sink.has([1]), "the window")
    pusher.end()
    sink.close()
    assert sink.taken == {1: 1}


def test_a_proxy_is_asked_for_the_collector():
    store, proxy = Store(), Collector("pyroscope")
    pusher = Pusher(store, sections("pyroscope", "http://collector.invalid:4040",
                                    "proxy=" + proxy.url)).begun("test")
    store.put(1)
    pusher.until(lambda: proxy.has([1]), "the window")
    pusher.end()
    proxy.close()
    assert proxy.requests[0].path == "http://collector.invalid:4040" + \
        collector.PATHS["pyroscope"]


def test_the_environments_proxy_gets_no_token():
    """It would read what goes without TLS, and stands on no way to this machine."""
    store, proxy, sink = Store(), Collector("pyroscope"), Collector("pyroscope")
    env = {"http_proxy": proxy.url, "HTTP_PROXY": proxy.url, "ALL_PROXY": proxy.url}
    pusher = Pusher(store, sections("pyroscope", sink.url), env=env).begun("test")
    store.put(1)
    pusher.until(lambda: sink.has([1]), "the window")
    pusher.end()
    secret = os.path.join(harness.temporary(), "token")
    with open(secret, "w", encoding="ascii", opener=collector.private) as file:
        file.write("t" * 40)
    for lines, is_asked in ([], True), (["token-file=" + secret], False):
        before = len(proxy.requests)
        pusher = Pusher(store, sections("pyroscope", "http://collector.invalid:4040", *lines),
                        env=env).begun("test")
        store.put(2 + is_asked)
        if is_asked:
            pusher.until(lambda: len(proxy.requests) > before, "the window")
        else:
            time.sleep(3)  # it is there within one where the proxy is asked
        pusher.end()
        assert (len(proxy.requests) > before) == is_asked, lines
    proxy.close()
    sink.close()


# ---------------------------------------------------------------- a real collector


def test_otel_collector_writes_what_was_pushed():
    """The OpenTelemetry collector itself, with an exporter into a file."""
    program = harness.need_tool("otelcol-prof")
    store, folder, port = Store(), harness.temporary(), collector.free_port()
    config, written = os.path.join(folder, "conf.yaml"), os.path.join(folder, "written")
    with open(config, "w", encoding="utf-8") as file:
        file.write("receivers: {otlp: {protocols: {http: {endpoint: 127.0.0.1:%d}}}}\n"
                   "exporters: {file: {path: %s}}\n"
                   "service:\n  telemetry: {metrics: {level: none}}\n"
                   "  pipelines: {profiles: {receivers: [otlp], exporters: [file]}}\n"
                   % (port, written))
    server = subprocess.Popen([program, "--config", config,
                               "--feature-gates=service.profilesSupport"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        pusher = Pusher(store, sections("otlp", "http://127.0.0.1:%d" % port,
                                        "labels=pod")).begun("test")
        for number in range(1, 6):
            store.put(number, [("app", "shop"), ("pod", "p1")], rows=3)
        pusher.until(lambda: pusher.metrics()["pyprofd_push_windows_total", 'sink="test"'] == 5,
                     "five windows")
        pusher.end()
    finally:
        server.terminate()
        server.wait(20)
    with open(written, encoding="utf-8") as file:
        found = [samples_of(json.loads(line)) for line in file]
    assert sorted(sum(found, [])) == sorted(
        ("shop", "node1", kind, "window-%d.%d" % (number, row), 7, "p1")
        for number in range(1, 6) for row in range(3) for kind in ("samples", "cpu")), found


test_otel_collector_writes_what_was_pushed.few = False
# It is built meanwhile, for minutes: last, so that it keeps no place from others.
test_otel_collector_writes_what_was_pushed.limit_s = 1800
test_otel_collector_writes_what_was_pushed.alone = "sleepers"


def samples_of(written):
    """[(service, host, type, function, value, pod)] of a request as the collector writes it:
    strings are indices of the dictionary."""
    d = written["dictionary"]
    text = d["stringTable"]

    def attribute(entry):
        key = entry.get("key") or text[entry.get("keyStrindex", 0)]
        value = entry["value"]
        return key, value.get("stringValue", text[value.get("stringValueStrindex", 0)])

    found = []
    for resource in written["resourceProfiles"]:
        about = dict(attribute(a) for a in resource["resource"]["attributes"])
        for p in resource["scopeProfiles"][0]["profiles"]:
            for sample in p["samples"]:
                stack = d["stackTable"][sample["stackIndex"]]
                line = d["locationTable"][stack["locationIndices"][0]]["lines"][0]
                labels = dict(attribute(d["attributeTable"][i])
                              for i in sample["attributeIndices"])
                found.append((about["service.name"], about["host.name"],
                              text[p["sampleType"]["typeStrindex"]],
                              text[d["functionTable"][line["functionIndex"]]["nameStrindex"]],
                              int(sample["values"][0]), labels["k8s.pod.name"]))
    return found


# ---------------------------------------------------------------- pyprofd-serve


def test_pyprofd_serve_pushes_and_tells():
    """Within its sandbox: a certificate's authority and a token that changes are in reach; what it
    has sent is in --state and in /metrics."""
    directory, store, sink = authority(), Store(), None
    sink = Collector("pyroscope", tls=collector.server_tls(directory))
    folder = harness.temporary()
    token, config = os.path.join(folder, "token"), os.path.join(folder, "conf")
    for path, text in ((token, "first"),
                       (config, "[http]\nlisten=unix:%s/sock\n[push a]\ntype=pyroscope\nurl=%s\n"
                                "ca=%s/ca.pem\ntoken-file=%s\n"
                                % (folder, sink.url, directory, token))):
        with open(path, "w", encoding="utf-8", opener=private) as file:
            file.write(text)
    state = os.path.join(folder, "state")
    server = subprocess.Popen(
        [os.path.join(os.path.dirname(harness.PYPROFD), "pyprofd-serve"), "--config", config,
         "--store", store.directory, "--state", state], stderr=subprocess.PIPE)
    try:
        harness.wait_for(lambda: os.path.exists(os.path.join(state, "a.cursor")), what="a cursor")
        store.put(1)
        harness.wait_for(lambda: sink.has([1]), what="window 1")
        with open(token + ".new", "w", encoding="utf-8", opener=private) as file:
            file.write("second")
        os.rename(token + ".new", token)
        store.put(2)
        harness.wait_for(lambda: sink.has([2]), what="window 2")
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(os.path.join(folder, "sock"))
            client.sendall(b"GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n")
            text = client.makefile("rb").read()
    finally:
        server.terminate()
        said = server.stderr.read().decode()
        server.stderr.close()
        rc = server.wait(20)
        sink.close()
    assert rc == 0, said
    assert [request.headers["Authorization"] for request in sink.requests] == \
        ["Bearer first", "Bearer second"]
    assert b'pyprofd_push_windows_total{sink="a"} ' in text, text[-3000:]
    assert b'pyprofd_push_dropped_profiles_total{sink="a",reason="poison"} 0' in text


def test_pyprofd_serve_without_http_only_pushes():
    store, sink, folder = Store(), Collector("otlp"), harness.temporary()
    server = subprocess.Popen(
        [os.path.join(os.path.dirname(harness.PYPROFD), "pyprofd-serve"), "--set",
         "push.a.type=otlp", "--set", "push.a.url=" + sink.url, "--store", store.directory,
         "--state", os.path.join(folder, "state")], stderr=subprocess.PIPE)
    try:
        harness.wait_for(lambda: os.path.exists(os.path.join(folder, "state", "a.cursor")),
                         what="a cursor")
        store.put(1)
        harness.wait_for(lambda: sink.has([1]), what="window 1")
    finally:
        server.terminate()
        said = server.stderr.read().decode()
        server.stderr.close()
        rc = server.wait(20)
        sink.close()
    assert rc == 0 and not said, said
