#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Reads pprof files: Python 3.6 and the standard library, nothing of the agent's.

    import pprof; pprof.load("out.pb.gz").samples
    pprof.py FILE...      # prints what is in them

A field that is missing, of the wrong wire type, cut off, or an index without an entry is an error
(ValueError): a test must not go on with half a profile.  Field numbers:
include/proto/profile.proto.
"""
import collections
import gzip
import re
import sys

# kind: python native kernel jit marker.  module: the mapping's file name.
Frame = collections.namedtuple("Frame", "kind name file line module")
# frames: leaf first.  values: one for each sample type.  labels: key -> str or int.
Sample = collections.namedtuple("Sample", "frames values labels")
Mapping = collections.namedtuple("Mapping", "start limit offset file build_id symbolized")
Function = collections.namedtuple("Function", "name system_name file start_line")
Location = collections.namedtuple("Location",
                                  "mapping address lines")  # lines: [(function id, line)]

LEDGER_VALUES = 6  # of kind ledger: time, lifetime, threads, off_scheduler, compared, processes

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_JIT_MODULE = re.compile(r"^(\[anon|//anon|.*/perf-\d+\.map$|.*\.jitdump$)")


def _varint(data, at):
    if at < len(data) and data[at] < 0x80:  # most are
        return data[at], at + 1
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise ValueError("a varint is cut off or too long at byte %d" % at)
        byte = data[at]
        at += 1
        value |= (byte & 0x7f) << shift
        if byte < 0x80:
            return value & (1 << 64) - 1, at
        shift += 7


def _varints(data):
    """All of a packed field.  Most of a profile is such: without a call for each."""
    if not data or max(data) < 0x80:
        return list(data)
    numbers, value, shift = [], 0, 0
    for byte in data:
        value |= (byte & 0x7f) << shift
        if byte < 0x80:
            numbers.append(value & (1 << 64) - 1)
            value = shift = 0
        else:
            shift += 7
            if shift > 63:
                raise ValueError("a packed varint is too long")
    if shift:
        raise ValueError("a packed varint is cut off")
    return numbers


def _fields(data):
    """(field number, wire type, int or bytes) for each field."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, wire = tag >> 3, tag & 7
        if wire == _VARINT:
            value, at = _varint(data, at)
        elif wire in (_BYTES, _FIXED64, _FIXED32):
            size = {_FIXED64: 8, _FIXED32: 4}.get(wire)
            if size is None:
                size, at = _varint(data, at)
            if at + size > len(data):
                raise ValueError("field %d of %d bytes is cut off" % (number, size))
            value = data[at:at + size]
            at += size
        else:
            raise ValueError("field %d has wire type %d" % (number, wire))
        yield number, wire, value


def _signed(value):
    return value - (1 << 64) if value >> 63 else value


class _Message:
    """The fields of one message, by number, with the wire type that each is asked for as."""

    def __init__(self, data):
        self._fields = collections.defaultdict(list)
        for number, wire, value in _fields(data):
            self._fields[number].append((wire, value))

    def number(self, field):
        """uint64, int64 as unsigned, bool; 0 when it is not there."""
        found = self._fields.get(field)
        if not found:
            return 0
        wire, value = found[-1]
        if wire != _VARINT:
            raise ValueError("field %d has wire type %d, not a varint" % (field, wire))
        return value

    def signed(self, field):
        return _signed(self.number(field))

    def has(self, field):
        return field in self._fields

    def all_bytes(self, field):
        for wire, value in self._fields.get(field, ()):
            if wire != _BYTES:
                raise ValueError("field %d has wire type %d, not bytes" % (field, wire))
            yield value

    def all_messages(self, field):
        return [_Message(value) for value in self.all_bytes(field)]

    def all_numbers(self, field):
        """Packed or not."""
        numbers = []
        for wire, value in self._fields.get(field, ()):
            if wire == _VARINT:
                numbers.append(value)
                continue
            if wire != _BYTES:
                raise ValueError("field %d has wire type %d" % (field, wire))
            numbers += _varints(value)
        return numbers


def _kind(name, file, mapping, address):
    module = mapping.file if mapping else ""
    if "[kernel" in module or address >> 63 or name.endswith("_[k]"):
        return "kernel"
    if module in ("[python]", "[pyprofd]"):
        return "python" if module == "[python]" else "marker"
    if not module:
        if file:
            return "python"
        if address:
            return "jit"
        return "marker" if name.startswith("[") else "python"
    if _JIT_MODULE.match(module):
        return "jit"
    if file != module and re.search(r"\.pyw?$|^<.*>$", file):
        return "python"
    return "native"


