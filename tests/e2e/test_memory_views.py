# SPDX-License-Identifier: BSD-2-Clause
"""pyprof mem: made profiles of the kinds mem and alloc with known figures, and the resident memory
of real processes."""
import csv
import gzip
import io
import json
import os
import re
import signal
import time

import harness
import test_dump
import test_top
from test_dump import USER, ask
from test_pyprof import START_MS, TypesWriter, Writer, run
from test_reader import message, varint

MIB = 1 << 20
MEM = (("first_touch", "bytes"), ("cow", "bytes"), ("faults", "count"))
ALLOC = (("alloc_space", "bytes"), ("alloc_objects", "count"), ("inuse_space", "bytes"),
         ("inuse_objects", "count"))
RESIDENT = (("resident", "bytes"), ("peak", "bytes"), ("growth", "bytes"),
            ("growth_time", "nanoseconds"), ("processes", "count"))
WINDOW_MS = 10000
ROOT = "<module>:40 main:41 "

# Grows by 64 MiB at each SIGUSR1.
GROWER = """
import signal
kept = []
def grow(*_):
    kept.append(b"x" * (64 << 20))
    print("grown", flush=True)
signal.signal(signal.SIGUSR1, grow)
print("ready", flush=True)
while True:
    signal.pause()
"""


class Grower(test_top.Worker):
    source = GROWER


class MemoryWriter(TypesWriter):
    """A window of kind mem, alloc or resident."""

    def put_process(self, i, pid=41, comm="python3", anonymous=100, growth=MIB, window=None,
                    peak=200 * MIB):
        """What is resident at the end of the i-th window, which began with `growth` less."""
        before = (0,) * (len(self.types) - len(RESIDENT))
        for memory, size in (("anonymous", (anonymous + i) * MIB), ("file", 20 * MIB),
                             ("shared", 5 * MIB)):
            self.put(memory + ":1", (*before, size), pid, None, window, comm=comm, memory=memory)
        self.put("process:1", (*before, 0, peak, growth, WINDOW_MS * 10**6, 1), pid, None, window,
                 comm=comm)


def window_path(directory, window, kind):
    start_ms = START_MS + window * WINDOW_MS
    below = os.path.join(directory, time.strftime("%Y-%m-%d/%H", time.gmtime(start_ms / 1000)))
    os.makedirs(below, exist_ok=True)
    return os.path.join(below, "%d-%d-%s.pb.gz" % (start_ms, WINDOW_MS, kind))


def put_window(directory, window, kind, writer):
    path = window_path(directory, window, kind)
    with open(path, "wb") as file:
        file.write(writer.bytes(START_MS + window * WINDOW_MS))
    return path


def make_mem(windows=12):
    """A directory in which a line touches 3 MiB a window and another one copies 1 MiB."""
    directory = harness.temporary()
    for i in range(windows):
        writer = MemoryWriter(RESIDENT)
        writer.put_process(i)
        writer.put_process(i, 42, "other", 10)
        writer.put("anonymous:1", (4096,), None, None, comm="[others]", memory="anonymous")
        writer.put("processes:1", (0, 0, 0, 0, 3), None, None, comm="[others]")
        writer.put("processes:1", (0, 0, 0, 0, 2), None, None, comm="[unread]")
        put_window(directory, i, "resident", writer)
        writer = MemoryWriter(MEM)
        writer.put(ROOT + "grow:12 [memset]", (3 * MIB, 0, 768))
        writer.put(ROOT + "child:30", (0, MIB, 256), pid=42)
        put_window(directory, i, "mem", writer)
    return directory


