# SPDX-License-Identifier: BSD-2-Clause
"""pyprofd-serve: profiles, metrics and access over HTTP, with a pyprofd that records."""
import contextlib
import ctypes
import errno
import http.client
import json
import os
import re
import resource
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import threading
import time

import harness
import pprof
import test_dump
import test_live
from test_dump import USER, become

SERVE = os.path.join(os.path.dirname(harness.PYPROFD), "pyprofd-serve")
TOKEN = "0123456789abcdef-e2e-token"


def token_file(folder, mode=0o600):
    path = os.path.join(folder, "token")
    with open(path, "w") as f:
        f.write(TOKEN + "\n")
    os.chmod(path, mode)
    return path


def free_port():
    with contextlib.closing(socket.socket()) as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


class Server:
    """A pyprofd that records into a store, and a pyprofd-serve before it."""

    def __init__(self, *options, events="cpu", preexec=None, env=None):
        self.folder = harness.temporary()
        os.chmod(self.folder, 0o755)
        os.mkdir(os.path.join(self.folder, "store"))
        self.agent, self.live = test_dump.agent(self.folder, "store/", 299,
                                                ["--events", events, "--interval", "1s"], env)
        self.port = free_port()
        self.process = subprocess.Popen(
            [SERVE, "--listen", "127.0.0.1:%d" % self.port, "--live", self.live, "--store",
             os.path.join(self.folder, "store"), "--token-file", token_file(self.folder)]
            + list(options), stderr=subprocess.PIPE, preexec_fn=preexec)
        said = self.process.stderr.readline().decode()
        assert said.startswith("pyprofd-serve: serves at http://127.0.0.1:%d/" % self.port), said

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(30) == 0
        assert self.process.stderr.read() == b""
        self.process.stderr.close()
        harness.finish(self.agent, signal_number=2)

    def get(self, path, rc=200, method="GET", **headers):
        """(headers, body)"""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(method, path,
                           headers={name.replace("_", "-"): v for name, v in headers.items()})
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        assert answer.status == rc, (answer.status, body[:300])
        return answer.headers, body

    def get_as(self, user, path):
        """(status, body), of a client with that uid."""
        done = subprocess.run(
            ["/usr/bin/python3", "-c", "import sys, urllib.request, urllib.error\n"
             "try: answer = urllib.request.urlopen(sys.argv[1])\n"
             "except urllib.error.HTTPError as e: answer = e\n"
             "sys.stderr.write(str(answer.status)); sys.stdout.buffer.write(answer.read())",
             "http://127.0.0.1:%d%s" % (self.port, path)], stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, preexec_fn=lambda: become(user), timeout=60, check=True)
        return int(done.stderr), done.stdout


def pids(profile):
    return {sample.labels.get("pid") for sample in profile.samples}


def check_parts(profile, pid):
    """Three quarters of what the program does is in one function."""
    chosen = [s for s in profile.samples if s.labels.get("pid") == pid]
    assert chosen and pids(profile) == {pid}, pids(profile)
    parts = {name: sum(s.values[1] for s in chosen if name in harness.names(s))
             for name in ("three_parts", "one_part")}
    part = parts["three_parts"] / sum(parts.values())
    assert 0.65 <= part <= 0.85, parts


def test_profile_of_a_process():
    with Server() as server, test_live.Worker() as worker:
        headers, body = server.get("/debug/pprof/profile?seconds=3&pid=%d" % worker.pid)
        assert headers["Content-Type"] == "application/octet-stream"
        assert headers["Content-Disposition"] == 'attachment; filename="cpu.pb.gz"'
        check_parts(pprof.Profile(body), worker.pid)
        # Of the store, when the windows are there.
        harness.wait_for(lambda: b"three_parts" in server.get(
            "/api/v1/profile?format=folded&pid=%d" % worker.pid)[1], 30, "the store's windows")
        _, body = server.get("/api/v1/profile?from=1m&pid=%d" % worker.pid)
        check_parts(pprof.Profile(body), worker.pid)
        headers, body = server.get("/api/v1/profile?from=1m&format=json&pid=%d" % worker.pid)
        assert headers["Content-Type"] == "application/json" and body.startswith(b'{"version":1,')
        # A page by itself, which is shown and whose scripts have no session to use.
        headers, body = server.get("/api/v1/profile?from=1m&format=html&pid=%d" % worker.pid)
        assert headers["Content-Type"] == "text/html; charset=utf-8"
        assert "Content-Disposition" not in headers
        policy = headers["Content-Security-Policy"].split("; ")
        assert "default-src 'none'" in policy and "sandbox allow-scripts allow-downloads" in policy
        assert body.lower().startswith(b"<!doctype html>") and b"three_parts" in body
        _, body = server.get("/debug/pprof/profile?seconds=1&format=html&pid=%d" % worker.pid)
        assert b"three_parts" in body
        server.get("/api/v1/profile?form=1m", rc=400)
        _, body = server.get("/debug/pprof/profile?second=2", rc=400)
        assert body == b"second: there is no such parameter; did you mean 'seconds'?\n", body
        _, body = server.get("/api/v1/profile?from=1m&label=thread_name:toiler&pid=%d" % worker.pid)
        check_parts(pprof.Profile(body), worker.pid)
        _, body = server.get("/api/v1/profile?from=1m&label=thread_name:toile")
        assert not pprof.Profile(body).samples
        server.get("/api/v1/profile?label=nonsense", rc=400)
        server.get("/api/v1/profile?from=2000-01-01&until=2000-01-02", rc=404)
        server.get("/api/v1/profile?kind=gil", rc=404)
        server.get("/debug/pprof/profile?seconds=0", rc=400)
        server.get("/debug/pprof/heap", rc=404)
        # It does not record that.
        _, body = server.get("/debug/pprof/gil?seconds=1", rc=503)
        assert b"records other kinds: choose" in body, body


