# SPDX-License-Identifier: BSD-2-Clause
"""--probe: counts and latencies beside the program's own, and that programs and their stacks are as
they were without probes."""
import collections
import ctypes
import ctypes.util
import glob
import os
import re
import shutil
import signal
import struct
import subprocess
import time

import harness

DEEP = 30
PYTHON = "/usr/bin/python3.11"


def built(directory=None):
    """The directory of libprobed.so."""
    compiler = shutil.which("gcc") or shutil.which("clang-19") or shutil.which("cc")
    harness.need(compiler, "no C compiler")
    directory = directory or harness.temporary()
    subprocess.run([compiler, "-O2", "-fPIC", "-shared", "-o",
                    os.path.join(directory, "libprobed.so"),
                    os.path.join(harness.TARGETS, "probed.c"), "-lpthread"], check=True)
    return directory


def target(mode, directory=None, **options):
    return harness.Target("probed.py", mode, directory=directory or built(), **options)


def uprobe(program, function, is_return=False):
    """Without a bound that counts would be scaled by."""
    return ["--max-slowdown", "900x", "--probe",
            "uprobe:%s:%s%s" % (os.path.join(program.inside, "libprobed.so"), function,
                                "+ret" if is_return else "")]


def go(program):
    """Lets it do its calls; returns what its library counted."""
    open(program.path("go"), "w").close()
    program.wait("done")
    return program.read("counters.json")


def links(process):
    """What a pyprofd has attached: [(type, path or name of the tracepoint, sites)]"""
    found = []
    for told in harness.fdinfos(process):
        if "link_type" in told:
            found.append((told["link_type"], told.get("path") or told.get("tp_name", ""),
                          int(told.get("uprobe_cnt", 0))))
    return found


def sites(process):
    """But those in its own program, by which it finds out what a hit costs."""
    own = os.readlink("/proc/%d/exe" % process.pid)
    return sum(count for kind, path, count in links(process)
               if kind.endswith("probe_multi") and path != own)


def await_sites(process, count, limit_s=60.0):
    """Waits until so many places of code are attached."""
    def are_attached():
        assert process.poll() is None, harness.said(process)
        return sites(process) >= count
    harness.wait_for(are_attached, limit_s, "%d places with probes" % count)


def need_links():
    """Only links of uprobe_multi (Linux 6.6) tell in /proc what they are on."""
    release = [int(n) for n in re.findall(r"\d+", os.uname().release)[:2]]
    harness.need(release >= [6, 6], "links of probes cannot be listed before Linux 6.6")


def run_counts(program, options, count, pid=True):
    """(profile, counters, what pyprofd said) of a program of mode `counts`"""
    need_links()
    out = os.path.join(harness.temporary(), "out.pb.gz")
    process = harness.start(out, program.pid if pid else None, hz=None, options=options)
    await_sites(process, count)
    counters = go(program)
    run = harness.finish(process, signal_number=signal.SIGINT)
    assert run.rc == 0, run.err
    return harness.load(out), counters, run.err


def by_probe(profile, pid=None):
    """probe -> (hits, ns)"""
    found = collections.defaultdict(lambda: [0, 0])
    for sample in profile.samples:
        if pid and sample.labels.get("pid") != pid:
            continue
        found[sample.labels["probe"]][0] += sample.values[0]
        found[sample.labels["probe"]][1] += sample.values[1]
    return {name: tuple(values) for name, values in found.items()}


def one(found, part):
    """The values of the one probe with this in its name."""
    named = [values for name, values in found.items() if part in name]
    assert len(named) == 1, (part, found)
    return named[0]


# ---------------------------------------------------------------- counts and latencies

def test_counts_are_exact_and_latencies_the_programs_own():
    with target("counts") as program:
        profile, counters, said = run_counts(
            program, uprobe(program, "probed_leaf") + uprobe(program, "probed_recurse", True) +
            uprobe(program, "probed_time", True), 5)
        found = by_probe(profile, program.pid)
        assert counters["probed_leaves"] == 20000 and counters["probed_recursions"] == 310
        assert one(found, "probed_leaf")[0] == counters["probed_leaves"], (found, counters, said)
        assert one(found, "probed_recurse")[0] == counters["probed_recursions"], (found, said)
        hits, ns = one(found, "probed_time")
        assert hits == counters["probed_timed"], (found, counters, said)
        off = ns / counters["probed_timed_ns"] - 1
        print("latency: %+.2f %% of the library's own" % (100 * off))
        assert abs(off) < 0.02, (ns, counters, said)
        assert [t[0] for t in profile.sample_types] == ["events", "latency"], profile.sample_types
        leaf = [s for s in profile.samples if "probed_leaf" in s.labels["probe"]]
        assert all(s.frames[0].name == "probed_leaf" for s in leaf), leaf[:2]
        assert all(any(f.kind == "python" and f.name == "leaves" for f in s.frames)
                   for s in leaf), leaf[:2]