def make_alloc(windows=40):
    """`leak` holds 2 MiB more after each window, by two threads; `cache` 50 MiB all the time, but
    it allocates in the first one only; `temp` 200 MiB after every second one of the first 30."""
    directory = harness.temporary()
    for i in range(windows):
        writer = MemoryWriter(ALLOC)
        for tid in (41, 43):
            writer.put(ROOT + "leak:12 [malloc]", (MIB, 2, (i + 1) * MIB, 2 * (i + 1)), tid=tid)
        writer.put(ROOT + "cache:20", (0 if i else 50 * MIB, 0 if i else 5, 50 * MIB, 5))
        temp = 200 * MIB if i % 2 and i < 30 else 0
        writer.put(ROOT + "temp:25", (80 * MIB, 80, temp, temp // (100 * MIB)))
        put_window(directory, i, "alloc", writer)
    return directory


def lines_of(*words):
    """The JSON's lines by function, and all of it."""
    data = json.loads(run("mem", "--json", *words))
    return {line["name"]: line for line in data["lines"]}, data


def test_lines_have_what_they_touched_and_copied():
    directory = make_mem()
    lines, data = lines_of(directory)
    assert data["kind"] == "mem" and data["seconds"] == 120, data
    assert [line["name"] for line in data["lines"]] == ["grow", "child"], data
    grow, child = lines["grow"], lines["child"]
    assert (grow["first_touch"], grow["cow"], grow["faults"]) == (36 * MIB, 0, 12 * 768), grow
    assert (child["first_touch"], child["cow"]) == (0, 12 * MIB), child
    assert (grow["line"], grow["file"]) == (12, "/app/w.py"), grow
    assert abs(grow["share"] - 0.75) < 1e-9, grow
    text = run("mem", directory)
    assert re.search(r"^ +75\.0 % +36\.0 MiB +0 B +9216  grow  \S*w\.py:12$", text, re.M), text
    rows = list(csv.DictReader(io.StringIO(run("mem", "--format", "csv", directory))))
    assert [row["first_touch"] for row in rows] == [str(36 * MIB), "0"], rows
    assert "... 1 more rows" in run("mem", "--top", 1, directory)


def test_processes_have_their_resident_memory():
    directory = make_mem()
    _, data = lines_of(directory)
    first = data["processes"][0]
    assert first["pid"] == 41 and first["anonymous"] == 111 * MIB, data
    assert first["resident"] == (111 + 20 + 5) * MIB and first["peak"] == 200 * MIB, data
    # 1 MiB in each of the 12 windows.
    assert abs(first["growth_per_minute"] - 6 * MIB) < 1, first
    text = run("mem", directory)
    assert re.search(r"^ +136 MiB +111 MiB +20\.0 MiB +5\.00 MiB +6\.00 MiB +200 MiB  41 python3$",
                     text, re.M), text
    assert "of 3 more processes; 2 were not read" in text, text
    chosen = run("mem", directory, "--pid", 42)
    assert "42 other" in chosen and "41 python3" not in chosen and "more proc" not in chosen, chosen
    assert "child" in chosen and "grow" not in chosen, chosen
    # Of the last three windows only.
    since = "@%d" % (START_MS // 1000 + 90)
    _, data = lines_of(directory, "--since", since, "--comm", "python3")
    assert data["seconds"] == 30 and len(data["processes"]) == 1, data
    # As a kind of its own, it can be read like all others.
    said = run("report", "--kind", "resident", "--group-by", "label:memory", directory)
    # 111 and 21 MiB, and those of the others.
    assert "resident of %s (12 windows): 182 MiB" % directory in said, said
    assert "memory anonymous: 132 MiB" in said and "memory shared: 10.0 MiB" in said, said
    said = run("report", "--kind", "resident", "--sample-type", "peak", "--pid", 41, directory)
    assert ": 200 MiB" in said, said


def test_held_is_that_of_the_last_window():
    directory = make_alloc()
    lines, data = lines_of(directory)
    assert data["kind"] == "alloc" and data["lines"][0]["name"] == "leak", data
    leak, cache, temp = lines["leak"], lines["cache"], lines["temp"]
    assert (leak["alloc_space"], leak["alloc_objects"]) == (80 * MIB, 160), leak
    assert (leak["inuse_space"], leak["inuse_objects"]) == (80 * MIB, 160), leak
    assert (cache["alloc_space"], cache["inuse_space"]) == (50 * MIB, 50 * MIB), cache
    assert (temp["alloc_space"], temp["inuse_space"]) == (3200 * MIB, 0), temp
    # The peak is at the end of the 30th window.
    assert (leak["at_peak"], cache["at_peak"], temp["at_peak"]) == (
        60 * MIB, 50 * MIB, 200 * MIB), lines
    said = run("report", "--python", "--kind", "alloc", "--sample-type", "inuse_space", directory)
    assert "inuse_space of %s (40 windows): 130 MiB" % directory in said, said
    assert re.search(r"^ +61\.5 % .* 80\.0 MiB +80\.0 MiB leak ", said, re.M), said
    folded = run("export", "--format", "folded", "--kind", "alloc", "--sample-type", "inuse_space",
                 directory)
    held = sum(int(line.rsplit(" ", 1)[1]) for line in folded.splitlines())
    assert held == 130 * MIB, folded


def test_a_planted_leak_comes_first():
    directory = make_alloc()
    lines, data = lines_of("--leaks", directory)
    assert [line["name"] for line in data["lines"]] == ["leak", "cache"], data
    leak, cache = lines["leak"], lines["cache"]
    assert leak["leaks"] and not cache["leaks"], data
    assert abs(leak["growth_per_minute"] - 12 * MIB) < 0.2 * MIB, leak
    assert leak["grew"] == leak["intervals"] > 5 and cache["grew"] == 0, data
    assert data["held_long_seconds"] == 300, data
    # Five minutes before the end it was 20 MiB; the oldest window may be 37.5 s older.
    assert 12 * MIB <= leak["held_long"] <= 20 * MIB and cache["held_long"] == 50 * MIB, data
    lines, data = lines_of("--leaks=1m", directory)
    assert 66 * MIB <= lines["leak"]["held_long"] <= 68 * MIB, data
    text = run("mem", "--leaks", directory)
    assert re.search(r"^ +80\.0 MiB +\S+ MiB +12\.0 MiB +\d+/\d+ \*  leak  \S*w\.py:12$", text,
                     re.M), text
    one = run("mem", "--leaks", window_path(directory, 39, "alloc"))
    assert "There is one window only" in one, one


def flame_data(directory, kind, value):
    page = run("flame", "--kind", kind, "--sample-type", value, directory)
    return json.loads(page.split('type="application/json">\n')[1].split("\n</script>")[0])


def test_merged_file_has_the_levels_of_its_last_window():
    marks = ["window=%d start_ms=%d duration_ms=10000 start_ns=%d duration_ns=%d period=1"
             % (i * WINDOW_MS, START_MS + i * WINDOW_MS, (START_MS + i * WINDOW_MS) * 10**6,
                WINDOW_MS * 10**6) for i in range(6)]
    # As in one file with a name: the values of resident are behind those of its kind.
    writer = MemoryWriter(ALLOC + RESIDENT, marks)
    for i in range(6):
        writer.put(ROOT + "leak:12", (MIB, 1, (i + 1) * MIB, i + 1), window=i * WINDOW_MS)
        writer.put(ROOT + "gone:13", (MIB, 1, 9 * MIB * (i == 2), i == 2), window=i * WINDOW_MS)
        writer.put_process(i, window=i * WINDOW_MS)
    path = os.path.join(harness.temporary(), "merged.pb.gz")
    with open(path, "wb") as file:
        file.write(writer.bytes(START_MS, 6 * WINDOW_MS))
    lines, data = lines_of("--leaks", path)
    assert list(lines) == ["leak"] and lines["leak"]["inuse_space"] == 6 * MIB, data
    assert lines["leak"]["alloc_space"] == 6 * MIB and lines["leak"]["grew"] == 5, data
    assert lines["leak"]["at_peak"] == 3 * MIB and data["held_long_seconds"] == 50, data
    process = data["processes"][0]
    assert process["anonymous"] == 105 * MIB and process["growth_per_minute"] == 6 * MIB, data


def test_views_of_other_verbs():
    directory = make_alloc()
    data = flame_data(directory, "alloc", "inuse_space")
    assert "leak" in data["strings"] and data["unit"] == "bytes", data.keys()
    # Its time map would add up what is held at the ends of several windows.
    assert "times" not in data, data.keys()
    assert "times" in flame_data(make_mem(), "mem", "first_touch")
    said = run("lines", "w.py:leak", "--kind", "alloc", "--sample-type", "inuse_space", directory)
    assert re.search(r"^ +12 +61\.5 % .*80\.0 MiB", said, re.M), said
    said = run("lines", "w.py", "--kind", "alloc", "--sample-type", "alloc_objects", directory)
    assert re.search(r"^ +25 +\S+ % .* 3200 ", said, re.M), said


def test_what_has_no_memory_is_told_in_one_line():
    directory = harness.temporary()
    writer = Writer("/app/w.py")
    writer.add("main:3", 5)
    path = window_path(directory, 0, "cpu")
    with open(path, "wb") as file:
        file.write(writer.bytes())
    for words in ([path], [directory], ["--leaks", window_path(make_mem(1), 0, "mem")]):
        said = run("mem", *words, status=2)
        assert said.count("\n") == 1 and "pyprofd --events " in said, said
    assert "not cpu" in run("mem", "--kind", "cpu", directory, status=2)
    assert "--leaks=x: not a time" in run("mem", "--leaks=x", directory, status=2)
    # Where both are, it is what was touched, and --leaks asks for the other.
    both = make_mem(2)
    writer = MemoryWriter(ALLOC)
    writer.put(ROOT + "leak:12", (1, 1, 7, 1))
    put_window(both, 0, "alloc", writer)
    assert lines_of(both)[1]["kind"] == "mem"
    assert lines_of("--leaks", both)[1]["kind"] == lines_of("--kind", "alloc", both)[1]["kind"]


def test_hostile_names_stay_text():
    directory = harness.temporary()
    writer = MemoryWriter(MEM + RESIDENT)
    writer.put_process(1, comm="\x1b[2Jx")
    writer.put("=cmd|evil\x1b[2J:3", (5, 0, 1))
    path = put_window(directory, 0, "mem", writer)
    for words in ([], ["--format", "csv"], ["--json"], ["--format", "markdown"]):
        assert "\x1b" not in run("mem", *words, path), words
    assert "'=cmd" in run("mem", "--format", "csv", path)


def kept(store, name, *paths):
    directory = os.path.join(store, "kept", name)
    os.makedirs(directory)
    for path in paths:
        os.link(path, os.path.join(directory, os.path.basename(path)))


def test_kept_profiles_are_listed_and_shown():
    store = make_mem(2)
    assert run("mem", "--oom", store).startswith("Nothing was kept"), store
    assert json.loads(run("mem", "--oom", "--json", store)) == []
    name = "2026-11-27T224637Z-oom-41-1000-python3"
    kept(store, name, window_path(store, 1, "mem"), window_path(store, 1, "resident"))
    kept(store, "2026-11-28T000000Z-signal")
    listed = json.loads(run("mem", "--oom", "--json", store))
    assert [one["reason"] for one in listed] == ["signal", "oom"], listed
    assert listed[1]["peak"] == 200 * MIB and listed[1]["pid"] == "41", listed
    text = run("mem", "--oom", store)
    assert re.search(r"^2026-11-27 22:46:37Z +oom +200 MiB  41 python3\n +%s$" % name, text,
                     re.M), text
    shown = run("mem", "--oom", name, store)
    assert "41 python3" in shown and re.search("3.00 MiB .* grow ", shown), shown
    said = run("mem", "--oom", "2026-11-28T000000Z-signal", store, status=2)
    assert "no memory was recorded" in said and said.count("\n") == 1, said
    assert "takes the name" in run("mem", "--oom", store, store, status=2)


# ---- real processes ----


def status_of(pid):
    text = open("/proc/%d/status" % pid).read()
    return {key: int(kib) * 1024 for key, kib in re.findall(r"^(\w+):\s+(\d+) kB$", text, re.M)}


def figures_of(path):
    """By pid: the values of its rows, by what memory they are about."""
    profile = harness.load(path)
    at = [name for name, _ in profile.sample_types].index("resident")
    found = {}
    for sample in profile.samples:
        if any(sample.values[at:]):
            values = found.setdefault(int(sample.labels["pid"]), {})
            values[sample.labels.get("memory", "")] = sample.values[at:at + len(RESIDENT)]
    return found


def test_resident_memory_is_that_of_proc():
    out = os.path.join(harness.temporary(), "mem.pb.gz")
    with Grower() as grower:
        process = harness.start(out, grower.pid, options=["--events", "mem"])
        harness.sampling(process)
        before = status_of(grower.pid)
        time.sleep(1.2)
        os.kill(grower.pid, signal.SIGUSR1)
        assert grower.process.stdout.readline() == b"grown\n"
        after = status_of(grower.pid)
        harness.finish(process, signal_number=2)
        found = figures_of(out)
        # No other process is read.
        assert list(found) == [grower.pid], found
        found = found[grower.pid]
        _, peak, growth, growth_ns, processes = found[""]
        assert abs(found["anonymous"][0] - after["RssAnon"]) < MIB, (found, after)
        assert abs(found["file"][0] - after["RssFile"]) < MIB, (found, after)
        assert "shared" not in found or found["shared"][0] == after["RssShmem"], (found, after)
        assert (peak, processes) == (after["VmHWM"], 1), (found, after)
        assert growth > 63 * MIB and abs(before["VmRSS"] + growth - after["VmRSS"]) < MIB, (
            found, before, after)
        assert 1e9 < growth_ns < 60e9, found
        process = json.loads(run("mem", "--json", out))["processes"]
        assert len(process) == 1 and process[0]["pid"] == grower.pid, process
        assert process[0]["growth_per_minute"] > 60 * MIB, process


def test_live_shows_a_user_his_own_processes():
    harness.need(os.geteuid() == 0, "only root can become somebody else")
    folder = harness.temporary()
    with Grower(user=USER) as own, Grower() as other:
        process, path = test_dump.agent(folder, options=(
            "--events", "mem", "--pid", "%d,%d" % (own.pid, other.pid)))
        told = ask("--live", "--for", 2, "--socket", path, verb="mem")
        assert " %d " % own.pid in told and " %d " % other.pid in told, told
        told = ask("--live", "--for", 2, "--socket", path, verb="mem", user=USER)
        assert " %d " % own.pid in told and " %d " % other.pid not in told, told
        told = ask("--live", "--for", 2, "--socket", path, "--kind", "resident", "--group-by",
                   "process", verb="report", user=USER)
        assert "%d" % own.pid in told and "%d" % other.pid not in told, told
        assert "[others]" not in told, told
    harness.finish(process, signal_number=2)


def test_what_a_signal_keeps_is_shown():
    """Windows of the last minute, which pyprofd links when it is told to keep them."""
    store = os.path.join(harness.temporary(), "store")
    begin_ms = int(time.time() * 1000) - 7 * WINDOW_MS
    for i in range(6):
        start_ms = begin_ms + i * WINDOW_MS
        mem, alloc, resident = MemoryWriter(MEM), MemoryWriter(ALLOC), MemoryWriter(RESIDENT)
        resident.put_process(i, peak=300 * MIB)
        mem.put(ROOT + "grow:12", (3 * MIB, 0, 768))
        alloc.put(ROOT + "leak:12", (MIB, 1, (i + 1) * MIB, i + 1))
        for kind, writer in (("mem", mem), ("alloc", alloc), ("resident", resident)):
            below = os.path.join(store,
                                 time.strftime("%Y-%m-%d/%H", time.gmtime(start_ms / 1000)))
            os.makedirs(below, exist_ok=True)
            path = os.path.join(below, "%d-%d-%s.pb.gz" % (start_ms, WINDOW_MS, kind))
            with open(path, "wb") as file:
                file.write(writer.bytes(start_ms))
    with Grower() as grower:
        process = harness.start(store + "/", grower.pid, options=["--interval", "1s"])
        harness.sampling(process)
        process.send_signal(signal.SIGUSR1)
        harness.wait_for(lambda: "are kept in" in harness.said(process), 30, "what is kept")
        harness.finish(process, signal_number=2)
    listed = json.loads(run("mem", "--oom", "--json", store))
    assert len(listed) == 1 and listed[0]["reason"] == "signal", listed
    assert listed[0]["peak"] == 300 * MIB, listed
    lines, data = lines_of("--oom", listed[0]["name"], store)
    assert lines["grow"]["first_touch"] == 18 * MIB, data
    assert data["processes"][0]["growth_per_minute"] == 6 * MIB, data
    lines, data = lines_of("--leaks", "--oom", listed[0]["name"], store)
    assert lines["leak"]["inuse_space"] == 6 * MIB and lines["leak"]["leaks"], data
