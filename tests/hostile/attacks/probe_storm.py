# SPDX-License-Identifier: BSD-2-Clause
"""Files that claim to be a CPython hit their own probes hundreds of thousands of times a second:
imports of ever new modules, imports and collections that never end, and ever new generations."""
import os

import craft

QUICK = True
EVENTS = True
KINDS = ("names", "open", "gc", "nested")


def attack(box):
    craft.needs_x86()
    program = os.path.join(box.directory, "probe_storm")
    for what in KINDS:
        if os.fork() == 0:
            os.execv(program, [program, what, "2"])
    box.ready()
    os.wait()


def check(rig):
    import events  # not there for who attacks
    import re
    counts = [events.total(rig, kind, value)
              for kind, value in (("import", "imports"), ("gc", "collections"))]
    print("%d imports and %d collections of the attacker's; %s" % (
        counts[0], counts[1], re.findall(r"[0-9,]+ (?:probe|texts|rows|waits|coarse|ring|no_)\w+",
                                         rig.run.err)))
    assert min(counts) > 1000, "its probes were not hit: %s" % rig.run.err
