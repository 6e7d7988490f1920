# SPDX-License-Identifier: BSD-2-Clause
"""Mapped files: more of them than descriptors, and file systems that somebody wants to unmount."""
import errno
import os
import resource
import shutil
import signal
import subprocess
import sys
import time

import harness
from test_dump import become
from test_quotas import WORK, build
from test_service import child_named

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "hostile"))
import craft  # noqa: E402

FILES, DESCRIPTORS, NOBODY = 400, 256, 65534

LIBRARY = """
__attribute__((noinline)) static void inner(void) { for (volatile int i = 0; i < 200000; i++) ; }
__attribute__((noinline)) void work(void) { inner(); __asm__ volatile(""); }
"""
CALLER = """
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
int main(int count, char **path)
{
	void (**work)(void) = calloc(count, sizeof(*work));
	for (int i = 1; i < count; i++) {
		void *library = dlopen(path[i], RTLD_NOW);
		if (!library)
			return puts(dlerror()), 1;
		*(void **)&work[i] = dlsym(library, "work");
	}
	puts("ready"), fflush(stdout);
	for (;;)
		for (int i = 1; i < count; i++)
			work[i]();
}
"""


def open_files(pid):
    folder = "/proc/%d/fd" % pid
    found = []
    for name in os.listdir(folder):
        try:
            found.append(os.readlink(os.path.join(folder, name)))
        except FileNotFoundError:
            pass
    return found


def test_more_files_than_descriptors():
    """The child that opens them has them, and the agent none."""
    directory = harness.temporary()
    library = build(directory, "library.so", LIBRARY, "-shared", "-fPIC")
    caller = build(directory, "caller", CALLER)
    copies = [
        shutil.copy(library, os.path.join(directory, "copy%d.so" % number))
        for number in range(FILES)
    ]
    out = os.path.join(directory, "p.pb.gz")
    with subprocess.Popen([caller] + copies, stdout=subprocess.PIPE) as program:
        try:
            assert program.stdout.readline() == b"ready\n"
            process = harness.start(out, program.pid, 499, preexec_fn=lambda: resource.setrlimit(
                resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS)))
            harness.sampling(process)
            opener = child_named(process.pid, "pyprofd: opener")
            most, end = 0, harness.cpu_of(program.pid) + 1
            while harness.cpu_of(program.pid) < end and process.poll() is None:
                most = max(most, len(open_files(opener)))
                assert not [path for path in open_files(process.pid) if path in copies]
                time.sleep(0.05)
            run = harness.finish(process, signal_number=2)
        finally:
            program.kill()
    assert run.rc == 0, run.err
    assert DESCRIPTORS / 2 <= most < DESCRIPTORS - 32, "%d descriptors" % most
    found = harness.samples(out, pid=program.pid)
    harness.expect_share(
        found,
        lambda s: harness.is_rooted(s) and {"main", "work", "inner"} <= {f.name for f in s.frames},
        0.97, "whole stacks with names")
    assert len({f.module for s in found for f in s.frames
                if f.name == "inner"}) > DESCRIPTORS, harness.show(found)


def test_files_that_root_may_not_open_are_opened_as_their_user():
    """A FUSE of a user's own, as an AppImage mounts it, answers nobody else."""
    harness.need(os.geteuid() == 0 and os.path.exists("/dev/fuse"), "no FUSE, or not root")
    directory = harness.temporary()
    place = os.path.join(directory, "mounted")
    os.mkdir(place)
    library = build(directory, "library.so", LIBRARY, "-shared", "-fPIC")
    caller = build(directory, "caller", CALLER)
    out = os.path.join(directory, "p.pb.gz")
    requests = craft.mount_folder("/dev/fuse", place, NOBODY)
    server = craft.serve_folder(requests, library, lambda: become(NOBODY))
    os.close(requests)
    try:
        with subprocess.Popen([caller, os.path.join(place, craft.FOLDER_FILE)],
                              stdout=subprocess.PIPE, preexec_fn=lambda: become(NOBODY)) as program:
            assert program.stdout.readline() == b"ready\n"
            run = harness.finish(harness.start(out, program.pid, duration=1.5))
            program.kill()
    finally:
        os.kill(server, signal.SIGKILL)
        os.waitpid(server, 0)
        subprocess.call(["umount", "-l", place])
    assert run.rc == 0, run.err
    harness.expect_share(
        harness.samples(out, pid=program.pid),
        lambda s: harness.is_rooted(s) and {"main", "work", "inner"} <= {f.name for f in s.frames},
        0.97, "whole stacks with names")


def unmount(path, limit_s):
    """Returns after how many seconds it worked."""
    start = time.monotonic()
    while subprocess.call(["umount", path], stderr=subprocess.DEVNULL):
        assert time.monotonic() - start < limit_s, "%s is busy: %s" % (path, os.strerror(
            errno.EBUSY))
        time.sleep(0.1)
    return time.monotonic() - start


def test_files_of_ended_programs_do_not_keep_a_file_system():
    """Within one window: the functions are named before the file is closed."""
    directory = harness.temporary()
    place = os.path.join(directory, "mounted")
    os.mkdir(place)
    harness.need(
        subprocess.call(["mount", "-t", "tmpfs", "none", place], stderr=subprocess.DEVNULL) == 0,
        "no right to mount")
    out = os.path.join(directory, "p.pb.gz")
    try:
        path = shutil.copy(build(directory, "worker", WORK), place)
        process = harness.start(out, hz=499, options=["--events", "cpu"])
        harness.sampling(process)
        with subprocess.Popen([path]) as program:
            harness.wait_for(lambda: harness.cpu_of(program.pid) > 1, 30, "a second of work")
            program.kill()
        unmount(place, 10)
    except BaseException:
        subprocess.call(["umount", "-l", place])
        raise
    run = harness.finish(process, signal_number=2)
    assert run.rc == 0, run.err
    found = harness.samples(out, pid=program.pid)
    assert sum(s.ns for s in found) > 5e8, harness.show(found)
    harness.expect_share(
        found, lambda s: harness.is_rooted(s) and {"main", "middle", "inner"} <=
        {f.name for f in s.frames}, 0.97, "whole stacks with names")
