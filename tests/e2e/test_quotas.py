# SPDX-License-Identifier: BSD-2-Clause
"""Programs of one user that want all of a table that everybody shares."""
import glob
import os
import re
import signal
import subprocess
import time

import harness
import waits
from test_dump import become
from test_hostile import NOBODY, Program
from test_service import child_named

OTHER = 54321

# Its stacks need unwind rows that nobody has loaded before.
WORK = """
__attribute__((noinline)) void inner(void) { for (volatile int i = 0; i < 1000000; i++) ; }
__attribute__((noinline)) void middle(void) { inner(); __asm__ volatile(""); }
int main(void) { for (;;) { middle(); __asm__ volatile(""); } }
"""


def build(directory, name, source, *options):
    harness.need(subprocess.call(["gcc", "--version"], stdout=subprocess.DEVNULL) == 0, "no gcc")
    path = os.path.join(directory, name)
    with open(path + ".c", "w") as f:
        f.write(source)
    subprocess.check_call(["gcc", "-O1", "-fno-optimize-sibling-calls", "-fomit-frame-pointer"] +
                          list(options) + ["-o", path, path + ".c"])
    return path


class Victim:
    """A new program of another user, in a file of its own."""

    def __init__(self):
        self.path = build(harness.temporary(), "victim", WORK)

    def run(self, cpu_s):
        process = subprocess.Popen([self.path], preexec_fn=lambda: become(OTHER))
        harness.wait_for(lambda: harness.cpu_of(process.pid) >= cpu_s, 30,
                         "%g s of the victim's CPU time" % cpu_s)
        process.kill()
        process.wait()
        self.pid = process.pid

    def check(self, path):
        self.expect(harness.samples(path))

    def expect(self, samples):
        chosen = [s for s in samples if s.pid == self.pid]
        assert sum(s.ns for s in chosen) > 0.5e9, harness.show(chosen)
        harness.expect_share(
            chosen, lambda s: harness.is_rooted(s) and {"main", "middle", "inner"} <=
            {f.name for f in s.frames}, 0.97, "whole stacks of the victim")


def lost(said, name):
    found = re.search(r"([0-9,]+) %s\b" % name, said)
    return int(found.group(1).replace(",", "")) if found else 0


# ---------------------------------------------------------------- pages

FORGED = """
import mmap, os, struct, time
# ELF files of one page of code; they say, or look, as if they had up to 256 MiB
def forge(path, in_file, in_memory):
    header = b"\\x7fELF\\x02\\x01\\x01" + bytes(9) + struct.pack(
        "<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, in_file, in_memory, 4096)
    with open(path, "wb") as f:
        f.write((header + segment).ljust(8192, b"\\xcc"))
        f.truncate(max(in_file, 8192))
    fd = os.open(path, os.O_RDONLY)
    os.unlink(path)
    return mmap.mmap(fd, 4096, prot=mmap.PROT_READ | mmap.PROT_EXEC, flags=mmap.MAP_PRIVATE)
kept = []
for big in (256 << 20, 16 << 20, 1 << 20, 1 << 17):
    kept += [forge("memory", 8192, big) for i in range(40)]
    kept += [forge("hole", big, big) for i in range(40)]
print("ready", flush=True)
while True:
    time.sleep(1)
"""


def test_code_that_is_not_there_takes_no_pages():
    harness.need(os.geteuid() == 0, "only root can become somebody else")
    victim = Victim()
    out = os.path.join(harness.temporary(), "p.pb.gz")
    process = harness.start(out, hz=499, options=["--events", "cpu"])
    harness.sampling(process)
    with Program(FORGED):
        time.sleep(1)
        victim.run(0.8)
    run = harness.finish(process, signal_number=2)
    victim.check(out)
    assert lost(run.err, "text_refused") >= 80, run.err


# ---------------------------------------------------------------- interpreters

