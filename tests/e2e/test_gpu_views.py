# SPDX-License-Identifier: BSD-2-Clause
"""pyprof gpu: made profiles of kind cuda with known figures, and what a stand-in of libcuda has
counted itself (tests/fakes)."""
import csv
import io
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import time

import harness
import test_dump
import test_probes
import test_top
from test_dump import USER, ask
from test_memory_views import MemoryWriter, WINDOW_MS, put_window, window_path
from test_pyprof import PYPROF, START_MS, Writer, run
from test_reader import message, varint

CUDA = (("calls", "count"), ("cuda_host", "nanoseconds"), ("cuda_wait", "nanoseconds"),
        ("cuda_bytes", "bytes"), ("inuse_space", "bytes"), ("inuse_objects", "count"))
# Values of kind cuda_calls, which one file has behind those of kind cuda.
EXACT = (("exact_calls", "count"), ("exact_host", "nanoseconds"), ("exact_wait", "nanoseconds"),
         ("exact_bytes", "bytes"), ("captured", "count"), ("nodes", "count"), ("spread", "count"),
         ("timed_calls", "count"))
ROOT = "<module>:40 main:41 "
MS = 1000000  # ns
VALUES = ("calls", "host_ns", "wait_ns", "bytes")  # that are divided
VIEWS = ("syncs", "copies", "kernels", "memory")


class GpuWriter(MemoryWriter):
    """A window of the kinds cuda and cuda_calls.  totals: of total_of()."""

    def __init__(self, totals=(), comments=()):
        super().__init__(CUDA + EXACT, comments)
        for total in totals:
            self.put_total(total)

    def put_total(self, total, window=None):
        """Rows as pyprofd writes them: the sums, and how many calls took less than a time."""
        values, hist, pid, labels = total
        rows = [(None, values)] + [(512 << bucket, (0,) * 7 + (count,)) for bucket, count in hist]
        for below, row in rows:
            self.put("%s:1" % labels["api"], (0,) * len(CUDA) + row, pid, None, window, below,
                     **labels)

    def put(self, stack, values, pid=41, tid=41, window=None, below=None, **labels):
        ids = b"".join(varint(self.location(part)) for part in reversed(stack.split()))
        numbers = [message((1, self.at(key)), (3, number))
                   for key, number in (("pid", pid), ("tid", tid), ("window", window),
                                       ("below", below))
                   if number is not None]
        texts = [message((1, self.at(key)), (2, self.at(text)))
                 for key, text in dict({"comm": "python3", "device": "0"}, **labels).items()]
        values = tuple(values) + (0,) * (len(self.types) - len(values))
        self.samples.append(message((1, ids), (2, b"".join(varint(v) for v in values)),
                                    *[(3, label) for label in numbers + texts]))


def total_of(api, calls, pid=41, size=0, host_ns=0, spread=0, hist=(), **labels):
    return ((calls, host_ns, host_ns, size, 0, 0, spread), hist, pid, dict(labels, api=api))


def put_gpu(directory, window, writer):
    """A store has a file of each kind; either takes from it what is its own."""
    put_window(directory, window, "cuda_calls", writer)
    return put_window(directory, window, "cuda", writer)


def put_samples(writer, number, window=None):
    """What one process does in a window: a kernel is launched 300 times by one line and 100 by
    another, and each window waits longer than the one before."""
    writer.put(ROOT + "forward:12 [cuLaunchKernel]", (300, 0, 0, 0), api="cuLaunchKernel",
               kernel="add", window=window)
    writer.put(ROOT + "backward:14 [cuLaunchKernel]", (100, 0, 0, 0), api="cuLaunchKernel",
               kernel="add", window=window)
    writer.put(ROOT + "item:20 [cuMemcpyDtoH_v2]", (10, MS, MS, 40), api="cuMemcpyDtoH",
               direction="DtoH", window=window)
    writer.put(ROOT + "finish:25 [cuStreamSynchronize]", (4, number * MS, number * MS, 0),
               api="cuStreamSynchronize", window=window)


