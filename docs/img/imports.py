#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""imports.py IMPORT.pb.gz PID > imports.svg   Draws the picture of docs/events.md: the modules of a
process by who imports them, without importlib's frames."""
import os
import sys

import flame

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tests/e2e"))
import pprof  # noqa: E402


def name_of(frame):
    """A module's own code is the module: asyncio/events.py becomes asyncio.events."""
    if frame.name != "<module>":
        return frame.name + "()"
    path = frame.file.rsplit("/lib/python3", 1)[-1].partition("/")
    name = path[2] if frame.file.startswith("/usr/lib/python3") else os.path.basename(frame.file)
    name = name[:-len("/__init__.py")] if name.endswith("/__init__.py") else name
    return name.replace(".py", "").replace("/", ".")


def lines(path, pid):
    for sample in pprof.load(path).samples:
        if sample.labels.get("pid") != pid:
            continue
        frames = [frame for frame in reversed(sample.frames)
                  if frame.kind == "python" and "<frozen " not in frame.file]
        names = [name_of(frame) for frame in frames] or ["start of the interpreter"]
        # Two names in front are those of the process and the thread.
        yield "%s %d" % (";".join(["", ""] + names + [sample.labels["module"]]),
                         sample.values[0] // 1000)


if __name__ == "__main__":
    flame.write(lines(sys.argv[1], int(sys.argv[2])), "us", lambda _: "python")
