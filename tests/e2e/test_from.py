# SPDX-License-Identifier: BSD-2-Clause
"""pyprof --from URL: what is read from another machine is what its directory would give."""
import base64
import contextlib
import gzip
import http.server
import json
import os
import shutil
import signal
import subprocess
import threading
import urllib.parse

import harness
import pyroscope
from collector import Pusher, Store, fields, message
from test_pyprof import PYPROF
from test_serve import SERVE, TOKEN, certificates, free_port, token_file

FETCH = os.path.join(os.path.dirname(harness.PYPROFD), "pyprof-fetch")


@contextlib.contextmanager
def served(directory, *options, scheme="http"):
    """The URL of a pyprofd-serve of this store."""
    port = free_port()
    process = subprocess.Popen(
        [SERVE, "--store", directory, "--live", os.path.join(directory, "no.sock"), "--listen",
         "127.0.0.1:%d" % port, *options], stderr=subprocess.PIPE)
    try:
        said = process.stderr.readline().decode()
        assert said.startswith("pyprofd-serve: serves at"), said
        yield "%s://127.0.0.1:%d" % (scheme, port)
    finally:
        process.terminate()
        assert process.wait(30) == 0
        process.stderr.close()


class Web:
    """A server on loopback that answers by a function: answer(path) -> (status, headers, body)."""

    def __init__(self, answer):
        self.asked = []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                self.body = self.rfile.read(int(self.headers["Content-Length"]))
                self.do_GET()

            def do_GET(self):
                outer.asked.append((self.path, dict(self.headers), getattr(self, "body", None)))
                status, headers, body = answer(self.path)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                if "Content-Length" not in headers:
                    self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):
                pass  # a client that went

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = "http://127.0.0.1:%d" % self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, args=(0.05, ), daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def mixed_store():
    """Windows of their own, merged ones, and waits."""
    store = Store(age_s=2000)
    store.put(0, windows=30, rows=2)
    for number in range(30, 36):
        store.put(number, rows=3)
        store.put(number, kind="offcpu")
    return store


def said_by(*arguments, rc=0, env=None):
    """(output, messages) of a pyprof."""
    done = subprocess.run([PYPROF, *map(str, arguments)], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=60, check=False,
                          env=dict(os.environ, **(env or {})))
    assert done.returncode == rc, (done.returncode, done.stdout[-300:], done.stderr)
    return done.stdout, done.stderr


# ---------------------------------------------------------------- a node