# As much of an interpreter as a file needs to be taken for one: 3.12.
FAKE = """
#include <stddef.h>
char _PyRuntime[4096] = {1};
size_t PyCode_Type[52] = {[4] = 192};
unsigned long Py_Version = 0x030c00f0;
void _PyEval_EvalFrameDefault(void) {}
"""
# Short programs, each of which maps a copy of its own.
FAKES = """
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
static char image[1 << 20];
int main(int count, char **words)
{
	int fd = open(words[1], O_RDONLY);
	ssize_t size = read(fd, image, sizeof(image) - sizeof(int));
	for (int i = 0; i < 300; i++) {
		char path[32];
		snprintf(path, sizeof(path), "fake%d.so", i);
		*(int *)(image + size) = i;
		fd = open(path, O_CREAT | O_RDWR, 0700);
		if (write(fd, image, size + sizeof(int)) < 0)
			return 1;
		close(fd);
		if (!fork()) {
			fd = open(path, O_RDONLY);
			if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) ==
			    MAP_FAILED)
				return 1;
			usleep(20000);
			return 0;
		}
		wait(NULL);
		unlink(path);
	}
	return 0;
}
"""


def test_fake_interpreters_take_no_frames_from_others():
    harness.need(os.geteuid() == 0, "only root can become somebody else")
    place = harness.temporary()
    fake = build(place, "fake.so", FAKE, "-shared", "-fPIC")
    fakes = build(place, "fakes", FAKES)
    own = harness.temporary()
    os.chown(own, NOBODY, NOBODY)
    out = os.path.join(harness.temporary(), "p.pb.gz")
    process = harness.start(out, hz=499, options=["--events", "cpu"])
    harness.sampling(process)
    subprocess.check_call([fakes, fake], cwd=own, preexec_fn=lambda: become(NOBODY))
    with harness.Target("burn.py", 0) as honest:
        harness.wait_for(lambda: harness.cpu_of(honest.pid) > 1, 30,
                         "the honest program's CPU time")
        honest.stop()
    run = harness.finish(process, signal_number=2)
    chosen = harness.samples(out, pid=honest.pid)
    harness.expect_share(chosen, lambda s: harness.holds(s, "<module>", "main", "burn_python"), 0.9,
                         "Python frames of the honest program")
    assert lost(run.err, "pythons_refused") > 100, run.err


# ---------------------------------------------------------------- the store

# Threads in deep stacks that never repeat, of functions with long random names.
FLOOD = """
import os, random, threading, time
def make():
    code = compile("def f(fs, i, at):\\n if i: fs[(i * 7919 + at) % len(fs)](fs, i - 1, at)\\n"
                   " else: time.sleep(0.0005)\\n", "f", "exec")
    names = {"time": time}
    exec(code, names)
    f = names["f"]
    f.__code__ = f.__code__.replace(co_name="f" + os.urandom(2000).hex(),
                                    co_filename="/" + os.urandom(2000).hex())
    return f
functions = [make() for _ in range(2000)]
def run():
    while True:
        at = random.randrange(2000)
        functions[at](functions, 200, at)
for _ in range(4):
    threading.Thread(target=run, daemon=True).start()
print("ready", flush=True)
time.sleep(1000)
"""


