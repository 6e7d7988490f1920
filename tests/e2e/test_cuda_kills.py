# SPDX-License-Identifier: BSD-2-Clause
"""pyprofd is killed at any moment, and programs that launch a hundred thousand kernels a second are
as they were: the driver gets each argument of each launch."""
import os
import random
import signal
import subprocess
import time

import harness
import test_probes

KILLS = int(os.environ.get("KILLS") or harness.times(4, 10))
RATE = 100000
SECONDS = 40 + 4 * KILLS


def breakpoints_are_gone(pid):
    """What the kernel has written into the driver's code is its file's again."""
    with open("/proc/%d/maps" % pid, encoding="utf-8") as maps:
        mapped = [line.split() for line in maps if "libcuda.so.1" in line and " r-xp " in line]
    for line in mapped:
        start, end = (int(text, 16) for text in line[0].split("-"))
        with open("/proc/%d/mem" % pid, "rb") as memory, open(line[5], "rb") as file:
            memory.seek(start)
            file.seek(int(line[2], 16))
            if memory.read(end - start) != file.read(end - start):
                return False
    return bool(mapped)


def test_killed_at_any_moment_leaves_each_launch_as_it_was():
    """KILLS times; `make check-long` does it 100 times more."""
    test_probes.need_links()
    seed = int(os.environ.get("SEED") or random.randrange(1 << 32))
    chance = random.Random(seed)
    print("SEED=%d KILLS=%d" % (seed, KILLS))
    directory = harness.need_fakes()
    program = subprocess.Popen(
        [os.path.join(directory, "launches"), "2", str(RATE), str(SECONDS)],
        env=dict(os.environ, LD_LIBRARY_PATH=directory), stdout=subprocess.PIPE)
    attached, latest_s = 0, None
    for _ in range(KILLS):
        out = os.path.join(harness.temporary(), "out.pb.gz")
        budget = chance.choice(("100", "1", "0.1"))
        process = harness.start(out, program.pid, hz=None,
                                options=["--events", "cuda", "--max-slowdown", budget])
        if latest_s is None:
            # The first one is killed with its probes, whenever they come: after one to two seconds,
            # or later on a busy machine.
            began = time.monotonic()
            test_probes.await_sites(process, 1, 30)
            latest_s = min(3.0, 1.3 * (time.monotonic() - began))
        else:
            time.sleep(chance.uniform(0, latest_s))
        attached += test_probes.sites(process) > 0
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert program.poll() is None, "it ended before the last kill"
    harness.wait_for(lambda: breakpoints_are_gone(program.pid), 30, "the code is as in its file")
    program.terminate()
    said = program.communicate(timeout=30)[0].decode()
    assert program.returncode == 0 and "arguments ok" in said, said
    print("%d of %d were attached; %s" % (attached, KILLS, said.strip()))
    assert attached, "none was killed while it had probes"


test_killed_at_any_moment_leaves_each_launch_as_it_was.limit_s = 60 + SECONDS
