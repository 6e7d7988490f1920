# SPDX-License-Identifier: BSD-2-Clause
"""holds_lock.py SECONDS   Keeps the lock of its own mappings: one thread reads a page that does not
come through /proc/self/mem, another wants to map.  It lets go when the file system ends."""
import os
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "hostile"))
import craft  # noqa: E402

SECONDS, PATH = float(sys.argv[1]), "held-%d" % os.getpid()


def file_system(fd):
    threading.Thread(target=lambda: (time.sleep(SECONDS), os._exit(0)), daemon=True).start()
    craft.answer_fuse(fd)


def main():
    with open(PATH, "wb"):
        pass
    craft.check(craft.libc.unshare(0x20000), "mounts of its own")
    craft.check(craft.libc.mount(b"none", b"/", None, 0x4000 | 0x40000, None), "private mounts")
    fd = craft.mount_fuse("/dev/fuse", os.path.abspath(PATH))
    if os.fork() == 0:
        file_system(fd)
    os.close(fd)
    os.stat(PATH)  # its size is not known before
    never = craft.map_file(PATH, 0, craft.PAGE, 1)
    memory = os.open("/proc/self/mem", os.O_RDONLY)
    threading.Thread(target=lambda: os.pread(memory, 8, never), daemon=True).start()
    time.sleep(0.2)
    print("held", flush=True)
    craft.anonymous()
    os._exit(0)


main()