def test_names_without_end_leave_the_store_to_others():
    harness.need(os.geteuid() == 0, "only root can become somebody else")
    victim = Victim()
    store = os.path.join(harness.temporary(), "store") + "/"
    with Program(FLOOD) as flood:
        process = harness.start(store, hz=99, options=["--interval", "2s"])
        harness.sampling(process)
        before_s = harness.cpu_of(flood.pid)
        victim.run(0.8)
        harness.wait_for(lambda: len(glob.glob(store + "*/*/*-cpu.pb.gz")) >= 3, 30,
                         "three windows")
        used_s = harness.cpu_of(flood.pid) - before_s
        run = harness.finish(process, signal_number=2)
    cpu = sorted(glob.glob(store + "*/*/*-cpu.pb.gz"))
    samples = [sample for path in cpu for sample in harness.samples(path)]
    # Without shares each window had four files of 9 MB.
    windows = {}
    for path in glob.glob(store + "*/*/*.pb.gz"):
        windows.setdefault(os.path.basename(path).rpartition("-")[0], []).append(
            os.path.getsize(path))
    largest = max(sum(sizes) for sizes in windows.values())
    assert largest < 3 << 20, (largest, windows)
    assert lost(run.err, "profile_refused") > 10, run.err
    assert "user %d: stacks are left out of the profiles" % NOBODY in run.err, run.err
    victim.expect(samples)
    # What is left out is counted still, for its process.
    flooded_s = sum(s.ns for s in samples if s.pid == flood.pid) / 1e9
    assert abs(flooded_s - used_s) < 0.3 + 0.2 * used_s, (flooded_s, used_s)
    left_out = [
        s for s in samples
        if s.pid == flood.pid and s.frames[0].name.startswith("[stack left out: its user")
    ]
    assert left_out and not any(s.labels.get("tid") for s in left_out)


# ---------------------------------------------------------------- slots of threads

THREADS = 20000  # more than there are slots: 16,384 up to 4 CPUs
SLEEPERS = """
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
static void *live(void *unused)
{
	const struct timespec second = {.tv_sec = 1};
	for (;;) nanosleep(&second, NULL);
	return unused;
}
int main(void)
{
	pthread_attr_t small;
	pthread_t thread;
	int count = 0;
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 16384);
	while (count < %d && !pthread_create(&thread, &small, live, NULL)) count++;
	printf("%%d\\n", count);
	fflush(stdout);
	sleep(1000);
}
""" % THREADS

WAITS = """
import time
begun = time.monotonic()
def wait_here():
    time.sleep(0.02)
while time.monotonic() < begun + 4:
    wait_here()
"""


def test_thousands_of_threads_leave_slots_to_others():
    harness.need(os.geteuid() == 0, "only root can become somebody else")
    place = harness.temporary()
    sleepers = build(place, "sleepers", SLEEPERS, "-pthread")
    work = os.path.join(place, "work.py")
    with open(work, "w") as f:
        f.write(WAITS)
    out = os.path.join(place, "p.pb.gz")
    with subprocess.Popen([sleepers], stdout=subprocess.PIPE,
                          preexec_fn=lambda: become(NOBODY)) as crowd:
        try:
            count = int(crowd.stdout.readline())
            harness.need(count == THREADS, "a user may have %d threads only" % count)
            process = harness.start(out, options=["--events", "offcpu"])
            harness.sampling(process, settle_s=1.5)  # all of them have run
            victims = [
                subprocess.Popen(["/usr/bin/python3", work], preexec_fn=lambda: become(OTHER))
                for _ in range(10)
            ]
            for each in victims:
                assert each.wait(60) == 0
            run = harness.finish(process, signal_number=2, limit_s=120)
        finally:
            crowd.kill()
    assert lost(run.err, "threads_share") > THREADS / 2, run.err
    for each in victims:
        waited = [s for s in harness.samples(out, pid=each.pid) if harness.holds(s, "wait_here")]
        assert sum(s.count for s in waited) > 3e9, (each.pid, harness.show(waited), run.err)


test_thousands_of_threads_leave_slots_to_others.alone = True
test_thousands_of_threads_leave_slots_to_others.few = False


# ---------------------------------------------------------------- the ledger

# Thousands of programs a second that end at once, and more than a profile has lines that wait, but
# have computed more than any of another user that waits.
ENDED = """
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static double now(clockid_t clock)
{
	struct timespec at;
	clock_gettime(clock, &at);
	return at.tv_sec + at.tv_nsec / 1e9;
}
int main(void)
{
	int count;
	for (count = 0; count < 400; count++) {
		if (fork()) continue;
		while (now(CLOCK_PROCESS_CPUTIME_ID) < 0.01) ;
		for (;;) usleep(100000);
	}
	printf("ready\\n");
	fflush(stdout);
	for (double end = now(CLOCK_MONOTONIC) + 7; now(CLOCK_MONOTONIC) < end; count++) {
		if (!vfork()) _exit(0);
		wait(NULL);
	}
	printf("%d\\n", count);
	return 0;
}
"""


