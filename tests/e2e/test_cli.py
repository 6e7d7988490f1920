# SPDX-License-Identifier: BSD-2-Clause
"""Bad command lines and bad hosts: one clear line on stderr, the right exit status, nothing
written."""
import os
import re
import shutil
import subprocess
import tempfile

import harness

USAGE, FAILURE = 2, 1


def run(words, wrap=(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, cwd=None):
    return subprocess.run(list(wrap) + [harness.PYPROFD] + list(words), stdin=stdin, stdout=stdout,
                          stderr=subprocess.PIPE, timeout=60, check=False, cwd=cwd)


def refuse(words, status, pattern, wrap=(), **more):
    """Runs in an empty directory, where nothing may appear."""
    directory = harness.temporary()
    done = run(words, wrap, cwd=directory, **more)
    said = done.stderr.decode("utf-8", "replace")
    assert done.returncode == status, "exit status %d: %s" % (done.returncode, said)
    assert re.match(r"^pyprofd: [^\n]+\n$", said), "not one line: %r" % said
    assert re.search(pattern, said), "%r does not say %r" % (said, pattern)
    assert not done.stdout, done.stdout[:100]
    assert os.listdir(directory) == [], os.listdir(directory)


# The last --pid that the kernel can give is 4194304.
USAGE_CASES = [
    ("hz-0", ["--hz", "0"], r"--hz '0'.* 1 to 10000"),
    ("hz-10001", ["-F", "10001"], r"--hz '10001'.* 1 to 10000"),
    ("hz-word", ["--hz", "fast"], r"--hz 'fast'"),
    ("clock", ["--set", "capture.clock=wall"], r"clock 'wall'.*cpu or cycles"),
    ("events", ["--events", "wall"],
     r"--events 'wall'.*known events are: cpu, offcpu, gil, .*, cuda(, [a-z]+)*$"),
    ("events-one-file", ["--events", "cpu,offcpu"],
     r"--events cpu,offcpu .*several profiles: give a directory .*-o profiles/$"),
    ("events-stdout", ["--events", "offcpu,gil", "-o", "-"],
     r"--events offcpu,gil .*several profiles: give a directory"),
    ("events-cycles", ["--set", "capture.clock=cycles", "--events", "offcpu"],
     r"clock cycles and --events offcpu .*time$"),
    ("gil-cycles", ["--set", "capture.clock=cycles", "--events", "cpu,gil", "-o", "profiles/"],
     r"clock cycles and --events gil .*time$"),
    ("offcpu-min", ["--events", "offcpu", "--set", "capture.offcpu-min=1000001"],
     r"offcpu-min '1000001'.* 0 to 1000000$"),
    ("offcpu-min-unit", ["--events", "offcpu", "--set", "capture.offcpu-min=10us"],
     r"offcpu-min '10us'.*microseconds"),
    ("offcpu-min-cpu", ["--set", "capture.offcpu-min=10"],
     r"offcpu-min .*--events offcpu or --events gil$"),
    ("pid-word", ["-p", "me"], r"--pid 'me'"),
    ("comm", ["--comm", "("], r"--comm '\('"),
    ("uid", ["--uid", "nobody-of-that-name"], r"--uid 'nobody-of-that-name'"),
    ("duration", ["-d", "soon"], r"--duration 'soon'.*500ms"),
    ("interval", ["--interval", "1us"], r"--interval '1us'.*100ms"),
    ("store-max", ["--store-max", "10"], r"--store-max '10'"),
    ("max-memory", ["--max-memory", "1"], r"--max-memory '1'"),
    ("max-cpu", ["--max-cpu", "5000"], r"--max-cpu '5000' is out of range"),
    ("setting", ["--clock", "cpu"], r"'--clock' is no option: .*--set"),
    ("unknown", ["--frequency", "5"], r"unknown option '--frequency'.*--help"),
    ("no-value", ["-d"], r"-d needs a value"),
    ("no-dashes", ["python3", "x.py"], r"'python3'.*-- python3"),
    ("no-command", ["--"], r"no command after --"),
    ("pid-and-command", ["-p", "1", "--", "true"], r"--pid and -- COMMAND"),
]


def usage_cases():
    return [(label, (words, pattern)) for label, words, pattern in USAGE_CASES]


def test_wrong_command_line(case):
    words, pattern = case
    refuse(words + ([] if "-o" in words or words[-1] in ("-d", "--", "true", "x.py")
                    else ["-o", "out.pb.gz"]), USAGE, pattern)


test_wrong_command_line.cases = usage_cases

RUN_CASES = [
    ("pid-gone", ["-p", "4194304", "-o", "out.pb.gz"], r"--pid 4194304: no such process"),
    ("no-parent", ["-d", "1", "-o", "no/such/out.pb.gz"], r"'no/such' does not exist"),
    ("no-parent-of-directory", ["-d", "1", "-o", "no/such/"], r"'no' does not exist"),
    ("device", ["-d", "1", "-o", "/dev/null"], r"'/dev/null' is not a regular file"),
    ("not-a-directory", ["-d", "1", "-o", "/etc/passwd/"], r"/etc/passwd"),
    ("read-only", ["-d", "1", "-o", "/proc/out.pb.gz"], r"/proc"),
    ("cgroup", ["-d", "1", "--cgroup", "/no/such/group", "-o", "out.pb.gz"],
     r"--cgroup '/no/such/group'"),
    ("command", ["-o", "out.pb.gz", "--", "no-such-command"], r"'no-such-command' not found"),
    ("command-directory", ["-o", "out.pb.gz", "--", "/tmp"], r"'/tmp' cannot be executed"),
]


def run_cases():
    return [(label, (words, pattern)) for label, words, pattern in RUN_CASES]


def test_host_cannot(case):
    words, pattern = case
    refuse(words, FAILURE, pattern)


test_host_cannot.cases = run_cases


def test_cycles_need_a_counter():
    """The clock that this machine lacks is named with the one that it has."""
    harness.need(not os.path.exists("/sys/bus/event_source/devices/cpu"),
                 "a machine without a hardware counter")
    refuse(["--set", "capture.clock=cycles", "-d", "1", "-o", "out.pb.gz"], FAILURE,
           r"hardware counter.*clock=cpu$")


def test_thread_is_no_process():
    with harness.light() as target:
        others = [t for t in os.listdir("/proc/%d/task" % target.pid) if int(t) != target.pid]
        if not others:
            # A program of ours with threads: this runner's Python has none.
            import threading
            stop = threading.Event()
            thread = threading.Thread(target=stop.wait)
            thread.start()
            try:
                refuse(["-p", str(thread.native_id), "-o", "out.pb.gz"], FAILURE,
                       r"is a thread: .*--pid %d" % os.getpid())
            finally:
                stop.set()
                thread.join()
            return
        refuse(["-p", others[0], "-o", "out.pb.gz"], FAILURE,
               r"is a thread: .*--pid %d" % target.pid)


def test_terminal_gets_no_binary():
    inner, outer = os.openpty()
    try:
        refuse_terminal = subprocess.run([harness.PYPROFD, "-d", "1", "-o", "-"], stdout=outer,
                                         stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                         timeout=60, check=False)
    finally:
        os.close(outer)
        os.close(inner)
    assert refuse_terminal.returncode == FAILURE, refuse_terminal.stderr
    assert b"terminal" in refuse_terminal.stderr, refuse_terminal.stderr


# ---------------------------------------------------------------- privileges

def setpriv(*words):
    tool = shutil.which("setpriv")
    harness.need(tool, "no setpriv (util-linux)")
    return [tool] + list(words)


def reachable():
    """A copy of the program where any user can execute it."""
    directory = harness.temporary()
    copy = os.path.join(directory, "pyprofd")
    shutil.copy(harness.PYPROFD, copy)
    return copy


def test_not_root_names_what_is_missing():
    copy = reachable()
    directory = tempfile.mkdtemp(dir=os.path.dirname(copy))
    os.chmod(directory, 0o777)
    done = subprocess.run(setpriv("--reuid", "65534", "--regid", "65534", "--clear-groups")
                          + [copy, "-d", "1", "-o", "out.pb.gz"], cwd=directory,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=60, check=False)
    said = done.stderr.decode()
    assert done.returncode == FAILURE, said
    assert re.match(r"^pyprofd: not root and lacks CAP_BPF, CAP_PERFMON, .*sudo[^\n]*\n$",
                    said), said
    assert os.listdir(directory) == []


CAPABILITIES = [("CAP_BPF", "-bpf,-sys_admin"), ("CAP_PERFMON", "-perfmon,-sys_admin"),
                ("CAP_SYS_PTRACE", "-sys_ptrace"), ("CAP_SYSLOG", "-syslog"),
                ("CAP_DAC_READ_SEARCH", "-dac_read_search,-dac_override"),
                ("CAP_CHECKPOINT_RESTORE", "-checkpoint_restore,-sys_admin")]


def capability_cases():
    return [(name, (name, dropped)) for name, dropped in CAPABILITIES]


def test_missing_capability_is_named(case):
    name, dropped = case
    refuse(["-d", "1", "-o", "out.pb.gz"], FAILURE, r"root lacks %s:" % name,
           wrap=setpriv("--bounding-set", dropped))


test_missing_capability_is_named.cases = capability_cases


def unit_capabilities():
    path = os.path.join(harness.TOP, "deploy", "systemd", "pyprofd.service")
    with open(path, encoding="utf-8") as file:
        line = re.search(r"^CapabilityBoundingSet=(.*)$", file.read(), re.M).group(1)
    return [word[len("CAP_"):].lower() for word in line.split()]


def test_the_units_capabilities_are_enough():
    """What deploy/systemd/pyprofd.service grants profiles as root with everything does."""
    kept = ",".join("+" + name for name in unit_capabilities())
    wrap = setpriv("--no-new-privs", "--bounding-set", "-all," + kept)
    with harness.Target("burn.py", 0, "mixed") as target:
        out = os.path.join(harness.temporary(), "out.pb.gz")
        done = run(["-F", "999", "-p", str(target.pid), "-d", "1.5", "-o", out], wrap)
        assert done.returncode == 0, done.stderr
        samples = harness.samples(out, pid=target.pid)
        assert harness.total(samples) > 100, harness.total(samples)
        harness.expect_share(samples, lambda s: harness.holds(s, "<module>", "main", "burn_mixed"),
                             0.9, "Python stack")
        # Half of its time it reads /dev/zero.
        harness.expect_share(samples, harness.kernel_frames, 0.2, "kernel frames")


def unit_nice():
    path = os.path.join(harness.TOP, "deploy", "systemd", "pyprofd.service")
    with open(path, encoding="utf-8") as file:
        return int(re.search(r"^Nice=(.*)$", file.read(), re.M).group(1))


def at_nice(value):
    return lambda: os.setpriority(os.PRIO_PROCESS, 0, value)


def as_the_unit(nice, options):
    """pyprofd with the unit's capabilities, at this nice value."""
    kept = ",".join("+" + name for name in unit_capabilities())
    return subprocess.Popen(
        setpriv("--no-new-privs", "--bounding-set", "-all," + kept) + [harness.PYPROFD] + options,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        preexec_fn=at_nice(nice))


def test_priority_that_is_refused_is_told():
    done = as_the_unit(5, ["-d", "0.3", "-o", os.path.join(harness.temporary(), "out.pb.gz")])
    said = done.communicate(timeout=60)[1].decode()
    assert done.returncode == 0, said
    assert re.search(r"^pyprofd: .*cannot run at nice -10 .*stays at 5: .*Nice=-10", said,
                     re.M), said


def test_the_unit_keeps_up_on_busy_cpus():
    """Four programs a CPU that never wait, and short ones, whose stacks need rows in time."""
    hogs = [
        subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(4 * os.cpu_count())
    ]
    try:
        # The children are more than the hogs leave room for, whatever else the machine does.
        with harness.Target("spawns.py", 4, python=harness.interpreter((3, 12)),
                            wrap=("nice", "-n", "-5")) as target:
            out = os.path.join(harness.temporary(), "out.pb.gz")
            process = as_the_unit(unit_nice(), ["-F", "299", "-d", "5", "-o", out])
            said = process.communicate(timeout=90)[1].decode()
            assert process.returncode == 0, said
            target.stop()
            pids = set(target.read("pids.json"))
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()
    assert "cannot run at nice" not in said, said
    assert re.search(r"\b0 lost\b", said), said
    own = {}
    for sample in harness.samples(out, pids=pids):
        own.setdefault(sample.pid, []).append(sample)
    # Fewer samples are of one that had just begun when the profile ended.
    own = {p: samples for p, samples in own.items() if harness.total(samples) >= 3}
    named = [p for p, samples in own.items() if any(harness.names(s) for s in samples)]
    assert len(own) >= 8 and len(named) >= 0.85 * len(own), "%d of %d children named; %s" % (
        len(named), len(own), said)


test_the_unit_keeps_up_on_busy_cpus.alone = True


def test_rootless_container_is_named():
    tool = shutil.which("unshare")
    harness.need(
        tool and subprocess.call([tool, "-U", "-r", "true"], stderr=subprocess.DEVNULL) == 0,
        "no user namespaces here")
    refuse(["-d", "1", "-o", "out.pb.gz"], FAILURE, r"user namespace", wrap=[tool, "-U", "-r"])


def test_container_with_its_own_processes_is_named():
    tool = shutil.which("unshare")
    harness.need(tool, "no unshare (util-linux)")
    refuse(["-d", "1", "-o", "out.pb.gz"], FAILURE, r"pid namespace .*--pid=host",
           wrap=[tool, "-p", "-f", "--mount-proc"])


# ---------------------------------------------------------------- kernels

def other_host(script, setarch=()):
    """pyprofd on a host that `script` changed, in a mount namespace of its own."""
    harness.need(shutil.which("unshare"), "no unshare (util-linux)")
    return ["unshare", "-m", "sh", "-ec", script + '\nexec "$@"', "sh"] + list(setarch)


def test_no_btf():
    refuse(["-d", "1", "-o", "out.pb.gz"], FAILURE, r"no BTF .*CONFIG_DEBUG_INFO_BTF",
           wrap=other_host("mount -t tmpfs none /sys/kernel/btf"))


def test_old_kernel():
    harness.need(shutil.which("setarch"), "no setarch (util-linux)")
    refuse(["-d", "1", "-o", "out.pb.gz"], FAILURE, r"kernel 2\.6\.\S+ is too old.* 5\.10",
           wrap=other_host("mount -t tmpfs none /sys/kernel/btf; : > /sys/kernel/btf/vmlinux",
                           ["setarch", "--uname-2.6"]))


def test_lockdown():
    harness.need(os.path.isdir("/sys/kernel/security"), "no /sys/kernel/security")
    refuse(["-d", "1", "-o", "out.pb.gz"], FAILURE, r"locked down .*confidentiality",
           wrap=other_host(
               "mount -t tmpfs none /sys/kernel/security; "
               "echo 'none integrity [confidentiality]' > /sys/kernel/security/lockdown"))


def test_sample_rate_sysctl():
    limit = "/proc/sys/kernel/perf_event_max_sample_rate"
    directory = harness.temporary()
    with open(os.path.join(directory, "rate"), "w", encoding="ascii") as file:
        file.write("500\n")
    refuse(["-F", "999", "-d", "1", "-o", "out.pb.gz"], FAILURE,
           r"--hz 999 .*kernel\.perf_event_max_sample_rate = 500",
           wrap=other_host("mount --bind %s/rate %s" % (directory, limit)))


def test_help_and_version():
    done = run(["--help"])
    assert done.returncode == 0 and not done.stderr
    for option in ("--hz", "--pid", "--comm", "--cgroup", "--uid", "--duration", "--delay",
                   "--interval", "--events", "--output", "--frames", "--max-memory",
                   "--max-cpu", "--max-slowdown", "--verbose", "--quiet", "--version", "Examples:"):
        assert option in done.stdout.decode(), option
    assert max(len(line) for line in done.stdout.decode().splitlines()) <= 80
    done = run(["--version"])
    assert done.returncode == 0 and re.match(rb"pyprofd \d+\.\d+\.\d+\n$", done.stdout), done.stdout
