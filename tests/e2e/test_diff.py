# SPDX-License-Identifier: BSD-2-Clause
"""pyprof diff on synthetic windows with a known change."""
import gzip
import json
import os
import random
import re
import subprocess
import time

import harness
from test_pyprof import PYPROF, START_MS, STARTS, Writer, make, run
from test_reader import message, varint

CALLS = "<module>:18 main:14 outer:7 inner:4"
RULE = "self > 3% p < 0.01"


def side(windows, grown=0, seed=1, comment="pyprofd=0.1.0 kind=cpu hz=99 host=box"):
    """A directory; of 500 samples a window about 100 + `grown` are those of fib."""
    chance = random.Random(seed)
    directory = os.path.join(harness.temporary(), "store")
    for i in range(windows):
        writer = Writer("/app/w.py")
        fib = 100 + grown + chance.randint(-12, 12)
        inner = 300 + chance.randint(-15, 15)
        writer.add("<module>:18 main:15 fib:11", fib)
        writer.add(CALLS, inner)
        writer.add("<module>:18 main:16", 500 - fib - inner)
        start_ms = START_MS + i * 5000
        below = os.path.join(directory, time.strftime("%Y-%m-%d/%H", time.gmtime(start_ms / 1000)))
        os.makedirs(below, exist_ok=True)
        text = writer.at(comment)
        content = gzip.decompress(writer.bytes(start_ms, 5000)) + message((13, varint(text)))
        with open(os.path.join(below, "%d-5000-cpu.pb.gz" % start_ms), "wb") as file:
            file.write(gzip.compress(content))
    return directory


def diff(*arguments, status=0):
    done = subprocess.run([PYPROF, "diff", *map(str, arguments)], capture_output=True, text=True,
                          timeout=60, check=False)
    assert done.returncode == status, "%s: %d: %s%s" % (arguments, done.returncode, done.stdout,
                                                        done.stderr)
    return done.stdout + done.stderr


def row(said, name):
    found = re.search(r"^.*[ ;]%s\b.*$" % re.escape(name), said, re.M)
    assert found, said
    return found.group(0)


def test_growth_is_marked_and_the_same_is_not():
    said = diff(side(12), side(12, grown=25, seed=2), "--by", "function")
    assert re.search(r"\+[3-7]\.\d\d\*", row(said, "fib")), said
    assert "*" not in row(said, "inner"), said
    assert "Mann-Whitney" in said and "12 windows" in said, said
    assert "*" not in diff(side(12), side(12, seed=3), "--by",
                           "function").split("FUNCTION")[1], said


def test_all_three_tables():
    said = diff(side(12), side(12, grown=25, seed=2))
    assert re.search(r"fib +w.py:%d" % STARTS["fib"], said), said
    assert re.search(r"fib +w.py:11", said), said
    assert "<module>;main;fib" in said, said
    said = diff(side(12), side(12, grown=25, seed=2), "--full-paths")
    assert re.search(r"fib +/app/w.py:%d" % STARTS["fib"], said), said


def test_fail_if_ends_with_one():
    a, b = side(12), side(12, grown=25, seed=2)
    said = diff(a, b, "--fail-if", RULE, status=1)
    assert re.search(r"fail-if '%s': \+\d\.\d+ %% .* fib " % re.escape(RULE), said), said
    diff(a, b, "--fail-if", "self > 10% p < 0.01")
    assert " main " in diff(b, a, "--fail-if", RULE, status=1)  # it has the rest
    diff(b, a, "--fail-if", "self < -3% p < 0.01", status=1)
    diff(a, b, "--fail-if", "line total > 3%", status=1)
    diff(a, a, "--fail-if", "self > 0% p < 1")
    assert "--fail-if='selfish'" in diff(a, b, "--fail-if", "selfish", status=2)


def test_few_windows_and_single_files():
    assert "bootstrap" in diff(side(4), side(12))
    path = make()[0]
    said = diff(path, path)
    assert "numbers of samples" in said and "*" not in said.split("FUNCTION")[1], said


def test_unlike_inputs_are_refused():
    a = side(9)
    other = "pyprofd=0.1.0 kind=%s hz=%d host=box"
    for comment, word in ((other % ("cpu", 199), "199 Hz"), (other % ("wall", 99), "kind")):
        b = side(9, comment=comment)
        assert word in diff(a, b, status=2), word
        assert "not alike" in diff(a, b, "--force")
    assert "no samples" in diff(a, a, "--pid", 8, status=2)
    assert "needs two" in diff(a, status=2)
    load = "elapsed_ns=5000000000 host_busy_ns=%d000000000 host_cpus=2"
    assert "cannot be compared" in diff(loaded(load % 6), loaded(load % 9), status=2)
    diff(loaded(load % 6), loaded(load % 6))