def test_ended_processes_leave_the_ledger_to_others():
    harness.need(os.geteuid() == 0, "only root can become somebody else")
    ended = build(harness.temporary(), "ended", ENDED)
    out = os.path.join(harness.temporary(), "p.pb.gz")
    process = harness.start(out, hz=99, options=["--events", "offcpu"])
    harness.sampling(process)
    with subprocess.Popen([ended], stdout=subprocess.PIPE, start_new_session=True,
                          preexec_fn=lambda: become(NOBODY)) as crowd:
        try:
            assert crowd.stdout.readline() == b"ready\n"
            victims = []
            for _ in range(14):
                victims.append(
                    subprocess.Popen(["/bin/sleep", "0.5"], preexec_fn=lambda: become(OTHER)))
                assert victims[-1].wait() == 0
            count = int(crowd.stdout.readline())
            run = harness.finish(process, signal_number=2, limit_s=60)
        finally:
            os.killpg(crowd.pid, signal.SIGKILL)
    lines = waits.ledgers(harness.load(out))
    missing = []
    for each in victims:
        slept = [line for line in lines if line["pid"] == each.pid and line["comm"] == "sleep"]
        if len(slept) != 1 or slept[0]["seconds"] < 4.5e8:
            missing.append((each.pid, slept))
    assert not missing, (len(missing), missing, run.err)
    # Half of the ledger's 8,192 rows in each window.
    assert lost(run.err, "ledgers_share") > count - 3 * 4096, (count, run.err)
    assert not lost(run.err, "ledgers_full"), run.err
    # What has no line is in the sum of the others: all of its threads' time is somewhere.
    told = re.search(r"ledger: .*, ([0-9.]+) % of threads x wall", run.err)
    assert abs(float(told.group(1)) - 100) < 0.1, run.err
    assert sum(line["seconds"] for line in lines if not line["pid"]) > 100e9, lines


test_ended_processes_leave_the_ledger_to_others.few = False
# Beside thousands of threads of root's, who takes all slots that he wants.
test_ended_processes_leave_the_ledger_to_others.alone = True

# ---------------------------------------------------------------- a moment without the child

def test_file_at_which_the_child_was_late_is_read_later():
    victim = Victim()
    store = os.path.join(harness.temporary(), "store") + "/"
    process = harness.start(store, hz=99, options=["--interval", "2s", "--events", "cpu"])
    harness.sampling(process)
    child = child_named(process.pid, "pyprofd: files")
    # As if it had no CPU, or no memory; it is replaced when it is late.
    os.kill(child, signal.SIGSTOP)
    with subprocess.Popen([victim.path]) as program:
        try:
            victim.pid = program.pid

            def windows():
                return sorted(glob.glob(store + "*/*/*-cpu.pb.gz"))

            def is_whole(path):
                chosen = harness.samples(path, pid=program.pid)
                return harness.share(chosen, harness.is_rooted) > 0.9 if chosen else None

            harness.wait_for(lambda: any(is_whole(path) is False for path in windows()), 20,
                             "a window without its callers")
            # It is left alone for ten seconds.
            harness.wait_for(lambda: is_whole(windows()[-1]), 60, "a window with whole stacks")
        finally:
            program.kill()
    run = harness.finish(process, signal_number=2)
    assert lost(run.err, "files_refused") >= 1, run.err


test_file_at_which_the_child_was_late_is_read_later.few = False
# Another test's program may be the one at which the child is late.
test_file_at_which_the_child_was_late_is_read_later.alone = True
