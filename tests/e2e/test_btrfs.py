# SPDX-License-Identifier: BSD-2-Clause
"""On btrfs mappings show one device for all subvolumes, each of which numbers its files itself."""
import os
import shutil
import signal
import subprocess
import time

import harness
from harness import need

NAMES = ["work_in_first", "work_in_second"]


def run(*words):
    return subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          check=False).returncode


def subvolumes():
    """Two subvolumes of one file system, each with its program as its first file."""
    for tool in ("mkfs.btrfs", "btrfs", "cc"):
        need(shutil.which(tool), "no " + tool)
    directory = harness.temporary()
    image, mounted = os.path.join(directory, "image"), os.path.join(directory, "mounted")
    os.mkdir(mounted)
    with open(image, "wb") as file:
        file.truncate(200 << 20)
    need(run("mkfs.btrfs", "-q", image) == 0, "mkfs.btrfs makes no file system")
    need(run("mount", "-o", "loop", image, mounted) == 0, "this kernel mounts no btrfs from a file")
    paths = []
    for name in NAMES:
        program = os.path.join(directory, name)
        subprocess.check_call(["cc", "-O1", "-DWORK=" + name, "-o", program,
                               os.path.join(harness.TARGETS, "two_names.c")])
        paths.append(os.path.join(mounted, name))
        subprocess.check_call(["btrfs", "-q", "subvolume", "create", paths[-1]])
    os.sync()
    for name, path in zip(NAMES, paths):
        shutil.copy(os.path.join(directory, name), os.path.join(path, "program"))
    os.sync()
    return directory, paths


def mapping(pid):
    """(device, inode, path) of its program, as mappings show it; between two programs it has
    none."""
    with open("/proc/%d/maps" % pid, encoding="utf-8") as file:
        words = file.readline().split() or ["", "", "", "", ""]
    return words[3], words[4], "".join(words[5:])


def begin(directory, path):
    """The subvolume's program, under the path that both have."""
    same = os.path.join(directory, "same")
    os.makedirs(same, exist_ok=True)
    program = subprocess.Popen(
        ["unshare", "-m", "sh", "-c", 'mount --bind "$0" "$1" && exec "$1/program"', path, same])
    harness.wait_for(lambda: mapping(program.pid)[2] == same + "/program", what="the program")
    return program


def end(directory, programs):
    for program in programs:
        program.kill()
        program.wait()
    harness.wait_for(lambda: run("umount", os.path.join(directory, "mounted")) == 0,
                     what="the end of the mount")


def check(out, programs):
    assert len({mapping(p.pid) for p in programs}) == 1, [mapping(p.pid) for p in programs]
    for program, name in zip(programs, NAMES):
        samples = harness.samples(out, pid=program.pid)
        assert harness.total(samples) > 20, harness.show(samples)
        harness.expect_share(samples, lambda s, name=name: any(f.name == name for f in s.frames),
                             0.9, name)


def test_files_of_two_subvolumes_under_one_path():
    directory, paths = subvolumes()
    programs = []
    try:
        programs = [begin(directory, path) for path in paths]
        check(harness.profile([p.pid for p in programs], hz=399, duration=1.5).out, programs)
    finally:
        end(directory, programs)


def test_files_of_two_subvolumes_under_one_path_that_are_mapped_later():
    """The first one's numbers are known when the second is mapped."""
    directory, paths = subvolumes()
    programs = []
    out = os.path.join(directory, "out.pb.gz")
    profiler = harness.start(out, hz=199)
    try:
        harness.sampling(profiler)
        for path in paths:
            programs.append(begin(directory, path))
            harness.wait_for(lambda: harness.cpu_of(programs[-1].pid) > 0.3, what="its samples")
        harness.finish(profiler, signal_number=signal.SIGINT)
        check(out, programs)
    finally:
        end(directory, programs)
