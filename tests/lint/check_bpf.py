#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""check_bpf.py [-v] BUILD   Would the oldest kernels take our BPF programs?

The kernel adds up the stack of each chain of calls (kernel/bpf/verifier.c:
check_max_stack_depth()).  Older ones round each function's up to 32 bytes, newer ones to 16: a
program that loads on the machine it is built on may be refused there.  This reads the same sums
from the object files.  -v prints the deepest chain of each program.

Programs that can be preempted, those of user probes and of raw tracepoints, must have a tail call
(bpf/lib/user_probe.bpf.h): else the kernel gives them a stack of the CPU's from 6.13 on.

No atomic instruction but cmpxchg and xchg may have a result, or be anything but an addition: Linux
before 5.12 refuses it ("BPF_STX uses reserved fields"), and those two alone stand behind
has_cmpxchg (attach/object_builds.h).  Compilers make them of plain source, as an OR of an addition
of 0.
"""
import collections
import pathlib
import re
import struct
import sys

STACK_BYTES = 512  # MAX_BPF_STACK
ROUND_BYTES = 32
CALL_FRAMES = 8  # MAX_CALL_FRAMES

FRAME_POINTER = 10
CALL, PSEUDO_CALL, TAIL_CALL = 0x85, 1, 12
MOVE_64, ADD_64 = 0xbf, 0x07  # rX = rY; rX += constant
LOAD_CONSTANT = 0x18  # two instructions
CLASS_LOAD, CLASS_STORES = 1, (2, 3)
ATOMICS = (0xc3, 0xdb)  # of 4 and 8 bytes; the constant says which
GUARDED_ATOMICS = (0, 0xe1, 0xf1)  # an addition without a result, xchg, cmpxchg

Section = collections.namedtuple("Section", "name type flags offset size link info")
Function = collections.namedtuple("Function", "name section stack calls has_tail_call atomics")
PREEMPTIBLE = re.compile(r"(uprobe|uretprobe|usdt|kprobe|raw_tp)\b")


def sections_of(data):
    at, = struct.unpack_from("<Q", data, 40)
    size, count, names = struct.unpack_from("<HHH", data, 58)
    raw = [struct.unpack_from("<IIQQQQII", data, at + i * size) for i in range(count)]
    text = data[raw[names][4]:]
    return [Section(text[r[0]:text.index(b"\0", r[0])].decode(), r[1], r[2], r[4], r[5], r[6], r[7])
            for r in raw]


def symbols_of(data, sections):
    """[(name, type, section, value, size)] of the object's symbol table."""
    table = next(s for s in sections if s.type == 2)
    text = data[sections[table.link].offset:]
    found = []
    for at in range(table.offset, table.offset + table.size, 24):
        name, info, _, index, value, size = struct.unpack_from("<IBBHQQ", data, at)
        found.append((text[name:text.index(b"\0", name)].decode(), info & 15, index, value, size))
    return found


def relocations_of(data, sections):
    """{(section, offset): number of the symbol}"""
    found = {}
    for section in sections:
        if section.type == 9:
            for at in range(section.offset, section.offset + section.size, 16):
                offset, info = struct.unpack_from("<QQ", data, at)
                found[section.info, offset] = info >> 32
    return found


def stack_and_calls(code):
    """The bytes of stack that a function's code reaches, and the calls: [(offset, constant)]."""
    depth, calls, derived, at = 0, [], {}, 0
    while at < len(code):
        opcode, registers, offset, constant = struct.unpack_from("<BBhi", code, at)
        to, source = registers & 15, registers >> 4
        if opcode == CALL and source == PSEUDO_CALL:
            calls.append((at, constant))
        elif opcode == MOVE_64:
            derived[to] = derived.get(source, 0) if source != FRAME_POINTER else 0
            if source != FRAME_POINTER and source not in derived:
                del derived[to]
        elif opcode == ADD_64 and to in derived:
            derived[to] += constant
            depth = max(depth, -derived[to])
        elif opcode & 7 == CLASS_LOAD:
            depth = max(depth, -offset if source == FRAME_POINTER else 0)
            derived.pop(to, None)
        elif opcode & 7 in CLASS_STORES:
            depth = max(depth, -offset if to == FRAME_POINTER else 0)
        elif opcode & 7 in (4, 7) or opcode == LOAD_CONSTANT:
            derived.pop(to, None)
        at += 16 if opcode == LOAD_CONSTANT else 8
    return depth, calls


