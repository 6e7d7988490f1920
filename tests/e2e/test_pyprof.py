# SPDX-License-Identifier: BSD-2-Clause
"""pyprof: synthetic profiles with known shares, through every verb; exports are opened by the real
tools where these are installed (pprof, Graphviz, gprof2dot, snakeviz, python -m pstats)."""
import csv
import gzip
import io
import json
import os
import re
import shutil
import subprocess
import sys
import time

import harness
import pprof
from test_reader import message, varint

PYPROF = os.path.join(os.path.dirname(harness.PYPROFD), "pyprof")
START_MS = 1795273200000
PERIOD = 10000000
SOURCE = """import time

def inner(n):
    return sum(range(n))

def outer():
    inner(3)
    inner(4)

def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)

def main():
    outer()
    fib(3)
    time.sleep(1)

main()
"""
# (stack, root first, as name:line; samples) of w.py; a name in [] is native.
STACKS = [("<module>:18 main:14 outer:7 inner:4 [sum]", 60),
          ("<module>:18 main:14 outer:8 inner:4 [sum]", 20),
          ("<module>:18 main:15 fib:11 fib:11 fib:11", 15), ("<module>:18 main:16", 5)]
ROW = re.compile(r"^ *([\d.]+) % +\S+ +([\d.]+) % +\S+ +\S+ \S+ +\S+ \S+ +\d+[~ ] (\S+)", re.M)
STARTS = {"<module>": 1, "inner": 3, "outer": 6, "fib": 10, "main": 13}


class Writer:
    """A pprof file out of stacks."""

    def __init__(self, file):
        self.file = file
        self.strings, self.functions, self.locations, self.samples = [""], {}, {}, []

    def at(self, text):
        if text not in self.strings:
            self.strings.append(text)
        return self.strings.index(text)

    def location(self, text):
        if text not in self.locations:
            self.locations[text] = len(self.locations) + 1
        return self.locations[text]

    def add(self, stack, samples, pid=7, thread="MainThread"):
        ids = b"".join(varint(self.location(part)) for part in reversed(stack.split()))
        labels = [message((1, self.at("pid")), (3, pid)), message((1, self.at("tid")), (3, pid)),
                  message((1, self.at("comm")), (2, self.at("python3"))),
                  message((1, self.at("thread_name")), (2, self.at(thread)))]
        self.samples.append(message((1, ids), (2, varint(samples) + varint(samples * PERIOD)),
                                    *[(3, label) for label in labels]))

    def code(self):
        fields = [(3, message((1, 1), (5, self.at("[python]")), (7, 1))),
                  (3, message((1, 2), (5, self.at("/usr/lib/libpython3.12.so.1.0")), (7, 1)))]
        for number, text in enumerate(self.locations, 1):
            name, _, line = text.partition(":")
            native = name.startswith("[")
            name = name.strip("[]")
            fields.append((4, message((1, number), (2, 2 if native else 1),
                                      (4, message((1, number), (2, int(line or 0)))))))
            fields.append(
                (5,
                 message((1, number), (2, self.at(name)), (4, self.at("" if native else self.file)),
                         (5, STARTS.get(name, 0)))))
        return fields

    def bytes(self, start_ms=START_MS, duration_ms=1000):
        types = [(1, message((1, self.at("samples")), (2, self.at("count")))),
                 (1, message((1, self.at("cpu")), (2, self.at("nanoseconds"))))]
        code = self.code()
        tail = [(9, start_ms * 1000000), (10, duration_ms * 1000000),
                (11, message((1, self.at("cpu")), (2, self.at("nanoseconds")))), (12, PERIOD),
                (14, self.at("cpu"))]
        return gzip.compress(message(*types, *[(2, s) for s in self.samples], *code, *tail,
                                     *[(6, s.encode()) for s in self.strings]))


