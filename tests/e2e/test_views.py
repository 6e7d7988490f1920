# SPDX-License-Identifier: BSD-2-Clause
"""What people read: short paths in every view, whole ones where they are asked for, lines that fit
a terminal."""
import fcntl
import gzip
import json
import os
import pty
import re
import struct
import subprocess
import termios
import time

import harness
import waits
from test_pyprof import PYPROF, SOURCE, TypesWriter, Writer, make, make_store, run
from test_reader import message, varint

PACKAGES = "/var/venv/lib/python3.12/site-packages/"
LIBRARY = "/usr/lib/python3.12/"
HOSTILE = "/srv/app/ev\x1b[2J\x07il.py"


class FilesWriter(Writer):
    """Parts of stacks are name:line@file."""

    def code(self):
        fields = [(3, message((1, 1), (5, self.at("[python]")), (7, 1)))]
        for number, text in enumerate(self.locations, 1):
            place, _, file = text.partition("@")
            name, _, line = place.partition(":")
            fields.append((4, message((1, number), (2, 1), (4, message(
                (1, number), (2, int(line)))))))
            fields.append(
                (5, message((1, number), (2, self.at(name)), (4, self.at(file)), (5, int(line)))))
        return fields


def profile(stacks):
    writer = FilesWriter("")
    for stack, samples in stacks:
        writer.add(stack, samples)
    path = os.path.join(harness.temporary(), "P.pb.gz")
    with open(path, "wb") as file:
        file.write(writer.bytes())
    return path


def made():
    top = "<module>:1@/srv/app/run.py "
    return profile([(top + "main:46@" + PACKAGES + "pip/_internal/cli/main.py", 50),
                    (top + "raw_decode:337@" + LIBRARY + "json/decoder.py", 30),
                    (top + "bad:7@" + HOSTILE, 20)])


def in_terminal(columns, *arguments):
    """What a verb prints on a terminal that is so wide, without colours."""
    fd, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    process = subprocess.Popen([PYPROF, *map(str, arguments)], stdin=subprocess.DEVNULL,
                               stdout=slave, stderr=subprocess.PIPE, env=dict(
                                   os.environ, TERM="xterm", NO_COLOR="1"))
    os.close(slave)
    out = b""
    while True:
        try:
            got = os.read(fd, 65536)
        except OSError:
            break
        if not got:
            break
        out += got
    os.close(fd)
    assert process.wait(10) == 0, process.stderr.read()
    return out.decode().replace("\r", "")


def test_every_view_shows_short_paths_and_the_whole_ones_when_asked():
    path = made()
    for verb in (["report"], ["report", "--by",
                              "line"], ["report", "--by",
                                        "file"], ["report", "--callers",
                                                  "main"], ["tree"], ["diff", path]):
        said = run(verb[0], path, *verb[1:])
        assert re.search(r" pip/_internal/cli/main\.py\b", said), (verb, said)
        assert PACKAGES not in said and LIBRARY not in said, (verb, said)
        assert PACKAGES + "pip/_internal/cli/main.py" in run(verb[0], path, *verb[1:],
                                                             "--full-paths"), verb


def test_page_has_both_and_exports_the_whole_path():
    path = made()
    page = run("flame", path)
    data = json.loads(page.split('type="application/json">\n')[1].split("\n</script>")[0])
    shown = {data["strings"][file]: text for file, text in data["shortFiles"]}
    assert shown[PACKAGES + "pip/_internal/cli/main.py"] == "pip/_internal/cli/main.py", shown
    assert shown["/srv/app/run.py"] == "run.py", shown
    assert '"shortFiles"' not in run("flame", path, "--full-paths")
    for kind in ("json", "csv", "folded", "speedscope"):
        assert PACKAGES + "pip/_internal/cli/main.py" in run("export", "--format", kind, path), kind


def test_files_of_one_name_are_told_apart():
    said = run(
        "report",
        profile([("a:1@/srv/app/json/decoder.py b:337@" + LIBRARY + "json/decoder.py", 5),
                 ("<module>:1@/srv/app/run.py", 5)]))
    assert "  app/json/decoder.py:1\n" in said, said
    assert "  python3.12/json/decoder.py:337\n" in said, said


def test_hostile_path_stays_escaped():
    path = made()
    for words in (["report", path], ["report", path, "--full-paths"], [
            "tree", path], ["flame", path]):
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f]", run(*words)), words
    assert "  ev\\x1b[2J\\x07il.py:7\n" in run("report", path)
    for columns in range(20, 120, 7):
        assert "\x1b" not in in_terminal(columns, "report", path)


