# SPDX-License-Identifier: BSD-2-Clause
"""Nearly all of its time is in machine code of its own making, without unwind information, that
uses the frame pointer for something else: as programs under numba."""
import ctypes
import mmap

import common

CODE = bytes.fromhex("55 53"                 # push %rbp; push %rbx
                     "48 c7 c5 39 30 00 00"  # mov $12345, %rbp
                     "48 ff cf 75 fb"        # 1: dec %rdi; jnz 1b
                     "5b 5d c3".replace(" ", ""))

memory = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
memory.write(CODE)
address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
spin = ctypes.CFUNCTYPE(None, ctypes.c_uint64)(address)


def jit_caller():
    spin(100000000)


def jit_outer():
    # A function in C between: two activations on the C stack.
    return max([1], key=lambda _: jit_caller() or 0)


def main():
    while not common.stopped():
        jit_outer()


common.ready()
main()
