# SPDX-License-Identifier: BSD-2-Clause
"""profiled.py TOOL OUT SCRIPT [ARGUMENT...]   SCRIPT as a program under
   cprofile           cProfile, timed by the thread's CPU clock; OUT.PID is what each process wrote
   lines:NAME,...     line_profiler; OUT.PID is JSON: [[function, line, events, seconds]]: one event
   a hit, and one more
                      where the function returns

Workers of a multiprocessing pool are profiled too, each from its start to its end.  OUT-clocks has
cost_s, what the tool spends on a call or a line and does not tell as that call's or line's, and the
script's wall_s and cpu_s.
"""
import ast
import cProfile
import json
import multiprocessing.pool
import os
import sys
import time

pool_worker = multiprocessing.pool.worker


def empty():
    pass


class Calls:
    def __init__(self):
        self.profile = None

    def begin(self):
        if self.profile:  # a forked child's copy of its parent's
            self.profile.disable()
        self.profile = cProfile.Profile(time.thread_time)
        self.profile.enable()

    def end(self, out):
        self.profile.disable()
        self.profile.dump_stats(out)

    def change(self, tree):
        pass

    def cost(self):
        """Of a call, beside what it takes alone and what cProfile tells as the called
        function's."""
        count, took = 100000, []
        for profiled in (False, True):
            if profiled:
                self.begin()
            begin = time.thread_time()
            for _ in range(count):
                empty()
            took.append(time.thread_time() - begin)
        self.profile.disable()
        told = next(
            entry.inlinetime for entry in self.profile.getstats() if entry.code is empty.__code__)
        return max(took[1] - took[0] - told, 0) / count


class Lines:
    """Marks functions in the parsed program, so that its source and its line numbers stay."""

    def __init__(self, names):
        import line_profiler
        self.names, self.ends, self.profile = names, set(), line_profiler.LineProfiler()
        sys.modules["builtins"].line_profiled = self.profile

    def begin(self):
        pass

    def end(self, out):
        stats = self.profile.get_stats()
        rows = [[key[2], line, hits * (2 if line in self.ends else 1), ticks * stats.unit]
                for key, lines in stats.timings.items() for line, hits, ticks in lines]
        with open(out, "w") as file:
            json.dump(rows, file)

    def cost(self):
        """Of an event, beside what it tells as the line's."""
        def loop():
            for _ in range(50000):
                pass
        import line_profiler
        profile = line_profiler.LineProfiler()
        marked = profile(loop)
        begin = time.perf_counter()
        marked()
        took = time.perf_counter() - begin
        rows = [row for rows in profile.get_stats().timings.values() for row in rows]
        unit = profile.get_stats().unit
        return (took - sum(ticks for _, _, ticks in rows) * unit) / sum(hits for _, hits, _ in rows)

    def change(self, tree):
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and node.name in self.names:
                mark = ast.Name("line_profiled", ast.Load())
                node.decorator_list.append(ast.fix_missing_locations(ast.copy_location(mark, node)))
                self.ends.add(node.body[-1].lineno)
                self.ends.update(
                    inner.lineno for inner in ast.walk(node) if isinstance(inner, ast.Return))


def close(pool, *_):
    """For Pool.__exit__, which ends the workers by a signal: here they leave, and write what they
    have."""
    pool.close()
    pool.join()


def main():
    tool, out, script = sys.argv[1:4]
    kind, _, names = tool.partition(":")
    made = Lines(names.split(",")) if kind == "lines" else Calls()

    def worker(*arguments, **keywords):
        made.begin()
        try:
            pool_worker(*arguments, **keywords)
        finally:
            made.end("%s.%d" % (out, os.getpid()))

    multiprocessing.pool.worker, multiprocessing.pool.Pool.__exit__ = worker, close
    with open(script) as file:
        tree = ast.parse(file.read(), script)
    made.change(tree)
    code = compile(tree, script, "exec")
    sys.argv[:] = sys.argv[3:]
    sys.path[0] = os.path.dirname(script)
    module = type(sys)("__main__")
    module.__file__ = script
    sys.modules["__main__"] = module
    clocks = {"wall_s": -time.perf_counter(), "cpu_s": -time.process_time()}
    made.begin()
    try:
        exec(code, module.__dict__)
    finally:
        made.end("%s.%d" % (out, os.getpid()))
        clocks["wall_s"] += time.perf_counter()
        clocks["cpu_s"] += time.process_time()
        clocks["cost_s"] = made.cost()
        with open(out + "-clocks", "w") as file:
            json.dump(clocks, file)


if __name__ == "__main__":
    main()