def test_strip_has_what_the_store_has():
    with Server() as server, test_live.Worker():
        harness.wait_for(lambda: json.loads(server.get("/api/v1/strip?from=1m")[1])[
            "windows"] >= 3, 30, "the store's windows")
        server.agent.send_signal(signal.SIGINT)
        server.agent.wait(30)
        now_s = int(time.time()) + 1
        span = "from=%d&until=%d" % (now_s - 60, now_s)
        harness.wait_for(lambda: not json.loads(server.get("/api/v1/strip?" + span)[1])[
            "pending"], 30, "sums of all windows")
        headers, body = server.get("/api/v1/strip?points=120&" + span)
        assert headers["Content-Type"] == "application/json"
        strip = json.loads(body)
        assert strip["unit"] == "nanoseconds" and not strip["broken"], strip
        assert len(strip["value"]) == len(strip["recorded_ms"]) == 120, strip
        # No more than all CPUs, and what the windows have in all.
        profile = pprof.Profile(server.get("/api/v1/profile?" + span)[1])
        taken = sum(sample.values[1] for sample in profile.samples)
        assert taken > 0 and sum(value or 0 for value in strip["value"]) == taken, (strip, taken)
        assert sum(strip["recorded_ms"]) * 1e6 * os.cpu_count() * 1.1 >= taken, (strip, taken)
        # Nobody recorded a minute ago: that is a gap, no zero.
        assert strip["value"][0] is None and strip["recorded_ms"][0] == 0, strip
        for value, recorded_ms in zip(strip["value"], strip["recorded_ms"]):
            assert (value is None) == (recorded_ms == 0), strip
        server.get("/api/v1/strip?kind=wall", rc=400)
        server.get("/api/v1/strip?points=0", rc=400)
        assert server.get_as(USER, "/api/v1/strip?from=1m")[0] == 403


def test_page_of_the_history():
    """Its files, for everybody whom the kernel knows; tests/web looks at what it does."""
    with Server() as server:
        for path, kind in (("/", "text/html"), ("/page.css", "text/css"),
                           ("/page.js", "text/javascript")):
            headers, body = server.get(path)
            assert headers["Content-Type"] == kind + "; charset=utf-8", headers["Content-Type"]
            assert headers["X-Content-Type-Options"] == "nosniff"
            policy = headers["Content-Security-Policy"].split("; ")
            assert {"default-src 'none'", "script-src 'self'", "style-src 'self'",
                    "connect-src 'self'", "frame-src 'self'", "img-src 'self' data:",
                    "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"} == set(
                        policy), policy
            assert len(body) > 1000
        # Nothing inline, which the policy would forbid, and nothing from elsewhere.
        _, body = server.get("/")
        assert not re.search(rb"<style|style=|<script(?! src=)|\son[a-z]+=|https?://", body), body
        headers, _ = server.get("/?token=" + TOKEN, rc=303)
        assert headers["Location"] == "/"
        if os.geteuid() == 0:
            assert server.get_as(USER, "/")[0] == server.get_as(USER, "/page.js")[0] == 200
        assert b"/api/v1/profile" in server.get("/debug/pprof/")[1]


