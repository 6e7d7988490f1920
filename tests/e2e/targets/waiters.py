# SPDX-License-Identifier: BSD-2-Clause
"""A thread for each reason to wait, woken every 20 ms by a helper, each wait measured by the
thread's own clocks.  waiters.json: kind -> tid, and [begin, end, blocked] in ns of CLOCK_REALTIME.
3.8 and later."""
import ctypes
import fcntl
import mmap
import os
import pty
import select
import signal
import socket
import struct
import sys
import threading
import time

import common

PAUSE_S = 0.02
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + 3 * [ctypes.c_int] + [ctypes.c_long]
libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
libc.memcpy.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t]
MADV_DONTNEED, MADV_POPULATE_READ = 4, 22
TO_REAL_NS = time.time_ns() - time.monotonic_ns()
found = {}


def delay_ns(fd):
    """How long this thread could run and had no CPU."""
    return int(os.pread(fd, 80, 0).split()[1])


def measure(kind, prepare, wait):
    """Calls both until the end; what wait() takes is noted."""
    fd = os.open("/proc/thread-self/schedstat", os.O_RDONLY)
    intervals = []
    found[kind] = {"tid": threading.get_native_id(), "intervals": intervals}
    while not common.stopped():
        token = prepare() if prepare else None
        delay, begin, cpu = delay_ns(fd), time.monotonic_ns(), time.thread_time_ns()
        wait(token)
        cpu, end, delay = time.thread_time_ns() - cpu, time.monotonic_ns(), delay_ns(fd) - delay
        intervals.append((begin + TO_REAL_NS, end + TO_REAL_NS, end - begin - cpu - delay))


def helper(wake):
    """Goes on after the end, that nobody is left behind."""
    while True:
        time.sleep(PAUSE_S)
        try:
            wake()
        except OSError:  # its waiter has closed the socket
            return


def start(kind, wait, wake=None, prepare=None):
    threading.Thread(target=measure, args=(kind, prepare, wait), name="wait-" + kind).start()
    if wake:
        threading.Thread(target=helper, args=(wake,), name="wake-" + kind, daemon=True).start()


def wait_sleep(_):
    time.sleep(PAUSE_S)  # L:sleep


def wait_signal(_):
    signal.sigtimedwait([signal.SIGUSR2], PAUSE_S)  # L:signal


def start_lock():
    lock = threading.Lock()
    lock.acquire()

    def wait_lock(_):
        lock.acquire()  # L:lock

    def wake():
        if lock.locked():
            lock.release()

    start("lock", wait_lock, wake)


def start_pipe():
    there, here = os.pipe()

    def wait_pipe(_):
        os.read(there, 1)  # L:pipe

    start("pipe", wait_pipe, lambda: os.write(here, b"x"))


def start_socket(kind, one, other):
    def wait_unix(_):
        one.recv(1)  # L:unix

    def wait_tcp(_):
        one.recv(1)  # L:tcp

    def wait_udp(_):
        one.recv(1)  # L:udp

    start(kind, {"unix": wait_unix, "tcp": wait_tcp, "udp": wait_udp}[kind],
          lambda: other.send(b"x"))


def start_sockets():
    start_socket("unix", *socket.socketpair())
    server = socket.create_server(("127.0.0.1", 0))
    client = socket.create_connection(server.getsockname())
    start_socket("tcp", server.accept()[0], client)
    one, other = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
    one.bind(("127.0.0.1", 0))
    other.connect(one.getsockname())
    start_socket("udp", one, other)


def start_poll():
    there, here = os.pipe()
    poll = select.epoll()
    poll.register(there, select.EPOLLIN | select.EPOLLET)

    def wait_poll(_):
        poll.poll()  # L:poll

    start("poll", wait_poll, lambda: os.write(here, b"x"))


def start_eventfd():
    fd = libc.eventfd(0, 0)

    def wait_eventfd(_):
        os.read(fd, 8)  # L:eventfd

    start("eventfd", wait_eventfd, lambda: os.write(fd, struct.pack("Q", 1)))


def start_terminal():
    master, slave = pty.openpty()

    def wait_terminal(_):
        os.read(slave, 8)  # L:terminal

    start("terminal", wait_terminal, lambda: os.write(master, b"x\n"))


def start_child():
    def spawn():
        return os.posix_spawn("/bin/sleep", ["sleep", "0.1"], {})

    def wait_child(pid):
        os.waitpid(pid, 0)  # L:child

    start("child", wait_child, prepare=spawn)


def big_file(name, size):
    fd = os.open(common.path(name), os.O_RDWR | os.O_CREAT)
    os.pwrite(fd, os.urandom(1 << 20) * (size >> 20), 0)
    os.fsync(fd)
    return fd


def start_file():
    fd, block = big_file("file", 1 << 20), os.urandom(1 << 20)

    def dirty():
        time.sleep(PAUSE_S)
        os.pwrite(fd, block, 0)

    def wait_file(_):
        os.fsync(fd)  # L:file

    start("file", wait_file, prepare=dirty)


def start_disk():
    size = 16 << 20
    fd = big_file("disk", size)
    address = libc.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, fd, 0)

    def forget():
        time.sleep(PAUSE_S)
        libc.madvise(address, size, MADV_DONTNEED)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)

    def wait_disk(_):
        libc.madvise(address, size, MADV_POPULATE_READ)  # L:disk

    start("disk", wait_disk, prepare=forget)


def start_fault():
    """Pages that another thread brings: userfaultfd(2)."""
    page, count = mmap.PAGESIZE, 4096
    fd = libc.syscall({"x86_64": 323, "aarch64": 282}[os.uname().machine], os.O_CLOEXEC)
    if fd < 0:
        return
    fcntl.ioctl(fd, 0xc018aa3f, bytearray(struct.pack("QQQ", 0xaa, 0, 0)))  # UFFDIO_API
    address = libc.mmap(None, page * count, mmap.PROT_READ | mmap.PROT_WRITE,
                        mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
    # UFFDIO_REGISTER, MODE_MISSING
    fcntl.ioctl(fd, 0xc020aa00, bytearray(struct.pack("QQQQ", address, page * count, 1, 0)))
    pages, room = iter(range(count)), ctypes.create_string_buffer(8)

    def bring():
        while not common.stopped():
            event = os.read(fd, 32)
            time.sleep(PAUSE_S)
            where = struct.unpack_from("Q", event, 16)[0] // page * page
            fcntl.ioctl(fd, 0xc020aa04, bytearray(struct.pack("QQQQ", where, page, 0,
                                                              0)))  # ZEROPAGE

    def wait_fault(number):
        libc.memcpy(room, address + number * page, 8)  # L:fault

    start("fault", wait_fault, prepare=lambda: next(pages))
    threading.Thread(target=bring, daemon=True).start()


def spin():
    """Without the GIL."""
    import hashlib
    block = b"x" * (1 << 22)
    while not common.stopped():
        hashlib.sha256(block).digest()


def main():
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])
    if "spin" in sys.argv:
        threading.Thread(target=spin, name="spin").start()
    start("sleep", wait_sleep)
    start("signal", wait_signal)
    for begin in (start_lock, start_pipe, start_sockets, start_poll, start_eventfd, start_terminal,
                  start_child, start_file, start_disk, start_fault):
        begin()
    time.sleep(0.2)
    common.ready()
    while not common.stopped():
        time.sleep(PAUSE_S)
    for thread in threading.enumerate():
        if thread.name.startswith("wait-"):
            thread.join(5)
    common.write("waiters.json", found)
    os._exit(0)


if __name__ == "__main__":
    main()
