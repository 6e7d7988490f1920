#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""gpu.py CUDA.pb.gz > gpu.svg   Draws the picture of docs/gpu.md: what a program has the GPU do, by
Python line, without the frames between Python and the API call."""
import os
import sys

import flame

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tests/e2e"))
import pprof  # noqa: E402

flame.COLOURS["gpu"] = "#93c47d"


def lines(path):
    for sample in pprof.load(path).samples:
        frames = list(reversed(sample.frames))
        api = sample.labels["api"]
        names = ["%s()" % f.name for f in frames if f.kind == "python" and "fakecuda" not in f.file
                 and f.name not in ("<module>", "launch")]
        kernel = [f.name for f in frames if f.module == "[gpu]"]
        # Two names in front are those of the process and the thread.
        yield "%s %d" % (";".join(["", ""] + names + [api + "_[a]"] + [k + "_[g]" for k in kernel]),
                         sample.values[0])


def kind_of(name):
    return {"_[a]": "native", "_[g]": "gpu"}.get(name[-4:], "python")


if __name__ == "__main__":
    text = []
    flame.print = lambda *words: text.append(" ".join(words))
    flame.write(lines(sys.argv[1]), "calls", kind_of)
    print("\n".join(text).replace("_[a]", "").replace("_[g]", ""))
