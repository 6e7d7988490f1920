# SPDX-License-Identifier: BSD-2-Clause
"""Options of pyprof's views that no other test looks at, on a folded profile whose sums are
known."""
import os
import re
import subprocess

import harness

PYPROF = os.path.join(os.path.dirname(harness.PYPROFD), "pyprof")


def pyprof(*words, env=None):
    done = subprocess.run([PYPROF, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=60, check=False, env=dict(
                              os.environ, COLUMNS="200", **(env or {})))
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def recorded():
    """A profile of a program with two callers of one function, and the path of the program."""
    directory = harness.temporary()
    program = os.path.join(directory, "twice.py")
    with open(program, "w", encoding="utf-8") as file:
        file.write(
            "import time\n\n\ndef work(seconds):\n    end = time.process_time() + seconds\n"
            "    while time.process_time() < end:\n        sum(range(3000))\n\n\n"
            "def often():\n    work(1.2)\n\n\ndef seldom():\n    work(0.4)\n\n\noften()\nseldom()\n"
        )
    out = os.path.join(directory, "out.pb.gz")
    harness.profile(hz=499, duration=None, out=out,
                    command=[*harness.interpreter().command, program])
    return directory, program, out


def functions(text):
    """[(percent, function)] of a tree."""
    return [(float(percent), name) for percent, name in
            re.findall(r"^ *([\d.]+) % +[\d.]+ \S+ [\s\u2500-\u257f]*(\S+)", text, re.M)]


def test_tree_depth_min_and_lines():
    _, _, out = recorded()
    whole = functions(pyprof("tree", "--python", "--min", "0", out))
    named = [name for _, name in whole]
    assert "often" in named and "seldom" in named and named.count("work") == 2, whole
    flat = functions(pyprof("tree", "--python", "--min", "0", "--depth", "2", out))
    assert "<module>" in [name for _, name in flat] and "work" not in [
        name for _, name in flat], flat
    # often has three quarters of the time, seldom one.
    large = functions(pyprof("tree", "--python", "--min", "50", out))
    assert "often" in [name for _, name in large] and "seldom" not in [
        name for _, name in large], large
    assert all(percent >= 50 for percent, _ in large), large
    lines = pyprof("tree", "--python", "--min", "5", "--by", "line", out)
    assert re.search(r"<module>\s+twice\.py:18$", lines, re.M) and re.search(
        r"<module>\s+twice\.py:19$", lines, re.M), lines
    assert not re.search(r"<module>\s+twice\.py:1$", lines, re.M), lines


def test_lines_reads_another_source():
    directory, program, out = recorded()
    with open(program, encoding="utf-8") as file:
        text = file.read()
    os.mkdir(os.path.join(directory, "elsewhere"))
    moved = os.path.join(directory, "elsewhere", "twice.py")
    with open(moved, "w", encoding="utf-8") as file:
        file.write(text.replace("sum(range(3000))", "sum(range(3000))  # moved"))
    os.unlink(program)
    assert "# moved" not in pyprof("lines", "twice.py", out)
    assert "# moved" in pyprof("lines", "twice.py", "--source", moved, out)
