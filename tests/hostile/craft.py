# SPDX-License-Identifier: BSD-2-Clause
"""What attacks share: ELF files made by hand, machine code that burns, fakes of an interpreter.
The Python of the system and the standard library; attacks run as somebody who may read little
else."""
import ctypes
import mmap
import os
import signal
import struct
import sys
import time

PAGE = 4096
PT_LOAD, PT_NOTE, PT_GNU_EH_FRAME = 1, 4, 0x6474e550
SHT_PROGBITS, SHT_SYMTAB, SHT_STRTAB, SHT_NOTE, SHT_DYNSYM = 1, 2, 3, 7, 11
# Counts down for some 5 ms and returns.
BURN = b"\xb9\x00\x00\xc0\x00\xff\xc9\x75\xfc\xc3"

libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + 3 * [ctypes.c_int] + [ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]


class Box:
    """What the rig tells an attack: its directory, the agent's live socket, a file of root's, pids
    of the victims."""

    def __init__(self, told):
        self.directory, self.socket, self.secret = told["directory"], told["socket"], told["secret"]
        self.victims = told["victims"]

    def ready(self, *said):
        """The attack is under way: what follows is measured."""
        print("ready", *said, flush=True)


def perf_map():
    """The path of this process' perf map, which nobody has left there: in a child, if need be."""
    while os.path.lexists("/tmp/perf-%d.map" % os.getpid()):
        if os.fork():
            os._exit(os.wait()[1])
    return "/tmp/perf-%d.map" % os.getpid()


class Elf:
    """An ELF file for x86-64, as little of one as wanted.  Offsets are the caller's: holes cost
    nothing."""

    def __init__(self, size=PAGE):
        self.size, self.parts, self.segments, self.sections = size, [], [], []

    def put(self, offset, data):
        self.parts.append((offset, data))
        self.size = max(self.size, offset + len(data))

    def segment(self, kind, flags, offset, vaddr, file_size, memory_size=None, align=PAGE):
        self.segments.append(
            (vaddr,
             struct.pack("<IIQQQQQQ", kind, flags, offset, vaddr, vaddr, file_size,
                         file_size if memory_size is None else memory_size, align)))

    def section(self, name, kind, address, offset, size, link=0, entry_size=0, flags=2):
        """Returns its index."""
        self.sections.append((name, kind, flags, address, offset, size, link, entry_size))
        return len(self.sections)

    def write(self, path):
        names, rows = b"\0", [bytes(64)]
        for name, kind, flags, address, offset, size, link, entry in self.sections + [
                (".shstrtab", SHT_STRTAB, 0, 0, None, 0, 0, 0)]:
            at, names = len(names), names + name.encode() + b"\0"
            rows.append([at, kind, flags, address, offset, size, link, 0, 1, entry])
        names_at = self.size + 7 & ~7
        table_at = names_at + len(names) + 7 & ~7
        rows[-1][4:6] = names_at, len(names)
        head = b"\x7fELF\2\1\1" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1,
                                                         0, 64, table_at, 0, 64, 56,
                                                         len(self.segments), 64, len(rows),
                                                         len(rows) - 1)
        with open(path, "wb") as file:
            for offset, data in [(0, head), (64, b"".join(row for _, row in sorted(self.segments))),
                                 (names_at, names)] + self.parts:
                file.seek(offset)
                file.write(data)
            file.seek(table_at)
            for row in rows:
                file.write(row if isinstance(row, bytes) else struct.pack("<IIQQQQIIQQ", *row))
        return path


def symbols(elf, offset, address, wanted, kind=SHT_DYNSYM):
    """Puts a table of symbols [(name, address, size, type)] at the offset, mapped at the address;
    the end's offset."""
    text, rows = b"\0", bytes(24)
    for name, value, size, symbol in wanted:
        rows += struct.pack("<IBBHQQ", len(text), 0x10 | symbol, 0, 1, value, size)
        text += name.encode("utf-8", "surrogateescape") + b"\0"
    elf.put(offset, rows + text)
    link = elf.section(".dynstr" if kind == SHT_DYNSYM else ".strtab", SHT_STRTAB,
                       address + len(rows), offset + len(rows), len(text))
    elf.section(".dynsym" if kind == SHT_DYNSYM else ".symtab", kind, address, offset, len(rows),
                link, 24)
    return offset + len(rows) + len(text)


def burner(size=2 * PAGE):
    """An Elf with one executable page of BURN at its second page."""
    elf = Elf(size)
    elf.put(PAGE, BURN)
    elf.segment(PT_LOAD, 5, PAGE, PAGE, PAGE)
    return elf


def map_file(path, offset=PAGE, size=PAGE, protection=5, address=None, flags=2):
    fd = os.open(path, os.O_RDONLY)
    at = libc.mmap(address, size, protection, flags, fd, offset)
    os.close(fd)
    if at in (None, ctypes.c_void_p(-1).value):
        raise OSError(ctypes.get_errno(), "mmap of " + path)
    return at