def has_tail_call(code):
    return any(code[at] == CALL and code[at + 1] >> 4 == 0 and
               struct.unpack_from("<i", code, at + 4)[0] == TAIL_CALL
               for at in range(0, len(code), 8))


def count_new_atomics(code):
    """How many atomic instructions there are that Linux before 5.12 has not."""
    found, at = 0, 0
    while at < len(code):
        opcode, _, _, constant = struct.unpack_from("<BBhi", code, at)
        found += opcode in ATOMICS and constant not in GUARDED_ATOMICS
        at += 16 if opcode == LOAD_CONSTANT else 8
    return found


def functions_of(path):
    """{(section, offset): Function} of an object."""
    data = path.read_bytes()
    sections = sections_of(data)
    symbols, relocations = symbols_of(data, sections), relocations_of(data, sections)
    found = {}
    for name, kind, index, value, size in symbols:
        if kind != 2 or not sections[index].flags & 4:
            continue
        begin = sections[index].offset + value
        code = data[begin:begin + size]
        stack, calls = stack_and_calls(code)
        targets = []
        for at, constant in calls:
            number = relocations.get((index, value + at))
            if number is None:
                targets.append((index, value + at + 8 * (constant + 1)))
            elif symbols[number][1] == 3:  # a section, and the place in it
                targets.append((symbols[number][2], 8 * (constant + 1)))
            elif symbols[number][2]:  # not of a function of the kernel
                targets.append((symbols[number][2], symbols[number][3]))
        found[index, value] = Function(name, sections[index].name, stack, set(targets),
                                       has_tail_call(code), count_new_atomics(code))
    return found


def deepest(functions, at, known):
    """(bytes, frames, [functions]) of the deepest chain of calls from a function on, and the
    frames of the longest one."""
    if at not in known:
        function = functions[at]
        own = max(function.stack, 1) + ROUND_BYTES - 1 & -ROUND_BYTES
        below = [deepest(functions, to, known) for to in function.calls]
        best = max(below, default=(0, 0, []))
        known[at] = (own + best[0], 1 + max((b[1] for b in below), default=0),
                     ["%s %d" % (function.name, function.stack)] + best[2])
    return known[at]


def main():
    is_verbose = sys.argv[1] == "-v"
    paths = sorted(pathlib.Path(sys.argv[-1]).glob("*.bpf.o"))
    if not paths:
        print("no BPF objects in %s" % sys.argv[-1])
        return 77
    failed = 0
    for path in paths:
        functions, known = functions_of(path), {}
        for function in functions.values():
            if function.atomics:
                print("%s: %s: %d atomic instructions that Linux before 5.12 has not" % (
                    path.name, function.name, function.atomics))
                failed += 1
        for at, function in functions.items():
            if function.section == ".text":
                continue
            if PREEMPTIBLE.match(function.section) and not function.has_tail_call:
                print("%s: %s has no tail call, and so a stack of the CPU's" % (path.name,
                                                                              function.name))
                failed += 1
            size, frames, chain = deepest(functions, at, known)
            is_good = size <= STACK_BYTES and frames <= CALL_FRAMES
            failed += not is_good
            if is_verbose or not is_good:
                print("%s: %s: %d bytes of stack of %d, %d frames of %d: %s" % (
                    path.name, function.name, size, STACK_BYTES, frames, CALL_FRAMES,
                    ", ".join(chain)))
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
