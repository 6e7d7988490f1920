#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""make_store.py DIRECTORY [SECONDS]   A store whose use over time is known, up to a minute ago:
windows of ten seconds of CPU time and of waits.  The first sixth is busy, the next is a gap, then
comes a sixth without use, and the rest is busier the later it is."""
import gzip
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "bench"))
from made_window import NATIVE, PYTHON, Window, field, make as made_window  # noqa: E402

WINDOW_S = 10
KERNEL = 3
MAPPINGS = ((PYTHON, "[python]"), (NATIVE, "/usr/lib/libwork.so.1"), (KERNEL, "[kernel]"))


LEDGER = (("ledger", "nanoseconds"), ("lifetime", "nanoseconds"), ("threads", "count"),
          ("off_scheduler", "nanoseconds"), ("compared", "nanoseconds"),
          ("ledger_processes", "count"))


class Program:
    """As made_window's, with few stacks."""

    def __init__(self, pid, comm, app, unit, functions, stacks):
        self.pid, self.comm, self.app, self.unit = pid, comm, app, unit
        self.functions, self.stacks = functions, stacks


TRAIN = Program(4242, "python3", "train.py", "train.service", [
    ("<module>", "/srv/train/train.py", 1, PYTHON),
    ("Trainer.fit", "/srv/train/train.py", 40, PYTHON),
    ("forward", "/srv/train/model.py", 12, PYTHON), ("backward", "/srv/train/model.py", 55, PYTHON),
    ("gemm_kernel", "", 0, NATIVE), ("load_batch", "/srv/train/data.py", 7, PYTHON),
    ("memcpy", "", 0, NATIVE), ("copy_user_generic", "", 0, KERNEL)],
                [((0, 1, 2, 4), 5), ((0, 1, 3, 4), 4), ((0, 1, 3), 1), ((0, 1, 5, 6), 1),
                 ((0, 1, 5, 7), 1)])
SERVE = Program(4300, "gunicorn", "shop.wsgi", "shop.service", [
    ("<module>", "/srv/shop/wsgi.py", 1, PYTHON), ("handle", "/srv/shop/views.py", 30, PYTHON),
    ("render", "/srv/shop/templates.py", 88, PYTHON), ("query", "/srv/shop/db.py", 19, PYTHON),
    ("json_encode", "", 0, NATIVE), ("tcp_sendmsg", "", 0, KERNEL)],
                [((0, 1, 2), 3), ((0, 1, 2, 4), 2), ((0, 1, 3), 2), ((0, 1, 3, 5), 1)])
COLD = Program(977, "logrotate", "", "logrotate.service",
               [("main", "", 0, NATIVE), ("compress", "", 0, NATIVE)], [((0, 1), 1)])


class Times(Window):
    def labels(self, program, more):
        out = b""
        for key, value in [("pid", program.pid), ("tid", program.pid), ("ppid", 1),
                           ("comm", program.comm), ("thread_name", "MainThread"),
                           ("app", program.app), ("unit", program.unit)] + more:
            if value:
                value = field(3, value) if isinstance(value, int) else field(2, self.text(value))
                out += field(3, field(1, self.text(key)) + value)
        return out

    def put(self, program, stack, values, more=()):
        ids = b"".join(
            field_varint(self.location(program.functions[at], 2)) for at in reversed(stack))
        self.samples.append(field(2, field(1, ids)
                                  + field(2, b"".join(map(field_varint, values)))
                                  + self.labels(program, list(more))))

    def put_state(self, program, state, values):
        ids = field_varint(self.location((state, "", 0, KERNEL), 0))
        labels = field(3, field(1, self.text("pid")) + field(3, program.pid))
        for key, text in (("comm", program.comm), ("state", state)):
            labels += field(3, field(1, self.text(key)) + field(2, self.text(text)))
        self.samples.append(
            field(2, field(1, ids) + field(2, b"".join(map(field_varint, values))) + labels))

    def whole(self, types, default, start_ms):
        """The profile, packed."""
        kinds = [field(1, self.text(kind)) + field(2, self.text(unit)) for kind, unit in types]
        period = kinds[-1 if len(types) > 1 else 0]
        name = self.text(default)
        out = [field(1, kind) for kind in kinds] + self.samples
        out += [field(3, field(1, number) + field(5, self.text(text)) + field(7, 1))
                for number, text in MAPPINGS]
        for (function, line, mapping), number in self.locations.items():
            address = b"" if mapping == PYTHON else field(3, 0x1000 + 64 * function)
            line = field(1, function) + (field(2, line) if line else b"")
            out.append(field(4, field(1, number) + field(2, mapping) + address + field(4, line)))
        for (text, file, line, _), number in self.functions.items():
            name_at, file_at = self.text(text), self.text(file)
            out.append(field(5, field(1, number) + field(2, name_at) + field(3, name_at)
                             + field(4, file_at) + field(5, line)))
        out += [field(9, start_ms * 10**6), field(10, WINDOW_S * 10**9), field(11, period),
                field(12, 10101010), field(14, name)]
        strings = b"".join(field(6, text.encode()) for text in self.strings)
        return gzip.compress(b"".join(out) + strings, 1)