test_counts_are_exact_and_latencies_the_programs_own.alone = "one a CPU"


def test_recursion_is_in_the_stack_as_deep_as_it_was():
    with target("counts") as program:
        profile, _, said = run_counts(program, uprobe(program, "probed_recurse", True), 2)
        depths = collections.Counter()
        for sample in profile.samples:
            depths[sum(f.name == "probed_recurse" for f in sample.frames)] += sample.values[0]
        # Each of the ten outermost calls has 31 inside of each other, itself the first.
        assert depths == {depth: 10 for depth in range(1, DEEP + 2)}, (depths, said)


# ---------------------------------------------------------------- stacks of samples and waits

def is_inside(sample):
    return any(f.name in ("probed_spin", "probed_sleep", "probed_lock") for f in sample.frames)


def depth(sample):
    return sum(f.name == "probed_recurse" for f in sample.frames)


def callers(sample):
    """The frames of user space down to what the library calls."""
    frames = [f.name for f in sample.frames if f.kind != "kernel"]
    last = max(i for i, name in enumerate(frames) if name.startswith("probed_"))
    return tuple(frames[:last + 1])


def look_inside(directory, kind, pid):
    """(share of whole stacks, different lists of callers) of samples inside the innermost"""
    every = []
    for path in glob.glob(os.path.join(directory, "*", "*", "*-%s.pb.gz" % kind)):
        every += harness.samples(path, pid)
    inside = [s for s in every if is_inside(s)]
    assert harness.total(inside) > 50, harness.show(every)
    return (harness.share(inside, lambda s: harness.is_whole(s) and depth(s) == DEEP + 1),
            {callers(s) for s in inside})


def test_stacks_inside_probed_functions_are_as_whole_as_without():
    with target("rounds") as program:
        plain, probed = harness.temporary(), harness.temporary()
        probes = []
        for function in ("probed_recurse", "probed_spin", "probed_sleep", "probed_lock"):
            probes += uprobe(program, function, True)
        for directory, options, events in ((plain, [], "cpu,offcpu"),
                                           (probed, probes, "cpu,offcpu,probe")):
            harness.profile(program.pid, hz=999, duration=2, out=directory + "/",
                            options=options + ["--events", events], limit_s=90)
        for kind in ("cpu", "offcpu"):
            before, after = (look_inside(d, kind, program.pid) for d in (plain, probed))
            print("%s: whole %.4f, with probes %.4f" % (kind, before[0], after[0]))
            assert after[0] > before[0] - 0.01, (kind, before[0], after[0])
            assert before[1] <= after[1], before[1] - after[1]
            strange = after[1] - before[1]
            assert all(len(c) <= max(len(b) for b in before[1]) for c in strange), strange


test_stacks_inside_probed_functions_are_as_whole_as_without.alone = "one a CPU"


def is_whole_of(sample, function):
    """Nothing is missing or strange between the loop and its end."""
    frames = [f.name for f in sample.frames if f.kind != "kernel"]
    if "probed_tight" in frames:
        below = frames[frames.index("probed_tight") + 1:]
        return harness.is_whole(sample) and below in ([], [function])
    return harness.is_whole(sample) and function not in frames and "[anon]" not in frames


def whole_of_tight(program, options):
    """function -> the share of its thread's samples that have whole stacks"""
    run = harness.profile(program.pid, hz=999, duration=2, out=harness.temporary() + "/",
                          options=options, limit_s=90)
    samples = [s for path in glob.glob(os.path.join(run.out, "*", "*", "*-cpu.pb.gz"))
               for s in harness.samples(path, program.pid)]
    shares = {}
    for function, tid in program.read("tight.json").items():
        own = [s for s in samples if s.tid == tid]
        assert harness.total(own) > 100, (function, harness.show(samples))
        shares[function] = harness.share(own, lambda s, f=function: is_whole_of(s, f))
    return shares