def anonymous(size=PAGE, address=None, protection=7):
    at = libc.mmap(address, size, protection, 0x22 | (0x10 if address else 0), -1, 0)
    if at in (None, ctypes.c_void_p(-1).value):
        raise OSError(ctypes.get_errno(), "mmap")
    return at


def call(address):
    ctypes.CFUNCTYPE(None)(address)()


def keep_calling(address, pause_s=0.01):
    while True:
        call(address)
        time.sleep(pause_s)


def needs_x86():
    if os.uname().machine != "x86_64":
        skip("the machine code is x86-64's")


def skip(reason):
    print("skip", reason, flush=True)
    sys.exit(0)


def check(result, what):
    if result:
        raise OSError(ctypes.get_errno(), what)


def become_root_of_nobody():
    """Root in a user and mount namespace of its own, from where nothing is mounted into others."""
    user = os.getuid()
    if libc.unshare(0x10000000 | 0x20000):
        skip("no user namespaces for users")
    for name, told in ("setgroups", "deny"), ("uid_map", "0 %d 1" % user), (
            "gid_map", "0 %d 1" % user):
        with open("/proc/self/" + name, "w", encoding="ascii") as file:
            file.write(told)
    check(libc.mount(b"none", b"/", None, 0x4000 | 0x40000, None), "mount of / as private")


def mount_over(path, over):
    """Shows another file at a path, for this process and its children alone."""
    check(libc.unshare(0x20000), "a mount namespace")
    check(libc.mount(b"none", b"/", None, 0x4000 | 0x40000, None), "mount of / as private")
    check(libc.mount(path.encode(), over.encode(), None, 0x1000, None), "mount over " + over)


def mount_fuse(device, path, user=0):
    """Mounts a file of 1 MiB over the path, whose pages nobody ever gets, as somebody who may mount
    here.  Returns where its requests come from, for answer_fuse(), which the user runs."""
    fd = os.open(device, os.O_RDWR)
    check(
        libc.mount(b"never", path.encode(), b"fuse", 0,
                   b"fd=%d,rootmode=100755,user_id=%d,group_id=%d" % (fd, user, user)),
        "mount of a FUSE")
    return fd


def answer_fuse(fd):
    """Everything that is asked of a file but to read it."""
    attributes = struct.pack("<QQQQQQIIIIIIIIII", 1, 1 << 20, 2048, 0, 0, 0, 0, 0, 0, 0o100755, 1,
                             0, 0, 0, PAGE, 0)
    answers = {
        26: struct.pack("<IIIIHHIIHHIII", 7, 31, 0, 0, 16, 12, PAGE, 1, 0, 0, 0, 0, 0)
        + bytes(20),  # INIT
        3: struct.pack("<QII", 3600, 0, 0) + attributes,  # GETATTR
        14: struct.pack("<QII", 1, 0, 0)
    }  # OPEN
    while True:
        request = os.read(fd, 1 << 17)
        _, code, unique = struct.unpack_from("<IIQ", request)
        if code in (15, 2, 36, 42):  # READ, and what has no answer
            continue
        answer = answers.get(code)
        os.write(
            fd,
            struct.pack("<IiQ", 16 + len(answer or b""), 0 if answer is not None or code in (18, 25)
                        else -38, unique) + (answer or b""))


FOLDER_FILE, FOLDER_S = "code", 40  # in a folder of mount_folder()


def mount_folder(device, path, user=0, more=b""):
    """Mounts a folder with one file there, as mount_fuse(); more: options that begin with a comma.
    For serve_folder()."""
    fd = os.open(device, os.O_RDWR)
    check(
        libc.mount(b"folder", path.encode(), b"fuse", 0,
                   b"fd=%d,rootmode=40755,user_id=%d,group_id=%d" % (fd, user, user) + more),
        "mount of a FUSE")
    return fd


def folder_answer(code, node, request, data):
    """What is said to a request; below 0: -errno."""
    is_file = node == 2

    def attributes(is_file):
        number, mode = (2, 0o100755) if is_file else (1, 0o40755)
        return struct.pack("<QQQQQQIIIIIIIIII", number, len(data), 64, 0, 0, 0, 0, 0, 0, mode, 1, 0,
                           0, 0, PAGE, 0)

    if code == 1:  # LOOKUP
        if request[40:].rstrip(b"\0") != FOLDER_FILE.encode():
            return -2
        return struct.pack("<QQQQII", 2, 0, 0, 0, 0, 0) + attributes(True)
    if code == 15:  # READ
        offset, size = struct.unpack_from("<QI", request, 48)
        return data[offset:offset + size]
    return {
        26: struct.pack("<IIIIHHIIHHIII", 7, 31, 0, 0, 16, 12, PAGE, 1, 0, 0, 0, 0, 0)
        + bytes(20),  # INIT
        3: struct.pack("<QII", 0, 0, 0) + attributes(is_file),  # GETATTR
        14: struct.pack("<QII", 1, 0, 0),  # OPEN
        27: struct.pack("<QII", 1, 0, 0),  # OPENDIR
        17: bytes(48) + struct.pack("<II", 255, PAGE) + bytes(24)  # STATFS
    }.get(code, b"" if code in (18, 25, 28, 29) else -38)


