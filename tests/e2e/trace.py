# SPDX-License-Identifier: BSD-2-Clause
"""Reads timelines, in both formats, into the same lists: Python 3.6 and the standard library.

    trace.load("run.pftrace").slices

Field numbers: include/proto/perfetto.proto.
"""
import collections
import gzip
import json

import pprof

# lane: function, cpu, gil.  Times in seconds.  notes: cpu, holder, stack.
Slice = collections.namedtuple("Slice", "pid tid thread lane start end name notes")
Trace = collections.namedtuple("Trace", "slices instants")

LANE_TIDS = 10000000
LANES = ("function", "cpu", "gil")


def load(path):
    if path.endswith((".json", ".json.gz")):
        return load_chrome(path)
    return load_perfetto(path)


# ---------------------------------------------------------------- Chrome

def load_chrome(path):
    opener = gzip.open if path.endswith(".gz") else open
    with opener(path, "rt", encoding="utf-8") as file:
        events = json.load(file)
    assert events[0]["name"] == "pyprofd"
    start_s = events[0]["args"]["start_monotonic_ns"] / 1e9
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    slices, instants = [], []
    for event in events:
        if event["ph"] == "M":
            continue
        lane, tid = divmod(event["tid"], LANE_TIDS)
        begin = start_s + event["ts"] / 1e6
        made = Slice(event["pid"], tid, names[event["pid"], tid], LANES[lane], begin,
                     begin + event.get("dur", 0) / 1e6, event["name"], event["args"])
        if event["ph"] == "X":
            assert event["cat"] == LANES[lane] and event["dur"] > 0, event
            slices.append(made)
        else:
            assert event["ph"] == "i" and event["cat"] == "sample" and lane == 0, event
            instants.append(made)
    return Trace(slices, instants)


# ---------------------------------------------------------------- Perfetto

def fields(data):
    """Field number -> values, in their order; packed numbers do not occur."""
    found = collections.defaultdict(list)
    for number, _, value in pprof._fields(data):  # the wire format is the same
        found[number].append(value)
    return found


def one(message, number, default=0):
    return message[number][-1] if message[number] else default


class Perfetto:
    def __init__(self, data):
        self.tracks, self.strings = {}, collections.defaultdict(dict)
        self.open, self.slices, self.instants = {}, [], []
        packets = fields(data)
        assert list(packets) == [1], "something beside packets"
        for packet in packets[1]:
            self.packet(fields(packet))
        assert not self.open, "%d slices do not end" % len(self.open)

    def packet(self, packet):
        assert one(packet, 10) == 1, "another sequence"
        for data in packet[12]:
            for number, entries in fields(data).items():
                for entry in map(fields, entries):
                    assert one(entry, 1) not in self.strings[number], "interned twice"
                    self.strings[number][one(entry, 1)] = one(entry, 2, b"").decode()
        for track in map(fields, packet[60]):
            self.tracks[one(track, 1)] = track
        for event in map(fields, packet[11]):
            self.event(one(packet, 8) / 1e9, event)

    def notes(self, event):
        made = {}
        for note in map(fields, event[4]):
            name = self.strings[3][one(note, 1)]
            made[name] = self.strings[29][one(note, 17)] if note[17] else one(note, 3)
        return made

    def where(self, uuid):
        track = self.tracks[uuid]
        lane = {b"CPU": "cpu", b"GIL": "gil"}.get(one(track, 2), "function")
        thread = fields(one(self.tracks[one(track, 5)] if lane != "function" else track, 4))
        return one(thread, 1), one(thread, 2), one(thread, 5, b"").decode(), lane

    def event(self, seconds, event):
        kind, uuid = one(event, 9), one(event, 11)
        if kind == 2:
            begin, name, notes = self.open.pop(uuid)
            self.slices.append((uuid, begin, seconds, name, notes))
            return
        name = self.strings[2][one(event, 10)]
        category = self.strings[1][one(event, 3)]
        if kind == 3:
            assert category == "sample"
            self.instants.append((uuid, seconds, seconds, name, self.notes(event)))
            return
        assert kind == 1 and uuid not in self.open, "slices overlap"
        assert category == self.where(uuid)[3]
        self.open[uuid] = seconds, name, self.notes(event)

    def named(self, found):
        return [Slice(*self.where(uuid), begin, end, name, notes)
                for uuid, begin, end, name, notes in found]


def load_perfetto(path):
    with open(path, "rb") as file:
        read = Perfetto(file.read())
    return Trace(read.named(read.slices), read.named(read.instants))