def test_stacks_of_tight_loops_of_probed_calls_are_whole(is_return):
    """The loops are at a breakpoint nearly all of the time.  Between the moment when the kernel has
    replaced a return address and that when it notes the true one, nobody knows it."""
    with target("tight") as program:
        before = whole_of_tight(program, ["--events", "cpu"])
        probes = ["--events", "cpu,probe"]
        for function in before:
            probes += uprobe(program, function, is_return)
        after = whole_of_tight(program, probes)
        print("whole: %s, with probes %s" % (before, after))
        for function, share in before.items():
            assert after[function] > share - (0.04 if is_return else 0.02), (before, after)


test_stacks_of_tight_loops_of_probed_calls_are_whole.cases = \
    lambda: [("entry", False), ("return", True)]
test_stacks_of_tight_loops_of_probed_calls_are_whole.few = harness.newest


def test_threads_asleep_inside_probed_functions_are_whole():
    """The scan of blocked threads reads the return addresses of other tasks.  One pyprofd has
    attached the probes, and `pyprof dump` looks at the threads."""
    need_links()
    harness.need_no_pyprofd()
    with target("rounds") as program:
        probes = []
        for function in ("probed_recurse", "probed_sleep", "probed_lock"):
            probes += uprobe(program, function, True)
        other = harness.start(os.path.join(harness.temporary(), "other.pb.gz"), program.pid,
                              hz=None, options=probes)
        try:
            await_sites(other, 6)
            time.sleep(0.1)  # calls from before have no replaced return address
            seen = collections.Counter()
            for _ in range(harness.times(6, 10)):
                dumped = subprocess.run(
                    [os.path.join(os.path.dirname(harness.PYPROFD), "pyprof"), "dump", "--pid",
                     str(program.pid)], stdout=subprocess.PIPE,
                    check=True).stdout.decode()
                for thread in dumped.split("\n  thread ")[1:]:
                    if re.search(r"probed_(sleep|lock)", thread):
                        seen[thread.count("probed_recurse"), "start_thread" in thread] += 1
                time.sleep(0.05)
            # Two that wait alike are shown as one.
            assert sum(seen.values()) >= 3 and seen[DEEP + 1, True] >= 0.7 * sum(
                seen.values()), seen
        finally:
            harness.finish(other, signal_number=signal.SIGINT)


# `pyprof dump` would ask another test's pyprofd, if it wrote into a directory.
test_threads_asleep_inside_probed_functions_are_whole.alone = True


# ---------------------------------------------------------------- which processes

def test_processes_that_start_later_are_probed():
    """The file is known once a program has mapped it: from the second on nothing is missed."""
    need_links()
    directory = built()
    with harness.Target("probed.py", "counts", directory=directory) as first:
        probes = uprobe(first, "probed_leaf") + uprobe(first, "probed_time", True)
        out = os.path.join(harness.temporary(), "out.pb.gz")
        process = harness.start(out, None, hz=None, options=probes)
        await_sites(process, 3)
        environment = dict(os.environ, E2E_DIR=directory)
        for _ in range(2):
            subprocess.run(list(first.python.command) + [first.path("probed.py"), "now"],
                           env=environment, check=True, stdin=subprocess.DEVNULL)
        counters = first.read("counters.json")
        run = harness.finish(process, signal_number=signal.SIGINT)
        found = by_probe(harness.load(out))
        assert one(found, "probed_leaf")[0] == 2 * counters["probed_leaves"], (found, run.err)
        assert one(found, "probed_time")[0] == 2 * counters["probed_timed"], (found, run.err)


def test_a_filter_keeps_breakpoints_out_of_other_programs():
    need_links()
    directory = built()
    with harness.Target("probed.py", "counts", directory=directory) as mine, \
            harness.Target("probed.py", "calls", directory=harness.temporary(),
                           wrap=["env", "LIBRARY=" + directory]) as other:
        address = address_of(other, "probed_leaf")
        profile, counters, _ = run_counts(mine, uprobe(mine, "probed_leaf"), 1)
        assert {s.labels["pid"] for s in profile.samples} == {mine.pid}
        assert one(by_probe(profile), "probed_leaf")[0] == counters["probed_leaves"]
        process = harness.start(os.path.join(harness.temporary(), "out.pb.gz"), mine.pid, hz=None,
                                options=uprobe(mine, "probed_leaf"))
        await_sites(process, 1)
        assert byte_at(mine.pid, address_of(mine, "probed_leaf")) == BREAKPOINT
        assert byte_at(other.pid, address) != BREAKPOINT
        harness.finish(process, signal_number=signal.SIGINT)


