#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""ns_run.py chroot|pivot TREE COMMAND...   Runs COMMAND in TREE, in new mount and pid namespaces,
as a container runtime does; `pivot` takes the old root away."""
import ctypes
import os
import signal
import sys

CLONE_NEWNS, CLONE_NEWPID = 0x20000, 0x20000000
MS_BIND, MS_REC, MS_PRIVATE, MNT_DETACH = 0x1000, 0x4000, 0x40000, 2
PR_SET_PDEATHSIG = 1
PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}[os.uname().machine]
libc = ctypes.CDLL(None, use_errno=True)


def checked(result, what):
    if result != 0:
        raise OSError(ctypes.get_errno(), what + ": " + os.strerror(ctypes.get_errno()))


def mount(source, target, kind, flags):
    checked(libc.mount(source.encode(), target.encode(), kind.encode(), flags, None),
            "mount " + target)


def main(mode, tree, command):
    checked(libc.unshare(CLONE_NEWNS | CLONE_NEWPID), "unshare")
    pid = os.fork()
    if pid:
        os._exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) & 0xff)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    mount("none", "/", "", MS_REC | MS_PRIVATE)
    mount(tree, tree, "", MS_BIND | MS_REC)
    mount("proc", tree + "/proc", "proc", 0)
    os.chdir(tree)
    if mode == "pivot":
        os.makedirs("old", exist_ok=True)
        checked(libc.syscall(PIVOT_ROOT, b".", b"old"), "pivot_root")
        os.chdir("/")
        checked(libc.umount2(b"/old", MNT_DETACH), "umount /old")
    else:
        os.chroot(".")
    os.execv(command[0], command)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
