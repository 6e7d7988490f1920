# SPDX-License-Identifier: BSD-2-Clause
"""The configuration file: which settings --doctor shows, and what a reload changes while profiles
are written."""
import functools
import os
import re
import signal
import socket
import subprocess

import harness
import pprof


def write(path, text, mode=0o600):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, mode)


def configured(text, mode=0o600):
    path = os.path.join(harness.temporary(), "pyprofd.conf")
    write(path, text, mode)
    return path


def check(*words):
    """Returns whether the settings can be read, and what --doctor says of them; of the host it may
    say what it likes."""
    run = subprocess.run([harness.PYPROFD, "--doctor", *words], stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, universal_newlines=True, check=False)
    return run.returncode if run.returncode == 2 else 0, run.stdout, run.stderr


def test_doctor_prints_what_counts():
    path = configured("[capture]\nhz = 49\n[push a]\ntype = otlp\nurl = http://127.0.0.1:1\n"
                      "header = X-Key: canary-secret\n")
    code, out, err = check("--config", path, "--interval", "5s", "--set", "store.max=1G")
    assert code == 0 and not err, err
    assert re.search(r"^hz +=\s49 ; %s:2$" % re.escape(path), out, re.M), out
    assert re.search(r"^interval += 5s ; command line$", out, re.M), out
    assert re.search(r"^max += 1G ; --set$", out, re.M), out
    assert "X-Key: ***" in out and "canary" not in out, out


def test_doctor_names_the_line_and_the_nearest_key():
    path = configured("[capture]\nhz = 49\nintervall = 5s\n")
    code, out, err = check("--config", path)
    assert code == 2 and not out, out
    assert err == "pyprofd: %s:3: [capture] has no key 'intervall'; did you mean 'interval'?\n" \
        % path, err


def test_secrets_of_everybody_are_refused():
    path = configured("[push a]\ntype=otlp\nurl=http://h\nheader=A: b\n", 0o644)
    code, _, err = check("--config", path)
    assert code == 2 and "every user may read it" in err, err
    token = configured("geheim\n", 0o644)
    path = configured("[http]\ntoken-file = %s\n" % token)
    _, out, err = check("--config", path)
    assert re.search("^fail  http +token-file: .*chmod o=", out, re.M), out
    assert "geheim" not in out + err


def test_the_shipped_file_is_right_and_says_the_defaults():
    path = os.path.join(harness.TOP, "deploy", "pyprofd.conf")
    code, out, err = check("--config", path)
    assert code == 0 and not err, err
    with open(path, encoding="utf-8") as file:
        text = file.read()
    code, told, err = check("--config", configured(re.sub(r"(?m)^;(?=[\[a-z])", "", text.replace(
        "/etc/pyprofd/token", configured("t\n")).replace("/etc/pyprofd/pyroscope.token",
                                                         configured("t\n")))))
    assert code == 0 and not err, err
    for key in "hz", "events", "interval", "path", "max":
        default = re.search(r"^%s +=\s(\S+) ; default$" % key, out, re.M).group(1)
        assert re.search(r"^%s +=\s%s ; " % (key, re.escape(default)), told, re.M), (key, told)


def test_the_examples_are_right():
    directory = os.path.join(harness.TOP, "deploy", "examples")
    names = sorted(os.listdir(directory))
    for name in names:
        with open(os.path.join(directory, name), encoding="utf-8") as file:
            text = file.read()
        # With what is commented out, and where nobody reaches a real collector.
        text = re.sub(r"(?m)^;(?=[\[a-z])", "", text)
        text = re.sub(r"/etc/pyprofd/\S+\.token", lambda _: configured("t\n"), text)
        hosts = re.findall(r"^url = https?://([^:/\n]+)", text, re.M)
        assert len(hosts) == 1 and hosts[0].endswith(".example"), (name, hosts)
        code, out, err = check("--config", configured(text))
        assert code == 0 and not err, (name, err)
        assert "[push %s]" % name[:-len(".conf")] in out, out
    assert len(names) >= 5, names