def test_deleted_files_are_probed():
    need_links()
    with target("counts") as program:
        library = program.path("libprobed.so")
        os.unlink(library)
        profile, counters, said = run_counts(program, uprobe(program, "probed_leaf"), 1)
        assert one(by_probe(profile), "probed_leaf")[0] == counters["probed_leaves"], said


def test_a_program_in_another_mount_namespace_is_probed():
    """Its library is at a path that exists only there."""
    need_links()
    python = harness.interpreter()
    directory = built()
    hidden = harness.temporary()
    # A directory of the namespace's own over one that is empty for everybody else.
    with harness.Target("probed.py", "counts", python=python, directory=directory,
                        env={"LIBRARY": hidden},
                        wrap=["unshare", "--mount", "sh", "-c",
                              'mount --bind "%s" "%s" && exec "$@"' % (directory, hidden),
                              "sh"]) as program:
        probe = ["--max-slowdown", "900x", "--probe",
                 "uprobe:%s/libprobed.so:probed_leaf" % hidden]
        assert not os.path.exists(os.path.join(hidden, "libprobed.so"))
        profile, counters, said = run_counts(program, probe, 1)
        hits = one(by_probe(profile), "probed_leaf")[0]
        assert hits == counters["probed_leaves"], (hits, counters, said)


def test_children_that_end_or_exec_in_mid_call_are_well():
    with target("forks") as program:
        profile, counters, said = run_counts(program, uprobe(program, "probed_call", True), 2)
        assert counters["ends"] == [7, 0] * 20, counters
        hits = by_probe(profile, program.pid)
        assert one(hits, "probed_call")[0] == 40, (hits, said)


# ---------------------------------------------------------------- what stays

BREAKPOINT = b"\xcc"  # x86-64


def byte_at(pid, address, size=1):
    with open("/proc/%d/mem" % pid, "rb", buffering=0) as memory:
        memory.seek(address)
        return memory.read(size)


def mapped_at(pid, name):
    """[(start, offset in the file)] of the mappings of a file, in order"""
    found = []
    with open("/proc/%d/maps" % pid, encoding="utf-8", errors="replace") as file:
        for line in file:
            words = line.split(None, 5)
            if len(words) == 6 and os.path.basename(words[5].rstrip("\n")) == name:
                found.append((int(words[0].split("-")[0], 16), int(words[2], 16)))
    return found


def address_of(program, function):
    library = os.path.join(os.environ.get("LIBRARY") or program.directory, "libprobed.so")
    listed = subprocess.run(["nm", "-D", library], stdout=subprocess.PIPE, check=False,
                            stderr=subprocess.DEVNULL).stdout.decode()
    if not listed:  # that of another program's directory is the same
        listed = subprocess.run(["nm", "-D", os.path.join(built(), "libprobed.so")],
                                stdout=subprocess.PIPE, check=True).stdout.decode()
    address = next(int(l.split()[0], 16) for l in listed.splitlines()
                   if l.split()[-1] == function)
    return mapped_at(program.pid, "libprobed.so")[0][0] + address


def kill_after_attach(program, options, count, look):
    """look() in between, after a kill -9 of pyprofd; returns both values of look()."""
    process = harness.start(os.path.join(harness.temporary(), "out.pb.gz"), program.pid, hz=None,
                            options=options)
    await_sites(process, count)
    attached = look()
    process.kill()
    process.wait()
    return attached, look()


def repeats():
    return harness.times(2, 50)


def test_breakpoints_are_gone_after_a_kill():
    need_links()
    harness.need(os.uname().machine == "x86_64", "the breakpoint is x86-64's")
    with target("calls") as program:
        address = address_of(program, "probed_leaf")
        before = byte_at(program.pid, address)
        for _ in range(repeats()):
            attached, after = kill_after_attach(
                program, uprobe(program, "probed_leaf", True), 2,
                lambda: byte_at(program.pid, address))
            assert attached == BREAKPOINT and after == before, (attached, after, before)
        time.sleep(0.3)
        assert program.process.poll() is None
        # Its calls take what they took before: some ns.
        assert program.read("round.json")["ns"] < 500, program.read("round.json")


class ProgramInfo(ctypes.Structure):
    """The head of struct bpf_prog_info, and its name (linux/bpf.h)."""
    _fields_ = [("type", ctypes.c_uint32), ("id", ctypes.c_uint32), ("tag", ctypes.c_uint8 * 8),
                ("jited_bytes", ctypes.c_uint32), ("xlated_bytes", ctypes.c_uint32),
                ("jited", ctypes.c_uint64), ("xlated", ctypes.c_uint64),
                ("load_time", ctypes.c_uint64), ("uid", ctypes.c_uint32),
                ("map_count", ctypes.c_uint32), ("maps", ctypes.c_uint64),
                ("name", ctypes.c_char * 16)]