def test_filters_and_groups():
    a, b = side(12), side(12, grown=25, seed=2)
    assert "*" not in row(diff(a, b, "--focus", "fib", "--by", "function"), "fib")  # it is all
    assert "fib" not in diff(a, b, "--ignore", "fib", "--by", "function")
    said = diff(a, b, "--until", "@%d" % ((START_MS + 40000) // 1000), "--by", "function")
    assert said.count("8 windows") == 2, said
    assert "has no groups" in diff(a, b, "--group-by", "thread", status=2)
    assert "samples" in diff(a, b, "--format", "html", "--group-by", "thread")
    assert "no profiles of kind wall" in diff(a, b, "--kind", "wall", status=2)
    assert "no samples" in diff(a, b, "--comm", "nobody", status=2)
    load = "elapsed_ns=5000000000 host_busy_ns=%d000000000 host_cpus=2"
    diff(loaded(load % 6), loaded(load % 9), "--focus", "inner")


def loaded(facts):
    """One file with 1 s on the CPU, and facts."""
    writer = Writer("/app/w.py")
    writer.add(CALLS, 100)
    texts = [writer.at("pyprofd=0.1.0 kind=cpu hz=99 host=box"), writer.at(facts)]
    path = os.path.join(harness.temporary(), "L.pb.gz")
    with open(path, "wb") as file:
        file.write(gzip.compress(gzip.decompress(writer.bytes()) + b"".join(
            message((13, varint(text))) for text in texts)))
    return path


def test_load_and_steal_are_told_by_info():
    load = "elapsed_ns=5000000000 host_busy_ns=6000000000 host_cpus=2"
    said = run("info", loaded(load + " host_steal_ns=500000000"))
    assert "60 % of 2 CPUs" in said and "5.0 % of the CPUs went to other guests" in said, said
    assert "steal" not in run("info", loaded(load))


def test_first_lines_tell_what_is_missing():
    cpu = "samples=1000 cpu_ns=%d scheduler_ns=20000000000"
    whole, lost = loaded(cpu % 19800000000), loaded(cpu % 10000000000)
    text = "only 50.0 % of the scheduler's 20.0 s of CPU time is in it"
    assert text in run("report", lost).splitlines()[0], run("report", lost)
    assert text in run("tree", lost).splitlines()[0]
    assert "only" not in run("report", whole).splitlines()[0]
    said = run("flame", lost)
    data = json.loads(
        re.search(r'<script[^>]*type="application/json"[^>]*>(.*?)</script>', said, re.S).group(1))
    assert data["title"].endswith(text), data["title"]
    assert text in run("flame", "--format", "svg", lost).replace("&#39;", "'")
    assert "only" not in run("flame", "--format", "svg", whole)


def test_times_of_one_directory_are_two_sides():
    """Before and after a deploy: what each side alone says."""
    before, after = side(12), side(12, grown=50, seed=2)
    both = os.path.join(harness.temporary(), "both")
    shift_ms = 3600 * 1000
    for directory, more_ms in ((before, 0), (after, shift_ms)):
        for path, _, names in os.walk(directory):
            for name in names:
                start_ms = int(name.split("-")[0]) + more_ms
                below = os.path.join(both, time.strftime("%Y-%m-%d/%H",
                                                         time.gmtime(start_ms / 1000)))
                os.makedirs(below, exist_ok=True)
                os.link(os.path.join(path, name),
                        os.path.join(below, "%d-5000-cpu.pb.gz" % start_ms))
    border = "@%d" % ((START_MS + shift_ms) // 1000)
    ranges = "--before", ".." + border, "--after", border + ".."
    here, apart = diff(both, *ranges), diff(before, after)
    assert here.split("\n")[1:] == apart.split("\n")[1:], (here, apart)
    assert here.startswith("cpu: %s ..%s, then %s %s.." % (both, border, both, border)), here
    # Of two directories each has its own times.
    one = diff(both, after, "--before", ".." + border)
    assert one.split("\n")[1:] == apart.split("\n")[1:], one
    assert "the times of both sides" in diff(both, status=2)
    assert "not FROM..UNTIL" in diff(both, "--before", "1h", status=2)


def test_page_has_both_sides():
    a, b = side(12), side(12, grown=25, seed=2)
    page = diff(a, b, "--format", "html")
    data = json.loads(
        re.search(r'<script[^>]*type="application/json"[^>]*>(.*?)</script>', page, re.S).group(1))
    assert len(data["samples"]["base"]) == len(
        data["samples"]["value"]) == data["samples"]["count"], data["samples"]
    assert sum(data["samples"]["base"]) == sum(data["samples"]["value"]) == 12 * 500 * 10000000
    assert data["samples"]["base"] != data["samples"]["value"]