class Profile:
    """samples; sample_types [(type, unit)]; default_sample_type; period_type; period; time_ns;
    duration_ns; comments; mappings, locations and functions by id; strings; ledger: the rows of
    kind ledger, which are no samples where another kind's come before them."""

    def __init__(self, data):
        """data: a pprof message, gzip'd or not."""
        if data[:2] == b"\x1f\x8b":
            data = gzip.decompress(data)
        message = _Message(data)
        self.strings = [text.decode("utf-8") for text in message.all_bytes(6)]
        if not self.strings or self.strings[0]:
            raise ValueError("the string table does not begin with an empty string")
        self.sample_types = [self._value_type(m) for m in message.all_messages(1)]
        self.mappings = self._by_id(message.all_messages(3), self._mapping)
        self.locations = self._by_id(message.all_messages(4), self._location)
        self.functions = self._by_id(message.all_messages(5), self._function)
        self.time_ns = message.signed(9)
        self.duration_ns = message.signed(10)
        self.period_type = next((self._value_type(m) for m in message.all_messages(11)), None)
        self.period = message.signed(12)
        self.comments = [self._text(i) for i in message.all_numbers(13)]
        self.default_sample_type = self._text(message.number(14))
        self._frames = {}  # by location id: the same tuple for every sample
        self.samples = [self._sample(m) for m in message.all_messages(2)]
        self.ledger = self._take_ledger()

    def _take_ledger(self):
        names = [name for name, _ in self.sample_types]
        begin = names.index("ledger") if "ledger" in names else 0
        end = begin + LEDGER_VALUES
        if not begin:
            return self.samples if names[0] == "ledger" else []
        rows = [s._replace(values=s.values[begin:end]) for s in self.samples]
        others = [s._replace(values=s.values[:begin] + s.values[end:]) for s in self.samples]
        del self.sample_types[begin:end]
        self.samples = [other for other, row in zip(others, rows)
                        if any(other.values) or not any(row.values)]
        return [row for row in rows if any(row.values)]

    def _text(self, index):
        if index >= len(self.strings):
            raise ValueError("there is no string %d" % index)
        return self.strings[index]

    def _value_type(self, message):
        return self._text(message.number(1)), self._text(message.number(2))

    @staticmethod
    def _by_id(messages, convert):
        table = {}
        for message in messages:
            number = message.number(1)
            if not number or number in table:
                raise ValueError("id %d is 0 or used twice" % number)
            table[number] = convert(message)
        return table

    def _mapping(self, m):
        return Mapping(m.number(2), m.number(3), m.number(4), self._text(m.number(5)),
                       self._text(m.number(6)), all(m.number(field) for field in (7, 8, 9, 10)))

    def _function(self, m):
        return Function(self._text(m.number(2)), self._text(m.number(3)), self._text(m.number(4)),
                        m.signed(5))

    @staticmethod
    def _location(m):
        return Location(m.number(2), m.number(3),
                        [(line.number(1), line.signed(2)) for line in m.all_messages(4)])

    def _frames_of(self, location_id):
        """Of one location: more than one when functions were inlined there, the innermost first."""
        if location_id not in self.locations:
            raise ValueError("there is no location %d" % location_id)
        location = self.locations[location_id]
        mapping = None
        if location.mapping:
            if location.mapping not in self.mappings:
                raise ValueError("there is no mapping %d" % location.mapping)
            mapping = self.mappings[location.mapping]
        frames = []
        for function_id, line in location.lines:
            if function_id not in self.functions:
                raise ValueError("there is no function %d" % function_id)
            function = self.functions[function_id]
            name = function.name or function.system_name
            frames.append(Frame(_kind(name, function.file, mapping, location.address), name,
                                function.file, line, mapping.file if mapping else ""))
        if not frames:
            raise ValueError("location %d has no function" % location_id)
        return frames

    def _sample(self, message):
        frames = []
        for location_id in message.all_numbers(1):
            if location_id not in self._frames:
                self._frames[location_id] = self._frames_of(location_id)
            frames.extend(self._frames[location_id])
        values = [_signed(value) for value in message.all_numbers(2)]
        if len(values) != len(self.sample_types):
            raise ValueError(
                "a sample has %d values, not %d" % (len(values), len(self.sample_types)))
        labels = {}
        for label in message.all_messages(3):
            key = self._text(label.number(1))
            if key in labels:
                raise ValueError("a sample has the label %r twice" % key)
            labels[key] = self._text(label.number(2)) if label.number(2) else label.signed(3)
        return Sample(frames, values, labels)


def load(path):
    with open(path, "rb") as file:
        return Profile(file.read())


def describe(profile):
    """Lines of text: the whole profile."""
    yield "types: %s" % " ".join("/".join(t) for t in profile.sample_types)
    yield "default: %s" % profile.default_sample_type
    yield "period: %d %s" % (profile.period, "/".join(profile.period_type or ()))
    yield "time: %d" % profile.time_ns
    yield "duration: %d" % profile.duration_ns
    for comment in profile.comments:
        yield "comment: %s" % comment
    for number in sorted(profile.mappings):
        m = profile.mappings[number]
        yield "mapping %d: %#x %#x %#x %s %s%s" % (number, m.start, m.limit, m.offset, m.file,
                                                   m.build_id
                                                   or "-", "" if m.symbolized else " raw")
    for sample in profile.samples:
        labels = ["%s=%s" % (key, sample.labels[key]) for key in sorted(sample.labels)]
        yield "sample %s: %s" % (" ".join(map(str, sample.values)), " ".join(labels))
        for frame in sample.frames:
            place = "%s:%d" % (frame.file, frame.line) if frame.line else frame.file
            yield "  %s %s%s" % (frame.kind, frame.name, " (%s)" % place if place else "")


def main(paths):
    for path in paths:
        for line in describe(load(path)):
            print(line)


if __name__ == "__main__":
    main(sys.argv[1:])
