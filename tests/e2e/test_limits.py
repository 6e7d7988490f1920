# SPDX-License-Identifier: BSD-2-Clause
"""Options that bound or choose: what is kept of a directory, the memory of the kernel's maps, the
clock of the samples."""
import os
import re
import resource
import time

import harness
import waits

MIB = 1 << 20


def files(directory):
    """{path: bytes} of all profiles below, whatever their kind."""
    return {os.path.join(base, name): os.path.getsize(os.path.join(base, name))
            for base, _, names in os.walk(directory) for name in names if name.endswith(".pb.gz")}


def fill(directory, count, size):
    """Profiles of a while ago, as another pyprofd left them; names of the oldest first."""
    made = []
    for number in range(count):
        begin_ms = (int(time.time()) - 7200 + number * 10) * 1000
        hour = os.path.join(directory, time.strftime("%Y-%m-%d/%H", time.gmtime(begin_ms // 1000)))
        os.makedirs(hour, exist_ok=True)
        made.append(os.path.join(hour, "%d-10000-cpu.pb.gz" % begin_ms))
        with open(made[-1], "wb") as file:
            file.write(os.urandom(size))
    return made


def test_store_max_deletes_the_oldest_files():
    directory = harness.temporary()
    before = fill(directory, 20, MIB // 4)
    run = harness.profile(duration=3, hz=99, out=directory + "/",
                          options=["--store-max", "2M", "--interval", "1"])
    left = files(directory)
    assert sum(left.values()) <= 2 * MIB, (sum(left.values()), run.err)
    kept = [path for path in before if path in left]
    # The newest of the old ones, as many as there is room for.
    assert kept and kept == before[-len(kept):] and sum(left.values()) > 1.5 * MIB, (
        len(kept), left)
    assert len(waits.windows(directory, "cpu")) > len(kept), left


def test_without_need_nothing_is_deleted():
    directory = harness.temporary()
    before = fill(directory, 20, MIB // 4)
    harness.profile(duration=1, hz=99, out=directory + "/", options=["--store-max", "20M"])
    assert set(before) <= set(files(directory))


def map_bytes(pid):
    """What the kernel accounts for the maps that a process has open."""
    found = {}
    for fd in os.listdir("/proc/%d/fdinfo" % pid):
        try:
            with open("/proc/%d/fdinfo/%s" % (pid, fd), encoding="ascii") as file:
                words = dict(re.findall(r"^(\w+):\s*(\d+)$", file.read(), re.M))
        except OSError:
            continue
        if "map_id" in words:
            found[words["map_id"]] = int(words["memlock"])
    return sum(found.values())


def test_max_memory_bounds_the_maps():
    told, seen = [], []
    for budget in 32, 256:
        process = harness.start(os.path.join(harness.temporary(), "o.pb.gz"), hz=99, duration=2,
                                options=["--max-memory", "%dM" % budget])
        harness.sampling(process)
        seen.append(map_bytes(process.pid))
        run = harness.finish(process)
        assert run.rc == 0, run.err
        told.append(float(re.search(r"\+ ([\d.]+) MiB of maps", run.err).group(1)) * MIB)
    # The rows take half; the small one has what other tables need besides.
    assert 0.4 * 256 * MIB < seen[1] < 256 * MIB and seen[0] < seen[1] - 64 * MIB, (seen, told)
    for ours, kernels in zip(told, seen):
        assert abs(ours - kernels) < 0.25 * kernels, (told, seen)


def test_few_descriptors_are_enough_or_said_to_be_too_few():
    with harness.light() as target:
        for most in 54, 63, 100:
            process = harness.start(
                os.path.join(harness.temporary(), "o.pb.gz"), target.pid, duration=0.3,
                preexec_fn=lambda m=most: resource.setrlimit(resource.RLIMIT_NOFILE, (m, m)))
            run = harness.finish(process)
            assert run.rc == 0 and os.path.exists(
                run.out) or run.rc == 1 and "open files" in run.err, (most, run)


def has_cycles():
    return any(
        os.path.exists("/sys/bus/event_source/devices/" + name)
        for name in ("cpu", "cpu_core", "armv8_pmuv3_0"))


def test_clock_cycles_is_refused_where_there_is_no_counter():
    harness.need(not has_cycles(), "this machine has a counter of cycles")
    out = os.path.join(harness.temporary(), "o.pb.gz")
    run = harness.profile(duration=1, out=out, options=["--set", "capture.clock=cycles"],
                          check=False)
    assert run.rc == 1 and not os.path.exists(out), run.err
    assert "clock=cycles" in run.err and "clock=cpu" in run.err, run.err


def test_clock_cycles_samples_by_the_counter():
    harness.need(has_cycles(), "this machine has no counter of cycles")
    with harness.Target("burn.py", 0) as target:
        run = harness.profile(target.pid, hz=499, duration=2,
                              options=["--set", "capture.clock=cycles"])
    samples = harness.samples(run.out, target.pid)
    assert harness.total(samples) > 300, run.err
    harness.expect_whole(samples)