def field_varint(number):
    return field(1, number)[1:]


def cpu_window(start_ms, loads):
    """loads: {program: cores}"""
    window = Times()
    for program, cores in loads.items():
        weight = sum(part for _, part in program.stacks)
        for stack, part in program.stacks:
            ns = int(cores * WINDOW_S * 1e9 * part / weight)
            if ns:
                window.put(program, stack, (max(1, ns // 10101010), ns))
    return window.whole((("samples", "count"), ("cpu", "nanoseconds")), "cpu", start_ms)


def ledger_window(start_ms, loads):
    window = Times()
    for program, cores in loads.items():
        busy = cores * WINDOW_S
        for state, seconds in (("python", 0.4 * busy), ("native", 0.5 * busy),
                               ("kernel", 0.1 * busy), ("gil", 0.2 * busy), ("lock", 0.3 * busy),
                               ("disk", 0.5), ("net", 2), ("sleep", max(0, 40 - 1.6 * busy - 2.5)),
                               ("run_queue", 0.1 * busy)):
            window.put_state(program, state, (int(seconds * 1e9), 0, 0, 0, 0, 0))
    return window.whole(LEDGER, "ledger", start_ms)


def wait_window(start_ms, loads):
    window = Times()
    for program in loads:
        window.put(program, program.stacks[0][0], (int(2.5e9), 10, 10), [("wait", "tcp socket")])
        window.put(program, program.stacks[-1][0], (int(0.5e9), 5, 5), [("wait", "disk")])
    return window.whole((("off_cpu", "nanoseconds"), ("events", "count"), ("effective", "count")),
                        "off_cpu", start_ms)


def loads_at(share):
    """Cores by program at a part of the time; None: nobody recorded."""
    if share < 1 / 6:
        return {TRAIN: 0.75, SERVE: 0.25}
    if share < 2 / 6:
        return None
    if share < 3 / 6:
        return {}
    rise = (share - 0.5) * 2
    return {TRAIN: 0.5 + 2.5 * rise, SERVE: 0.25 + 0.5 * ((share * 60) % 1), COLD: 0.05}


def write(directory, start_ms, kind, data):
    parts = time.gmtime(start_ms / 1000)
    where = os.path.join(directory, time.strftime("%Y-%m-%d/%H", parts))
    os.makedirs(where, exist_ok=True)
    name = "%d-%d-%s.pb.gz" % (start_ms, WINDOW_S * 1000, kind)
    with open(os.path.join(where, name), "wb") as out:
        out.write(data)


def make(directory, seconds=3600, end_s=None):
    """Returns [from, until) of the store in seconds."""
    end_s = int(end_s or time.time() - 60) // WINDOW_S * WINDOW_S
    begin_s = end_s - seconds
    for at in range(begin_s, end_s, WINDOW_S):
        loads = loads_at((at - begin_s) / seconds)
        if loads is not None:
            write(directory, at * 1000, "cpu", cpu_window(at * 1000, loads))
            write(directory, at * 1000, "offcpu", wait_window(at * 1000, loads))
            write(directory, at * 1000, "ledger", ledger_window(at * 1000, loads))
    return begin_s, end_s


def make_hostile(directory):
    """Names that would be markup, addresses or messages.  Returns [from, until)."""
    markup = "<img src=x onerror=window.evil=1>"
    program = Program(666, "<script>evil=1", markup, "a:b=c&d#e%41 \u202e\u00e4",
                      [(markup, "/srv/" + markup, 1, PYTHON)], [((0, ), 1)])
    end_s = int(time.time() - 60) // WINDOW_S * WINDOW_S
    for at_s in range(end_s - 60, end_s, WINDOW_S):
        write(directory, at_s * 1000, "cpu", cpu_window(at_s * 1000, {program: 0.5}))
        write(directory, at_s * 1000, "ledger", ledger_window(at_s * 1000, {program: 0.5}))
    return end_s - 60, end_s


def make_heavy(directory, count):
    """Windows that take the server longer to sum than it does at once: a few large ones, under many
    names.  Returns [from, until)."""
    data = [gzip.compress(window, 1) for window in made_window(4)]
    end_s = int(time.time() - 60) // WINDOW_S * WINDOW_S
    for number in range(count):
        start_s = end_s - (count - number) * WINDOW_S
        write(directory, start_s * 1000, "cpu", data[number % len(data)])
    return end_s - count * WINDOW_S, end_s


if __name__ == "__main__":
    print(*make(sys.argv[1], *map(int, sys.argv[2:3])))