def test_lines_fit_the_terminal_and_keep_file_and_line():
    name = "/".join(["/srv/app"] + ["directory%d" % i for i in range(12)]) + "/leaf.py"
    path = profile([
        ("<module>:1@/srv/app/run.py %s:321@%s" % ("very_long_name_of_a_function_" * 4, name), 500)
    ])
    for columns in (80, 120, 200):
        for verb in ("report", "tree"):
            said = in_terminal(columns, verb, path)
            row = [line for line in said.split("\n") if "very_long" in line][0]
            assert len(row) <= columns, (columns, verb, row)
            assert "/leaf.py:321" in row and row.count("…") >= (2 if columns < 200 else 1), (
                columns, verb, row)
        assert "directory5" in run("report", path), "nothing is cut where there is no terminal"


def test_every_table_fits_the_terminal():
    """Nothing is wider; what identifies a row is there; on a wide terminal nothing is left out."""
    name = "very_long_name_of_a_function_" * 4
    stack = " ".join("frame_%d:%d@/srv/app/shop/models.py" % (i, i + 1)
                     for i in range(20)) + " %s:321@%s" % (name, "/srv/app/leaf.py")
    now, before = profile([(stack, 500), ("other:7@/srv/app/leaf.py", 500)]), profile(
        [(stack, 900), ("other:7@/srv/app/leaf.py", 100)])
    lines_path, source = make()
    for columns in (80, 140, 200):
        for words in (["diff", before, now], ["info", now], ["lines", source, lines_path],
                      ["report", now], ["tree", now]):
            said = in_terminal(columns, *words)
            longest = max(said.split("\n"), key=len)
            assert len(longest) <= columns, (columns, words, longest)
        said = in_terminal(columns, "diff", before, now)
        assert re.search(r"^ +10\.0  50\.0  \+40\.00\* .* other  \S*leaf\.py:7$", said, re.M), said
        assert re.search(r"^ .* \(\d+ more\);.*…\S+$" if columns == 80 else r"^ .*;very_long", said,
                         re.M), said
        assert ("95 % of it" in said) == (columns >= 140), said
    # A terminal shows as much of a source line as fits, elsewhere all of it is there.
    for line in open(source):
        if len(line) > 60:
            assert line.rstrip() in run("lines", source, lines_path, "--all")


def test_machine_comes_before_the_functions():
    """Two windows of a machine; the ledger says who took what."""
    directory = harness.temporary()
    for i in range(2):
        start_ms, rows = 1795273200000 + i * 1000, TypesWriter(waits.LEDGER)
        for pid, comm, parts in ((41, "python3", {"python": 300, "native": 150, "kernel": 50,
                                                  "lock": 1500}),
                                 (42, "nginx", {"unsampled": 100, "net": 900})):
            rows.put("process:1", (0, sum(parts.values()) * 10**6, 2), pid, None, comm=comm)
            for state, ms in parts.items():
                rows.put(state + ":1", (ms * 10**6, ), pid, None, comm=comm, state=state)
        with open(os.path.join(directory, "%d-1000-ledger.pb.gz" % start_ms), "wb") as file:
            file.write(rows.bytes(start_ms, 1000))
        writer = FilesWriter("")
        writer.add("<module>:1@/srv/app/run.py", 50)
        number = writer.at("elapsed_ns=1000000000 host_busy_ns=1200000000 host_cpus=2")
        content = gzip.decompress(writer.bytes()) + message((13, varint(number)))
        with open(os.path.join(directory, "%d-1000-cpu.pb.gz" % start_ms), "wb") as file:
            file.write(gzip.compress(content))
    said = run("report", directory).split("\n")
    assert said[1].startswith(
        "machine: 60 % of 2 CPUs busy; 2 processes took 60.0 % of one: Python 50 %,"), said
    assert said[3].split() == "50.0 30.0 15.0 5.0 150.0 41 python3 waits: lock 100 %".split(), said
    assert said[4].split()[:7] == "10.0 0.0 0.0 0.0 90.0 42 nginx".split(), said
    assert "FUNCTION" in said[6], said
    for words in (["--pid", "7"], ["--focus", "module"], ["--by",
                                                          "thread"], ["--callers", "module"]):
        assert "machine:" not in run("report", directory, *words), words


def without_arguments(directory):
    done = subprocess.run([PYPROF], cwd=directory, capture_output=True, text=True, timeout=10,
                          check=False)
    assert done.returncode == 2 and "Usage: pyprof" in done.stderr, done
    return done.stderr


