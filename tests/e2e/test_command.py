# SPDX-License-Identifier: BSD-2-Clause
"""`pyprofd -- COMMAND`: its exit status, its first samples, its children."""
import os
import signal
import time

import harness


def command_profile(command, **more):
    more.setdefault("env", {"E2E_DIR": harness.temporary(), "PYTHONDONTWRITEBYTECODE": "1"})
    return harness.profile(None, duration=more.pop("duration", None), command=command, limit_s=60, **more)


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
    run = command_profile(python.command + [os.path.join(harness.TARGETS, "burn.py"), "1.0"], hz=999)
    samples = harness.samples(run.out)
    pids = {s.pid for s in samples}
    assert len(pids) == 1, pids
    work = [s for s in samples if harness.holds(s, "<module>", "main", "burn_python")]
    assert 950 <= harness.total(work) <= 1050, harness.total(work)
    start = [s for s in samples if not harness.holds(s, "<module>", "main")]
    assert harness.total(start) >= 3, "nothing of the interpreter's start"
    harness.expect_share(samples, harness.is_rooted, 0.97, "native root")


def test_only_the_command_and_its_children():
    python = harness.interpreter()
    with harness.Target("burn.py", 0) as stranger:
        run = command_profile(["sh", "-c", "%s %s 0.5; %s %s 0.5" % (2 * (
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
    process = harness.start(out, command=["sh", "-c", "echo from the command"], stdout=harness.subprocess.PIPE)
    said, _ = process.communicate(timeout=60)
    assert said == b"from the command\n", said
