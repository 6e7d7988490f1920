# SPDX-License-Identifier: BSD-2-Clause
"""`pyprofd -- COMMAND`: its exit status, its first samples, its children."""
import os
import pwd
import signal
import time

import harness


def command_profile(command, **more):
    more.setdefault("env", {"E2E_DIR": harness.temporary(), "PYTHONDONTWRITEBYTECODE": "1"})
    return harness.profile(None, duration=more.pop("duration", None), command=command, limit_s=60,
                           **more)


def test_exit_status_is_the_commands():
    assert command_profile(["sh", "-c", "exit 7"], check=False).rc == 7
    assert command_profile(["true"], check=False).rc == 0
    assert command_profile(["sh", "-c", "kill -TERM $$"], check=False).rc == 128 + signal.SIGTERM


def test_command_that_does_not_exist():
    run = command_profile(["/nowhere/program"], check=False)
    assert run.rc != 0 and not os.path.exists(run.out), run.err


def test_first_samples():
    """Profiled from the first instruction: the interpreter's own start is in the profile."""
    python = harness.interpreter()
    run = command_profile(python.command + [os.path.join(harness.TARGETS, "burn.py"), "1.0"],
                          hz=999)
    samples = harness.samples(run.out)
    pids = {s.pid for s in samples}
    assert len(pids) == 1, pids
    work = [s for s in samples if harness.holds(s, "<module>", "main", "burn_python")]
    # A second of its own clock; what a hypervisor takes is in none of its clocks, and delays
    # samples.
    assert 950 <= harness.total(work) <= 1100, harness.total(work)
    start = [s for s in samples if not harness.holds(s, "<module>", "main")]
    assert harness.total(start) >= 3, "nothing of the interpreter's start"
    harness.expect_share(samples, harness.is_rooted, 0.97, "native root")


def test_only_the_command_and_its_children():
    python = harness.interpreter()
    with harness.light() as stranger:
        run = command_profile(["sh", "-c", "%s %s 0.2; %s %s 0.2" % (2 * (
            python.command[0], os.path.join(harness.TARGETS, "burn.py")))])
        samples = harness.samples(run.out)
        assert not [s for s in samples if s.pid == stranger.pid]
        workers = {s.pid for s in samples if harness.holds(s, "burn_python")}
        assert len(workers) == 2, workers


def test_duration_leaves_the_command_running():
    """-d ends the profile; the command's exit status still counts."""
    begin = time.monotonic()
    run = command_profile(["sh", "-c", "sleep 2; exit 3"], duration=1, check=False)
    assert run.rc == 3, (run.rc, run.err)
    assert time.monotonic() - begin >= 2


def test_commands_output_is_its_own():
    out = os.path.join(harness.temporary(), "o.pb.gz")
    process = harness.start(out, command=["sh", "-c", "echo from the command"],
                            stdout=harness.subprocess.PIPE)
    said, _ = process.communicate(timeout=60)
    assert said == b"from the command\n", said


# What a command sees of who it is: ids, groups, names, what sudo leaves, capabilities, limits.
WHO = (
    "id -u; id -g; id -G; echo $HOME,$USER,$LOGNAME; echo "
    "${SUDO_UID-none},${SUDO_GID-none},${SUDO_COMMAND-none}; "
    "grep CapEff: /proc/self/status; nice; ulimit -n")
ROOTS = {"HOME": "/root", "USER": "root", "LOGNAME": "root"}
SUDO = {"SUDO_UID": "65534", "SUDO_GID": "65534", "SUDO_USER": "nobody", "SUDO_COMMAND": "pyprofd"}


def who_runs(env, options=()):
    """The lines of WHO, and whom the profile belongs to."""
    said = os.path.join(harness.temporary(), "said")
    with open(said, "wb") as file:
        run = command_profile(["sh", "-c", WHO], env=dict(ROOTS, **env), options=options,
                              stdout=file)
    with open(said, encoding="utf-8") as file:
        return file.read().splitlines(), os.stat(run.out).st_uid


def own_setting():
    return harness.subprocess.check_output(["sh", "-c", "nice; ulimit -n"],
                                           universal_newlines=True).splitlines()


def test_sudo_runs_the_command_as_who_called_it():
    nobody = pwd.getpwuid(65534)
    said, owner = who_runs(SUDO)
    groups = " ".join(str(x) for x in os.getgrouplist(nobody.pw_name, 65534))
    assert said[:5] == [
        "65534", "65534", groups,
        "%s,%s,%s" % (nobody.pw_dir, nobody.pw_name, nobody.pw_name), "none,none,none"
    ], said
    assert int(said[5].split()[1], 16) == 0, said
    assert said[6:] == own_setting(), said
    assert owner == 65534


def test_as_root_it_stays_roots():
    said, owner = who_runs(SUDO, ["--set", "capture.as-root=yes"])
    assert said[0] == "0" and said[3:5] == ["/root,root,root", "65534,65534,pyprofd"], said
    assert owner == 65534
    assert who_runs({})[0][0] == "0"


def test_a_caller_that_is_no_user_is_refused():
    for env in ({"SUDO_UID": "joe",
                 "SUDO_GID": "0"}, {"SUDO_UID": "65534"}, {"SUDO_UID": "-1", "SUDO_GID": "65534"}):
        run = command_profile(["true"], env=env, check=False)
        assert run.rc == 1 and "SUDO_UID" in run.err and len(run.err.splitlines()) == 1, run


def test_what_the_caller_may_not_run_says_so():
    private = os.path.join(harness.temporary(), "private")
    with open(private, "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\n")
    os.chmod(private, 0o700)
    run = command_profile([private], env=SUDO, check=False)
    assert run.rc == 126 and "as user 65534" in run.err and "capture.as-root" in run.err, run
    assert command_profile([private], env=SUDO, options=["--set", "capture.as-root=yes"]).rc == 0