def test_a_node_gives_what_its_directory_gives():
    store = mixed_store()
    with served(store.directory) as url:
        for verb in (["report", "--top", "0"], ["report", "--kind", "offcpu"],
                     ["report", "--kind", "wall"], ["report", "--by", "process"], ["tree"],
                     ["info"], ["export", "--format", "folded"], ["report", "--since", "@%d" %
                     (store.at_ms(33) // 1000), "--until", "@%d" % (store.at_ms(35) // 1000)]):
            here, _ = said_by(*verb, store.directory)
            there, said = said_by(*verb, "--from", url)
            assert here.replace(store.directory, "X") == there.replace(url, "X"), (verb, here,
                                                                                   there)
            assert said == "", said
        # Two sides, and a URL where a directory may stand.
        here, _ = said_by("diff", store.directory, store.directory)
        there, _ = said_by("diff", url, "--from", url)
        assert here.replace(store.directory, "X") == there.replace(url, "X")


def test_a_node_behind_a_path_and_a_proxy_is_found():
    store = mixed_store()
    with served(store.directory) as url:
        def forward(path):
            assert path.startswith("/node7/"), path
            import urllib.request
            with urllib.request.urlopen(url + path[len("/node7"):]) as answer:
                return answer.status, {}, answer.read()

        with Web(forward) as web:
            there, _ = said_by("report", "--from", "pyprofd+%s/node7/" % web.url)
            assert "36 windows" in there, there


def test_a_range_that_has_nothing_is_told():
    store = mixed_store()
    with served(store.directory) as url:
        _, said = said_by("report", "--from", url, "--since", "2000-01-01", "--until",
                          "2000-01-02", rc=2)
        assert "no profiles between --since and --until; there are 13 files" in said, said
        _, said = said_by("report", "--from", url, "--kind", "gil", rc=2)
        assert "no profiles of kind gil" in said and url in said, said
    empty = Store()
    with served(empty.directory) as url:
        _, said = said_by("report", "--from", url, rc=2)
        assert said == "pyprof: %s: has no profiles yet\n" % url, said


def test_files_that_are_merged_meanwhile_count_once():
    store = Store(age_s=2000)
    paths = [store.put(number) for number in range(30)]
    merged = Store(age_s=0)
    merged.start_ms = store.start_ms
    path = merged.put(0, windows=30)
    lists = []

    def answer(asked):
        where = urllib.parse.urlparse(asked).path
        if where == "/api/v1/files":
            lists.append(asked)
            names = map(os.path.basename, paths if len(lists) == 1 else [path])
            return 200, {}, "".join(name + "\n" for name in names).encode()
        for one in [path] + (paths[:10] if len(lists) == 1 else []):
            if where == "/api/v1/files/" + os.path.basename(one):
                with open(one, "rb") as file:
                    return 200, {}, file.read()
        return 404, {}, b"No such file or directory\n"

    with Web(answer) as web:
        there, _ = said_by("report", "--from", web.url, "--top", "0")
        # Twice for the samples, as files were merged meanwhile, and once for the records of
        # processes and of GPUs each.
        assert len(lists) == 4, lists
        assert "30 windows" in there and " in 210 samples" in there, there


def test_names_that_are_none_of_the_store_are_refused():
    for name in ("../../../../etc/passwd", "1-2-cpu.pb.gz/../x",
                 ".1795546602550-5000-cpu.pb.gz.tmp", "", "01795546602550-5000-cpu.pb.gz",
                 "x" * 200, "\x1b[31m"):
        with Web(lambda path, name=name: (200, {}, (name + "\n").encode())) as web:
            _, said = said_by("report", "--from", web.url, rc=2)
            assert "is no node: its list of files has something else" in said, (name, said)
            assert "\x1b" not in said
            assert len(web.asked) == 1


def test_a_token_is_shown_to_the_node_and_to_nobody_else():
    store, folder = mixed_store(), harness.temporary()
    token = token_file(folder)
    with served(store.directory, "--token-file", token) as url:
        # Loopback tells root, so ask as somebody whom only the token lets in.
        there, _ = said_by("report", "--from", url, "--from-set", "token-file=" + token)
        assert "36 windows" in there
    with Web(lambda path: (401, {}, b"not allowed\n")) as web:
        _, said = said_by("report", "--from", web.url, rc=2)
        assert said == ("pyprof: %s: status 401: not allowed: give --from-set token-file=FILE\n"
                        % web.url), said
        said_by("report", "--from", web.url, "--from-set", "token-file=" + token, rc=2)
        assert web.asked[-1][1]["Authorization"] == "Bearer " + TOKEN
        os.chmod(token, 0o644)
        _, said = said_by("report", "--from", web.url, "--from-set", "token-file=" + token, rc=2)
        assert "chmod" in said and len(web.asked) == 2, said
        os.chmod(token, 0o600)
        with Web(lambda path: (302, {"Location": web.url + path}, b"")) as elsewhere:
            _, said = said_by("report", "--from", elsewhere.url, "--from-set",
                              "token-file=" + token, rc=2)
            assert "a redirect, which is not followed" in said and len(web.asked) == 2, said


def test_tls_holds_or_nothing_is_asked():
    store, path = mixed_store(), certificates(harness.temporary())
    ca = ["--from-set", "ca=" + path("ca.pem")]
    tls = ["--cert", path("server.pem"), "--key", path("server.key")]
    with served(store.directory, *tls, scheme="https") as url:
        there, _ = said_by("report", "--from", url, *ca)
        assert "36 windows" in there
        for more in ([], ["--from-set", "ca=" + path("other.pem")]):
            _, said = said_by("report", "--from", url, *more, rc=2)
            assert "certificate" in said, said
        _, said = said_by("report", "--from", url.replace("127.0.0.1", "localhost"), *ca, rc=2)
        assert "localhost" in said, said
    # Our own certificate is what lets us in: nobody knows who is behind a proxy.
    tls += ["--client-ca", path("ca.pem")]
    with served(store.directory, *tls, scheme="https") as url:
        there, _ = said_by("report", "--from", url, *ca, "--from-set",
                           "cert=" + path("client.pem"), "--from-set", "key=" + path("client.key"))
        assert "36 windows" in there


def slow_node(store, go_on):
    """A node whose files come only when go_on is set."""
    def answer(asked):
        names = [os.path.basename(store.path(number)) for number in range(3)]
        if "/files?" in asked:
            return 200, {}, "".join(name + "\n" for name in names).encode()
        if asked.endswith(names[1]):
            go_on.wait(60)
        with open(store.path(0), "rb") as file:
            return 200, {}, file.read()
    return Web(answer)


def test_nothing_is_left_behind():
    """Neither of a read, nor of one that is killed, in the middle or at its end."""
    store, temporary, go_on = Store(), harness.temporary(), threading.Event()
    for number in range(3):
        store.put(number)

    def left():
        return os.listdir(temporary)

    with served(store.directory) as url:
        said_by("report", "--from", url, env={"TMPDIR": temporary})
        assert left() == []
    with slow_node(store, go_on) as web:
        for signal_number in (signal.SIGKILL, signal.SIGINT):
            reader = subprocess.Popen([PYPROF, "report", "--from", web.url],
                                      env=dict(os.environ, TMPDIR=temporary),
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            harness.wait_for(lambda: left() and os.listdir(os.path.join(temporary, left()[0])),
                             what="a first file")
            os.kill(reader.pid, signal_number)
            reader.wait()
            harness.wait_for(lambda: not left(), what="an empty directory")
        go_on.set()


def test_what_asks_has_no_rights_and_shows_no_secret():
    store, go_on = Store(), threading.Event()
    store.put(0)
    folder = harness.temporary()
    with slow_node(store, go_on) as web:
        reader = subprocess.Popen([PYPROF, "report", "--from", web.url,
                                   "--from-set", "header=X-Key: canary-in-header", "--from-set",
                                   "token-file=" + token_file(folder)],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        harness.wait_for(lambda: len(web.asked) >= 3, what="the second file")
        (fetch, ) = harness.children(reader.pid)
        with open("/proc/%d/cmdline" % fetch) as file:
            assert file.read() == "pyprof-fetch\0"
        with open("/proc/%d/status" % fetch) as file:
            status = dict(line.split(":", 1) for line in file.read().splitlines())
        assert int(status["CapEff"], 16) == int(status["CapPrm"], 16) == 0
        assert status["NoNewPrivs"].strip() == "1"
        go_on.set()
        reader.wait()
    assert web.asked[0][1]["X-Key"] == "canary-in-header"


def test_bad_answers_are_one_line():
    profile = gzip.compress(b"\x0a\x00garbage")
    for answer, url, wanted in (
            ((500, {}, b"boom\x1b[2J\n"), "/p", "status 500: boom\\x1b[2J"),
            ((200, {}, b""), "/p", "empty"),
            ((200, {}, b"<html>"), "/p", "not a pprof file"),
            ((200, {}, profile), "/p", "cut off or broken"),
            ((404, {}, b"no\n"), "/p", "status 404"),
            ((404, {}, b"no\n"), "", "has no /api/v1/files"),
            ((200, {"Content-Length": "1000", "Connection": "close"}, b"short"), "/p",
             "995 bytes remaining")):
        with Web(lambda path, answer=answer: answer) as web:
            out, said = said_by("report", "--from", web.url + url, rc=2)
            assert out == "" and said.count("\n") == 1 and wanted in said, (answer, said)
    port = free_port()
    _, said = said_by("report", "--from", "http://127.0.0.1:%d" % port, rc=2)
    assert said.count("\n") == 1 and "onnect" in said, said


def test_settings_and_urls_that_are_wrong_are_named():
    for arguments, wanted in (
            (["--from", "ftp://x"], "not a URL"),
            (["--from", "http://"], "names no host"),
            (["--from", "http://u:secret@h"], "has a user in it: give --from-set user=NAME"),
            (["--from", "http://127.0.0.1:99999"], "port"),
            (["--from", "pyprofd+http://127.0.0.1/?a=b"], "takes no '?'"),
            (["--from", "pyroscope+http://127.0.0.1/?a"], "not LABEL=VALUE"),
            (["--from", "pyroscope+http://127.0.0.1/?a%01=b"], "no label's name"),
            (["--from", "parca+http://127.0.0.1/?1a=b"], "no label's name"),
            (["--from", "http://127.0.0.1", "--from-set", "tokenfile=x"], "there is no such key"),
            (["--from", "http://127.0.0.1", "--from-set", "user=x"], "token-file"),
            (["--from", "http://127.0.0.1", "--from-set", "cert=x"], "needs --from-set key"),
            (["--from", "http://127.0.0.1", "--from-set", "proxy=x"], "is no proxy"),
            (["--from", "http://127.0.0.1", "--from-set", "header=x"], "is not \"Name: value\""),
            (["--from", "http://127.0.0.1/p", "--since", "1h"], "--since and --until need")):
        _, said = said_by("report", *arguments, rc=2)
        assert wanted in said and "secret" not in said, (arguments, said)


def test_without_the_program_it_is_named():
    folder = harness.temporary()
    shutil.copy(PYPROF, folder)
    done = subprocess.run([os.path.join(folder, "pyprof"), "report", "--from", "http://h"],
                          capture_output=True, text=True, timeout=20, env={"PATH": folder},
                          check=False)
    assert done.returncode == 2 and "cannot start pyprof-fetch" in done.stderr, done.stderr


# ---------------------------------------------------------------- collectors


NO_WINDOWS = "a collector gives one profile of the whole range"


def test_pyroscope_is_asked_as_its_api_wants():
    store = Store()
    with open(store.put(1, rows=4, kind="offcpu"), "rb") as file:
        profile = gzip.decompress(file.read())
    # What it answers where there is nothing: a profile without types.
    answers = [profile, message((6, b"")), b""]
    with Web(lambda path: (200, {}, answers.pop(0))) as web:
        folded, said = said_by(
            "export", "--format", "folded", "--from", "pyroscope+%s/p/?service_name=shop" % web.url,
            "--since", "@1795273360", "--until", "@1795273460", "--kind", "offcpu", "--from-set",
            "tenant=team1")
        assert len(folded.splitlines()) == 4 and NO_WINDOWS in said, (folded, said)
        path, headers, body = web.asked[0]
        assert path == "/p/querier.v1.QuerierService/SelectMergeProfile"
        assert headers["Content-Type"] == "application/proto"
        assert headers["Connect-Protocol-Version"] == "1" and headers["X-Scope-OrgID"] == "team1"
        assert fields(body) == [(1, b"off_cpu:off_cpu:nanoseconds:off_cpu:nanoseconds"),
                                (2, b'{service_name="shop"}'), (3, 1795273360000),
                                (4, 1795273460000)], fields(body)
        for _ in range(2):
            _, said = said_by("report", "--from", "pyroscope+%s/?profile_type=a:b:c:d:e" % web.url,
                              rc=2)
            assert "has no profile of a:b:c:d:e{} in this range" in said, said


def test_pyroscope_gives_back_what_was_pushed():
    server, store = pyroscope.Server(), Store()
    pusher = Pusher(store, {"test": ["type=pyroscope", "url=" + server.url]}).begun("test")
    store.put(1, [("service_name", "shop")], rows=4)
    store.put(2, [("service_name", "till")], rows=2)
    store.put(2, [("service_name", "till")], rows=3, kind="offcpu")
    pusher.until(lambda: server.counts()["profiles"] >= 3, "pushes")
    pusher.end()
    for url, options, samples in (("/?service_name=shop", [], 4), ("/?service_name=till", [], 2),
                                  ("", ["--kind", "offcpu"], 3), ("/", [], 6)):
        folded, said = said_by("export", "--format", "folded", "--from",
                               "pyroscope+" + server.url + url, "--since", "1h", *options)
        values = [int(line.rsplit(" ", 1)[1]) for line in folded.splitlines()]
        assert values == [7] * samples, (url, folded)
        assert NO_WINDOWS in said and said.count("\n") == 1, said
    table, said = said_by("report", "--from", "pyroscope+%s/?service_name=shop" % server.url)
    assert "window-1.0" in table and "without --since it is the last hour" in said, (table, said)
    table, _ = said_by("diff", "pyroscope+%s/?service_name=shop" % server.url,
                       "pyroscope+%s/?service_name=till" % server.url)
    assert "window-1" in table and "window-2" in table, table
    _, said = said_by("report", "--from", "pyroscope+%s/?service_name=nobody" % server.url, rc=2)
    assert "has no profile of process_cpu:cpu:nanoseconds:cpu:nanoseconds" in said, said
    server.stop()


test_pyroscope_gives_back_what_was_pushed.few = False


def test_parca_is_asked_as_its_api_wants():
    store = Store()
    with open(store.put(1, rows=4), "rb") as file:
        profile = file.read()

    def answer(asked):
        url = urllib.parse.urlparse(asked)
        asked_for = dict(urllib.parse.parse_qsl(url.query))
        assert url.path == "/parca/api/profiles/query", asked
        if 'node="n1"' not in asked_for["merge.query"]:
            return 200, {}, b'{"total":"0"}'
        return 200, {"Content-Type": "application/json"}, json.dumps(
            {"pprof": base64.b64encode(profile).decode(), "total": "28"}).encode()

    with Web(answer) as web:
        folded, said = said_by(
            "export", "--format", "folded", "--from", "parca+%s/parca/?node=n1&app=a%%22b"
            % web.url,
            "--since", "@1795273360", "--until", "@1795273460")
        assert len(folded.splitlines()) == 4 and NO_WINDOWS in said, (folded, said)
        asked = dict(urllib.parse.parse_qsl(urllib.parse.urlparse(web.asked[0][0]).query))
        assert asked == {
            "mode": "MODE_MERGE", "report_type": "REPORT_TYPE_PPROF",
            "merge.query": 'pyprofd:cpu:nanoseconds:cpu:nanoseconds:delta{node="n1",app="a\\"b"}',
            "merge.start": "2026-11-21T15:02:40Z", "merge.end": "2026-11-21T15:04:20Z"}, asked
        _, said = said_by("report", "--from", "parca+%s/parca/?node=n2" % web.url, rc=2)
        assert "has no profile of pyprofd:cpu" in said, said
    for body in (b"nonsense", b"[1]", b'{"pprof":"!!"}', b'{"pprof":7}'):
        with Web(lambda path, body=body: (200, {}, body)) as web:
            _, said = said_by("report", "--from", "parca+" + web.url, rc=2)
            assert said.count("\n") == 1, said