class TypesWriter(Writer):
    """One of any sample types."""

    def __init__(self, types, comments=()):
        super().__init__("/app/w.py")
        self.types, self.comments = types, comments

    def put(self, stack, values, pid=41, tid=41, window=None, **texts):
        values = (*values, *[0] * (len(self.types) - len(values)))
        ids = b"".join(varint(self.location(part)) for part in reversed(stack.split()))
        labels = [message((1, self.at(key)), (3, number))
                  for key, number in (("pid", pid), ("tid", tid), ("window", window))
                  if number is not None]
        labels += [message((1, self.at(key)), (2, self.at(text))) for key, text in texts.items()]
        self.samples.append(message((1, ids), (2, b"".join(varint(v) for v in values)),
                                    *[(3, label) for label in labels]))

    def bytes(self, start_ms=START_MS, duration_ms=10000):
        types = [(1, message((1, self.at(name)), (2, self.at(unit)))) for name, unit in self.types]
        code = self.code()
        tail = [(9, start_ms * 1000000), (10, duration_ms * 1000000)]
        tail += [(13, self.at(comment)) for comment in self.comments]
        tail += [(14, self.at(self.types[0][0]))]
        return gzip.compress(message(*types, *[(2, s) for s in self.samples], *code, *tail,
                                     *[(6, s.encode()) for s in self.strings]))


def make(directory=None):
    """(profile, source) in a directory."""
    directory = directory or harness.temporary()
    source = os.path.join(directory, "w.py")
    with open(source, "w") as file:
        file.write(SOURCE)
    os.utime(source, (START_MS / 1000 - 60,) * 2)
    writer = Writer(source)
    for stack, samples in STACKS:
        writer.add(stack, samples)
    path = os.path.join(directory, "P.pb.gz")
    with open(path, "wb") as file:
        file.write(writer.bytes())
    return path, source


def make_store(windows=12):
    directory = os.path.join(harness.temporary(), "store")
    for i in range(windows):
        writer = Writer("/app/w.py")
        for stack, samples in STACKS:
            writer.add(stack, samples + (i % 3) * 2, pid=7 + i % 2)
        start_ms = START_MS + i * 1000
        below = os.path.join(directory, time.strftime("%Y-%m-%d/%H", time.gmtime(start_ms / 1000)))
        os.makedirs(below, exist_ok=True)
        with open(os.path.join(below, "%d-1000-cpu.pb.gz" % start_ms), "wb") as file:
            file.write(writer.bytes(start_ms))
    return directory


def run(*arguments, status=0, text=True, stdin=None):
    done = subprocess.run([PYPROF, *map(str, arguments)], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=60, input=stdin)
    assert done.returncode == status, "%s: %d: %s" % (arguments, done.returncode,
                                                      done.stderr.decode())
    assert status or not done.stderr, done.stderr.decode()
    return done.stdout.decode() if text and not status else done.stderr.decode(
    ) if status else done.stdout


def rows(text):
    """name -> (self %, total %) of a report."""
    return {m.group(3): (float(m.group(1)), float(m.group(2))) for m in ROW.finditer(text)}


def tool(name):
    path = shutil.which(name)
    harness.need(path, "no " + name)
    return path


def python_with(module):
    """A Python that has a module; the one that PYPROF_PYTHON names, first."""
    for python in (os.environ.get("PYPROF_PYTHON"), sys.executable):
        if python and subprocess.call([python, "-c", "import " + module],
                                      stderr=subprocess.DEVNULL) == 0:
            return python
    raise harness.Skip("no Python with " + module)


# ---- views ----

def test_report_gives_the_shares():
    found = rows(run("report", make()[0]))
    assert found["sum"] == (80.0, 80.0), found
    assert found["main"] == (5.0, 100.0), found
    assert found["fib"] == (15.0, 15.0), found  # recursion counts once
    assert found["inner"] == (0.0, 80.0), found


def test_report_python_gives_native_time_to_its_caller():
    found = rows(run("report", "--python", make()[0]))
    assert found["inner"] == (80.0, 80.0) and "sum" not in found, found


def test_report_says_how_sure_it_is():
    said = run("report", make()[0])
    assert " 4.0 " in said, said  # sqrt(.8 * .2 / 100)
    assert "fewer than 100 samples. Record" in said, said
    assert run("report", make_store()).count("~") < said.count("~")


