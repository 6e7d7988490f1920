# SPDX-License-Identifier: BSD-2-Clause
"""events.py NAME LONG_S   Collects garbage, imports modules and touches memory 20 times a second
in NAME_collect, NAME_import and NAME_touch, and imports for LONG_S in NAME_long, from a line on
its standard input until that ends; then prints what it did.  Its own stacks take some per cent
of a CPU.

What attacks of events hold against: begin() starts two of them, one in an interpreter that is
probed already and one in a file that nobody has seen, and judge() looks for what they did.
"""
import gc
import json
import mmap
import os
import select
import shutil
import sys
import threading
import time

TOUCHED = 1 << 20  # bytes a turn
PAGE = 4096
# Of collections and imports; what is under way at either end of the run may be missing.
COMPLETE, ENDS = 0.98, 3
# Memory is counted by pages that are drawn.
TOUCH_BLUR = 0.35
LONG_S = 3
SETTLE_S = 1.5  # until the probes of a new file are there

SOURCE = """
def {0}_collect():
    one = []
    one.append(one)
    del one
    gc.collect()

def {0}_import(turn):
    __import__("{0}_module%d" % turn)

def {0}_long():
    __import__("{0}_slow")

def {0}_touch():
    with mmap.mmap(-1, TOUCHED, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        for at in range(0, TOUCHED, PAGE):
            memory[at] = 1
"""


def main():
    name = sys.argv[1]
    folder = os.path.dirname(os.path.abspath(__file__))
    for turn in range(3000):
        with open(os.path.join(folder, "%s_module%d.py" % (name, turn)), "wb"):
            pass
    with open(os.path.join(folder, "%s_slow.py" % name), "w", encoding="ascii") as file:
        file.write("import time; time.sleep(%s)" % sys.argv[2])
    sys.path.insert(0, folder)
    exec(compile(SOURCE.format(name), __file__, "exec"), globals())
    collect, load, touch, long = (globals()[name + part] for part in (
        "_collect", "_import", "_touch", "_long"))
    gc.disable()
    gc.freeze()
    print("ready", flush=True)
    sys.stdin.readline()
    slow = threading.Thread(target=long)
    slow.start()
    turns = 0
    while not select.select([sys.stdin], [], [], 0.05)[0]:
        collect()
        load(turns)
        touch()
        turns += 1
    slow.join()
    print(json.dumps({"turns": turns, "cpu_s": time.process_time()}), flush=True)
    os._exit(0)


# ---- the rig's side

def begin(rig, user):
    """Returns the programs; call it where meanwhile() begins."""
    import rig as rigs  # not there for the program itself
    programs = []
    for name in ("evented", "evented_late"):
        folder = rig.folder("victim-" + name, user)
        python = rigs.PYTHON
        if name == "evented_late":
            python = shutil.copy(python, folder)
        script = shutil.copy(os.path.abspath(__file__), folder)
        words = [python, script, name, str(rig.get("LONG_S", LONG_S))]
        program = rigs.Program(words, user, folder, rigs.VICTIM_NICE)
        program.name = name
        rig.programs.append(program)
        programs.append(program)
    for program in programs:
        program.wait_ready()
    time.sleep(rig.get("SETTLE_S", SETTLE_S))
    for program in programs:
        program.go()
    return programs


def end(programs):
    for program in programs:
        said = program.end()
        assert program.process.returncode == 0, "%s: %s" % (program.name, program.errors())
        program.turns = json.loads(said)["turns"]


def found(rig, program, kind, part, value):
    """The sum over the samples of a program in one of its functions."""
    import harness
    import waits
    wanted, total = program.name + part, 0
    for path in waits.windows(rig.store, kind):
        profile = harness.load(path)
        index = [name for name, _ in profile.sample_types].index(value)
        total += sum(sample.values[index] for sample in profile.samples
                     if int(sample.labels.get("pid", 0)) == program.pid and any(
                         frame.name.rpartition(".")[2] == wanted for frame in sample.frames))
    return total


def total(rig, kind, value):
    """The sum over all samples of the attackers' processes."""
    import harness
    import waits
    own = {program.pid for program in rig.programs if program not in rig.attackers}
    sums = 0
    for path in waits.windows(rig.store, kind):
        profile = harness.load(path)
        index = [name for name, _ in profile.sample_types].index(value)
        sums += sum(sample.values[index] for sample in profile.samples
                    if int(sample.labels.get("pid", 0)) not in own)
    return sums


def judge(rig, programs):
    """Asserts, and prints the figures."""
    failed = []
    for program in programs:
        wanted_bytes = program.turns * TOUCHED
        collections = found(rig, program, "gc", "_collect", "collections")
        imports = found(rig, program, "import", "_import", "imports")
        long_s = found(rig, program, "import", "_long", "import") / 1e9
        touched = found(rig, program, "mem", "_touch", "first_touch")
        said = ("%s: %d turns, %d collections, %d imports, %.1f s in a long import, "
                "%.1f of %.1f MiB touched" % (
                    program.name, program.turns, collections, imports, long_s, touched / 2**20,
                    wanted_bytes / 2**20))
        print(said)
        long_wanted = rig.get("LONG_S", LONG_S)
        least = COMPLETE * program.turns - ENDS
        if not (least <= collections <= program.turns and least <= imports <= program.turns
                and long_wanted <= long_s < long_wanted + 2
                and abs(touched - wanted_bytes) <= TOUCH_BLUR * wanted_bytes):
            failed.append(said)
    assert not failed, "; ".join(failed)


if __name__ == "__main__":
    main()
