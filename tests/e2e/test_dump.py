# SPDX-License-Identifier: BSD-2-Clause
"""pyprof dump: the stacks at this moment, from a running pyprofd or from a private one."""
import concurrent.futures
import os
import re
import subprocess

import harness
from test_views import in_terminal
from test_offcpu_swept import WAITS, Asleep

PYPROF = os.path.join(os.path.dirname(harness.PYPROFD), "pyprof")
USER = 54321
THREAD = re.compile(r'(\d+) "[^"]*"')


def agent(directory, out="p.pb.gz", hz=99, options=("--events", "offcpu"),
          env=None):
    """A pyprofd that serves a socket."""
    path = os.path.join(directory, "live.sock")
    process = harness.start(os.path.join(directory, out), hz=hz,
                            options=["--live", path] + list(options), env=env)

    def there():
        assert process.poll() is None, harness.said(process)
        return os.path.exists(path)
    harness.wait_for(there, 30, "the live socket")
    return process, path


def become(user):
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)


def ask(*words, verb="dump", user=None, rc=0, limit_s=60):
    done = subprocess.run([PYPROF, verb] + [str(w) for w in words], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=limit_s,
                          preexec_fn=(lambda: become(user)) if user else None, check=False)
    out, err = done.stdout.decode(), done.stderr.decode()
    assert done.returncode == rc, "%d: %s%s" % (done.returncode, out, err)
    return out + err if rc else out


def at_once(asked):
    """Lets several ask at a time, as each waits for seconds to pass; what each is told."""
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        return [one.result() for one in [pool.submit(*each) for each in asked]]


def groups(out):
    """tid -> (what its group's head says, its frames), of all processes."""
    found = {}
    for group in re.split(r"^  (?=\S)", out, flags=re.M)[1:]:
        head, _, stack = group.partition("\n")
        frames = re.findall(r"^      (\S.*)$", stack, re.M)
        for tid in THREAD.findall(head):
            found[int(tid)] = (head, frames)
    return found


def check_asleep(out, target):
    found = groups(out)
    for name, (tid, line) in target.threads.items():
        if name not in WAITS:
            continue
        head, frames = found[tid]
        assert "waits: %s" % WAITS[name] in head, head
        assert "moved" not in head and "cut" not in head, head
        wanted = re.compile(r"^%s  (\S*/)?asleep\.py:%d$" % (name, line))
        assert any(wanted.match(f) for f in frames), "%s: %s" % (name, frames)


def test_sleeping_threads():
    with Asleep() as target:
        process, path = agent(target.directory)
        check_asleep(ask("--pid", target.pid, "--socket", path), target)
        out = ask("--pid", target.pid, "--socket", path, "--python")
        check_asleep(out, target)
        assert "[kernel]" not in out and ".so" not in out, out
        harness.finish(process, signal_number=2)
        assert not os.path.exists(path)


def test_a_running_thread():
    with harness.Target("burn.py", 0) as target:
        process, path = agent(target.directory)
        found = groups(ask("--pid", target.pid, "--socket", path))
        head, frames = found[target.pid]
        assert "running" in head, head
        assert any("burn.py:" in f for f in frames), frames
        harness.finish(process, signal_number=2)


# Waits below the standard library, in threads whose names do not fit into one line of a terminal.
LONG = """
import queue, threading
queues = [queue.Queue() for _ in range(8)]
for i, each in enumerate(queues):
    threading.Thread(target=each.get, name="a_thread_of_a_pool_%d" % i, daemon=True).start()
print("ready", flush=True)
threading.Event().wait()
"""


def test_short_paths_and_lines_that_fit():
    folder = harness.temporary()
    path = os.path.join(folder, "long.py")
    with open(path, "w") as file:
        file.write(LONG)
    process = subprocess.Popen(list(harness.interpreter().command) + [path], stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"ready\n"
    pyprofd, socket = agent(folder)
    words = ("--pid", process.pid, "--socket", socket)
    try:
        short, whole = ask(*words), ask(*words, "--full-paths")
        assert re.search(r"^      \S*get  queue\.py:\d+$", short, re.M), short
        assert re.search(r"^      <module>  long\.py:7$", short, re.M), short
        assert not re.search(r"  /\S*\.py:", short), short
        assert re.search(r"^      \S*get  /\S+/queue\.py:\d+$", whole, re.M), whole
        assert "      <module>  %s:7\n" % path in whole, whole
        for columns in (80, 200):
            said = in_terminal(columns, "dump", *words, "--full-paths").split("\n")
            assert max(map(len, said)) <= columns, (columns, max(said, key=len))
            for i in range(8):
                assert any('"a_thread_of_a_pool_%d"' % i in line for line in said), said
            assert any(line.endswith("long.py:7") for line in said), said
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    harness.finish(pyprofd, signal_number=2)


def test_users_see_their_own():
    harness.need(os.geteuid() == 0, "only root can become somebody else")
    with Asleep() as target:
        process, path = agent(target.directory)
        own = subprocess.Popen(["sleep", "60"], preexec_fn=lambda: os.setresuid(USER, USER, USER))
        try:
            out = ask("--pid", target.pid, "--socket", path, user=USER, rc=2)
            assert "it is not yours" in out and "asleep" not in out, out
            out = ask("--all", "--socket", path, user=USER)
            pids = re.findall(r"^process (\d+) ", out, re.M)
            assert str(own.pid) in pids and str(target.pid) not in pids, out
            assert len(re.findall(r"^process .* uid %d:" % USER, out, re.M)) == len(pids), out
        finally:
            own.kill()
            own.wait()
        harness.finish(process, signal_number=2)


def test_without_a_pyprofd():
    harness.need_no_pyprofd()
    with Asleep() as target:
        check_asleep(ask("--pid", target.pid), target)


def test_what_cannot_be_asked():
    assert "give --pid PID or --all" in ask(rc=2)
    assert "No such file" in ask("--all", "--socket", "/nonexistent/live.sock", rc=2)


# Another test's pyprofd would answer, if it wrote into a directory.
test_without_a_pyprofd.alone = True
