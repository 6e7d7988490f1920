# SPDX-License-Identifier: BSD-2-Clause
"""What people read: short paths in every view, whole ones where they are asked for, lines that fit a terminal."""
import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import termios

import harness
from test_pyprof import PYPROF, Writer, run
from test_reader import message

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
            fields.append((4, message((1, number), (2, 1), (4, message((1, number), (2, int(line)))))))
            fields.append((5, message((1, number), (2, self.at(name)), (4, self.at(file)), (5, int(line)))))
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
                    (top + "raw_decode:337@" + LIBRARY + "json/decoder.py", 30), (top + "bad:7@" + HOSTILE, 20)])


def in_terminal(columns, *arguments):
    """What a verb prints on a terminal that is so wide, without colours."""
    fd, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    process = subprocess.Popen([PYPROF, *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=slave,
                               stderr=subprocess.PIPE, env=dict(os.environ, TERM="xterm", NO_COLOR="1"))
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
    for verb in (["report"], ["report", "--by", "line"], ["report", "--by", "file"], ["report", "--callers", "main"],
                 ["tree"], ["diff", path]):
        said = run(verb[0], path, *verb[1:])
        assert re.search(r" pip/_internal/cli/main\.py\b", said), (verb, said)
        assert PACKAGES not in said and LIBRARY not in said, (verb, said)
        assert PACKAGES + "pip/_internal/cli/main.py" in run(verb[0], path, *verb[1:], "--full-paths"), verb


def test_page_has_both_and_exports_the_whole_path():
    path = made()
    page = run("flame", path)
    data = json.loads(page.split('type="application/json">\n')[1].split("\n</script>")[0])
    shown = {data["strings"][file]: text for file, text in data["shortFiles"]}
    assert shown[PACKAGES + "pip/_internal/cli/main.py"] == "pip/_internal/cli/main.py", shown
    assert shown["/srv/app/run.py"] == "run.py", shown
    assert '"shortFiles"' not in run("flame", path, "--full-paths")
    for kind in ("--json", "--csv", "--folded", "--speedscope"):
        assert PACKAGES + "pip/_internal/cli/main.py" in run("export", kind, path), kind


def test_files_of_one_name_are_told_apart():
    said = run("report", profile([("a:1@/srv/app/json/decoder.py b:337@" + LIBRARY + "json/decoder.py", 5),
                                  ("<module>:1@/srv/app/run.py", 5)]))
    assert "  app/json/decoder.py:1\n" in said and "  python3.12/json/decoder.py:337\n" in said, said


def test_hostile_path_stays_escaped():
    path = made()
    for words in (["report", path], ["report", path, "--full-paths"], ["tree", path], ["flame", path]):
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f]", run(*words)), words
    assert "  ev\ufffd[2J\ufffdil.py:7\n" in run("report", path)
    for columns in range(20, 120, 7):
        assert "\x1b" not in in_terminal(columns, "report", path)


def test_lines_fit_the_terminal_and_keep_file_and_line():
    name = "/".join(["/srv/app"] + ["directory%d" % i for i in range(12)]) + "/leaf.py"
    path = profile([("<module>:1@/srv/app/run.py %s:321@%s" % ("very_long_name_of_a_function_" * 4, name), 500)])
    for columns in (80, 120, 200):
        for verb in ("report", "tree"):
            said = in_terminal(columns, verb, path)
            row = [line for line in said.split("\n") if "very_long" in line][0]
            assert len(row) <= columns, (columns, verb, row)
            assert "/leaf.py:321" in row and row.count("…") >= (2 if columns < 200 else 1), (columns, verb, row)
        assert "directory5" in run("report", path), "nothing is cut where there is no terminal"