class Manager:
    """A service manager that hears what pyprofd tells it."""
    def __init__(self):
        self.path = os.path.join(harness.temporary(), "notify")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.socket.settimeout(30)

    def next(self):
        return self.socket.recv(200).decode()


def start(path, manager, store):
    return harness.start(store, options=["--config", path, "--live", "no"], hz=None,
                         env={"NOTIFY_SOCKET": manager.path})


def reload(process, manager):
    process.send_signal(signal.SIGHUP)
    assert re.match(r"RELOADING=1\nMONOTONIC_USEC=\d+$", manager.next())
    assert manager.next() == "READY=1"


@functools.lru_cache(maxsize=None)
def period_of(path):
    return pprof.load(path).period


def windows(store):
    """Start, end and period of each window of the CPU."""
    found = []
    for base, _, names in os.walk(store):
        for name in names:
            match = re.match(r"(\d+)-(\d+)-cpu\.pb\.gz$", name)
            if match:
                begin, length = (int(part) for part in match.groups())
                found.append((begin, begin + length, period_of(os.path.join(base, name))))
    return sorted(found)


def facts(path):
    """The facts in the comments of a profile."""
    text = "\n".join(pprof.load(path).comments)
    lines = [line for line in text.split("\n") if line.startswith("elapsed_ns=")]
    return {name: int(number) for name, number in re.findall(r"(\w+)=(\d+)", "\n".join(lines))}


def cpu_files(store):
    return sorted(os.path.join(base, name) for base, _, names in os.walk(store) for name in names
                  if name.endswith("-cpu.pb.gz"))


def expect_weights(store):
    """Samples of a window weigh what the scheduler says that ran, and each some 0.7 to 1.4 periods;
    those that fire while the rate changes are few."""
    cpu = scheduler = usual = odd = 0
    for file in cpu_files(store):
        profile, told = pprof.load(file), facts(file)
        cpu += told.get("cpu_ns", 0)
        scheduler += told.get("scheduler_ns", 0)
        for sample in profile.samples:
            periods = sample.values[1] / sample.values[0] / profile.period
            if 0.7 <= periods <= 1.5:
                usual += 1
            else:
                odd += 1
    assert odd <= 0.1 * usual, (odd, usual)
    return cpu / scheduler


def expect_no_gap(found):
    for (_, end, _), (begin, _, _) in zip(found, found[1:]):
        assert abs(begin - end) <= 2, found


