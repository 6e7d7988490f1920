# SPDX-License-Identifier: BSD-2-Clause
"""pprof.py itself: a message built by hand, then the same message with one error.

The agent's encoder is tested by tests/unit/pprof/test_pprof.c.
"""
import gzip
import os

import harness
import pprof


def varint(number):
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7f | 0x80)
        number >>= 7
    return bytes(out) + bytes([number])


def message(*fields):
    """Of (number, int or bytes)."""
    out = b""
    for number, value in fields:
        if isinstance(value, bytes):
            out += varint(number << 3 | 2) + varint(len(value)) + value
        else:
            out += varint(number << 3) + varint(value & (1 << 64) - 1)
    return out


STRINGS = ["", "samples", "count", "pid", "comm", "python3", "f", "/a.py", "g", "/lib/l.so", "idle",
           "[kernel.kallsyms]", "[unwind gap]", "inlined"]


def parts():
    """The fields of a whole profile, by name, so that a test can change one."""
    def at(text):
        return STRINGS.index(text)

    return {
        "types": [(1, message((1, at("samples")), (2, at("count"))))],
        "samples": [
            (2,
             message((1, b"\x04\x03\x02\x01"), (2, b"\x07"), (3, message((1, at("pid")), (3, 300))),
                     (3, message((1, at("comm")), (2, at("python3")))))),
            (2, message((1, 1), (2, -5))),  # not packed
        ],
        "mappings": [(3,
                      message((1, 1), (2, 0x1000), (3, 0x2000), (5, at("/lib/l.so")), (7, 1),
                              (8, 1), (9, 1), (10, 1))),
                     (3, message((1, 2), (5, at("[kernel.kallsyms]"))))],
        "locations": [
            (4, message((1, 1), (4, message((1, 1), (2, 70000))))),
            (4, message((1, 2), (4, message((1, 4))))),
            (4,
             message((1, 3), (2, 1), (3, 0x1100), (4, message((1, 5), (2, 3))), (4, message(
                 (1, 2))))),
            (4, message((1, 4), (2, 2), (3, 0xffffffff81000000), (4, message((1, 3))))),
        ],
        "functions": [(5, message((1, 1), (2, at("f")), (4, at("/a.py")), (5, 9))),
                      (5, message((1, 2), (2, at("g")), (4, at("/lib/l.so")))),
                      (5, message((1, 3), (3, at("idle")))),
                      (5, message((1, 4), (2, at("[unwind gap]")))),
                      (5, message((1, 5), (2, at("inlined"))))],
        "strings": [(6, text.encode()) for text in STRINGS],
        "window": [(9, 1 << 60), (10, 10**10), (11, message((1, at("samples")), (2, at("count")))),
                   (12, 1), (13, varint(at("f"))), (14, at("samples"))],
    }


def encode(fields):
    return b"".join(message(*group) for group in fields.values())


def test_reads_every_field():
    profile = pprof.Profile(encode(parts()))
    assert profile.sample_types == [("samples", "count")]
    assert (profile.default_sample_type, profile.period_type) == ("samples", ("samples", "count"))
    assert (profile.time_ns, profile.duration_ns, profile.period) == (1 << 60, 10 ** 10, 1)
    assert profile.comments == ["f"]
    assert profile.mappings[1] == (0x1000, 0x2000, 0, "/lib/l.so", "", True)
    assert not profile.mappings[2].symbolized
    assert profile.functions[1] == ("f", "", "/a.py", 9)
    first, second = profile.samples
    assert first.values == [7] and first.labels == {"pid": 300, "comm": "python3"}
    assert first.frames == [
        ("kernel", "idle", "", 0, "[kernel.kallsyms]"),
        ("native", "inlined", "", 3, "/lib/l.so"),
        ("native", "g", "/lib/l.so", 0, "/lib/l.so"),
        ("marker", "[unwind gap]", "", 0, ""),
        ("python", "f", "/a.py", 70000, ""),
    ]
    assert second.values == [-5] and second.labels == {} and second.frames == first.frames[4:]


def test_reads_gzip_and_any_order():
    fields = parts()
    backwards = {key: fields[key] for key in reversed(list(fields))}
    path = os.path.join(harness.temporary(), "o.pb.gz")
    with open(path, "wb") as file:
        file.write(gzip.compress(encode(backwards)))
    assert pprof.load(path).samples == pprof.Profile(encode(fields)).samples


def wrong(name, fields):
    changed = dict(parts(), **{name: fields})
    return encode(changed)


def broken():
    whole = encode(parts())
    return [
        ("cut", whole[:-1]),
        ("empty", b""),
        ("no empty string", wrong("strings", parts()["strings"][1:])),
        ("too few strings", wrong("strings", parts()["strings"][:-1])),
        ("no utf-8", wrong("strings", parts()["strings"] + [(6, b"\xff")])),
        ("no location", wrong("samples", [(2, message((1, 9), (2, 1)))])),
        ("values", wrong("samples", [(2, message((1, 1), (2, b"\1\1")))])),
        ("label twice", wrong("samples", [(2, message((2, 1), (3, message((1, 3), (3, 1))),
                                                      (3, message((1, 3), (3, 1)))))])),
        ("id twice", wrong("functions", parts()["functions"] * 2)),
        ("no function", wrong("functions", parts()["functions"][1:])),
        ("no mapping", wrong("mappings", [])),
        ("no line", wrong("locations", [(4, message((1, n))) for n in (1, 2, 3, 4)])),
        ("wire type", wrong("window", [(10, b"x")])),
        ("group", whole + b"\x0b"),
        ("long varint", whole + b"\x50" + b"\xff" * 11 + b"\x00"),
    ]


def test_broken_profile_is_an_error(case):
    try:
        pprof.Profile(case)
    except ValueError:
        return
    raise AssertionError("was read")


test_broken_profile_is_an_error.cases = broken
