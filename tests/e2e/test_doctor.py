# SPDX-License-Identifier: BSD-2-Clause
"""pyprofd --doctor: a line a check, and exit status 1 when one fails."""
import os
import re
import shutil
import socket
import subprocess

import harness


def doctor(*words, wrap=()):
    run = subprocess.run([*wrap, harness.PYPROFD, "--doctor", *words], stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, universal_newlines=True, check=False)
    assert not run.stderr, run.stderr
    settings, lines = run.stdout.split("\n\n\n")
    assert settings.startswith("[capture]\nhz "), settings
    lines = lines.splitlines()
    for line in lines[:-1]:
        assert re.match(r"(ok  |warn|fail)  \S", line), line
    counted = [sum(line.startswith(word) for line in lines) for word in ("ok", "warn", "fail")]
    assert lines[-1] == "%d ok, %d warn, %d fail" % tuple(counted), run.stdout
    assert run.returncode == (1 if counted[2] else 0), run.stdout
    return lines


def found(lines, name):
    return [line for line in lines if line[6:].startswith(name)]


def test_a_host_that_runs_pyprofd_is_fine():
    with harness.light() as target:
        lines = doctor("-o", harness.temporary() + "/")
        with open("/proc/%d/maps" % target.pid, encoding="utf-8") as file:
            maps = file.read()
    assert not [line for line in lines if line.startswith("fail")], lines
    for name in ("kernel", "BTF", "capabilities", "limits", "output", "BPF", "perf events",
                 "probes", "tracefs", "cgroups", "clock", "GPU", "configuration"):
        assert found(lines, name), (name, lines)
    pythons = [line for line in found(lines, "python") if "the self-test is fine" in line]
    paths = [re.search(r"'(.*)'", line).group(1) for line in pythons]
    assert any(path in maps for path in paths), (lines, target.pid)


def test_what_fails_names_the_fix_and_exits_1():
    path = os.path.join(harness.temporary(), "c.conf")
    token = os.path.join(harness.temporary(), "token")
    with open(token, "w", encoding="utf-8") as file:
        file.write("geheim\n")
    os.chmod(token, 0o644)
    closed = socket.socket()
    closed.bind(("127.0.0.1", 0))
    with open(path, "w", encoding="utf-8") as file:
        file.write("[http]\ntoken-file = %s\n[push a]\ntype = otlp\nurl = http://127.0.0.1:%d\n" %
                   (token, closed.getsockname()[1]))
    lines = doctor("--config", path, "-o", "/no/such/place/")
    assert "geheim" not in "".join(lines)
    assert re.search(r"^fail  http +token-file: .* chmod o= ", found(lines, "http")[0]), lines
    assert "Connection refused" in found(lines, "push a")[0], lines
    assert found(lines, "output")[0].startswith("fail"), lines
    closed.close()


def test_without_root_it_says_what_it_could_not_look_at():
    harness.need(shutil.which("setpriv"), "no setpriv")
    wrap = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
    lines = doctor("-o", "/tmp/", wrap=wrap)
    assert found(lines, "capabilities")[0].startswith("warn"), lines
    assert "run it as root" in found(lines, "BPF")[0], lines
    assert "\x1b" not in "".join(lines)


DEBIAN = "/usr/bin/python3.11"
SLEEP = [DEBIAN, "-c", "import time\nprint(flush=True)\ntime.sleep(60)"]


def line_of_probes(lines):
    return next(line for line in found(lines, "probes") if "'%s'" % DEBIAN in line)


def test_probes_of_interpreters_are_listed_with_their_price():
    harness.need(os.path.exists(DEBIAN), "no Debian 3.11")
    with subprocess.Popen(SLEEP, stdout=subprocess.PIPE) as sleeper:
        sleeper.stdout.readline()
        lines = doctor("-o", harness.temporary() + "/")
        sleeper.kill()
    kernel = found(lines, "probes")[0]
    hit, _, step = map(float, re.findall(r" (\d+\.\d) us (?:at|where)", kernel))
    assert 0 < hit < step, kernel
    line = line_of_probes(lines)
    assert line.startswith("ok"), line
    for name in "gc", "import", "function entry and return", "line":
        assert re.search(name + r" \(\d+\.\d us\)", line), line
    call = float(re.search(r"exact calls: yes, about (\d+\.\d) us a call", line).group(1))
    assert 0.4 < call - 2 * hit < 0.8, (line, kernel)
    assert "not measured here" not in line, line


def test_without_root_probes_are_listed_at_typical_prices():
    harness.need(shutil.which("setpriv") and os.path.exists(DEBIAN), "no setpriv or Debian 3.11")
    wrap = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
    with subprocess.Popen([*wrap, *SLEEP], stdout=subprocess.PIPE) as sleeper:
        sleeper.stdout.readline()
        lines = doctor("-o", "/tmp/", wrap=wrap)
        sleeper.kill()
    line = line_of_probes(lines)
    assert "gc (" in line and "(not measured here)" in line, line
    assert len(found(lines, "probes")) == 1 or "'" in found(lines, "probes")[0], lines
