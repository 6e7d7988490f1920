# SPDX-License-Identifier: BSD-2-Clause
"""Tools without a Python module: speedscope's own importer in Chromium, Perfetto's trace
processor."""
import collections
import glob
import json
import os
import shutil
import subprocess

import harness
from test_pyprof import STACKS, Writer, make, python_with, run

BROWSER = os.path.join(harness.TOP, "tests", "tools", "speedscope.py")
# Exported as, name of the file: speedscope goes by both name and content.
FORMATS = [("speedscope", "x.speedscope.json"), ("chrome", "x.json"), ("folded", "x.folded.txt"),
           ("callgrind", "callgrind.out.1"), ("pprof", "x.pb.gz")]


def speedscope(*profiles):
    """What speedscope's page shows of each: name -> [total %, self %]."""
    python = python_with("websocket")
    found = glob.glob(
        os.path.join(os.path.dirname(os.path.dirname(python)), "speedscope-*", "package"))
    harness.need(found, "no speedscope beside %s (tests/tools/fetch.sh)" % python)
    harness.need(any(map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))),
                 "no chromium")
    done = subprocess.run([python, BROWSER, found[0], *profiles], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)
    assert done.returncode == 0, done.stderr.decode()
    shown = [json.loads(line) for line in done.stdout.decode().splitlines()]
    for profile, one in zip(profiles, shown):
        assert "error" not in one, (profile, one)
    rows = [collections.defaultdict(lambda: [0.0, 0.0]) for _ in shown]
    for one, by_name in zip(shown, rows):
        for symbol, total, self in one["rows"]:  # each line of a function is a row of its own
            name = symbol.split(" ")[0]
            by_name[name] = [by_name[name][0] + total, by_name[name][1] + self]
    return rows


def export(kind, profile, name):
    out = os.path.join(harness.temporary(), name)
    run("export", "--format", kind, profile, "-o", out)
    return out


def test_speedscope_opens_every_format():
    shown = speedscope(*[export(kind, make()[0], name) for kind, name in FORMATS])
    names = ("main", "outer", "inner", "sum", "fib")
    print("%-12s" % "total %" + "".join("%8s" % name for name in names))
    for (kind, _), rows in zip(FORMATS, shown):
        print("%-12s" % kind + "".join("%8.1f" % rows[name][0] for name in names))
        for name, share in ("main", 100), ("outer", 80), ("inner", 80), ("sum", 80), ("fib", 15):
            assert abs(rows[name][0] - share) < 0.1, (kind, name, rows)
        assert abs(rows["sum"][1] - 80) < 0.1 and abs(rows["main"][1] - 5) < 0.1, (kind, rows)


def renamed():
    """A thread that had another name before: two sets of labels, one thread; parts of a period that
    is no number of microseconds."""
    writer = Writer("/app/w.py")
    for i, (stack, samples) in enumerate(STACKS * 40):
        writer.add(" ".join(stack.split()[i % 3:]), samples + i % 7,
                   thread=("python3", "MainThread")[i % 2])
    path = os.path.join(harness.temporary(), "R.pb.gz")
    with open(path, "wb") as file:
        file.write(writer.bytes())
    return path


def test_chrome_slices_lie_in_their_callers():
    profile = renamed()
    with open(export("chrome", profile, "x.json")) as file:
        slices = [event for event in json.load(file)["traceEvents"] if event["ph"] == "X"]
    tracks = collections.defaultdict(list)
    for event in slices:
        tracks[event["pid"], event["tid"]].append((event["ts"], -event["ts"] - event["dur"]))
    for spans in tracks.values():
        open_ends = []
        for begin, end in sorted(spans):
            while open_ends and open_ends[-1] <= begin:
                open_ends.pop()
            assert not open_ends or -end <= open_ends[-1], (begin, -end, open_ends)
            open_ends.append(-end)
    total = {f["name"]: f["total"]["value"]
             for f in json.load(open(export("json", profile, "x.json")))["functions"]}
    outermost = sum(event["dur"] for event in slices if event["name"] == "outer")
    assert abs(outermost - total["outer"] / 1000) <= 2, (outermost, total["outer"])


def test_callgrind_names_a_number_once():
    text = open(export("callgrind", make()[0], "callgrind.out.1")).read()
    named = [
        line.partition("=")[2] for line in text.splitlines()
        if line.startswith(("fn=", "cfn=")) and " " in line
    ]
    assert named and len(named) == len({name.split()[0] for name in named}), named


def test_trace_processor_opens_it():
    path = os.environ.get("TRACE_PROCESSOR") or shutil.which("trace_processor_shell")
    harness.need(
        path,
        "no trace_processor_shell: PyPI's perfetto fetches it from elsewhere, no package of PyPI, "
        "npm "
        "or Debian has it ($TRACE_PROCESSOR names one)")
    query = os.path.join(harness.temporary(), "query.sql")
    with open(query, "w") as file:
        file.write(
            "select f.name as name, count(*) as samples from perf_sample s join "
            "stack_profile_callsite c on "
            "s.callsite_id = c.id join stack_profile_frame f on c.frame_id = f.id group by f.name")
    said = subprocess.check_output([path, "-q", query,
                                    export("perfetto",
                                           make()[0], "x.pftrace")]).decode()
    counts = dict(line.replace('"', "").split(",") for line in said.splitlines() if "," in line)
    assert counts["sum"] == "80" and counts["fib"] == "15", said
