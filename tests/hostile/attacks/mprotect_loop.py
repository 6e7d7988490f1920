# SPDX-License-Identifier: BSD-2-Clause
"""A page that becomes executable and writable in turns, as code of a JIT compiler may: each turn is
a new mapping."""
import ctypes
import mmap

import craft  # noqa: F401

CPU_SHARE = 0.2
WRITE, RUN = mmap.PROT_READ | mmap.PROT_WRITE, mmap.PROT_READ | mmap.PROT_EXEC


def attack(box):
    libc = ctypes.CDLL(None)
    page = mmap.mmap(-1, 4096, prot=WRITE)
    address = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(page)))
    size = ctypes.c_size_t(4096)
    box.ready()
    while True:
        libc.mprotect(address, size, RUN)
        libc.mprotect(address, size, WRITE)