def test_reload_changes_rate_and_windows_without_a_gap():
    store, manager = harness.temporary() + "/", Manager()
    path = configured("[capture]\nhz = 49\ninterval = 500ms\n")
    with harness.light():
        process = start(path, manager, store)
        assert manager.next() == "READY=1"
        harness.wait_for(lambda: len(windows(store)) >= 2, 30, "two windows")
        write(path, "[capture]\nhz = 149\ninterval = 1s\nevents = cpu\n")
        reload(process, manager)
        harness.wait_for(lambda: sum(w[2] == 10**9 // 149 for w in windows(store)) >= 2, 30,
                         "two windows of the new rate")
        run = harness.finish(process, signal_number=signal.SIGTERM)
    assert run.rc == 0, run.err
    assert "changed: capture.hz, capture.interval; only a restart changes: capture.events" \
        in run.err, run.err
    found = windows(store)
    expect_no_gap(found)
    assert {period for _, _, period in found} == {10**9 // 49, 10**9 // 149}, found
    assert 0.85 < expect_weights(store) < 1.15
    assert found[0][1] - found[0][0] < 900 <= found[-2][1] - found[-2][0], found


def test_a_broken_file_keeps_what_was_in_force():
    store, manager = harness.temporary() + "/", Manager()
    path = configured("[capture]\nhz = 49\ninterval = 500ms\n")
    process = start(path, manager, store)
    assert manager.next() == "READY=1"
    write(path, "[capture]\nhz = 99\nintervall = 1s\n")
    reload(process, manager)
    # systemctl kill -s HUP reaches them, too.
    children = harness.children(process.pid)
    for child in children:
        os.kill(child, signal.SIGHUP)
    before = len(windows(store))
    harness.wait_for(lambda: len(windows(store)) >= before + 2, 30, "windows after the reload")
    assert children and set(children) <= set(harness.children(process.pid)), children
    os.unlink(path)
    reload(process, manager)
    run = harness.finish(process, signal_number=signal.SIGTERM)
    assert run.rc == 0, run.err
    assert "%s:3: [capture] has no key 'intervall'; did you mean 'interval'?; what was " \
        "configured before stays in force" % path in run.err, run.err
    assert "%s: No such file or directory; what was configured" % path in run.err, run.err
    found = windows(store)
    expect_no_gap(found)
    assert {period for _, _, period in found} == {10**9 // 49}, found


def test_without_a_file_sighup_ends_the_run():
    out = os.path.join(harness.temporary(), "o.pb.gz")
    with harness.light() as target:
        process = harness.start(out, pid=target.pid)
        harness.sampling(process)
        run = harness.finish(process, signal_number=signal.SIGHUP)
    assert run.rc == 0, run.err
    assert harness.samples(out, pid=target.pid)


def test_max_cpu_lowers_the_rate_in_steps_and_gives_it_back():
    store, manager = harness.temporary() + "/", Manager()
    path = configured("[capture]\nhz = 400\ninterval = 500ms\nevents = cpu\nmax-cpu = 0.1\n")
    with harness.light():
        process = start(path, manager, store)
        assert manager.next() == "READY=1"
        harness.wait_for(lambda: any(w[2] == 10**9 // 100 for w in windows(store)), 60, "100 Hz")
        write(path, "[capture]\nhz = 400\ninterval = 500ms\nevents = cpu\n")
        reload(process, manager)
        harness.wait_for(lambda: {w[2] for w in windows(store)[-4:]} == {10**9 // 400}, 60,
                         "four windows of 400 Hz again")
        run = harness.finish(process, signal_number=signal.SIGTERM)
    assert run.rc == 0, run.err
    assert re.search(r"took [0-9.]+ % of a core, more than --max-cpu 0.10: it goes down to 200 Hz",
                     run.err), run.err
    assert re.search(r"it goes back up to 400 Hz", run.err), run.err
    expect_no_gap(windows(store))
    for file in cpu_files(store):
        # One rate a window, which the profile states.
        steps = facts(file).get("rate_steps", 0)
        assert pprof.load(file).period == 10**9 // (400 >> steps), (file, steps)
    assert any(facts(file).get("bpf_cpu_ns") for file in cpu_files(store))
    expect_weights(store)


def answers(port):
    try:
        with socket.create_connection(("127.0.0.1", port), 5) as client:
            client.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
            return client.recv(100).startswith(b"HTTP/1.1 200")
    except OSError:
        return False


def free_port():
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return bound.getsockname()[1]


def test_reload_starts_the_server_again_where_it_listens_now():
    store, manager, ports = harness.temporary() + "/", Manager(), (free_port(), free_port())
    live = os.path.join(harness.temporary(), "live.sock")
    text = "[capture]\ninterval = 500ms\nlive = %s\n[http]\nlisten = 127.0.0.1:%d\n"
    path = configured(text % (live, ports[0]))
    process = harness.start(store, options=["--config", path], hz=None,
                            env={"NOTIFY_SOCKET": manager.path})
    assert manager.next() == "READY=1"
    harness.wait_for(lambda: answers(ports[0]), 30, "an answer")
    write(path, text % (live, ports[1]))
    reload(process, manager)
    harness.wait_for(lambda: answers(ports[1]), 30, "an answer at the new port")
    assert not answers(ports[0])
    run = harness.finish(process, signal_number=signal.SIGTERM)
    assert run.rc == 0, run.err
    expect_no_gap(windows(store))
    assert "is started again in" not in run.err, run.err
