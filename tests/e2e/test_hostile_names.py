# SPDX-License-Identifier: BSD-2-Clause
"""A profile whose every name is hostile, in every view and export; and one that names files which
are not its own."""
import csv
import gzip
import io
import json
import marshal
import os
import re
import subprocess
import tempfile
import xml.etree.ElementTree

import harness
from test_pyprof import PYPROF, run
from test_reader import message, varint

# What no view may show as it is: but for the line breaks that it makes itself.
HIDDEN = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ufeff]")
FORMULA = re.compile(r"^[=+\-@\t\r]")
NAMES = [
    b"\x1b[2J\x1b]0;owned\x07", b"\xc2\x9b31m", b"<script>alert(1)</script>",
    b"</script><script>alert(1)</script>", b"<!--<script>",
    b"]]></style></title><img src=x onerror=alert(1)>", b"\"' onmouseover=alert(1) x='",
    b"a\xe2\x80\xa8b\xe2\x80\xa9c", b"nul\0nul", b"\xe2\x80\xaegpj.exe",
    b"\xe2\x81\xa6x\xe2\x81\xa9\xd8\x9c", b"line\nfn=(1) forged\ncalls=1 1\r\n", b"semi;colon 99",
    b"tab\ttab", b"back\\slash\\", b"broken\xff\xc3", b"=cmd|' /C calc'!A0", b"+1+1", b"-1",
    b"@SUM(A1)", b"\t=1", b"\r=1", b"__proto__", b"${7*7}`x`", b"%s%n", b"x" * 1000000
]


def hostile(raw):
    """A profile in which each of NAMES is a function, a file, a module, a process, a thread and a
    comment."""
    strings = [
        b"", b"cpu", b"nanoseconds", b"pid", b"comm", b"thread_name", b"samples", b"count",
        b"line 1"
    ] + NAMES
    fields = [(1, message((1, 6), (2, 7))), (1, message((1, 1), (2, 2))), (12, 10**7), (10, 10**9)]
    for i in range(len(NAMES)):
        name = 9 + i
        # A Python function, which has no module, and one of native code.
        fields += [(3, message((1, i + 1), (5, name))),
                   (5, message((1, 2 * i + 1), (2, name), (4, name), (5, 1))),
                   (5, message((1, 2 * i + 2), (2, name), (3, name))),
                   (4, message((1, 2 * i + 1), (4, message((1, 2 * i + 1), (2, i + 1))))),
                   (4,
                    message((1, 2 * i + 2), (2, i + 1), (3, 4096 + i), (4, message(
                        (1, 2 * i + 2))))), (13, name)]
        labels = [(3, message((1, 3), (3, i + 1))), (3, message((1, 4), (2, name))),
                  (3, message((1, 5), (2, name)))]
        stack = [(1, 2 * i + 2), (1, 2 * i + 1)] + ([(1, 2 * i - 1)] if i else [])
        fields.append((2, message(*(stack + [(2, 1), (2, 10 ** 7)] + labels))))
    path = os.path.join(harness.temporary(), "P.pb.gz")
    with open(path, "wb") as file:
        file.write(
            gzip.compress(message(*fields, *[(6, s) for s in strings]), 1) if not raw else message(
                *fields))
    return path


