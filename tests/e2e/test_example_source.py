# SPDX-License-Identifier: BSD-2-Clause
"""A new event takes four files: rows in kinds.h, one file in bpf/, one source, one test.  The
example of docs/hacking.md, laid over a copy of the sources and built there, counts programs that
begin."""
import collections
import os
import re
import shutil
import subprocess

import harness

EXAMPLE = os.path.join(harness.TOP, "tests", "example_source")
# pyprofd is not linked with these, which have lists of kinds, too, and would be built again.
LEFT_OUT = "reader serve query export render diff collectors"
EXECS = {1: 40, 2: 30, 5: 20}  # programs by number of arguments


def add_rows(path):
    """Adds the rows of the example at the ends of their tables."""
    with open(path) as file:
        text = file.read()
    with open(os.path.join(EXAMPLE, "kinds.rows")) as file:
        rows = [line.split("\t") for line in file if line.strip() and line[0] != "#"]
    number = len(re.findall(r"^\t[XY]\(\w+, \d+, \"", text[text.index("#define PP_PROFILES("):]
                            .split("\n\n")[0], re.M))
    for table, row in rows:
        begin = text.index("#define %s(" % table)
        end = re.search(r"[^\\]\n", text[begin:]).start() + begin + 1
        row = row.strip().replace("NUMBER", str(number))
        text = "%s \\\n\t%s%s" % (text[:end], row, text[end:])
    with open(path, "w") as file:
        file.write(text)


def build():
    """Copies what is built with its times, so that only what sees kinds.h is built again."""
    top = harness.temporary()
    built = os.path.relpath(os.path.dirname(harness.PYPROFD), harness.TOP)
    harness.need(not built.startswith(".."), "pyprofd is built elsewhere")
    for name in ("bpf", "include", "userspace", "tests", "Makefile",
                 os.path.join(built, "bpf"), os.path.join(built, "gen"),
                 os.path.join(built, "userspace"), os.path.join(built, "flags")):
        os.makedirs(os.path.dirname(os.path.join(top, name)), exist_ok=True)
        subprocess.run(["cp", "-a", os.path.join(harness.TOP, name), os.path.join(top, name)],
                       check=True)
    shutil.copytree(os.path.join(EXAMPLE, "bpf"), os.path.join(top, "bpf"), dirs_exist_ok=True)
    shutil.copytree(os.path.join(EXAMPLE, "userspace"), os.path.join(top, "userspace"),
                    dirs_exist_ok=True)
    add_rows(os.path.join(top, "include", "pyprofd", "kinds.h"))
    for name in LEFT_OUT.split():
        shutil.rmtree(os.path.join(top, "userspace", name))
    program = os.path.join(built, "pyprofd")
    done = subprocess.run(["make", "-j2", "BUILD=" + built, program], cwd=top,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout.decode()[-4000:]
    return os.path.join(top, program)


def test_counts_programs_that_begin():
    out = os.path.join(harness.temporary(), "exec.pb.gz")
    program = build()
    script = ";".join("for i in $(seq %d); do %s; done" % (times, " ".join(
        ["/bin/true"] + ["x"] * (count - 1))) for count, times in EXECS.items())
    done = subprocess.run([program, "--events", "exec", "-o", out, "--", "/bin/sh", "-c", script],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout.decode()
    profile = harness.load(out)
    assert [(t[0], t[1]) for t in profile.sample_types] == [("execs", "count")]
    got = collections.Counter()
    for sample in profile.samples:
        if sample.labels["comm"] == "true":
            got[int(sample.labels["arguments"])] += sample.values[0]
        assert any(frame.kind == "kernel" for frame in sample.frames), harness.text(sample)
    assert got == EXECS, (got, done.stdout.decode())


# Building takes 30 s of CPU time.
test_counts_programs_that_begin.limit_s = 600
test_counts_programs_that_begin.few = False
