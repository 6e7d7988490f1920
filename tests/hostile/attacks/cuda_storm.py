# SPDX-License-Identifier: BSD-2-Clause
"""Programs that are a CUDA driver of their own call it as fast as they can: ever new kernels,
streams, names that never end, captures that never end, graphs that hold themselves, waits that
are left, sizes that are nonsense, and hits from ever new processes.  Somebody else's launches are
counted to the last one, by the kernel's name."""
import glob
import os
import re
import shutil

import craft

QUICK = True
OPTIONS = ("--events", "cpu,offcpu,gil,cuda", "--max-slowdown", "100%")
KINDS = ("handles", "names", "captures", "graphs", "waits", "sizes", "children")
# Of the somebody else's: seconds, and launches in each.
LAUNCHES, SECONDS = 20000, 4
KERNEL = "vectorAdd"


def prepare(rig):
    import harness  # not there for who attacks
    import test_probes
    test_probes.need_links()
    rig.attack.fakes = harness.need_fakes()


def attack(box):
    craft.needs_x86()
    path = os.path.join(box.directory, "libcuda.so.1")
    shutil.copy(os.path.join(box.directory, "cuda_storm"), path)
    for what in KINDS:
        if os.fork() == 0:
            os.execv(path, [path, what, "2"])
    box.ready()
    os.wait()


def start(rig, seconds):
    import rig as rigs
    home = rig.folder("victim-cuda", rigs.VICTIM)
    program = rigs.Program(
        ["env", "LD_LIBRARY_PATH=" + home, os.path.join(home, "launches"), "-w", "2",
         str(LAUNCHES), str(seconds)], rigs.VICTIM, home, rigs.VICTIM_NICE)
    rig.programs.append(program)
    return program


def is_probed(rig, path):
    """Whether the agent has links of this file."""
    for name in glob.glob("/proc/%d/fdinfo/*" % rig.agent.pid):
        try:
            with open(name, encoding="utf-8") as file:
                if path in file.read():
                    return True
        except OSError:  # it is closed by now
            pass
    return False


def meanwhile(rig):
    """Once the first has brought its file's probes, the second's names are seen, too.  They launch
    when their input ends."""
    import harness
    import rig as rigs
    import time
    home = rig.folder("victim-cuda", rigs.VICTIM)
    for name in ("launches", "libcuda.so.1"):
        shutil.copy(os.path.join(rig.attack.fakes, name), home)
    start(rig, 1)
    harness.wait_for(lambda: is_probed(rig, os.path.join(home, "libcuda.so.1")), 30,
                     "probes of the victim's driver")
    time.sleep(1)  # it has several links
    program = start(rig, SECONDS)
    time.sleep(1)
    said = program.end(SECONDS + 20)
    assert "arguments ok" in said, said + program.errors()
    rig.attack.victim = program.pid, int(said.split()[0])


def check(rig):
    import harness
    import waits
    pid, launches = rig.attack.victim
    own = {program.pid for program in rig.programs if program not in rig.attackers}
    found, named, others = 0, 0, 0
    for path in waits.windows(rig.store, "cuda"):
        for sample in harness.load(path).samples:
            if sample.labels["pid"] == pid and sample.labels["api"] == "cuLaunchKernel":
                found += sample.values[0]
                named += sample.values[0] * (KERNEL in sample.labels.get("kernel", ""))
            elif sample.labels["pid"] not in own:
                others += sample.values[0]
    print("%d of %d launches, %d by name; %d calls of the attacker's; %s" % (
        found, launches, named, others,
        re.findall(r"[0-9,]+ (?:cuda|probe|texts|kernels|ring|no_)\w+", rig.run.err)))
    assert others > 1000, "its driver was not probed: %s" % rig.run.err
    assert found == launches == named, (found, named, launches)