def machine_code(process):
    """name -> the code that the kernel has made of each program of this pyprofd"""
    libbpf, found = ctypes.CDLL("libbpf.so.1"), {}
    for fdinfo in glob.glob("/proc/%d/fdinfo/*" % process.pid):
        try:
            with open(fdinfo, encoding="utf-8", errors="replace") as file:
                number = re.search(r"^prog_type:.*^prog_id:\s+(\d+)", file.read(), re.S | re.M)
        except OSError:
            continue
        fd = number and libbpf.bpf_prog_get_fd_by_id(int(number.group(1)))
        if not number or fd < 0:
            continue
        info, size = ProgramInfo(), ctypes.c_uint32(ctypes.sizeof(ProgramInfo))
        assert not libbpf.bpf_obj_get_info_by_fd(fd, ctypes.byref(info), ctypes.byref(size))
        code = ctypes.create_string_buffer(info.jited_bytes)
        name, info = info.name.decode(), ProgramInfo(
            jited_bytes=info.jited_bytes, jited=ctypes.addressof(code))
        assert not libbpf.bpf_obj_get_info_by_fd(fd, ctypes.byref(info), ctypes.byref(size))
        found[name] = code.raw
        os.close(fd)
    return found


def test_programs_of_probes_have_no_private_stack():
    """x86-64's JIT adds the CPU's offset to the stack's address: add %gs:OFFSET,%r9."""
    need_links()
    harness.need(os.uname().machine == "x86_64", "the code that is looked for is x86-64's")
    harness.need(ctypes.util.find_library("bpf"), "no libbpf.so")
    with target("calls") as program:
        process = harness.start(os.path.join(harness.temporary(), "out.pb.gz"), program.pid,
                                options=uprobe(program, "probed_leaf"))
        await_sites(process, 1)
        private = {name: code.count(b"\x65\x4c\x03\x0c\x25")
                   for name, code in machine_code(process).items()}
        harness.finish(process, signal_number=signal.SIGINT)
    assert private["on_probe"] == private["on_tracepoint"] == 0, private
    # So that this test can fail: programs that cannot be preempted have such stacks.
    harness.need(private["on_cpu_sample"], "this kernel gives no private stacks")


def semaphore_of(binary, provider, name):
    notes = subprocess.run(["readelf", "-nW", binary], stdout=subprocess.PIPE,
                           check=True).stdout.decode()
    found = re.search(r"Provider: %s\s+Name: %s\s+Location: \S+ Base: \S+ Semaphore: (0x\w+)"
                      % (provider, name), notes)
    harness.need(found, "%s has no probe %s:%s" % (binary, provider, name))
    return int(found.group(1), 16)


def test_semaphores_are_back_after_a_kill():
    need_links()
    harness.need(os.path.exists(PYTHON), "no %s" % PYTHON)
    binary = os.path.realpath(PYTHON)
    address = semaphore_of(binary, "python", "gc__start")
    python = harness.Interpreter("debian", [PYTHON], (3, 11), "")
    with target("calls", python=python) as program:
        if subprocess.run(["readelf", "-h", binary], stdout=subprocess.PIPE,
                          check=True).stdout.find(b"EXEC (") < 0:
            address += mapped_at(program.pid, os.path.basename(binary))[0][0]

        def look():
            return struct.unpack("<H", byte_at(program.pid, address, 2))[0]
        before = look()
        for _ in range(repeats()):
            attached, after = kill_after_attach(
                program, ["--probe", "usdt:%s:python:gc__start" % PYTHON], 1, look)
            assert (before, attached, after) == (0, 1, 0), (before, attached, after)


def test_a_default_run_has_no_link_where_no_interpreter_has_probes():
    """gc and import are wanted, but this program's CPython has none."""
    need_links()
    with target("calls", python=harness.interpreter(minimum=(3, 12))) as program:
        binary = os.readlink("/proc/%d/exe" % program.pid)
        notes = subprocess.run(["readelf", "-nW", binary], stdout=subprocess.PIPE,
                               check=False).stdout
        harness.need(b"Provider: python" not in notes, "%s has probes" % binary)
        out = harness.temporary()
        process = harness.start(out + "/", program.pid, hz=None,
                                options=["--events", "cpu,gc,import"])
        harness.sampling(process, settle_s=3)
        assert sites(process) == 0, links(process)
        harness.finish(process, signal_number=signal.SIGINT)