def test_go_fetches_it():
    import test_pyprof
    go = test_pyprof.go_with_pprof()
    with Server() as server, test_live.Worker() as worker:
        done = subprocess.run(
            [go, "tool", "pprof", "-top", "-seconds", "2",
             "http://127.0.0.1:%d/debug/pprof/profile?pid=%d" % (server.port, worker.pid)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=dict(os.environ, PPROF_TMPDIR=server.folder, HOME=server.folder))
        said = done.stdout.decode()
        assert done.returncode == 0, done.stderr.decode()
        assert "Type: cpu" in said and "burn" in said, said


def metrics(text):
    """name -> {labels: value}; fails where Prometheus' text format does not hold."""
    types, found = {}, {}
    for line in text.decode("ascii").splitlines():
        head = re.fullmatch(r"# (HELP|TYPE) ([a-z_]+) (.+)", line)
        if head:
            if head.group(1) == "TYPE":
                assert head.group(2) not in types and head.group(3) in ("counter", "gauge"), line
                types[head.group(2)] = head.group(3)
            continue
        label = r'[a-z_]+="[^"\\]*"'
        value = re.fullmatch(r"([a-z_]+)(?:\{(%s(?:,%s)*)\})? ([0-9.]+)" % (label, label), line)
        assert value and value.group(1) in types, line
        labels = found.setdefault(value.group(1), {})
        assert value.group(2) not in labels, line
        labels[value.group(2)] = float(value.group(3))
    for name, kind in types.items():
        assert (kind == "counter") == name.endswith("_total"), name
        assert name in found, name
    return found


def test_metrics_are_prometheus():
    with Server() as server, test_live.Worker() as worker:
        harness.wait_for(lambda: metrics(server.get("/metrics")[1])["pyprofd_samples_total"][
            'kind="cpu"'] > 10, 30, "samples")
        headers, body = server.get("/metrics")
        assert headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        found = metrics(body)
        assert found["pyprofd_up"] == {None: 1}
        assert 'reason="no_scratch"' in found["pyprofd_samples_lost_total"]
        assert found["pyprofd_cpu_seconds_total"][None] > 0
        before = found["pyprofd_serve_refused_total"]['reason="token"']
        server.get("/metrics", rc=401, Authorization="Bearer wrong")
        found = metrics(server.get("/metrics")[1])
        assert found["pyprofd_serve_refused_total"]['reason="token"'] == before + 1
        assert worker.pid
        # Without a pyprofd it tells of itself.
        server.agent.send_signal(signal.SIGINT)
        server.agent.wait(30)
        found = metrics(server.get("/metrics")[1])
        assert found["pyprofd_up"] == {None: 0} and "pyprofd_samples_total" not in found
        assert found["process_resident_memory_bytes"][None] < 64 << 20
        server.get("/healthz")
        server.get("/readyz", rc=503)
        # Why there is no profile is one line, as a person reads it.
        _, body = server.get("/debug/pprof/profile?seconds=1", rc=503)
        assert re.fullmatch(rb"cannot ask pyprofd at [^\\\n]+\n", body), body


def test_who_sees_what():
    harness.need(os.geteuid() == 0, "only root can become somebody else")
    user = USER + 2  # who has no programs of other tests
    with Server() as server, test_live.Worker(user=user) as own, test_live.Worker() as other:
        status, body = server.get_as(user, "/debug/pprof/profile?seconds=2")
        assert status == 200, body
        seen = pids(pprof.Profile(body))
        assert seen == {own.pid}, (seen, own.pid, other.pid)
        # A process of others and one that is not there are the same.
        for status, body in test_dump.at_once([
                (server.get_as, user, "/debug/pprof/profile?seconds=1&pid=%d" % pid)
                for pid in (other.pid, 4194303)]):
            assert status == 200 and not pprof.Profile(body).samples
        for path in ("/api/v1/profile?from=1m", "/metrics"):
            assert server.get_as(user, path)[0] == 403
            assert server.get_as(user, path + ("&" if "?" in path else "?") + "token=" + TOKEN)[
                0] in (200, 404)
        # Root, and the token.
        everybody = pids(pprof.Profile(server.get("/debug/pprof/profile?seconds=2")[1]))
        assert {own.pid, other.pid} <= everybody, everybody


OTHER_USER = USER + 1  # another test, which runs beside, has programs of that one


def without_netlink():
    """socket(AF_NETLINK, ...) is EAFNOSUPPORT from now on, as under a filter of system calls."""
    number = {"x86_64": 41, "aarch64": 198}[os.uname().machine]
    load, equal, end = 0x20, 0x15, 0x06  # BPF_LD|W|ABS, BPF_JMP|JEQ|K, BPF_RET|K
    program = b"".join(struct.pack("=HBBI", *words) for words in (
        (load, 0, 0, 0), (equal, 0, 3, number),  # seccomp_data.nr
        (load, 0, 0, 16), (equal, 0, 1, int(socket.AF_NETLINK)),  # args[0]
        (end, 0, 0, 0x00050000 | errno.EAFNOSUPPORT), (end, 0, 0, 0x7fff0000)))
    held = ctypes.create_string_buffer(program)
    prog = ctypes.create_string_buffer(struct.pack("@HP", len(program) // 8,
                                                   ctypes.addressof(held)))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(38, 1, 0, 0, 0) == 0  # PR_SET_NO_NEW_PRIVS
    assert libc.prctl(22, 2, prog, 0, 0) == 0  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER


def test_who_asks_where_the_kernel_has_no_sock_diag():
    """Users are known from /proc/net/tcp, which is told once."""
    harness.need(os.geteuid() == 0, "only root can become somebody else")
    with Server(preexec=without_netlink) as server, \
            test_live.Worker(user=OTHER_USER) as own:
        said = server.process.stderr.readline()
        assert b"/proc/net/tcp" in said and b"modprobe tcp_diag" in said, said
        assert metrics(server.get("/metrics")[1])["pyprofd_up"] == {None: 1}
        assert server.get_as(OTHER_USER, "/metrics")[0] == 403
        status, body = server.get_as(OTHER_USER, "/debug/pprof/profile?seconds=2")
        assert status == 200 and pids(pprof.Profile(body)) == {own.pid}, (status, body[:300])


def test_tokens_hosts_and_methods():
    with Server("--host", "node7.example") as server:
        first = None
        for token in ("wrong", TOKEN[:-1], TOKEN + "x", "x" * 3000):
            headers, body = server.get("/debug/pprof/", rc=401, Authorization="Bearer " + token)
            assert headers["WWW-Authenticate"] == "Bearer"
            first = first or body
            assert body == first
        server.get("/debug/pprof/", Authorization="Bearer " + TOKEN)
        headers, _ = server.get("/?token=" + TOKEN, rc=303)
        cookie = headers["Set-Cookie"]
        assert headers["Location"] == "/" and cookie.startswith("pyprofd_session=")
        assert TOKEN not in cookie
        assert "HttpOnly" in cookie and "SameSite=Strict" in cookie
        headers, _ = server.get("/", Cookie=cookie.split(";")[0])
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert not any(name.lower().startswith("access-control") for name in headers)
        server.get("/", rc=401, Cookie="pyprofd_session=" + TOKEN)
        server.get("/healthz", rc=403, Host="evil.example")
        server.get("/healthz", Host="node7.example:80")
        server.get("/healthz", rc=405, method="POST")
        server.get("/healthz", method="HEAD")
        began = time.monotonic()
        headers, body = server.get("/debug/pprof/profile?seconds=60", method="HEAD")
        assert not body and headers["Content-Type"] == "application/octet-stream"
        assert "cpu.pb.gz" in headers["Content-Disposition"] and "Content-Length" not in headers
        headers, _ = server.get("/api/v1/profile?from=1m&format=html", method="HEAD")
        assert headers["Content-Type"].startswith("text/html")
        assert time.monotonic() - began < 30
        headers, _ = server.get("/debug/pprof/profile", rc=405, method="PUT")
        assert headers["Allow"] == "GET, HEAD"
        server.get("/" + "a" * 9000, rc=414)
    with Server("--set", "http.host=node7.example,node8.example") as server:
        server.get("/healthz", Host="node8.example")
        server.get("/healthz", Host="NODE7.example:80")
        server.get("/healthz", rc=403, Host="node9.example")


def refused(*options):
    done = subprocess.run([SERVE] + list(options), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=30, check=False)
    said = done.stderr.decode()
    assert done.returncode == 2 and re.fullmatch(r"pyprofd-serve: .+\n", said), said
    return said


def test_what_it_refuses_to_start_with():
    folder = harness.temporary()
    loopback = ("--listen", "127.0.0.1:%d" % free_port(), "--store", folder)
    told = refused("--listen", ":4041", "--store", folder)
    assert "--listen ':4041' is open to other machines" in told
    assert "open to other machines" in refused("--listen", "10.0.0.1:4041", "--store", folder)
    said = refused(*loopback, "--token-file", token_file(folder, 0o644))
    assert "other users may read" in said and "chmod" in said, said
    said = refused(*loopback, "--token-file", token_file(folder, 0o660))
    assert "its group may change" in said and "chmod g-w" in said, said
    if os.geteuid() == 0:
        os.chown(token_file(folder), USER, -1)
        said = refused(*loopback, "--token-file", os.path.join(folder, "token"))
        assert "belongs to uid %d" % USER in said and "chown root" in said, said
        os.chown(token_file(folder), 0, -1)
    said = refused("--store", folder, "--state", folder, "--set", "push.a.type=otlp",
                   "--set", "push.a.url=https://127.0.0.1:1", "--set", "push.a.cert=/c",
                   "--set", "push.a.key=" + token_file(folder, 0o644))
    assert "--set push.a.key" in said and "other users may read" in said, said
    with open(token_file(folder), "w") as f:
        f.write("short\n")
    assert "openssl rand" in refused(*loopback, "--token-file", os.path.join(folder, "token"))
    assert "private key" in refused(*loopback, "--cert", "c.pem")
    assert "no/such" in refused("--listen", loopback[1], "--store", "/no/such")
    assert "listen" in refused("--listen", "nonsense", "--store", folder)
    with contextlib.closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        said = refused("--listen", "127.0.0.1:%d" % taken.getsockname()[1], "--store", folder)
        assert "a server is there already" in said and "--listen" in said, said


def test_unix_socket():
    folder = harness.temporary()
    path = os.path.join(folder, "http.sock")
    os.mkdir(os.path.join(folder, "store"))
    agent, live = test_dump.agent(folder, "store/", 99, ["--events", "cpu"])
    process = subprocess.Popen([SERVE, "--listen", "unix:" + path, "--live", live, "--store",
                                os.path.join(folder, "store")], stderr=subprocess.PIPE)
    assert process.stderr.readline() == b"pyprofd-serve: serves at unix:%s\n" % path.encode()
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as client:
        client.settimeout(30)
        client.connect(path)
        client.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        answer = b"".join(iter(lambda: client.recv(65536), b""))
    assert answer.startswith(b"HTTP/1.1 200 ") and b"\npyprofd_up 1\n" in answer, answer[:300]
    said = refused("--listen", "unix:" + path, "--store", folder)
    assert path in said and "a server is there already" in said and "--listen" in said, said
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0
    process.stderr.close()
    harness.finish(agent, signal_number=2)


def test_path_of_a_unix_socket():
    """It goes with the server, however that ends; one that is left over is no obstacle."""
    folder = harness.temporary()
    path = os.path.join(folder, "http.sock")
    words = [SERVE, "--listen", "unix:" + path, "--live", folder + "/none", "--store", folder]
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as left:
        left.bind(path)
    for sent, code in (signal.SIGTERM, 0), (signal.SIGKILL, -9):
        with subprocess.Popen(words, stderr=subprocess.PIPE) as process:
            assert b"serves at unix:" in process.stderr.readline()
            assert os.path.exists(path)
            process.send_signal(sent)
            assert process.wait(30) == code
        if sent == signal.SIGTERM:
            assert not os.path.exists(path)
        harness.wait_for(lambda: not os.path.exists(path), 30, "the path's end")
    # What another server has put there since is left alone.
    with subprocess.Popen(words, stderr=subprocess.PIPE) as process:
        assert b"serves at unix:" in process.stderr.readline()
        os.unlink(path)
        with contextlib.closing(socket.socket(socket.AF_UNIX)) as other:
            other.bind(path)
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0
        assert os.path.exists(path)
    os.unlink(path)
    with open(path, "w"):
        pass
    assert "is no socket: remove it" in refused("--listen", "unix:" + path, "--store", folder)


def certificates(folder):
    """An authority's certificates of a server and a client, and another one's."""
    openssl = shutil.which("openssl")
    harness.need(openssl, "no openssl")

    def run(*words):
        subprocess.run([openssl] + list(words), cwd=folder, check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
    new = ("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    for name in ("ca", "other"):
        run(*new, "-x509", "-keyout", name + ".key", "-out", name + ".pem", "-subj", "/CN=" + name)
    with open(os.path.join(folder, "names"), "w") as f:
        f.write("subjectAltName=IP:127.0.0.1")
    for name in ("server", "client"):
        run(*new, "-keyout", name + ".key", "-out", name + ".csr", "-subj", "/CN=" + name)
        run("x509", "-req", "-in", name + ".csr", "-CA", "ca.pem", "-CAkey", "ca.key",
            "-CAcreateserial", "-out", name + ".pem", "-extfile", "names")
    return lambda name: os.path.join(folder, name)


def test_certificates():
    path = certificates(harness.temporary())
    store, port = harness.temporary(), free_port()
    process = subprocess.Popen(
        [SERVE, "--listen", "0.0.0.0:%d" % port, "--store", store, "--live", store + "/none",
         "--cert", path("server.pem"), "--key", path("server.key"), "--client-ca", path("ca.pem")],
        stderr=subprocess.PIPE)
    assert b"serves at https://0.0.0.0:" in process.stderr.readline()

    def status(cert=None, where="/metrics"):
        context = ssl.create_default_context(cafile=path("ca.pem"))
        if cert:
            context.load_cert_chain(path(cert + ".pem"), path(cert + ".key"))
        connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=30, context=context)
        connection.request("GET", where)
        answer = connection.getresponse()
        answer.read()
        return answer.status
    assert status("client") == 200
    # Without one, or with another authority's, a client is whose connection it is.
    expected = 200 if os.geteuid() == 0 else 403
    assert status() == expected and status("other") == expected and status(where="/healthz") == 200
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0
    process.stderr.close()
    assert "do not go together" in refused(
        "--listen", "127.0.0.1:%d" % free_port(), "--store", store, "--cert", path("server.pem"),
        "--key", path("client.key"))


def test_slow_clients_hold_nobody_up():
    """A thousand who send a byte now and then, or nothing."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    harness.need(hard >= 2600, "no room for so many descriptors")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with Server() as server, test_live.Worker() as worker:
        slow = []
        for i in range(1000):
            slow.append(socket.create_connection(("127.0.0.1", server.port)))
            slow[-1].send(b"GET /healthz HTTP/1.1\r\nX: " if i % 2 else b"G")
        began = time.monotonic()
        _, body = server.get("/debug/pprof/profile?seconds=2&pid=%d" % worker.pid)
        check_parts(pprof.Profile(body), worker.pid)
        for client in slow:
            with contextlib.suppress(OSError):
                client.send(b"x")
            assert server.get("/healthz")[1] == b"ok\n"
        # A byte now and then is no request: the time for one has an end.
        harness.wait_for(
            lambda: metrics(server.get("/metrics")[1])["pyprofd_serve_refused_total"][
                'reason="late_request"'] == 1000, 60, "the slow ones' end", 0.2)
        assert time.monotonic() - began > 5
        for client in slow:
            client.close()
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


# Keeps as many connections as it gets busy, so that none is late, and makes new ones of the others.
CROWD = """
import contextlib, resource, socket, sys, time
resource.setrlimit(resource.RLIMIT_NOFILE, (2600, 2600))
held = []
while True:
    held += [socket.create_connection(('127.0.0.1', int(sys.argv[1])))
             for _ in range(2500 - len(held))]
    for one in held[:]:
        one.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            try:
                one.send(b'GET /healthz HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n')
                if one.recv(4096):
                    continue
            except ConnectionError:
                pass
            one.close()
            held.remove(one)
    print(flush=True)
    time.sleep(0.3)
"""


# What other readers may take for a request with a body, each with a whole request in it.
ODD_HEADERS = (b"X: y", b"Content-Length: 0\r\nContent-Length: %d", b"Content-Length : %d",
               b"Content-Length:\r\n %d", b"X: a\rContent-Length: %d", b"X\t: y", b"(): y",
               b"Transfer-Encoding: chunked", b"Transfer-Encoding : chunked")


def test_a_connection_gets_one_answer():
    inner = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with Server() as server:
        for header in ODD_HEADERS:
            header = header.replace(b"%d", b"%d" % len(inner))
            with socket.create_connection(("127.0.0.1", server.port), 30) as client:
                client.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n" + header
                               + b"\r\n\r\n" + inner)
                said = b""
                with contextlib.suppress(ConnectionError):
                    for part in iter(lambda: client.recv(4096), b""):
                        said += part
            assert said.count(b"HTTP/1.1 ") <= 1, (header, said)


def test_readiness_is_asked_once_a_second():
    """Anybody may ask for it, and each answer takes a place of root's at pyprofd."""
    folder, port, asked = harness.temporary(), free_port(), []
    live = socket.socket(socket.AF_UNIX)
    live.bind(os.path.join(folder, "live"))
    live.listen(64)

    def hang_up():
        with contextlib.suppress(OSError):
            while True:
                client, _ = live.accept()
                asked.append(time.monotonic())
                client.close()
    threading.Thread(target=hang_up, daemon=True).start()
    process = subprocess.Popen([SERVE, "--listen", "127.0.0.1:%d" % port, "--store", folder,
                                "--live", os.path.join(folder, "live")], stderr=subprocess.PIPE)
    assert b"serves at" in process.stderr.readline()
    began = time.monotonic()
    for _ in range(200):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        connection.request("GET", "/readyz")
        assert connection.getresponse().status in (200, 503)  # it hangs up once it is asked
        connection.close()
    seconds = time.monotonic() - began
    process.terminate()
    process.wait(30)
    process.stderr.close()
    live.close()
    assert 1 <= len(asked) <= seconds + 1, (len(asked), seconds)


def test_localhost_is_nobody_elses():
    """Who resolves localhost to ::1 comes to no neighbour."""
    with Server() as server:
        with socket.socket(socket.AF_INET6) as neighbour:
            neighbour.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                neighbour.bind(("::1", server.port))
                assert False, "it was free"
            except OSError as error:
                assert error.errno == errno.EADDRINUSE, error
        connection = http.client.HTTPConnection("localhost", server.port, timeout=30)
        connection.request("GET", "/healthz")
        assert connection.getresponse().read() == b"ok\n"
        connection.close()


def test_connections_of_one_user():
    """One who takes all connections that he gets leaves some to another user, and to root."""
    harness.need(os.geteuid() == 0, "only root can become somebody else")
    harness.need(resource.getrlimit(resource.RLIMIT_NOFILE)[1] >= 2600, "no such descriptors")
    with Server() as server:
        crowd = subprocess.Popen(["/usr/bin/python3", "-c", CROWD, str(server.port)],
                                 stdout=subprocess.PIPE, preexec_fn=lambda: become(USER))
        try:
            for _ in range(3):
                assert crowd.stdout.readline() == b"\n"
            for _ in range(10):
                began = time.monotonic()
                assert server.get_as(USER + 1, "/debug/pprof/")[0] == 200
                assert server.get("/healthz")[1] == b"ok\n"
                assert time.monotonic() - began < 5
            found = metrics(server.get("/metrics")[1])
        finally:
            crowd.kill()
            crowd.communicate()
        assert found["pyprofd_serve_connections"][None] <= 1024 + 8
        assert found["pyprofd_serve_refused_total"]['reason="share"'] > 0


def test_places_of_one_user():
    """One user may have two profiles made at a time, and leaves places to others."""
    harness.need(os.geteuid() == 0, "only root can become somebody else")
    with Server() as server:
        path = "/debug/pprof/profile?seconds=60"
        code = ("import socket, sys, time\n"
                "s = [socket.create_connection(('127.0.0.1', %d)) for _ in range(3)]\n"
                "for one in s: one.send(b'GET %s HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n')\n"
                "s[2].settimeout(30)\n"
                "print(s[2].recv(12).decode(), flush=True)\n"
                "sys.stdin.read()\n" % (server.port, path))
        user = subprocess.Popen(["/usr/bin/python3", "-c", code], stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, preexec_fn=lambda: become(USER))
        assert user.stdout.readline() == b"HTTP/1.1 503\n"
        found = metrics(server.get("/metrics")[1])
        assert found["pyprofd_serve_work"][None] == 3, found["pyprofd_serve_work"]
        user.communicate()
        # Who goes has no work done any more.
        harness.wait_for(lambda: metrics(server.get("/metrics")[1])["pyprofd_serve_work"][
            None] == 1, 30, "the end of their work")


def test_it_holds_nothing():
    with Server() as server:
        status = open("/proc/%d/status" % server.process.pid).read()
        for mask in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
            assert re.search(r"^%s:\s0+$" % mask, status, re.M), status
        assert re.search(r"^NoNewPrivs:\s1$", status, re.M), status
        limits = open("/proc/%d/limits" % server.process.pid).read()
        assert re.search(r"^Max data size +%d " % (1728 << 20), limits, re.M), limits


def test_pyprofd_starts_it():
    """By the configuration; it is started again, and ends with a pyprofd that is killed."""
    folder, port = harness.temporary(), free_port()
    os.mkdir(os.path.join(folder, "store"))
    agent, _ = test_dump.agent(folder, "store/", 99, [
        "--events", "cpu", "--set", "http.listen=127.0.0.1:%d" % port])

    def answers():
        with contextlib.suppress(OSError):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
            connection.request("GET", "/readyz")
            return connection.getresponse().status == 200
        return False
    harness.wait_for(answers, 30, "the first answer")
    first = served_by(agent)
    assert len(first) == 1, first
    os.kill(first[0], signal.SIGKILL)
    harness.wait_for(lambda: served_by(agent) not in ([], first) and answers(), 30,
                     "the second one")
    second = served_by(agent)
    status = open("/proc/%d/status" % second[0]).read()
    assert re.search(r"^CapEff:\s0+$", status, re.M), status
    agent.kill()
    agent.wait()
    harness.wait_for(lambda: not os.path.exists("/proc/%d" % second[0]), 30, "its end")


def served_by(agent):
    """The pids of the agent's child pyprofd-serve; none is there between two."""
    found = []
    for pid in harness.children(agent.pid):
        with contextlib.suppress(OSError), open("/proc/%d/cmdline" % pid, "rb") as words:
            if b"pyprofd-serve\0" in words.read():
                found.append(pid)
    return found


# A file of the store whose reading never ends, as on a disk that does not answer.
STUCK = """
#include <unistd.h>
int inflate(void *stream, int flush);
int inflate(void *stream, int flush)
{
	(void)stream, (void)flush;
	for (;;)
		pause();
}
"""


def check_end(way):
    """Whatever it works on, and however it was started, it ends soon after a pyprofd that is
    killed."""
    folder, port = harness.temporary(), free_port()
    os.mkdir(os.path.join(folder, "store"))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        words = {
            "http": ["--set", "http.listen=127.0.0.1:%d" % port],
            "unix": ["--set", "http.listen=unix:%s/http" % folder],
            "push": ["--set", "push.a.type=otlp",
                     "--set", "push.a.url=http://127.0.0.1:%d" % silent.getsockname()[1]],
        }[way]
        agent, _ = test_dump.agent(folder, "store/", 99,
                                   ["--events", "cpu", "--interval", "1s"] + words)
        harness.wait_for(lambda: len(served_by(agent)) == 1, 30, "the server")
        if way == "push":  # its collector takes the request and does not answer
            silent.settimeout(60)
            connection = silent.accept()[0]
        elif way == "unix":
            harness.wait_for(lambda: os.path.exists(folder + "/http"), 30, "the socket")
        else:
            harness.wait_for(lambda: not socket.socket().connect_ex(("127.0.0.1", port)), 30,
                             "the listener")
        child, = served_by(agent)
        agent.kill()
        agent.wait()
        harness.wait_for(lambda: not os.path.exists("/proc/%d" % child), 10, "its end")
        if way == "unix":
            harness.wait_for(lambda: not os.path.exists(folder + "/http"), 10, "the path's end")
        elif way == "push":
            connection.close()


def test_it_ends_with_a_pyprofd_that_is_killed(way):
    check_end(way)


test_it_ends_with_a_pyprofd_that_is_killed.cases = lambda: [(way, way) for way in (
    "http", "unix", "push")]


def test_it_ends_though_a_worker_is_busy():
    """Killed, pyprofd takes it along within seconds, also while a file cannot be read."""
    harness.need(shutil.which("gcc"), "no gcc")
    folder, port = harness.temporary(), free_port()
    library = os.path.join(folder, "stuck.so")
    subprocess.run(["gcc", "-shared", "-fPIC", "-xc", "-", "-o", library], check=True,
                   input=STUCK.encode())
    os.mkdir(os.path.join(folder, "store"))
    agent, _ = test_dump.agent(folder, "store/", 99, ["--events", "cpu", "--interval", "1s"])
    harness.wait_for(lambda: any(name.endswith(".pb.gz") for _, _, names in os.walk(folder)
                                 for name in names), 30, "a file")
    harness.finish(agent, signal_number=2)
    # Started as by pyprofd, with its pid: of a shell here, which is killed.
    parent = subprocess.Popen(
        ["/bin/sh", "-c", "%s --with-parent=$$ --listen 127.0.0.1:%d --store %s/store --live "
         "%s/none 2> %s/said & echo $!; wait" % (SERVE, port, folder, folder, folder)],
        stdout=subprocess.PIPE, env=dict(os.environ, LD_PRELOAD=library))
    child = int(parent.stdout.readline())
    harness.wait_for(lambda: not socket.socket().connect_ex(("127.0.0.1", port)), 30,
                     "the listener")
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(b"GET /api/v1/profile?from=1h HTTP/1.1\r\nHost: localhost\r\n\r\n")
        harness.wait_for(lambda: any(
            "pause" in open("/proc/%d/task/%s/wchan" % (child, task)).read() or
            open("/proc/%d/task/%s/syscall" % (child, task)).read().startswith("34 ")
            for task in os.listdir("/proc/%d/task" % child)), 30, "the worker that is stuck")
        parent.kill()
        parent.wait()
        parent.stdout.close()
        began = time.monotonic()
        harness.wait_for(lambda: not os.path.exists("/proc/%d" % child), 15, "its end")
        assert time.monotonic() - began > 2, "it was not stuck"


def test_make_run_prints_the_address_of_the_page():
    """With a token that opens it; what Makefile's `run` runs, without the build before it."""
    folder, build = harness.temporary(), harness.temporary()
    os.symlink(harness.PYPROFD, os.path.join(build, "pyprofd"))
    run = subprocess.Popen(
        [os.path.join(harness.TOP, "deploy", "run.sh"), "--output", folder + "/", "--live",
         os.path.join(folder, "live"), "--duration", "30", "--quiet"],
        env=dict(os.environ, BUILD=build), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        assert run.stdout.readline() == b"pyprofd: Ctrl-C ends it\n"
        said = run.stdout.readline().decode()
        port, token = re.fullmatch(
            r"pyprofd: the page: http://127.0.0.1:(\d+)/\?token=([0-9a-f]{48})\n", said).groups()
        for shown, status in ("?token=" + token, 303), ("?token=" + token[:-1], 401):
            connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=30)
            connection.request("GET", "/" + shown)
            answer = connection.getresponse()
            assert answer.status == status, answer.status
            connection.close()
        assert os.stat(os.path.join(build, "run-token")).st_mode & 0o777 == 0o600
    finally:
        run.send_signal(signal.SIGINT)
        run.wait(60)
        run.stdout.close()


def test_pyprofd_hands_over_what_is_set():
    """A sink of --set is pushed to, and nothing listens that nobody has asked for."""
    folder = harness.temporary()
    os.mkdir(os.path.join(folder, "store"))
    with socket.create_server(("127.0.0.1", 0)) as sink:
        sink.settimeout(60)
        agent, _ = test_dump.agent(folder, "store/", 99, [
            "--events", "cpu", "--interval", "1s", "--set", "push.a.type=otlp",
            "--set", "push.a.url=http://127.0.0.1:%d" % sink.getsockname()[1],
            "--set", "push.a.header=X-Key: canary"])
        try:
            sink.accept()[0].close()
            child, = [pid for pid in harness.children(agent.pid)
                      if b"pyprofd-serve\0" in open("/proc/%d/cmdline" % pid, "rb").read()]
            assert b"canary" not in open("/proc/%d/cmdline" % child, "rb").read()
            held = {os.readlink(entry.path) for entry in os.scandir("/proc/%d/fd" % child)}
            listening = {"socket:[%s]" % line.split()[9] for line in open("/proc/net/tcp")
                         if line.split()[3] == "0A"}
            assert not held & listening, held & listening
        finally:
            agent.kill()
            agent.wait()
