# SPDX-License-Identifier: BSD-2-Clause
"""What a service manager hears (sd_notify): ready once samples are taken, alive while the loop
turns, stopping at the end."""
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
    process = harness.start(
        out, command=["sh", "-c", "echo ${NOTIFY_SOCKET-none} ${WATCHDOG_USEC-none}"],
        env={"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "1000000"}, stdout=harness.subprocess.PIPE)
    said, _ = process.communicate(timeout=60)
    assert said == b"none none\n", said
    assert heard.recv(100) == b"READY=1"


def test_a_manager_that_is_not_there_is_told_and_survived():
    with harness.light() as target:
        run = harness.profile(target.pid, duration=1, env={"NOTIFY_SOCKET": "/nowhere/notify"})
        assert "NOTIFY_SOCKET" in run.err, run.err


PARANOID = "/proc/sys/kernel/perf_event_paranoid"
CAP_SYS_ADMIN, CAP_SYS_MODULE, CAP_PERFMON = 21, 16, 38


def capabilities_of(pid, field="CapPrm"):
    """The numbers of a process' capabilities."""
    with open("/proc/%d/status" % pid, encoding="utf-8") as file:
        held = int(re.search(r"^%s:\s*([0-9a-f]+)$" % field, file.read(), re.M).group(1), 16)
    return {number for number in range(64) if held >> number & 1}


def child_named(pid, name):
    for child in harness.children(pid):
        with open("/proc/%d/comm" % child, encoding="utf-8") as file:
            if file.read().strip() == name:
                return child
    return None


def as_the_unit_says(out, pid):
    """The words that start pyprofd as somebody else, with the ambient capabilities of the unit and
    no others."""
    harness.need(shutil.which("setpriv"), "no setpriv")
    with open(os.path.join(harness.TOP, "deploy", "systemd", "pyprofd.service"),
              encoding="utf-8") as file:
        given = " ".join(re.findall(r"^AmbientCapabilities=(.*)$", file.read(),
                                    re.M)).lower().replace("cap_", "").split()
    capabilities = ",".join(["-all"] + ["+" + name for name in given])
    return ([
        "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs",
        "--inh-caps=" + capabilities, "--ambient-caps=" + capabilities,
        "--bounding-set=" + capabilities
    ] + harness.arguments(out, pid, 499, 2))


def expect_profile_without_root(look):
    """Profiles as the unit does; look(pid) is called while samples are taken."""
    directory = harness.temporary()
    os.chown(directory, 65534, 65534)
    out = os.path.join(directory, "o.pb.gz")
    with harness.light(wrap=harness.AHEAD) as target:
        with subprocess.Popen(as_the_unit_says(out, target.pid), stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT) as process:
            harness.wait_for(lambda: perf_events(process.pid) or process.poll() is not None, 20,
                             "perf events")
            assert process.poll() is None, process.stdout.read()
            look(process.pid)
            said = process.communicate(timeout=60)[0]
        assert process.returncode == 0, said
        samples = harness.samples(out, pid=target.pid)
        assert harness.total(samples) > 50, said
        harness.expect_whole(samples)
        harness.expect_share(samples, lambda s: harness.holds(s, "burn_python"), 0.8,
                             "the program's function")
    assert os.stat(out).st_uid == 65534


def paranoid():
    with open(PARANOID, encoding="ascii") as file:
        return int(file.read())


def test_the_unit_without_root_has_what_it_needs():
    harness.need(paranoid() <= 2, "kernel.perf_event_paranoid is %d" % paranoid())

    def no_admin(pid):
        assert CAP_SYS_ADMIN not in capabilities_of(pid) and CAP_PERFMON in capabilities_of(pid)
        assert not child_named(pid, "pyprofd: events")

    expect_profile_without_root(no_admin)


def test_where_perf_events_take_admin_a_child_has_it_and_the_agent_has_not():
    """Only kernels with Debian's patch insist on it; on others the child opens the events as
    well."""
    before = paranoid()

    def admin_in_child(pid):
        child = child_named(pid, "pyprofd: events")
        assert child, "no child opens the events"
        assert capabilities_of(child) == {CAP_SYS_ADMIN, CAP_PERFMON}, capabilities_of(child)
        assert not perf_events(child)
        for field in ("CapPrm", "CapInh", "CapAmb"):
            assert CAP_SYS_ADMIN not in capabilities_of(pid, field), field

    with open(PARANOID, "w", encoding="ascii") as file:
        file.write("3")
    try:
        expect_profile_without_root(admin_in_child)
    finally:
        with open(PARANOID, "w", encoding="ascii") as file:
            file.write(str(before))


# It changes what other tests without root may do; the sleepers are root's.
test_where_perf_events_take_admin_a_child_has_it_and_the_agent_has_not.alone = "sleepers"


def test_root_gives_up_what_it_does_not_need():
    with harness.Target("burn.py", 0) as target:
        process = harness.start(os.path.join(harness.temporary(), "o.pb.gz"), target.pid,
                                duration=2)
        harness.wait_for(lambda: perf_events(process.pid), 20, "perf events")
        held = capabilities_of(process.pid)
        assert harness.finish(process).rc == 0
    assert CAP_PERFMON in held and not held & {CAP_SYS_ADMIN, CAP_SYS_MODULE}, held
