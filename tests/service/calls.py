# SPDX-License-Identifier: BSD-2-Clause
"""What a process gets of the calls that touch another one: PTRACE_TRACEME, and memory of its own
written and read."""
import ctypes
import errno
import os

libc = ctypes.CDLL(None, use_errno=True)


class Piece(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]


def outcome(result):
    return "ok" if result >= 0 else errno.errorcode[ctypes.get_errno()]


buffer = ctypes.create_string_buffer(16)
piece = Piece(ctypes.addressof(buffer), 16)
arguments = os.getpid(), ctypes.byref(piece), 1, ctypes.byref(piece), 1, 0
writev, readv = outcome(libc.process_vm_writev(*arguments)), outcome(
    libc.process_vm_readv(*arguments))
print("ptrace %s, writev %s, readv %s" % (outcome(libc.ptrace(0, 0, 0, 0)), writev, readv))