def test_the_newest_profile_is_named_above_the_usage():
    directory, later = harness.temporary(), time.time() + 3600
    for name, age in (("old.pb.gz", 20), ("cpu.pb.gz", 10), ("x;reboot.pb.gz", 5),
                      ("\x1b[2Jy.pb.gz", 4), ("notes.txt", 1)):
        with open(os.path.join(directory, name), "w"):
            pass
        os.utime(os.path.join(directory, name), (later - age,) * 2)
    os.symlink("/etc/passwd", os.path.join(directory, "link.pb.gz"))
    said = without_arguments(directory)
    assert said.startswith("The newest profile here:\n  pyprof report cpu.pb.gz\n"), said
    os.utime(os.path.join(directory, "old.pb.gz"), (later,) * 2)
    assert "  pyprof report old.pb.gz\n" in without_arguments(directory)
    said = without_arguments(harness.temporary())
    assert re.match(
        r"(There is no profile here yet|The newest profile here).*\n  (sudo pyprofd -d|pyprof "
        r"report /var)",
        said), said


def test_examples_speak_of_the_same_files():
    for verb in ("report", "flame", "tree", "lines", "calls", "export", "info"):
        said = run(verb, "--help")
        names = set(re.findall(r"[\w/-]+\.pb\.gz", said.split("Examples:")[1]))
        known = {"cpu.pb.gz", "hour.pb.gz", "now.pb.gz", "calls.pb.gz"}
        assert names <= known and "cpu.pb.gz" in names, (verb, names)
        assert set(re.findall(r"--pid (\d+)", said)) <= {"1234"}, said


def page_data(*arguments):
    page = run("flame", *arguments)
    return json.loads(page.split('type="application/json">\n')[1].split("\n</script>")[0])


def test_page_holds_the_source_that_ran():
    path, source = make()
    shown = {one["file"]: one for one in page_data(path)["sources"]}
    same = SOURCE.split("\n")
    assert shown[source]["note"] == "" and [8, same[7]] in shown[source]["lines"], shown
    assert all(text == same[number - 1] for number, text in shown[source]["lines"]), shown
    assert "sources" not in page_data(path, "--no-source")
    with open(source, "w") as file:
        file.write("# another file\n" * 40)
    shown = {one["file"]: one for one in page_data(path)["sources"]}
    assert shown[source]["lines"] == [] and "changed" in shown[source]["note"], shown


def test_page_reads_only_plain_python_files():
    directory = harness.temporary()
    os.mkfifo(os.path.join(directory, "pipe.py"))
    os.mkdir(os.path.join(directory, "directory.py"))
    with open(os.path.join(directory, "key.pem"), "w") as file:
        file.write("secret\n" * 20)
    names = ["pipe.py", "directory.py", "key.pem", "gone.py"]
    path = profile([("<module>:1@%s/%s" % (directory, name), 5)
                    for name in names] + [("<module>:1@/etc/passwd", 5), ("<module>:1@w.py", 5)])
    shown = page_data(path)["sources"]
    assert sorted(
        os.path.basename(one["file"]) for one in shown) == ["directory.py", "gone.py",
                                                            "pipe.py"], shown
    assert all(one["lines"] == [] and one["note"] for one in shown), shown


def test_page_of_a_difference_has_the_source_of_after():
    file = os.path.join(harness.temporary(), "w.py")
    with open(file, "w") as out:
        out.write("import math\n\ndef work():\n" + "    math.sqrt(2)\n" * 20)
    os.utime(file, (10**9, 10**9))  # before the profile
    now, before = profile([("work:3@" + file, 500)]), profile([("work:1@" + file, 500)])

    def sources(*words):
        page = run("diff", *words, "--format", "html")
        return json.loads(
            page.split('type="application/json">\n')[1].split("\n</script>")[0]).get("sources")
    shown, = sources(now, now)
    assert shown["note"] == "" and [3, "def work():"] in shown["lines"], shown
    shown, = sources(before, now)
    assert [3, "def work():"
            ] in shown["lines"] and "changed since the profile before" in shown["note"], shown
    shown, = sources(now, before)
    assert shown["lines"] == [] and "changed since it ran" in shown["note"], shown
    assert sources(now, now, "--no-source") is None


def test_page_has_what_each_window_added():
    data = page_data(make_store(5))
    times = data["times"]
    assert len(
        times["start"]) == 5 and times["duration"] == [1000] * 5 and times["first"][0] == 0, times
    bounds = times["first"] + [len(times["value"])]
    # A window has 100 samples of 10 ms, and 2 or 4 more of each of four stacks.
    sums = [sum(times["value"][bounds[i]:bounds[i + 1]]) // 10**7 for i in range(5)]
    assert sums == [100, 108, 116, 100, 108], sums
    whole = [0] * len(data["samples"]["value"])
    for sample, value in zip(times["sample"], times["value"]):
        whole[sample] += value
    assert whole == data["samples"]["value"], (whole, data["samples"])
    assert "times" not in page_data(made()), "one window has no map"