def out_of(*arguments):
    """What a verb writes, as bytes."""
    done = subprocess.run([PYPROF, *map(str, arguments)], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
    assert done.returncode == 0, (arguments, done.returncode, done.stderr[:500])
    assert not HIDDEN.search(done.stderr.decode()), done.stderr[:500]
    return done.stdout


def text_of(*arguments):
    """The same as text: UTF-8, all of it.  Lines of CSV end as RFC 4180 says, and the page and
    Graphviz' text have tabs."""
    text = out_of(*arguments).decode().replace("\r\n", "\n")
    found = HIDDEN.search(
        text.replace("\t", "") if {"flame", "html", "dot"} & set(arguments) else text)
    assert not found, (arguments, text[max(found.start() - 60, 0):found.end() + 60])
    return text


def test_no_view_of_the_terminal_obeys_a_name():
    path = hostile(False)
    for verb in (["report"], ["report", "--by", "line"], ["report", "--full-paths"], [
            "report", "--group-by", "thread"
    ], ["tree"], ["info"], ["diff", path, "--force"], ["report", "--callers",
                                                       "forged"], ["lines", "forged"]):
        if verb[0] == "lines":
            said = subprocess.run([PYPROF, *verb, path], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE).stdout.decode()
            assert not HIDDEN.search(said), said
        else:
            assert "forged" in text_of(verb[0], path, *
                                       verb[1:]) or verb[0] in ("info", "diff"), verb


def test_no_page_runs_a_name():
    path = hostile(False)
    for verb in (["flame"], ["diff", path, "--format", "html", "--force"]):
        page = text_of(verb[0], path, *verb[1:])
        assert "alert(1)</script>" not in page and "<img src=x" not in page, verb
        data = json.loads(
            re.search(r'type="application/json"[^>]*>\n(.*?)\n</script>', page, re.S).group(1))
        assert any("alert(1)" in s
                   for s in data["strings"]) and not any(HIDDEN.search(s) for s in data["strings"])
    svg = text_of("flame", path, "--format", "svg")
    for element in xml.etree.ElementTree.fromstring(svg).iter():
        assert not element.tag.endswith("script") and not [
            a for a in element.attrib if a.startswith("on")
        ], element.tag


def test_no_export_passes_a_name_on():
    path = hostile(False)
    # Sheets: whatever cell a name is in, no formula; and as many cells as there should be.
    csv.field_size_limit(1 << 30)
    rows = list(csv.reader(io.StringIO(text_of("export", "--format", "csv", path))))
    assert all(len(row) == len(rows[0]) for row in rows) and len(rows) > len(NAMES)
    texts = [
        cell for row in rows for cell in row if not re.match(r"^-?[0-9.]+$", cell) or cell == "-1"
    ]
    assert any(cell.startswith("'=cmd")
               for cell in texts) and not [c for c in texts if FORMULA.match(c)]
    # Lines of text: one a stack, and the count is the agent's.
    for line in text_of("export", "--format", "folded", path).splitlines():
        assert line.rsplit(" ", 1)[1] == "10000000", line[-200:]
    for line in text_of("export", "--format", "callgrind", path).splitlines():
        assert re.match(r"^(\d|\+|\*|[a-z]+[:=]|#|$|calls=|c?f[nile]+=)", line), line[:200]
        assert not line.startswith(("fn=(1) forged", "calls=1 1\n")), line[:200]
    for kind in ("json", "speedscope", "chrome"):
        text = text_of("export", "--format", kind, path)
        json.loads(text)
        assert "<" not in text, kind
    for kind in ("pprof", "otlp", "perfetto"):
        wire = out_of("export", "--format", kind, path)
        wire = gzip.decompress(wire) if wire[:2] == b"\x1f\x8b" else wire
        for name in NAMES:
            assert name not in wire or not HIDDEN.search(name.decode()), (kind, name)
    dot = text_of("calls", path, "--format", "dot")
    # Nothing of a name is outside of quotes.
    outside = re.sub(r'"(?:[^"\\]|\\.)*"', "", dot)
    assert "alert" not in outside and "forged" not in outside and "script" not in outside, outside[
        : 500]
    pstats = os.path.join(harness.temporary(), "x.pstats")
    out_of("calls", path, "--format", "pstats", "-o", pstats)
    with open(pstats, "rb") as file:
        names = [part for key in marshal.load(file) for part in key if isinstance(part, str)]
    assert any("forged" in name for name in names) and not [n for n in names if HIDDEN.search(n)]


def test_names_of_files_on_the_command_line_are_shown_as_text():
    directory = harness.temporary()
    path = os.path.join(directory, "\x1b[31m\u202e.pb.gz")
    os.rename(hostile(False), path)
    assert "\\x1b[31m\\u202e.pb.gz" in text_of("report", path)
    done = subprocess.run([PYPROF, "report", path + "no"], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)
    assert b"\\x1b[31m\\u202e.pb.gzno" in done.stderr and b"\x1b" not in done.stderr, done.stderr


# ---------------------------------------------------------------- files that a profile names

def named(*files):
    """A profile of a Python function in each of these files."""
    strings = ["", "cpu", "nanoseconds"] + list(files)
    fields = [(1, message((1, 1), (2, 2)))]
    for i in range(len(files)):
        fields += [(5, message((1, i + 1), (2, 3 + i), (4, 3 + i))),
                   (4, message((1, i + 1), (4, message((1, i + 1), (2, 1))))),
                   (2, message((1, i + 1), (2, 10)))]
    path = os.path.join(harness.temporary(), "P.pb.gz")
    with open(path, "wb") as file:
        file.write(message(*fields, *[(6, s.encode()) for s in strings]))
    return path


def test_a_profile_gets_no_foreign_file_printed():
    directory = harness.temporary()
    os.chmod(directory, 0o755)
    secret = os.path.join(directory, "shadow")
    own, link, roots = (os.path.join(directory, name) for name in ("own.py", "link.py", "roots.py"))
    with open(secret, "w") as file:
        file.write("the_secret\n")
    with open(own, "w") as file:
        file.write("what_ran\n")
    with open(roots, "w") as file:
        file.write("the_secret\n")
    os.chmod(roots, 0o600)
    os.symlink(secret, link)
    path = named(secret, own, link, roots)
    sudo = dict(os.environ, SUDO_UID="65534", SUDO_GID="65534") if not os.geteuid() else None
    for env, file, shown in ((None, "own.py", "what_ran"), (None, "shadow", None),
                             (None, "link.py", None), (sudo, "own.py",
                                                       "what_ran"), (sudo, "roots.py", None)):
        for more in ([], ["--format", "html"], ["--all"]):
            said = subprocess.check_output([PYPROF, "lines", file, path, *more], env=env).decode()
            assert "the_secret" not in said and (shown or "the source") in said, (file, more, said)
        page = subprocess.check_output([PYPROF, "flame", path], env=env).decode()
        assert "what_ran" in page and ("the_secret" not in page or env is None), file
    # The user's own word.
    assert "the_secret" in run("lines", "shadow", path, "--source", secret)


def test_a_page_reads_no_link_to_a_secret():
    directory = harness.temporary()
    secret, link = os.path.join(directory, "shadow"), os.path.join(directory, "link.py")
    with open(secret, "w") as file:
        file.write("the_secret\n")
    os.symlink(secret, link)
    assert "the_secret" not in run("flame", named(link))


# ---------------------------------------------------------------- memory

def of_many_frames(samples, padding):
    """A location of 1,000 functions, 64 times in each stack below a root of its own: a hundred
    bytes, 64,000 frames."""
    functions = 1000 + samples
    names = [b"", b"cpu", b"nanoseconds"] + [b"f%d" % i for i in range(functions)]
    lines = b"".join(message((4, message((1, i + 1), (2, 1)))) for i in range(1000))
    fields = [(1, message((1, 1), (2, 2))), (4, message((1, samples + 1)) + lines)]
    fields += [(5, message((1, i + 1), (2, 3 + i))) for i in range(functions)]
    for i in range(samples):
        fields += [(4, message((1, i + 1), (4, message((1, 1001 + i), (2, 1))))),
                   (2, message((1, varint(samples + 1) * 64 + varint(i + 1)), (2, 1)))]
    path = os.path.join(harness.temporary(), "many.pb")
    with open(path, "wb") as file:
        file.write(message(*fields, *[(6, s) for s in names], (99, bytes(padding))))
    return path


def peak_of(*arguments):
    """(exit status, stderr, MiB that it had at most)"""
    with tempfile.TemporaryFile() as err:
        process = subprocess.Popen([PYPROF, *arguments], stdout=subprocess.DEVNULL, stderr=err)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        err.seek(0)
        return process.returncode, err.read().decode(), used.ru_maxrss / 1024


def test_memory_of_a_hostile_profile_is_bounded():
    # 250 MiB of stacks in 2 MiB.
    path = of_many_frames(1000, 2 << 20)
    for verb in ("report", "tree", "flame", "info"):
        status, err, mib = peak_of(verb, path)
        assert status == 2 and err.count("\n") == 1 and mib < 64 + 16 * 3 + 40, (
            verb, status, err, mib)
        assert path in err and "MiB of memory" in err, err
    # What can be read, but not drawn: a node a frame.
    path = of_many_frames(500, 6 << 20)
    status, err, mib = peak_of("flame", path)
    assert status == 2 and err.count("\n") == 1 and mib < 1100, (status, err, mib)
    assert path in err and "1024 MiB" in err, err


def test_a_bomb_is_left_packed():
    path = os.path.join(harness.temporary(), "bomb.pb.gz")
    with open(path, "wb") as file:
        file.write(gzip.compress(bytes(400 << 20), 6))
    status, err, mib = peak_of("report", path)
    assert status == 2 and "256 times its size" in err and mib < 110, (status, err, mib)
