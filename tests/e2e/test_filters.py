# SPDX-License-Identifier: BSD-2-Clause
"""Which processes are profiled: --pid with children, --comm, --uid, --cgroup."""
import os
import subprocess

import harness


def pids_of(run):
    return {s.pid for s in harness.samples(run.out)}


def test_pid_leaves_others_out():
    with harness.light() as one, harness.light() as other:
        assert pids_of(harness.profile(one.pid, duration=1)) == {one.pid}
        assert pids_of(harness.profile([one.pid, other.pid], duration=1)) == {one.pid, other.pid}


def test_pid_includes_children_that_run_already():
    python = harness.interpreter()
    directory = harness.temporary()
    command = [python.command[0], os.path.join(harness.TARGETS, "burn.py"), "0", "light"]
    env = dict(os.environ, E2E_DIR=directory)
    shell = subprocess.Popen(["sh", "-c", '"$@" & "$@" & wait', "sh"] + command, env=env)
    try:
        children = harness.wait_for(
            lambda: len(harness.children(shell.pid)) == 2 and harness.children(shell.pid))
        harness.wait_for(lambda: os.path.exists(directory + "/ready"))
        run = harness.profile(shell.pid, duration=1)
        assert pids_of(run) == set(children), (pids_of(run), children)
        harness.expect_share(harness.samples(run.out), lambda s: harness.holds(s, "main"), 0.95,
                             "names")
    finally:
        open(directory + "/stop", "w").close()
        shell.wait(20)


def test_comm():
    with harness.light("apple-tree") as one, \
            harness.light("pear-tree"):
        run = harness.profile(None, duration=1, options=["--comm", "^apple"])
        assert pids_of(run) == {one.pid}, {(s.pid, s.labels.get("comm"))
                                           for s in harness.samples(run.out)}


def test_uid():
    nobody = 65534
    python = [i for i in harness.interpreters() if i.command[0].startswith("/usr/bin/")]
    harness.need(python, "no interpreter that another user can run")
    directory = harness.temporary()
    os.chmod(directory, 0o777)
    with harness.light() as other:
        one = harness.light(python=python[-1], directory=directory,
                            wrap=["setpriv", "--reuid=%d" % nobody, "--clear-groups"])
        with one:
            run = harness.profile(None, duration=1, options=["--uid", str(nobody)])
            assert one.pid in pids_of(run) and other.pid not in pids_of(run), pids_of(run)
            owners = {p for p in pids_of(run) if os.path.exists("/proc/%d" % p)
                      and os.stat("/proc/%d" % p).st_uid != nobody}
            assert not owners, owners


def test_cgroup():
    group = os.path.join(harness.cgroup2_mount(), "pyprofd-e2e-%d" % os.getpid())
    try:
        os.mkdir(group)
    except OSError as error:
        raise harness.Skip("no cgroup can be made: %s" % error)
    inner = os.path.join(group, "inner")
    os.mkdir(inner)
    try:
        with harness.light() as one, harness.light() as two, \
                harness.light():
            for place, target in ((group, one), (inner, two)):
                with open(os.path.join(place, "cgroup.procs"), "w", encoding="ascii") as file:
                    file.write(str(target.pid))
            run = harness.profile(None, duration=1, options=["--cgroup", group])
            assert pids_of(run) == {one.pid, two.pid}, (pids_of(run), one.pid, two.pid)
    finally:
        for place in (inner, group):
            harness.wait_for(lambda p=place: remove(p), what="end of " + place)


def remove(directory):
    try:
        os.rmdir(directory)
    except OSError:
        pass
    return not os.path.exists(directory)