def test_report_filters():
    path = make()[0]
    assert "fib" in rows(run("report", path, "--focus", "^fib$"))
    assert "inner" not in rows(run("report", path, "--focus", "^fib$"))
    assert "fib" not in rows(run("report", path, "--ignore", "fib"))
    assert "No samples are left" in run("report", path, "--pid", 8)
    assert rows(run("report", path, "--pid", 7, "--comm", "^python", "--thread",
                    "Main"))["main"][1] == 100
    assert "fib" in run("report", path, "--callers", "^fib$")
    assert "inner" in run("report", path, "--callees", "^outer$")


def test_report_by_everything():
    directory = make_store()
    for what in ("function", "line", "file", "module", "thread", "process", "comm", "thread-name",
                 "container"):
        assert "12 windows" in run("report", directory, "--by", what)
    assert "pid 7 python3" in run("report", directory, "--by", "process")
    assert run("report", directory, "--group-by", "process").count("of all") >= 2


def test_directory_and_its_times():
    directory = make_store()
    assert "12 windows" in run("report", directory)
    middle = "@%d" % (START_MS // 1000 + 6)
    assert "6 windows" in run("report", directory, "--until", middle)
    assert "6 windows" in run("report", directory, "--since",
                              middle)  # without the one that ends then
    assert "no profiles between" in run("report", directory, "--since", "1s", status=2)
    assert "no profiles of kind gil" in run("report", directory, "--kind", "gil", status=2)


def test_a_file_of_another_kind_is_no_answer():
    directory = make_store()
    one = [os.path.join(folder, name) for folder, _, names in os.walk(directory)
           for name in names if name.endswith("-cpu.pb.gz")][0]
    assert run("report", one, "--kind", "cpu") == run("report", one)
    assert "a profile of kind cpu, and --kind asks for gil\n" in run(
        "report", one, "--kind", "gil", status=2)


def test_lines():
    path, source = make()
    said = run("lines", "w.py", path)
    by_line = {line.split()[0]: line for line in said.splitlines() if line.strip()[:1].isdigit()}
    assert "80.0 %" in by_line["4"] and "sum(range(n))" in by_line["4"], said
    assert "60.0 %" in by_line["7"] and "20.0 %" in by_line["8"], said
    assert "Note" not in said, said
    assert "outer" in run("lines", "w.py:outer", path) and "fib(n - 1)" not in run(
        "lines", "w.py:outer", path)
    assert "<table" in run("lines", "w.py", path, "--format", "html")
    with open(source, "w") as file:
        file.write("\n\n" + SOURCE)
    assert "has changed" in run("lines", "w.py", path)
    os.unlink(source)
    said = run("lines", "w.py", path)
    assert "not here" in said and "80.0 %" in said, said
    assert "no sample" in run("lines", "other.py", path, status=2)
    assert "function 'nope'" in run("lines", "w.py:nope", path, status=2)


def test_tree_and_info():
    path = make()[0]
    said = run("tree", path)
    assert said.index("outer") < said.index("fib") < said.index("self 5.0 %") + len(said)
    said = run("info", path)
    assert "cpu/nanoseconds: 1.00 s  (shown)" in said and "pid 7 python3" in said, said


def test_flame_is_one_file():
    path = make()[0]
    said = run("flame", path)
    assert said.lstrip().lower().startswith("<!doctype html") and "inner" in said, said[:200]
    assert "http://" not in said.replace("http://www.w3.org", "") and "src=" not in said
    said = run("flame", "--format", "svg", path)
    assert said.lstrip().startswith(("<?xml", "<svg")) and "inner" in said, said[:200]


def test_merge_is_the_sum():
    directory = make_store(4)
    merged = os.path.join(harness.temporary(), "m.pb.gz")
    run("export", directory, "-o", merged)
    assert rows(run("report", merged)) == rows(run("report", directory))
    assert sum(s.values[0] for s in pprof.load(merged).samples) == 4 * 100 + 4 * (0 + 2 + 4 + 0)


# ---- bad input ----

def bad(content, word, *arguments):
    path = os.path.join(harness.temporary(), "bad.pb.gz")
    with open(path, "wb") as file:
        file.write(content)
    said = run("report", path, *arguments, status=2)
    assert said.count("\n") == 1 and path in said and word in said, said


def test_bad_files_are_one_line():
    whole = open(make()[0], "rb").read()
    bad(b"", "empty")
    bad(whole[:len(whole) // 2], "cut off")
    bad(gzip.compress(gzip.decompress(whole)[:-200]), "cut off")
    bad(b"\x28\xb5\x2f\xfd rest", "zstd")
    bad(b"{}", "JSON")
    bad(os.urandom(1000), "pprof")
    bad(whole, "no such sample type", "--sample-type", "heap")
    bad(gzip.compress(b"\0" * (600 << 20), 1), "too big")
    broken = bytearray(whole)
    broken[len(broken) // 2] ^= 0xff
    bad(bytes(broken), "broken")


def test_bad_paths_and_options():
    assert "No such file" in run("report", "/nonexistent.pb.gz", status=2)
    assert "directory without profiles" in run("report", harness.temporary(), status=2)
    assert "the profile is missing" in run("report", status=2)
    assert "no command 'frobnicate'" in run("frobnicate", status=2)
    assert "--focus=(" in run("report", "--focus", "(", make()[0], status=2)
    big = os.path.join(harness.temporary(), "big.pb.gz")
    with open(big, "wb") as file:
        file.truncate(2 << 30)
    assert "too big" in run("report", big, status=2)


def test_newer_writer_is_refused():
    writer = Writer("/w.py")
    writer.add("main", 1)
    comment = writer.at("pyprofd=9.1.0 kind=cpu hz=99 host=x")
    content = gzip.compress(gzip.decompress(writer.bytes()) + message((13, varint(comment))))
    bad(content, "newer")


def test_standard_input_is_a_dash():
    with open(make()[0], "rb") as file:
        assert "main" in run("report", "-", stdin=file.read())


# ---- other tools open what was exported ----

def export(kind, path, suffix="out"):
    out = os.path.join(harness.temporary(), "x." + suffix)
    run("export", "--format", kind, path, "-o", out)
    return out


def test_json_and_csv():
    path = make()[0]
    data = json.load(open(export("json", path)))
    by_name = {f["name"]: f for f in data["functions"]}
    assert data["version"] == 1 and by_name["sum"]["self"]["share"] == 0.8, by_name["sum"]
    assert sum(data["samples"]["value"]) == 100 * PERIOD
    assert all(p < i for i, p in enumerate(data["stacks"]["parent"]) if i)
    table = {
        row["name"]: row
        for row in csv.DictReader(io.StringIO(open(export("csv", path), newline="").read()))
    }
    assert float(table["fib"]["total_share"]) == 0.15, table["fib"]


def test_speedscope_and_chrome():
    path = make()[0]
    data = json.load(open(export("speedscope", path)))
    profile = data["profiles"][0]
    assert sum(profile["weights"]) == profile["endValue"] == 100 * PERIOD
    assert all(i < len(data["shared"]["frames"]) for s in profile["samples"] for i in s)
    assert [data["shared"]["frames"][i]["name"] for i in profile["samples"][0]][-1] == "sum"
    events = json.load(open(export("chrome", path)))["traceEvents"]
    slices = [e for e in events if e["ph"] == "X"]
    assert max(e["dur"] for e in slices) == 100 * PERIOD / 1000
    assert any(e["name"] == "process_name" and e["args"]["name"] == "python3" for e in events)


def test_folded():
    lines = open(export("folded", make()[0])).read().splitlines()
    assert any(
        line.endswith("fib (w.py:11) 150000000") or "fib" in line and line.endswith(" 150000000")
        for line in lines), lines


def go_with_pprof():
    """One that has it as a program: later ones compile it when it is first asked for, which takes
    50 s of CPU time."""
    found = [
        path for path in ("/usr/lib/go/bin/go", shutil.which("go")) if path and os.path.exists(path)
    ]
    made = [path for path in found if os.path.exists(os.path.join(
        subprocess.check_output([path, "env", "GOTOOLDIR"]).decode().strip(), "pprof"))]
    harness.need(found, "no go")
    return (made + found)[0]


def test_pprof_opens_it():
    go = go_with_pprof()
    out = export("pprof", make()[0], "pb.gz")
    done = subprocess.run([go, "tool", "pprof", "-top", out], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)
    said = done.stdout.decode()
    assert done.returncode == 0, done.stderr.decode()
    assert "Total samples = 1000ms" in said and "80.00%" in said and "sum" in said, said


def test_graphviz_draws_it():
    dot = tool("dot")
    drawn = subprocess.run([dot, "-Tsvg"], input=run("calls", "--format", "dot",
                                                     make()[0]).encode(), stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE)
    assert drawn.returncode == 0 and not drawn.stderr, drawn.stderr
    assert b"inner" in drawn.stdout and b"80.00%" in drawn.stdout


def test_pstats_reads_it():
    out = os.path.join(harness.temporary(), "x.prof")
    run("calls", "--format", "pstats", "-o", out, make()[0])
    said = subprocess.run([sys.executable, "-m", "pstats", out],
                          input=b"sort cumtime\nstats 10\ncallers inner\n",
                          stdout=subprocess.PIPE).stdout.decode()
    assert "in 1.000 seconds" in said and "(outer)" in said and "sampled by pyprofd" in run(
        "calls", "--format", "pstats", make()[0], text=False).decode("latin-1"), said


def test_gprof2dot_reads_it():
    python = python_with("gprof2dot")
    out = os.path.join(harness.temporary(), "x.prof")
    run("calls", "--format", "pstats", "-o", out, make()[0])
    for arguments in (["-f", "pstats",
                       out], ["-f", "callgrind",
                              export("callgrind",
                                     make()[0], "callgrind")]):
        done = subprocess.run([python, "-m", "gprof2dot", *arguments], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE)
        assert done.returncode == 0, done.stderr.decode()
        assert b"inner" in done.stdout and b"80.00%" in done.stdout, done.stdout.decode()


def test_snakeviz_reads_it():
    python = python_with("snakeviz")
    out = os.path.join(harness.temporary(), "x.prof")
    run("calls", "--format", "pstats", "-o", out, make()[0])
    said = subprocess.check_output([
        python, "-c", "import sys, pstats; from snakeviz.stats import table_rows, json_stats\n"
        "s = pstats.Stats(sys.argv[1]); print(len(table_rows(s)), 'inner' in str(json_stats(s)))",
        out
    ]).decode()
    assert said.split() == ["7", "True"], said


def test_otlp_is_what_the_schema_says():
    python = python_with(
        "opentelemetry.proto.collector.profiles.v1development.profiles_service_pb2")
    said = subprocess.check_output([
        python, "-c", """
import sys
from opentelemetry.proto.collector.profiles.v1development import profiles_service_pb2 as s
r = s.ExportProfilesServiceRequest.FromString(open(sys.argv[1], 'rb').read())
d = r.dictionary
p = r.resource_profiles[0].scope_profiles[0].profiles[1]
leaf = {}
for x in p.samples:
    line = d.location_table[d.stack_table[x.stack_index].location_indices[0]].lines[0]
    name = d.string_table[d.function_table[line.function_index].name_strindex]
    leaf[name] = leaf.get(name, 0) + x.values[0]
print(d.string_table[p.sample_type.type_strindex], leaf['sum'], len(p.profile_id),
      not d.stack_table[0].location_indices)
""", export("otlp", make()[0])
    ]).decode()
    assert said.split() == ["cpu", str(80 * PERIOD), "16", "True"], said


def test_perfetto_is_what_the_schema_says():
    python = python_with("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    said = subprocess.check_output([python, "-c", """
import sys
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as t
trace = t.Trace.FromString(open(sys.argv[1], 'rb').read())
name, frame, stack, count = {}, {}, {}, {}
for p in trace.packet:
    i = p.interned_data
    name.update((x.iid, x.str.decode()) for x in i.function_names)
    frame.update((x.iid, x.function_name_id) for x in i.frames)
    stack.update((x.iid, list(x.frame_ids)) for x in i.callstacks)
for p in trace.packet:
    if p.HasField('perf_sample'):
        leaf = name[frame[stack[p.perf_sample.callstack_iid][-1]]]
        count[leaf] = count.get(leaf, 0) + 1
print(count['sum'], count['fib'])
""", export("perfetto", make()[0])]).decode()
    assert said.split() == ["80", "15"], said