def test_probes_no_leaves_gc_and_import_out():
    need_links()
    harness.need(os.path.exists(PYTHON), "no %s" % PYTHON)
    with target("calls", python=harness.Interpreter("debian", [PYTHON], (3, 11), "")) as program:
        for options, low, high in ((["--events", "cpu,gc,import"], 4, 4),
                                   (["--probes=no"], 0, 0)):
            process = harness.start(harness.temporary() + "/", program.pid, hz=None,
                                    options=options)
            harness.sampling(process)
            if low:
                await_sites(process, low)
            time.sleep(2)
            assert low <= sites(process) <= high, (options, links(process))
            harness.finish(process, signal_number=signal.SIGINT)
        run = harness.profile(program.pid, hz=None, duration=1, check=False,
                              options=["--probes=no"] + uprobe(program, "probed_leaf"))
        assert run.rc == 2 and "--probes" in run.err, run.err


# ---------------------------------------------------------------- what is not there

def refused(options, *wanted, pid=None):
    run = harness.profile(pid, hz=None, duration=1, options=options, check=False)
    assert run.rc == 2, (run.rc, run.err)
    for words in wanted:
        assert words in run.err, (words, run.err)
    assert len(run.err.strip().splitlines()) <= 2, run.err


def test_what_is_not_there_is_one_line_with_what_is_near():
    harness.need(os.path.exists(PYTHON), "no %s" % PYTHON)
    library = os.path.join(built(), "libprobed.so")
    refused(["--probe", "uprobe:/no/such/file:f"], "/no/such/file")
    refused(["--probe", "uprobe:%s:probed_leef" % library], "probed_leef", "probed_leaf")
    refused(["--probe", "uprobe:%s:probed_ifunc" % library], "probed_ifunc")
    refused(["--probe", "usdt:%s:python:gc__stort" % PYTHON], "gc__stort", "gc__start")
    refused(["--probe", "usdt:%s:pithon:gc__start" % PYTHON], "pithon")
    refused(["--probe", "tracepoint:sched:sched_swich"], "sched_swich", "sched_switch")
    if os.path.isdir("/sys/kernel/tracing/events"):  # BTF does not tell the groups
        refused(["--probe", "tracepoint:nogroup:sched_switch"], "nogroup")
    refused(["--probe", "uprobe:/etc/passwd:f"], "/etc/passwd")
    refused(["--probe", "uprobe:%s" % library], "uprobe:")
    refused(["--probe", "kprobe:x:y"], "kprobe")


# ---------------------------------------------------------------- tracepoints, and several

def test_tracepoints_have_the_kernels_stack():
    with target("rounds") as program:
        run = harness.profile(program.pid, hz=None, duration=2, limit_s=60,
                              options=["--probe", "tracepoint:sched:sched_process_fork", "--probe",
                                       "tracepoint:raw_syscalls:sys_enter"])
        found = by_probe(harness.load(run.out), program.pid)
        assert one(found, "sys_enter")[0] > 100, (found, run.err)
        chosen = harness.samples(run.out, program.pid)
        assert all(harness.kernel_frames(s) for s in chosen), harness.show(
            [s for s in chosen if not harness.kernel_frames(s)])
        sleeping = [s for s in chosen if any(f.name == "probed_sleep" for f in s.frames)]
        assert sleeping, harness.show(chosen)
        harness.expect_share(sleeping, lambda s: depth(s) == DEEP + 1, 0.97, "recursion")


def test_several_kinds_of_probes_at_once():
    harness.need(os.path.exists(PYTHON), "no %s" % PYTHON)
    with target("counts", python=harness.Interpreter("debian", [PYTHON], (3, 11), "")) as program:
        profile, counters, said = run_counts(
            program, uprobe(program, "probed_leaf") + uprobe(program, "probed_recurse", True) +
            ["--probe", "usdt:%s:python:function__entry" % PYTHON,
             "--probe", "tracepoint:sched:sched_switch"], 4)
        found = by_probe(profile, program.pid)
        assert one(found, "probed_leaf")[0] == counters["probed_leaves"], (found, said)
        assert one(found, "probed_recurse")[0] == counters["probed_recursions"], (found, said)
        assert one(found, "function__entry")[0] > 3, (found, said)
        assert one(found, "sched_switch")[0] > 10, (found, said)
