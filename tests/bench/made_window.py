# SPDX-License-Identifier: BSD-2-Clause
"""Windows of ten seconds as pyprofd writes them, from a random generator with a fixed seed:
programs with threads, each with a graph of Python and native functions along which calls are
made."""
import random

PROGRAMS, THREADS, FUNCTIONS, ROWS = 5, 4, 350, 420
PERIOD_NS = 10101010
PYTHON, NATIVE = 1, 2  # the mappings


def varint(number):
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7f | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def field(number, value):
    """Of an int, or of bytes."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


class Program:
    def __init__(self, number, rng):
        self.pid, self.comm = 1000 + 37 * number, "service-%d" % number
        words = [
            rng.choice(("read", "parse", "merge", "encode", "update", "find", "apply", "flush"))
            + "_" + rng.choice(("record", "request", "frame", "index", "batch", "token", "header"))
            for _ in range(FUNCTIONS)
        ]
        # (name, file, line of the def, mapping); the first are the outermost.
        self.functions = [("%s_%d" % (word, i), "/srv/app%d/%s_%d.py" % (number, word[:4], i % 60),
                           20 * (i % 40) + 3, PYTHON) if rng.random() < 0.7 else
                          ("%s_%d" % (word, i), "", 0, NATIVE) for i, word in enumerate(words)]
        self.callees = [[min(FUNCTIONS - 1, i + 1 + int(rng.expovariate(0.08))) for _ in range(4)]
                        for i in range(FUNCTIONS)]

    def stack(self, rng):
        """[(function, line)], the root first.  A function's calls lie in a few of its lines."""
        at, found = 0, []
        while len(found) < 48 and at < FUNCTIONS - 1:
            choice = min(int(rng.expovariate(2.3)), 3)
            found.append((at, 1 + 4 * choice))
            if len(found) > 8 and rng.random() < 0.06:
                break
            at = self.callees[at][choice]
        return found


class Window:
    def __init__(self):
        self.strings, self.functions, self.locations, self.samples = {"": 0}, {}, {}, []

    def text(self, text):
        return self.strings.setdefault(text, len(self.strings))

    def location(self, function, line):
        number = self.functions.setdefault(function, len(self.functions) + 1)
        return self.locations.setdefault(
            (number, function[2] + line if function[2] else 0, function[3]),
            len(self.locations) + 1)

    def add(self, program, thread, stack, count):
        ids = b"".join(
            varint(self.location(program.functions[at], line)) for at, line in reversed(stack))
        labels = [("pid", program.pid), ("tid", program.pid + thread), ("ppid", 1),
                  ("comm", program.comm),
                  ("thread_name", "worker-%d" % thread if thread else "MainThread"),
                  ("python_version", "3.12"), ("cgroup", "/system.slice/%s.service" % program.comm)]
        message = field(1, ids) + field(2, varint(count) + varint(count * PERIOD_NS))
        for key, value in labels:
            value = field(3, value) if isinstance(value, int) else field(2, self.text(value))
            message += field(3, field(1, self.text(key)) + value)
        self.samples.append(field(2, message))

    def bytes(self):
        types = [field(1, self.text(kind)) + field(2, self.text(unit))
                 for kind, unit in (("samples", "count"), ("cpu", "nanoseconds"))]
        out = [field(1, one) for one in types] + self.samples
        out += [field(3, field(1, number) + field(5, self.text(name)) + field(7, 1))
                for number, name in ((PYTHON, "[python]"), (NATIVE, "/usr/lib/libwork.so.1"))]
        for (function, line, mapping), number in self.locations.items():
            address = b"" if mapping == PYTHON else field(3, 0x1000 + 64 * function)
            line = field(1, function) + (field(2, line) if line else b"")
            out.append(field(4, field(1, number) + field(2, mapping) + address + field(4, line)))
        for (name, file, line, _), number in self.functions.items():
            name = self.text(name)
            file = self.text(file)
            out.append(
                field(
                    5,
                    field(1, number) + field(2, name) + field(3, name) + field(4, file) + field(
                        5, line)))
        out.append(field(11, types[1]) + field(12, PERIOD_NS))
        return b"".join(out + [field(6, text.encode()) for text in self.strings])


def make(count=40):
    """Unpacked pprof, without times."""
    rng = random.Random(2)
    programs, made = [Program(number, rng) for number in range(PROGRAMS)], []
    for _ in range(count):
        window = Window()
        for _ in range(ROWS):
            program = programs[min(int(rng.expovariate(0.7)), PROGRAMS - 1)]
            window.add(program, int(rng.random()**2 * THREADS), program.stack(rng),
                       1 + int(rng.expovariate(1.0)))
        made.append(window.bytes())
    return made