def totals_of(number):
    # 4 waits of number / 4 ms: those below 1.05 ms are in bucket 11, those below 2.1 in 12.
    return [total_of("cuLaunchKernel", 400, spread=40000, kernel="add"),
            total_of("cuMemcpyDtoH", 10, direction="DtoH", size=40, host_ns=MS, hist=((8, 10),)),
            total_of("cuStreamSynchronize", 4, host_ns=number * MS,
                     hist=((11 if number < 4 else 12, 4),))]


def make_store(windows=6):
    directory = harness.temporary()
    for i in range(windows):
        writer = GpuWriter(totals_of(i + 1))
        put_samples(writer, i + 1)
        put_gpu(directory, i, writer)
    return directory


def calls_of(*words):
    """The JSON's calls by function and kernel, and all of it."""
    data = json.loads(run("gpu", "--json", *words))
    found = {}
    for call in data["calls"]:
        call["lines"] = [line for line in data["lines"] if line["call"] == call["id"]]
        found.setdefault((call["api"], call["kernel"]), []).append(call)
    return found, data


def one(found, api, kernel=""):
    assert len(found[api, kernel]) == 1, found
    return found[api, kernel][0]


def view_of(view, *words):
    return json.loads(run("gpu", "--view", view, "--json", *words))


# ---------------------------------------------------------------- made profiles

def test_windows_add_up():
    store = make_store()
    found, data = calls_of(store)
    assert data["kind"] == "cuda" and data["clock"] == "host" and data["seconds"] == 60, data
    launch = one(found, "cuLaunchKernel", "add")
    assert (launch["calls"], launch["host_ns"], launch["pid"], launch["device"]) == (
        2400, 0, 41, "0"), launch
    assert launch["p50_ns"] is None and launch["mean_ns"] is None, launch
    assert [(line["name"], line["line"], line["calls"]) for line in launch["lines"]] == [
        ("forward", 12, 1800), ("backward", 14, 600)], launch
    # 24 of the calls' walks stood for a hundred each: the error is that of 24 of 240,000.
    assert 190 < launch["lines"][0]["calls_error"] < 220, launch
    sync = one(found, "cuStreamSynchronize")
    assert (sync["calls"], sync["wait_ns"]) == (24, 21 * MS), sync
    assert 2**20 / 2 <= sync["p50_ns"] <= 2**20 and 2**20 < sync["p99_ns"] <= 2**21, sync
    assert abs(sync["mean_ns"] - 21 * MS / 24) < 1, sync
    text = run("gpu", store)
    assert re.search(r"^ +24 +21\.0 ms +875 us +1\.05 ms +\S+ ms +-    cuStreamSynchronize$", text,
                     re.M), text
    assert re.search(r"^ +1800 +- +- +75\.0 % ±\S+  forward  \S*w\.py:12$", text, re.M), text
    assert "python3 41, device 0" in text and "All times are the host's" in text, text