def serve_folder(fd, path, begin=None, silent=()):
    """Starts a process that answers for a folder with the file's data, until somebody looks for
    `stop` there; then it says nothing, for as long as it lives: FOLDER_S at most.  silent: requests
    that have no answer before, either.  Its pid."""
    pid = os.fork()
    if pid:
        return pid
    os.setsid()  # who attacks is killed, and this goes on
    os.closerange(3, fd)
    os.closerange(fd + 1, 256)
    signal.alarm(FOLDER_S)
    with open(path, "rb") as file:
        data = file.read()
    if begin:
        begin()
    while True:
        request = os.read(fd, 1 << 17)
        _, code, unique, node = struct.unpack_from("<IIQQ", request)
        if code in (2, 36, 42) + tuple(silent):  # what has no answer
            continue
        answer = folder_answer(code, node, request, data)
        error, text = (answer, b"") if isinstance(answer, int) else (0, answer)
        os.write(fd, struct.pack("<IiQ", 16 + len(text), error, unique) + text)
        while code == 1 and request[40:].rstrip(b"\0") == b"stop":
            os.read(fd, 1 << 17)


def map_stopped(path, stop="stop"):
    """Maps code of a file in such a folder, all of whose data is there, when nobody answers any
    more."""
    fd = os.open(os.path.join(path, FOLDER_FILE), os.O_RDONLY)
    os.read(fd, 1 << 20)
    os.path.exists(os.path.join(path, stop))
    at = libc.mmap(None, PAGE, 5, 2, fd, PAGE)  # the descriptor stays: closing asks, too
    if at in (None, ctypes.c_void_p(-1).value):
        raise OSError(ctypes.get_errno(), "mmap of " + path)
    return at


# sizeof(PyCodeObject) of CPython 3.11, which an interpreter's file must agree with.
CODE_BYTES_311 = 184
RUNTIME, CODE_TYPE, VERSION = 0x3000, 0x3800, 0x3900  # addresses in a fake


def note(name, address, semaphore=0, arguments=b"8@%rdi", provider=b"python"):
    """A note of <sys/sdt.h> that names a probe."""
    text = struct.pack("<QQQ", address, 0, semaphore) + b"\0".join([provider, name, arguments, b""])
    head = struct.pack("<III", 8, len(text), 3) + b"stapsdt\0"
    return head + text + bytes(-len(text) % 4)


def fake_interpreter(path, version=0x030b08f0, head=b"", unique=0, code=b"", notes=b""):
    """A file that claims to be a CPython: burner() with its variables in a page of data at
    0x3000.  code: what lies behind BURN; notes: of note(), not mapped."""
    elf = burner(4 * PAGE)
    if code:
        elf.put(PAGE + len(BURN), code)
    elf.put(RUNTIME, head)
    elf.put(CODE_TYPE + 32, struct.pack("<Q", CODE_BYTES_311))
    elf.put(VERSION, struct.pack("<QQ", version, unique))
    elf.segment(PT_LOAD, 6, 3 * PAGE, 3 * PAGE, PAGE)
    end = symbols(elf, 2 * PAGE, 2 * PAGE, [("_PyRuntime", RUNTIME, 0x700, 1),
                                            ("PyCode_Type", CODE_TYPE, 408, 1),
                                            ("Py_Version", VERSION, 8, 1),
                                            ("_Py_NoneStruct", CODE_TYPE + 408, 16, 1),
                                            ("_PyEval_EvalFrameDefault", PAGE, len(BURN), 2)])
    assert end < 3 * PAGE
    elf.segment(PT_LOAD, 4, 2 * PAGE, 2 * PAGE, PAGE)
    if notes:
        elf.put(4 * PAGE, notes)
        elf.section(".note.stapsdt", SHT_NOTE, 0, 4 * PAGE, len(notes), flags=0)
    return elf.write(path)


def map_fake(path, base=0x100000):
    """Where it begins: its code at PAGE, its data, private, at RUNTIME.  Below the real interpreter
    of this process: the first one that is mapped counts."""
    anonymous(4 * PAGE, base, 0)
    for offset, protection in (PAGE, 5), (2 * PAGE, 1), (3 * PAGE, 3):
        map_file(path, offset, PAGE, protection, base + offset, 0x12)
    return base


def write_at(address, data):
    ctypes.memmove(address, data, len(data))


def set_name(text):
    """The process' own name, whatever bytes it has."""
    libc.prctl(15, ctypes.c_char_p(text), 0, 0, 0)


def make_refused(base):
    """The fake's thread does not belong to its interpreter: the agent says so, and the process'
    name."""
    far = anonymous(1 << 20, protection=3)
    write_at(far, struct.pack("<Q", base) * (1 << 17))
    near = anonymous(1 << 20, protection=3)
    write_at(near, struct.pack("<Q", far) * (1 << 17))
    write_at(base + RUNTIME, struct.pack("<Q", near) * (0x700 // 8))
