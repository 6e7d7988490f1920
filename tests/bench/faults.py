# SPDX-License-Identifier: BSD-2-Clause
"""What a page fault costs where touched memory is counted, beside handlers that do nothing."""
import subprocess
import time

import measure
import switches

SECONDS = 2
WALKS = "--max-cpu", 0.1, "--duration", 600  # hardly any
STATES = "bare", "empty", "not walked", "pyprofd"


def page_ns(program):
    """ns that touching a page takes: the lower tenth of parts of some ms, as what else runs on the
    machine only adds."""
    process = subprocess.Popen([program, "touch"], stdout=subprocess.PIPE, text=True)
    time.sleep(SECONDS)
    process.terminate()
    parts = sorted(float(line.split()[1]) for line in process.communicate()[0].splitlines())
    return parts[len(parts) // 10]


def section(pyprofd, quick, say):
    """pyprofd(options): start one, as run.py's."""
    program, empty = switches.build("faults"), switches.Empty("empty_fault")
    start = {"empty": empty.start, "not walked": lambda: pyprofd(WALKS),
             "pyprofd": lambda: pyprofd(())}
    found = {state: [] for state in STATES}
    for _ in range(3 if quick else 20):
        for state in STATES:
            running = start[state]() if state in start else None
            found[state].append(page_ns(program))
            if running:
                running.stop()
    empty.end()

    def more(state, base):
        differences = [a - b for a, b in zip(found[state], found[base])]
        return measure.median(differences), *measure.interval_95(differences)

    say("faults   a fresh page takes %.0f ns; empty handlers of the fault and of the page add %.0f "
        "(95 %%: %.0f to %.0f)"
        % (measure.median(found["bare"]), *more("empty", "bare")))
    say("faults   pyprofd %.0f more than those where hardly any stack is walked (95 %%: %.0f to "
        "%.0f; wanted <= 300), %.0f (%.0f to %.0f) with the walks of its budget"
        % (*more("not walked", "empty"), *more("pyprofd", "empty")))
    return found