def test_a_range_and_a_process_are_chosen():
    store = make_store()
    writer = GpuWriter([total_of("cuMemAlloc", 7, pid=42, comm="other", size=70)])
    writer.put("main:3", (7, 0, 0, 70), pid=42, comm="other", api="cuMemAlloc")
    put_gpu(store, 6, writer)
    found, data = calls_of(store, "--since", "@%d" % (START_MS // 1000 + 35))
    assert one(found, "cuStreamSynchronize")["wait_ns"] == 15 * MS and data["seconds"] == 40, data
    assert one(found, "cuStreamSynchronize")["p50_ns"] > 2**20, data
    found, _ = calls_of(store, "--pid", 42)
    assert list(found) == [("cuMemAlloc", "")], found
    # A part of the stacks of a function has no times of its own.
    found, _ = calls_of(store, "--focus", "forward")
    assert list(found) == [("cuLaunchKernel", "add")], found
    found, _ = calls_of(store, "--label", "api=cuStreamSynchronize")
    assert one(found, "cuStreamSynchronize")["p50_ns"], found


def test_windows_of_a_merged_file_have_their_own_times():
    marks = ["window=%d start_ms=%d duration_ms=10000 start_ns=%d duration_ns=%d period=1"
             % (i * WINDOW_MS, START_MS + i * WINDOW_MS, (START_MS + i * WINDOW_MS) * 10**6,
                WINDOW_MS * 10**6) for i in range(6)]
    writer = GpuWriter(comments=marks)
    for i in range(6):
        put_samples(writer, i + 1, window=i * WINDOW_MS)
        for total in totals_of(i + 1):
            writer.put_total(total, i * WINDOW_MS)
    store = harness.temporary()
    for kind in ("cuda", "cuda_calls"):
        path = window_path(store, 0, kind).replace("-10000-", "-60000-")
        with open(path.replace(".pb.gz", ".merged.pb.gz"), "wb") as file:
            file.write(writer.bytes(START_MS, 6 * WINDOW_MS))
    found, _ = calls_of(store)
    whole = one(found, "cuStreamSynchronize")
    assert whole["wait_ns"] == 21 * MS and whole["p50_ns"] == 2**20, whole
    found, data = calls_of(store, "--since", "@%d" % (START_MS // 1000 + 35))
    part = one(found, "cuStreamSynchronize")
    assert part["wait_ns"] == 15 * MS and data["seconds"] == 30, data
    assert part["p50_ns"] > 2**20, (part, whole)
    out = os.path.join(harness.temporary(), "part.pb.gz")
    run("export", "--kind", "cuda", "--since", "@%d" % (START_MS // 1000 + 35),
        "-o", out, store)
    found, _ = calls_of(out)
    assert one(found, "cuStreamSynchronize")["p50_ns"] == part["p50_ns"], (found, part)


def test_export_has_the_totals_of_all_windows():
    store = make_store()
    out = os.path.join(harness.temporary(), "all.pb.gz")
    run("export", "--kind", "cuda", "-o", out, store)
    rows = [s for s in harness.load(out).samples if any(s.values[len(CUDA):])]
    assert [(s.values[len(CUDA)], s.values[-1], s.labels.get("below")) for s in rows if
            s.labels["api"] == "cuStreamSynchronize"] == [
                (24, 0, None), (0, 12, 512 << 11), (0, 12, 512 << 12)], rows
    (found, data), (again, _) = calls_of(store), calls_of(out)
    assert found.keys() == again.keys(), (found, again)
    for key, calls in found.items():
        assert calls[0] == again[key][0], (calls, again[key])
    said = subprocess.run([PYPROF, "gpu", "--json", "-"], input=open(out, "rb").read(),
                          stdout=subprocess.PIPE, check=True).stdout
    assert json.loads(said)["calls"] == json.loads(run("gpu", "--json", out))["calls"], data


def test_views_are_by_line():
    store = make_store()
    syncs = view_of("syncs", store)["rows"]
    assert [(row["name"], row["api"], row["wait_ns"]) for row in syncs] == [
        ("finish", "cuStreamSynchronize", 21 * MS), ("item", "cuMemcpyDtoH", 6 * MS)], syncs
    assert abs(syncs[0]["wall_share"] - 0.021 / 60) < 1e-9, syncs
    assert syncs[0]["stack"] == "cuStreamSynchronize;finish;main;<module>", syncs
    copies = view_of("copies", store)["rows"]
    assert [(row["line"], row["direction"], row["bytes"], row["calls"]) for row in copies] == [
        (20, "DtoH", 240, 60)], copies
    kernels = view_of("kernels", store)["rows"]
    assert [(row["kernel"], row["calls"], row["name"], row["line_calls"]) for row in kernels] == [
        ("add", 2400, "forward", 1800)], kernels
    assert kernels[0]["line_calls_error"] > 0, kernels
    assert view_of("memory", store)["rows"] == []
    text = run("gpu", "--view", "syncs", store)
    assert re.search(r"^ +21\.0 ms +±0\.0 % +0\.0 % +24 +875 us  cuStreamSynchronize  +finish  "
                     r"\S*w\.py:25\n +< main \S*w\.py:41 < <module> \S*w\.py:40$", text, re.M), text
    assert "... 1 more rows; --top 0" in run("gpu", "--view", "syncs", "--top", 1, store)
    text = run("gpu", "--view", "copies", store)
    assert re.search(r"^ +240 B +±0\.0 % +60 +4 B +4 B +6\.00 ms  DtoH +item  \S*w\.py:20$", text,
                     re.M), text
    text = run("gpu", "--view", "kernels", store)
    assert re.search(r"^ +2400 +100\.0 % +40  add\n +75\.0 % ±\S+  forward  \S*w\.py:12$", text,
                     re.M), text
    assert run("gpu", "--view", "memory", store).endswith("Nothing was allocated or freed.\n")


def test_live_memory_is_that_of_the_last_window():
    """Windows are not added up; what has only been live is no call, and a window without the types
    is told."""
    store = harness.temporary()
    for number in range(3):
        writer = GpuWriter()
        live = number + 1
        writer.put(ROOT + "grows:12 [cuMemAlloc_v2]", (2, 0, 0, 800, 1000 * live, live),
                   api="cuMemAlloc")
        if number < 2:
            writer.put(ROOT + "shrinks:14 [cuMemAlloc_v2]", (0, 0, 0, 0, 7000, 7),
                       api="cuMemAlloc")
        else:
            writer.put(ROOT + "rests:16 [cuMemCreate]", (0, 0, 0, 0, 500, 5), api="cuMemCreate")
        put_window(store, number, "cuda", writer)
    rows = view_of("memory", store)["rows"]
    assert [(row["name"], row["inuse_space"], row["inuse_objects"], row["bytes"], row["calls"])
            for row in rows] == [("grows", 3000, 3, 2400, 6), ("rests", 500, 5, 0, 0)], rows
    text = run("gpu", "--view", "memory", store)
    assert re.search(r"^ +2\.93 KiB +3 +2\.34 KiB +6 +±\S+( %)? +-  cuMemAlloc +grows  "
                     r"\S*w\.py:12$", text, re.M), text
    assert "3.42 KiB live in 8 blocks at the end of the last window; 2.34 KiB asked for" in text
    text = run("gpu", store)
    assert "rests" not in text and "shrinks" not in text and "grows" in text, text
    earlier = run("gpu", "--view", "memory", "--json", "--until", "@%d" % (
        (START_MS + 2 * WINDOW_MS) // 1000), store)
    assert sum(row["inuse_space"] for row in json.loads(earlier)["rows"]) == 9000, earlier
    base = sqlite3.connect(":memory:")
    base.executescript(run("gpu", "--format", "sql", store))
    assert base.execute("SELECT sum(inuse_space), sum(inuse_objects) FROM lines").fetchone() == (
        3500, 8)
    said = run("gpu", "--format", "csv", "--view", "memory", store)
    rows = list(csv.DictReader(io.StringIO(said)))
    assert [row["inuse_space"] for row in rows] == ["3000", "500"], rows


def test_other_programs_read_it():
    store = make_store()
    rows = list(csv.DictReader(io.StringIO(run("gpu", "--format", "csv", store))))
    assert sum(int(row["calls"]) for row in rows) == 2400 + 60 + 24, rows
    sync = [row for row in rows if row["api"] == "cuStreamSynchronize"]
    assert len(sync) == 1 and float(sync[0]["call_p50_ns"]) == 2**20, sync
    assert [row["call_p50_ns"] for row in rows if row["class"] == "launch"] == ["", ""], rows
    for view in VIEWS:
        said = run("gpu", "--format", "csv", "--view", view, store)
        rows = list(csv.DictReader(io.StringIO(said)))
        assert [row["line"] for row in rows] == [
            str(row["line"]) for row in view_of(view, store)["rows"]], (view, rows)
    base = sqlite3.connect(":memory:")
    base.executescript(run("gpu", "--format", "sql", store))
    assert base.execute("SELECT sum(calls), sum(wait_ns) FROM lines").fetchone() == (
        2484, 27 * MS)
    assert base.execute("SELECT sum(calls), sum(wait_ns) FROM calls").fetchone() == (
        2484, 27 * MS)
    assert base.execute(
        "SELECT name, lines.calls FROM lines JOIN calls ON call = id WHERE kernel = 'add' "
        "ORDER BY lines.calls").fetchall() == [("backward", 600), ("forward", 1800)]
    assert base.execute("SELECT sum(times.calls) FROM times JOIN calls ON call = id WHERE "
                        "api = 'cuStreamSynchronize' AND from_ns = ?",
                        (2**20,)).fetchone() == (12,)


def test_sqlite3_itself_loads_the_script():
    program = shutil.which("sqlite3")
    harness.need(program, "no sqlite3")
    path = os.path.join(harness.temporary(), "gpu.db")
    script = run("gpu", "--format", "sql", make_store())
    subprocess.run([program, path], input=script.encode(), check=True)
    assert sqlite3.connect(path).execute("SELECT count(*) FROM calls").fetchone() == (3,)


def test_hostile_names_stay_text():
    directory = harness.temporary()
    kernel = "=x'); DROP TABLE calls; --\x1b[2J kernel=y pid=1"
    whose = {"comm": "a\x1b[2Jb", "kernel": kernel}
    writer = GpuWriter([total_of("cuLaunchKernel", 5, **whose)])
    writer.put("'evil\x1b[2J:3", (5, 0, 0, 0), api="cuLaunchKernel", **whose)
    path = put_window(directory, 0, "cuda", writer)
    for words in ([], ["--format", "csv"], ["--json"], ["--format", "sql"],
                  ["--format", "markdown"], ["--view", "kernels"]):
        assert "\x1b" not in run("gpu", *words, path), words
    base = sqlite3.connect(":memory:")
    base.executescript(run("gpu", "--format", "sql", path))
    assert base.execute("SELECT sum(calls) FROM calls").fetchone() == (5,)
    assert "DROP TABLE" in base.execute("SELECT kernel FROM calls").fetchone()[0]


def test_stacks_that_were_left_out_have_their_functions():
    """A user had more stacks than his share of the profile: totals say what they did."""
    directory = harness.temporary()
    writer = GpuWriter([total_of("cuLaunchKernel", 100, kernel="add"),
                        total_of("cuMemcpyDtoH", 3, direction="DtoH", size=30, host_ns=MS)])
    writer.put("main:3 [cuLaunchKernel]", (60, 0, 0, 0), api="cuLaunchKernel", kernel="add")
    ids = varint(writer.location("[left]"))
    for values in ((43, 0, 0, 0), (0, MS, MS, 30)):
        values += (0,) * (len(writer.types) - len(values))
        writer.samples.append(message(
            (1, ids), (2, b"".join(varint(v) for v in values)),
            (3, message((1, writer.at("pid")), (3, 41))),
            (3, message((1, writer.at("comm")), (2, writer.at("python3"))))))
    found, _ = calls_of(put_window(directory, 0, "cuda", writer))
    assert one(found, "cuLaunchKernel", "add")["calls"] == 100, found
    assert one(found, "cuMemcpyDtoH")["bytes"] == 30, found
    assert sum(call["calls"] for calls in found.values() for call in calls) == 103, found


def test_what_has_nothing_of_a_gpu_is_told_in_one_line():
    directory = harness.temporary()
    writer = Writer("/app/w.py")
    writer.add("main:3", 5)
    path = window_path(directory, 0, "cpu")
    with open(path, "wb") as file:
        file.write(writer.bytes())
    for words in ([path], [directory]):
        said = run("gpu", *words, status=2)
        assert said.count("\n") == 1 and "pyprofd --events cuda" in said, said
    assert "not cpu" in run("gpu", "--kind", "cpu", directory, status=2)
    store = make_store(1)
    assert "--view=x: not all" in run("gpu", "--view", "x", store, status=2)
    assert "one at a time" in run("gpu", "--format", "csv", "--json", store, status=2)
    assert "no groups" in run("gpu", "--group-by", "process", store, status=2)
    assert run("gpu", "--view", "memory", store).endswith("Nothing was allocated or freed.\n")


# ---------------------------------------------------------------- the stand-in of libcuda

STEPS = 240  # calls that all have their stacks taken, however fast they are
MATMUL = "_ZN4fake6matmulIfLi16EEEvPKT_S3_PS1_i"


def trained(out, options=(), steps=STEPS):
    """A profile of trains.py, what the stand-in has counted, and the program's source."""
    test_probes.need_links()
    with harness.Target("trains.py", steps, env={"FAKES": harness.need_fakes()}) as program:
        process = harness.start(out, program.pid, hz=None,
                                options=["--events", "cuda"] + list(options))
        test_probes.await_sites(process, 10)
        open(program.path("go"), "w").close()
        program.wait("done", 60)
        done = harness.finish(process, signal_number=signal.SIGINT)
        assert done.rc == 0, done.err
        with open(program.path("trains.py"), encoding="ascii") as file:
            source = file.read().splitlines()
        return program.read("truth.json"), source


def line_numbers(source, text):
    return {number for number, line in enumerate(source, 1) if text in line}


def demangled(name):
    """Names may be shown as they are written in C++."""
    return name in (MATMUL,) or "matmul" in name


def check_truth(found, truth):
    api = truth["api"]
    kernels = {}
    for (name, kernel), calls in found.items():
        if name == "cuLaunchKernel":
            kernels[kernel] = sum(call["calls"] for call in calls)
    assert sum(kernels.values()) == api["cuLaunchKernel"]["calls"], (kernels, truth)
    assert sum(calls for name, calls in kernels.items() if demangled(name)) == 4 * STEPS, kernels
    for name, own in (("cuMemcpyHtoDAsync", "cuMemcpyHtoDAsync_v2"),
                      ("cuMemcpyDtoH", "cuMemcpyDtoH_v2"), ("cuMemAlloc", "cuMemAlloc_v2")):
        call = one(found, name)
        assert (call["calls"], call["bytes"]) == (api[own]["calls"], api[own]["bytes"]), call
    assert one(found, "cuMemFree")["calls"] == api["cuMemFree_v2"]["calls"], found
    sync = one(found, "cuStreamSynchronize")
    off = sync["wait_ns"] / api["cuStreamSynchronize"]["wait_ns"] - 1
    print("time in synchronisations: %+.2f %% of the stand-in's own" % (100 * off))
    assert sync["calls"] == api["cuStreamSynchronize"]["calls"] and -0.001 < off < 0.02, sync


def check_quantile(shown_ns, waits, quantile):
    """It lies in the bucket, which is from a power of two to the next one, of the program's own
    time.  That has the call of ctypes in it: a few microseconds of some milliseconds."""
    own_ns = sorted(waits)[int(quantile * len(waits))]
    begin = 1 << own_ns.bit_length() - 1
    assert begin <= shown_ns <= 2 * begin, (shown_ns, own_ns, sorted(waits))


def check_lines(found, source):
    """Matmul is launched three times as often by forward()."""
    launch = [call for (api, kernel), calls in found.items() for call in calls
              if api == "cuLaunchKernel" and demangled(kernel)][0]
    launches = line_numbers(source, "driver.cuLaunchKernel(matmul")
    lines = {line["line"]: line for line in launch["lines"] if line["line"]}
    assert lines and set(lines) <= launches, (lines, launches)
    assert sum(line["calls"] for line in launch["lines"]) == launch["calls"], launch
    forward = max(launch["lines"], key=lambda line: line["calls"])
    assert forward["calls"] == 3 * STEPS and launch["calls"] == 4 * STEPS, launch
    assert not any(line["calls_error"] for line in launch["lines"]), launch
    sync = one(found, "cuStreamSynchronize")["lines"]
    assert {line["line"] for line in sync} == line_numbers(
        source, "driver.cuStreamSynchronize"), sync
    item = one(found, "cuMemcpyDtoH")["lines"]
    assert {line["line"] for line in item} == line_numbers(source, "driver.cuMemcpyDtoH"), item


def test_figures_are_the_stand_ins_own():
    out = os.path.join(harness.temporary(), "gpu.pb.gz")
    truth, source = trained(out)
    found, _ = calls_of(out)
    check_truth(found, truth)
    check_lines(found, source)
    sync = one(found, "cuStreamSynchronize")
    check_quantile(sync["p50_ns"], truth["waits"], 0.5)
    check_quantile(sync["p99_ns"], truth["waits"], 0.99)
    base = sqlite3.connect(":memory:")
    base.executescript(run("gpu", "--format", "sql", out))
    for table in ("calls", "lines"):
        sums = base.execute("SELECT sum(calls), sum(host_ns), sum(wait_ns), sum(bytes) FROM " +
                            table).fetchone()
        assert sums == tuple(sum(call[value] for calls in found.values() for call in calls)
                             for value in VALUES), (table, sums)
    syncs = view_of("syncs", out)["rows"]
    assert syncs[0]["name"] == "finish", syncs
    assert syncs[0]["stack"].split(";")[-4:].count("main") <= 1, syncs
    assert view_of("kernels", out)["rows"][0]["name"] in ("forward", "backward"), out
    text = run("gpu", "--view", "copies", out)
    assert "load_batch" in text and "HtoD" in text, text
    assert "allocate" in run("gpu", "--view", "memory", out)


test_figures_are_the_stand_ins_own.alone = "one a CPU"


def test_totals_of_a_store_are_the_samples():
    """Σ over the rows of kind cuda_calls = Σ over stacks, in each window."""
    store = os.path.join(harness.temporary(), "store")
    truth, _ = trained(store + "/", ["--interval", "1s"])
    found, _ = calls_of(store)
    check_truth(found, truth)
    windows = 0
    for path, _, names in os.walk(store):
        for name in names:
            if not name.endswith("-cuda.pb.gz"):
                continue
            profile = harness.load(os.path.join(path, name))
            totals = harness.load(os.path.join(path, name.replace("cuda", "cuda_calls")))
            assert [tuple(value) for value in totals.sample_types] == list(EXACT), totals
            for value in range(4):
                assert sum(sample.values[value] for sample in totals.samples) == sum(
                    sample.values[value] for sample in profile.samples), (value, name)
            windows += 1
    assert windows, store


test_totals_of_a_store_are_the_samples.alone = "one a CPU"

TRAINER = """
import ctypes, time
driver = ctypes.CDLL(%r)
context, function = ctypes.c_void_p(), ctypes.c_void_p()
print("ready", flush=True)
while True:
    driver.cuLaunchKernel(ctypes.c_void_p(0x5000), 1, 1, 1, 1, 1, 1, 0, None, None, None)
    driver.cuStreamSynchronize(None)
    time.sleep(0.01)
"""


class Trainer(test_top.Worker):
    def __init__(self, user=None):
        library = os.path.join(harness.temporary(), "libcuda.so.1")
        shutil.copy(os.path.join(harness.need_fakes(), "libcuda.so.1"), library)
        os.chmod(os.path.dirname(library), 0o755)
        self.source = TRAINER % library
        super().__init__(user)


def test_live_shows_a_user_his_own_processes():
    harness.need(os.geteuid() == 0, "only root can become somebody else")
    test_probes.need_links()
    with Trainer(user=USER) as own, Trainer() as other:
        process, path = test_dump.agent(harness.temporary(), options=(
            "--events", "cuda", "--pid", "%d,%d" % (own.pid, other.pid)))
        test_probes.await_sites(process, 10)
        told = ask("--live", "--for", 2, "--socket", path, verb="gpu")
        assert " %d, device" % own.pid in told and " %d, device" % other.pid in told, told
        data = json.loads(ask("--live", "--for", 2, "--json", "--socket", path, verb="gpu",
                              user=USER))
        assert {call["pid"] for call in data["calls"]} == {own.pid}, data
        sync = [call for call in data["calls"] if call["api"] == "cuStreamSynchronize"]
        assert sync and sync[0]["p50_ns"], data
        told = json.loads(ask("--live", "--for", 2, "--kind", "cuda_calls", "--by", "label:pid",
                              "--json", "--socket", path, verb="report", user=USER))
        assert [row["name"] for row in told["rows"]] == ["pid %d" % own.pid], told
        told = ask("--live", "--for", 1, "--pid", other.pid, "--socket", path, verb="gpu",
                   user=USER, rc=0)
        assert "No samples" in told, told
    harness.finish(process, signal_number=signal.SIGINT)


def test_live_says_what_is_not_recorded():
    with harness.Target("burn.py", 0) as program:
        process, path = test_dump.agent(harness.temporary(), options=(
            "--events", "cpu", "--pid", str(program.pid)))
        said = ask("--live", "--for", 1, "--socket", path, verb="gpu", rc=2)
        assert said.count("\n") == 1 and "pyprofd --events cuda" in said, said
    harness.finish(process, signal_number=signal.SIGINT)
