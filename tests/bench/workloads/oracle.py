# SPDX-License-Identifier: BSD-2-Clause
"""oracle.py CASE ROUNDS   A program that measures by its own clocks what a profiler should find.

Every function that counts is named o_*.  Waits for the file `go`, does a fixed amount of work,
writes truth.json: ns by the path of the last two such functions (threads' CPU time; wall time in
the case `waits`), and how long it all took. Which stacks are possible is known to ../oracle.py."""
import json
import os
import sys
import threading
import time
import zlib

DIRECTORY = os.environ.get("E2E_DIR", ".")
truth = {}
lock = threading.Lock()


def add(key, ns):
    with lock:
        truth[key] = truth.get(key, 0) + ns


def lengths():
    """Factors of 0.5 to 1.5, the same in each run: work of one length would beat with a profiler's
    period."""
    x = 1
    while True:
        x = (x * 1103515245 + 12345) & 0x7fffffff
        yield 0.5 + (x >> 8 & 0xffff) / 65536


def o_work(rounds):
    x = 0
    for i in range(rounds):
        x += i * i
    return x


# ---- callers: one function, two callers in turn: 20 % and 80 %

def o_first(factor):
    o_work(int(8000 * factor))


def o_second(factor):
    o_work(int(32000 * factor))


def o_callers(rounds):
    clock = time.thread_time_ns
    first = second = 0
    for _, factor in zip(range(rounds), lengths()):
        begin = clock()
        o_first(factor)
        middle = clock()
        o_second(factor)
        first += middle - begin
        second += clock() - middle
    add("o_first>o_work", first)
    add("o_second>o_work", second)


# ---- ccalls: C calls of 1 to 2 % of the time beside Python code

def o_python(factor):
    o_work(int(120000 * factor))


def o_sort(values):
    sorted(values)


def o_crc(data):
    zlib.crc32(data)


def o_copy(data):
    data.translate(None, b"x")


def o_ccalls(rounds):
    clock = time.thread_time_ns
    values = [(i * 7919) % 1009 / 7 for i in range(2700)]
    data = bytes(range(256)) * 1600
    few = bytes(range(128)) * 1600
    at = [0] * 4
    for _, factor in zip(range(rounds), lengths()):
        t0 = clock()
        o_python(factor)
        t1 = clock()
        o_sort(values)
        t2 = clock()
        o_crc(data)
        t3 = clock()
        o_copy(few)
        t4 = clock()
        at = [at[0] + t1 - t0, at[1] + t2 - t1, at[2] + t3 - t2, at[3] + t4 - t3]
    for key, ns in zip(("o_python>o_work", "o_ccalls>o_sort", "o_ccalls>o_crc", "o_ccalls>o_copy"),
                       at):
        add(key, ns)


# ---- waits: one waiting function, two callers in turn, and some work; wall time

def o_wait(seconds):
    time.sleep(seconds)


def o_short(factor):
    o_wait(0.002 * factor)


def o_long(factor):
    o_wait(0.008 * factor)


def o_busy(factor):
    o_work(int(32000 * factor))


def o_waits(rounds):
    clock = time.perf_counter_ns
    at = [0] * 3
    for _, factor in zip(range(rounds), lengths()):
        t0 = clock()
        o_short(factor)
        t1 = clock()
        o_long(factor)
        t2 = clock()
        o_busy(factor)
        t3 = clock()
        at = [at[0] + t1 - t0, at[1] + t2 - t1, at[2] + t3 - t2]
    for key, ns in zip(("o_short>o_wait", "o_long>o_wait", "o_busy>o_work"), at):
        add(key, ns)


# ---- threads: four that want the GIL, with 10 to 40 % of the work each

def o_one(rounds):
    for _ in range(rounds):
        o_work(8000)


def o_two(rounds):
    for _ in range(rounds):
        o_work(16000)


def o_three(rounds):
    for _ in range(rounds):
        o_work(24000)


def o_four(rounds):
    for _ in range(rounds):
        o_work(32000)


def o_thread(function, rounds):
    begin = time.thread_time_ns()
    function(rounds)
    add(function.__name__ + ">o_work", time.thread_time_ns() - begin)


def o_threads(rounds):
    threads = [
        threading.Thread(target=o_thread, args=(f, rounds)) for f in (o_one, o_two, o_three, o_four)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


# ---- short: programs of some 20 and 40 ms, one after the other

def o_child_a():
    o_work(400000)


def o_child_b():
    o_work(800000)


def o_child(which):
    function = {"a": o_child_a, "b": o_child_b}[which]
    begin = time.thread_time_ns()
    function()
    os.write(1, b"%d" % (time.thread_time_ns() - begin))


def run_child(which):
    read, write = os.pipe()
    pid = os.posix_spawn(
        sys.executable,
        [sys.executable, "-S", os.path.abspath(__file__), "child", which],
        os.environ,
        file_actions=[(os.POSIX_SPAWN_DUP2, write, 1), (os.POSIX_SPAWN_CLOSE, read)])
    os.close(write)
    said = os.read(read, 64)
    os.close(read)
    os.waitpid(pid, 0)
    add("o_child_%s>o_work" % which, int(said))


def run_short(rounds):
    for _ in range(rounds):
        run_child("a")
        run_child("b")


# ---- deep: 400 and 40 levels of two functions in turn, and 25 of one

def o_low(factor):
    o_work(int(20000 * factor))


def o_high(factor):
    o_work(int(60000 * factor))


def o_flat(factor):
    o_work(int(20000 * factor))


def o_even(levels, bottom):
    return o_odd(levels - 1, bottom) if levels > 1 else bottom()


def o_odd(levels, bottom):
    return o_even(levels - 1, bottom) if levels > 1 else bottom()


def o_same(levels, factor):
    return o_same(levels - 1, factor) if levels > 1 else o_flat(factor)


def o_deep(rounds):
    clock = time.thread_time_ns
    at = [0] * 3
    bottom_ns = [0]

    def measured(function):
        def bottom():
            begin = clock()
            function(factor)
            bottom_ns[0] = clock() - begin
        return bottom
    low, high = measured(o_low), measured(o_high)
    for _, factor in zip(range(rounds), lengths()):
        o_even(40, low)
        at[0] += bottom_ns[0]
        o_even(400, high)
        at[1] += bottom_ns[0]
        t0 = clock()
        o_same(25, factor)
        at[2] += clock() - t0
    for key, ns in zip(("o_low>o_work", "o_high>o_work", "o_flat>o_work"), at):
        add(key, ns)


CASES = {
    "callers": o_callers, "ccalls": o_ccalls, "waits": o_waits, "threads": o_threads,
    "short": run_short, "deep": o_deep
}


def path(name):
    return os.path.join(DIRECTORY, name)


def main():
    if sys.argv[1] == "child":
        o_child(sys.argv[2])
        return
    case, rounds = sys.argv[1], int(sys.argv[2])
    CASES[case](1)
    truth.clear()
    open(path("ready"), "w").close()
    while not os.path.exists(path("go")):
        time.sleep(0.01)
    begin = time.perf_counter_ns()
    CASES[case](rounds)
    wall_ns = time.perf_counter_ns() - begin
    with open(path("truth.new"), "w") as file:
        json.dump({"ns": truth, "wall_ns": wall_ns}, file)
    os.rename(path("truth.new"), path("truth.json"))
    while not os.path.exists(path("stop")):
        time.sleep(0.02)


if __name__ == "__main__":
    main()
