# SPDX-License-Identifier: BSD-2-Clause
"""What a service manager hears (sd_notify): ready once samples are taken, alive while the loop turns, stopping at the end."""
import os
import re
import shutil
import signal
import socket
import subprocess
import time

import harness


def listener():
    path = os.path.join(harness.temporary(), "notify")
    heard = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    heard.bind(path)
    heard.settimeout(20)
    return heard, path


def perf_events(pid):
    count = 0
    for fd in os.listdir("/proc/%d/fd" % pid):
        try:
            count += "perf_event" in os.readlink("/proc/%d/fd/%s" % (pid, fd))
        except OSError:
            pass
    return count


def test_ready_alive_and_stopping():
    heard, path = listener()
    process = harness.start(harness.temporary() + "/", options=["--live", "no"],
                            env={"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "4000000"})
    assert heard.recv(100) == b"READY=1"
    assert perf_events(process.pid) >= os.cpu_count(), "ready before there are samples"
    times = []
    for _ in range(3):
        assert heard.recv(100) == b"WATCHDOG=1"
        times.append(time.monotonic())
    gaps = [b - a for a, b in zip(times, times[1:])]
    # Half of the time that is allowed.
    assert max(gaps) < 4 and min(gaps) > 1.5, gaps
    process.send_signal(signal.SIGTERM)
    said = heard.recv(100)
    while said == b"WATCHDOG=1":
        said = heard.recv(100)
    assert said == b"STOPPING=1"
    run = harness.finish(process)
    assert run.rc == 0, run.err


def test_an_agent_that_hangs_is_silent():
    heard, path = listener()
    process = harness.start(harness.temporary() + "/", options=["--live", "no"],
                            env={"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "1000000"})
    assert heard.recv(100) == b"READY=1"
    process.send_signal(signal.SIGSTOP)
    heard.settimeout(1.5)
    try:
        while heard.recv(100):
            pass
    except socket.timeout:
        pass
    process.send_signal(signal.SIGCONT)
    heard.settimeout(20)
    assert heard.recv(100) == b"WATCHDOG=1"
    assert harness.finish(process, signal_number=signal.SIGTERM).rc == 0


def test_the_command_does_not_speak_for_the_agent():
    heard, path = listener()
    out = os.path.join(harness.temporary(), "o.pb.gz")
    process = harness.start(out, command=["sh", "-c", "echo ${NOTIFY_SOCKET-none} ${WATCHDOG_USEC-none}"],
                            env={"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "1000000"}, stdout=harness.subprocess.PIPE)
    said, _ = process.communicate(timeout=60)
    assert said == b"none none\n", said
    assert heard.recv(100) == b"READY=1"


def test_a_manager_that_is_not_there_is_told_and_survived():
    with harness.Target("burn.py", 0) as target:
        run = harness.profile(target.pid, duration=1, env={"NOTIFY_SOCKET": "/nowhere/notify"})
        assert "NOTIFY_SOCKET" in run.err, run.err


def test_the_drop_in_without_root_has_what_it_needs():
    """As somebody else, with the ambient capabilities that unprivileged.conf gives and no others."""
    harness.need(shutil.which("setpriv"), "no setpriv")
    with open("/proc/sys/kernel/perf_event_paranoid", encoding="ascii") as file:
        paranoid = int(file.read())
    harness.need(paranoid <= 2, "kernel.perf_event_paranoid is %d" % paranoid)
    with open(os.path.join(harness.TOP, "deploy", "systemd", "unprivileged.conf"), encoding="utf-8") as file:
        given = re.search(r"^AmbientCapabilities=(.*)$", file.read(), re.M).group(1).lower().replace("cap_", "").split()
    capabilities = ",".join(["-all"] + ["+" + name for name in given])
    directory = harness.temporary()
    os.chown(directory, 65534, 65534)
    out = os.path.join(directory, "o.pb.gz")
    with harness.Target("burn.py", 0, wrap=harness.AHEAD) as target:
        done = subprocess.run(
            ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs", "--inh-caps=" + capabilities,
             "--ambient-caps=" + capabilities, "--bounding-set=" + capabilities] +
            harness.arguments(out, target.pid, 499, 2), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60, check=False)
        assert done.returncode == 0, done.stdout
        samples = harness.samples(out, pid=target.pid)
        assert harness.total(samples) > 50, done.stdout
        harness.expect_whole(samples)
        harness.expect_share(samples, lambda s: harness.holds(s, "burn_python"), 0.8, "the program's function")
    assert os.stat(out).st_uid == 65534
