#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""apart.py SECONDS MIB DIRECTORY PROGRAM [ARGUMENT...]   Runs a program that may do anything, as
root.

To be started by `unshare -m -p -n -i --fork --kill-child`: all file systems are read-only there but
the directory, which is /tmp; /dev has only what tests open; no process, address or queue of the
machine can be reached; capabilities that change the machine itself are gone.  Whatever the program
started ends with it, at the latest after SECONDS or when all together have MIB of memory.

Exit status: the program's, 128 more than the signal that killed it, 124 out of time, 125 out of
memory."""
import ctypes
import fcntl
import os
import resource
import signal
import socket
import stat
import struct
import sys
import time

FILE_BYTES = 2300 << 20  # sparse files of tests have 2 GiB
LOOK_S = 0.05
OUT_OF_TIME, OUT_OF_MEMORY = 124, 125
DEVICES = {"null": 3, "zero": 5, "full": 7, "random": 8, "urandom": 9}
# Of linux/capability.h: SYS_MODULE, SYS_RAWIO, SYS_BOOT, SYS_TIME, MKNOD.
CAPABILITIES = (16, 17, 22, 25, 27)
MS_BIND, PR_CAPBSET_DROP, SYS_MOUNT_SETATTR = 4096, 24, 442
AT_FDCWD, AT_RECURSIVE, MOUNT_ATTR_RDONLY = -100, 0x8000, 1
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1
LIBC = ctypes.CDLL(None, use_errno=True)


def checked(result, text):
    if result:
        number = ctypes.get_errno()
        sys.exit("apart.py: %s: %s" % (text, os.strerror(number)))


def mount(source, target, kind, flags=0, data=""):
    checked(LIBC.mount(source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags),
                       data.encode()), "mount " + target)


def make_read_only(path, flags=0, is_undone=False):
    attributes = struct.pack("4Q", 0 if is_undone else MOUNT_ATTR_RDONLY,
                             MOUNT_ATTR_RDONLY if is_undone else 0, 0, 0)
    checked(LIBC.syscall(SYS_MOUNT_SETATTR, AT_FDCWD, path.encode(), flags, attributes,
                         len(attributes)), "mount_setattr " + path)


def enter(directory):
    """The file systems and the network that the program has."""
    make_read_only("/", AT_RECURSIVE)
    mount(directory, "/tmp", "", MS_BIND)
    make_read_only("/tmp", 0, True)
    mount("proc", "/proc", "proc")
    for path in filter(os.path.exists, ("/proc/sys", "/proc/sysrq-trigger")):
        mount(path, path, "", MS_BIND)
        make_read_only(path)
    mount("tmpfs", "/dev", "tmpfs", 0, "mode=755")
    for name, minor in DEVICES.items():
        os.mknod("/dev/" + name, stat.S_IFCHR | 0o666, os.makedev(1, minor))
        os.chmod("/dev/" + name, 0o666)
    for name, fd in (("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")):
        os.symlink("/proc/self/fd" + fd, "/dev/" + name)
    make_read_only("/dev")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = fcntl.ioctl(any_socket, SIOCGIFFLAGS, struct.pack("16sH14x", b"lo", 0))
        flags = struct.unpack("16xH14x", request)[0] | IFF_UP
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", flags))
    for capability in CAPABILITIES:
        checked(LIBC.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0), "prctl")


def memory_bytes():
    """What all processes but this one have."""
    pages = 0
    for name in os.listdir("/proc"):
        if name.isdigit() and name != "1":
            try:
                with open("/proc/%s/statm" % name, encoding="ascii") as file:
                    pages += int(file.read().split()[1])
            except (OSError, IndexError):
                pass
    return pages * resource.getpagesize()


def wait(child, seconds, most_bytes):
    """The exit status.  This is process 1 of the namespace: all others end with it."""
    end = time.monotonic() + seconds
    while True:
        signal.sigtimedwait([signal.SIGCHLD], LOOK_S)
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
        if time.monotonic() > end:
            return OUT_OF_TIME
        if memory_bytes() > most_bytes:
            return OUT_OF_MEMORY


def main():
    seconds, mib, program = float(sys.argv[1]), int(sys.argv[2]), sys.argv[4:]
    enter(sys.argv[3])
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
    child = os.fork()
    if not child:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_BYTES, FILE_BYTES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        try:
            os.execv(program[0], program)
        finally:
            os._exit(126)
    return wait(child, seconds, mib << 20)


if __name__ == "__main__":
    sys.exit(main())
