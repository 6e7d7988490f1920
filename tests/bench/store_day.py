# SPDX-License-Identifier: BSD-2-Clause
"""What a day of history takes, and how long pyprof reads it: the windows of a fleet are recorded
for five minutes, put a day's worth of times one behind the other, and merged as pyprofd merges
them.  And what labels add to it: the same five minutes without them."""
import glob
import gzip
import os
import resource
import shutil
import socket
import struct
import subprocess
import time

import harness
import new_defaults
import reader_windows
from collector import fields, message

PYPROF = os.path.join(os.path.dirname(harness.PYPROFD), "pyprof")
PROGRAMS, CORES = 64, 0.8
SLOT_S, DAY_S, HOUR_S = 300, 86400, 3600
IDLE_S = 60  # the child that merges looks once a minute
DONE = 1
# Those that are read from a process (docs/design/configuration.md).
LABELS = {b"service_name", b"app", b"container", b"unit", b"user", b"namespace", b"pod",
          b"slurm_job", b"rank", b"local_rank", b"world_size"}


def windows_of(store):
    """[(path, start in ms, the rest of the name)]"""
    found = []
    for path in glob.glob(store + "/*/*/*.pb.gz"):
        start, rest = os.path.basename(path).split("-", 1)
        found.append((path, int(start), rest))
    return sorted(found, key=lambda one: one[1])


def place(store, start_ms, rest):
    """The path of a file with that time."""
    parts = time.gmtime(start_ms / 1000)
    directory = os.path.join(store, time.strftime("%Y-%m-%d/%H", parts))
    os.makedirs(directory, exist_ok=True)
    return os.path.join(directory, "%d-%s" % (start_ms, rest))


def replay(recorded, store, first_slot_s, slots):
    """The same five minutes again and again."""
    files = windows_of(recorded)
    begin_ms = files[0][1]
    for slot in range(slots):
        for path, start_ms, rest in files:
            if start_ms - begin_ms < SLOT_S * 1000:
                at_ms = (first_slot_s + slot * SLOT_S) * 1000 + start_ms - begin_ms
                shutil.copy(path, place(store, at_ms, rest))


def merge(store):
    """Runs the child until it has nothing more to do; (its CPU seconds, its groups)."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    directory = os.open(store, os.O_RDONLY)
    pid = os.posix_spawn(harness.PYPROFD, ["pyprofd: store"], os.environ,
                         file_actions=[(os.POSIX_SPAWN_DUP2, directory, 3),
                                       (os.POSIX_SPAWN_DUP2, theirs.fileno(), 4)])
    os.close(directory)
    theirs.close()
    ours.settimeout(IDLE_S / 2)
    groups = 0
    try:
        while True:
            _, err, what = struct.unpack_from("<QiI", ours.recv(256))
            assert not err, os.strerror(-err)
            groups += what == DONE
    except socket.timeout:
        pass
    ours.close()
    usage = os.wait4(pid, 0)[2]
    return usage.ru_utime + usage.ru_stime, groups


def sizes(store):
    """{kind: bytes}"""
    found = {}
    for path, _, rest in windows_of(store):
        kind = rest.split("-", 1)[1].split(".")[0]
        found[kind] = found.get(kind, 0) + os.path.getsize(path)
    return found


def read_s(store, *words):
    """(seconds, CPU seconds) of pyprof report."""
    def cpu_s():
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    before, begin = cpu_s(), time.monotonic()
    subprocess.run([PYPROF, "report", store, *words], stdout=subprocess.DEVNULL, check=True)
    return time.monotonic() - begin, cpu_s() - before


def unlabelled(path):
    """A pprof file without LABELS."""
    with gzip.open(path) as file:
        data = file.read()
    texts = [value for number, value in fields(data) if number == 6]
    samples, rest = reader_windows.split(data)
    out = []
    for (_, sample), in map(fields, samples):
        kept = [(number, value) for number, value in fields(sample)
                if number != 3 or texts[dict(fields(value))[1]] not in LABELS]
        out.append(message((2, message(*kept))))
    return gzip.compress(b"".join(out) + rest, 1)


def labels_add(recorded, first_slot_s):
    """The share by which labels make five minutes larger, merged."""
    store, plain = harness.temporary(), harness.temporary()
    replay(recorded, store, first_slot_s, 1)
    for path, start_ms, rest in windows_of(store):
        with open(place(plain, start_ms, rest), "wb") as file:
            file.write(unlabelled(path))
    merge(store)
    merge(plain)
    return sum(sizes(store).values()) / sum(sizes(plain).values()) - 1


def record(directory, seconds):
    """Only the fleet: what else runs on the machine is not of this node."""
    with harness.Target("fleet.py", PROGRAMS, CORES, "labels", "memory", ready=False,
                        python=new_defaults.interpreter()) as target:
        harness.profile(target.pid, duration=seconds, hz=99, out=directory + "/")


def section(quick, say):
    recorded, store = harness.temporary(), harness.temporary()
    record(recorded, 60 if quick else SLOT_S + 20)
    slots = 12 if quick else DAY_S // SLOT_S
    now_s = int(time.time())
    # The newest slot ended an hour ago, when it is old enough to be merged.
    first_s = (now_s - HOUR_S) // SLOT_S * SLOT_S - slots * SLOT_S
    replay(recorded, store, first_s, slots)
    before = sum(sizes(store).values())
    cpu_s, groups = merge(store)
    after = sizes(store)
    result = {"programs": PROGRAMS, "slots": slots, "before_bytes": before, "kinds_bytes": after,
              "merge_cpu_s": cpu_s, "groups": groups}
    share = DAY_S / (slots * SLOT_S)
    day = sum(after.values()) * share / 1e6
    say("store    %d programs: a day of %s takes %.0f MB (wanted <= 200), %.0f MB before it is "
        "merged"
        % (PROGRAMS, ", ".join("%s %.0f" % (kind, size * share / 1e6)
                               for kind, size in sorted(after.items())), day, before * share / 1e6))
    say("store    merging costs %.2f %% of a core, %.2f s for each file"
        % (100 * cpu_s * share / DAY_S, cpu_s / max(groups, 1)))
    result["labels_add"] = labels_add(recorded, first_s)
    say("store    labels of the processes add %.1f %% (wanted <= 15)"
        % (100 * result["labels_add"]))
    end = first_s + slots * SLOT_S
    for name, words in (("hour", ["--since", "@%d" % (end - HOUR_S)]), ("all", [])):
        reads = [read_s(store, *words) for _ in range(3)]
        result[name + "_s"], result[name + "_cpu_s"] = map(min, zip(*reads))
    say("store    pyprof report: an hour in %.2f s, %.2f s of CPU (wanted <= 1), all %.1f hours in "
        "%.2f s, %.2f s of CPU (a day wanted <= 6); the best of three"
        % (result["hour_s"], result["hour_cpu_s"], slots * SLOT_S / HOUR_S, result["all_s"],
           result["all_cpu_s"]))
    return result
