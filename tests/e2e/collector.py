# SPDX-License-Identifier: BSD-2-Clause
"""A store of made windows, and stubs of collectors that answer as a test says.

Each window has functions of its own, `window-N.ROW`, which are looked for in what arrives: pprof in
gzip for Pyroscope and Parca, a message with strings for OTLP.
"""
import base64
import collections
import gzip
import http.server
import json
import os
import re
import signal
import ssl
import subprocess
import threading
import time

import harness

WINDOW_MS = 10000
PATHS = {"pyroscope": "/push.v1.PusherService/Push", "parca": "/api/profiles/writeraw",
         "otlp": "/v1development/profiles"}
TAKEN = {"pyroscope": b"", "parca": b"{}", "otlp": b"\n\0"}
CLOSED = object()  # an answer: none, the connection ends


def varint(number):
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7f | 0x80)
        number >>= 7
    return bytes(out) + bytes([number])


def message(*fields):
    """Of (number, int or bytes)."""
    out = b""
    for number, value in fields:
        if isinstance(value, bytes):
            out += varint(number << 3 | 2) + varint(len(value)) + value
        else:
            out += varint(number << 3) + varint(value)
    return out


def fields(data):
    """[(number, int or bytes)] of a message."""
    found, at = [], 0

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7f) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        tag = number()
        if tag & 7 == 0:
            found.append((tag >> 3, number()))
        else:
            size = {1: 8, 5: 4}.get(tag & 7) or number()
            found.append((tag >> 3, data[at:at + size]))
            at += size
    return found


class Store:
    """Windows of ten seconds, one after another, which end now."""

    def __init__(self, age_s=600):
        self.directory = harness.temporary()
        self.start_ms = (int(time.time()) - age_s) * 1000

    def at_ms(self, number):
        return self.start_ms + number * WINDOW_MS

    def path(self, number, kind="cpu", windows=1):
        start_ms = self.at_ms(number)
        where = time.strftime("%Y-%m-%d/%H", time.gmtime(start_ms / 1000))
        return os.path.join(self.directory, where, "%d-%d-%s%s.pb.gz" %
                            (start_ms, WINDOW_MS * windows, kind,
                             ".merged" if windows > 1 else ""))

    def put(self, number, labels=(("comm", "work"), ), kind="cpu", windows=1, rows=1):
        """One file of so many windows, with the label `window` when there are several.  labels:
        of all rows, or a function of the row's number."""
        types = {"cpu": (("samples", "count"), ("cpu", "nanoseconds")),
                 "offcpu": (("off_cpu", "nanoseconds"), ("events", "count"),
                            ("effective", "count"))}[kind]
        texts = {"": 0}

        def text(what):
            return texts.setdefault(what, len(texts))

        out = bytearray().join(message((1, message((1, text(t)), (2, text(u))))) for t, u in types)
        for row in range(windows * rows):
            window = row // rows
            tags = [message((1, text(k)), (2, text(v))) if isinstance(v, str) else
                    message((1, text(k)), (3, v))
                    for k, v in (labels(row) if callable(labels) else labels)]
            if windows > 1:
                tags.append(message((1, text("window")), (3, window * WINDOW_MS)))
            out += message((2, message((1, varint(row + 1)), (2, varint(7) * len(types)),
                                       *((3, tag) for tag in tags))))
            name = "window-%d.%d" % (number + window, row % rows)
            out += message((4, message((1, row + 1), (4, message((1, row + 1), (2, 5))))),
                           (5, message((1, row + 1), (2, text(name)), (4, text("/srv/a.py")))))
        out += message((9, self.at_ms(number) * 1000000), (10, WINDOW_MS * windows * 1000000),
                       (12, 10101010), (13, text("comm=secret-comment")))
        period = types[1 if kind == "cpu" else 0]
        out += message((11, message((1, text(period[0])), (2, text(period[1])))))
        for window in range(windows if windows > 1 else 0):
            start_ms = self.at_ms(number + window)
            out += message((13, text(
                "window=%d start_ms=%d duration_ms=%d start_ns=%d000000 duration_ns=%d000000 "
                "period=10101010" % (window * WINDOW_MS, start_ms, WINDOW_MS, start_ms,
                                     WINDOW_MS))))
        out += b"".join(message((6, what.encode())) for what in texts)
        path = self.path(number, kind, windows)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path + ".made", "wb") as file:
            file.write(gzip.compress(out, 1))
        os.rename(path + ".made", path)
        return path


Request = collections.namedtuple("Request", "path headers body windows plain")


def windows_in(protocol, headers, body):
    """(numbers of the windows, all bytes unpacked) of a request; asserts its shape."""
    if protocol == "pyroscope":
        raw = [value for series in fields(body) for number, sample in fields(series[1])
               if number == 2 for inner, value in fields(sample) if inner == 1]
        plain = b"".join(gzip.decompress(one) for one in raw) + body
    elif protocol == "parca":
        series = json.loads(body)["series"]
        raw = [base64.b64decode(sample["rawProfile"]) for one in series
               for sample in one["samples"]]
        plain = b"".join(gzip.decompress(one) for one in raw) + body
    else:
        plain = gzip.decompress(body) if headers.get("Content-Encoding") == "gzip" else body
    return sorted({int(n) for n in re.findall(rb"window-(\d+)\.", plain)}), plain


def parca_fault(body):
    """What of a writeraw the real server refuses, or breaks at: its answer, or None.  Without a
    period_type it takes the profile, and then answers 500 to every query of the store."""
    for series in json.loads(body)["series"]:
        names = [label["name"] for label in series["labels"]["labels"]]
        if "__name__" not in names or len(set(names)) != len(names):
            return 400, {}, b'{"code":3,"message":"missing or duplicate label"}'
        for sample in series["samples"]:
            found = fields(gzip.decompress(base64.b64decode(sample["rawProfile"])))
            texts = [value.decode() for number, value in found if number == 6]
            period = dict(fields(dict(found).get(11, b"")))
            types = [texts[dict(fields(value))[1]] for number, value in found if number == 1]
            if not (period.get(1) and period.get(2)):
                return 500, {}, b'{"code":2,"message":"arrow/array: index out of range"}'
            if not types or any("-" in kind for kind in types):
                return 500, {}, b'{"code":2,"message":"bad type"}'
            if not dict(found).get(10):
                return 500, {}, b'{"code":2,"message":"no duration: not a delta"}'
    return None


class Collector:
    """A server on loopback.  answer(request): (status, headers, body) or CLOSED; None takes it.
    `requests` has all that came; `taken` counts the windows that the collector has, `lost` those
    whose answer it kept to itself.  windows(protocol, headers, body): as windows_in() does."""

    def __init__(self, protocol, answer=None, tls=None, port=0, windows=windows_in):
        self.protocol, self.answer, self.windows = protocol, answer, windows
        self.requests, self.taken, self.lost = [], collections.Counter(), collections.Counter()
        self.lock = threading.Lock()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                outer.serve(self)

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 64

            def handle_error(self, *_):
                pass  # a pusher that was killed

        self.server = Server(("127.0.0.1", port), Handler)
        if tls:
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True,
                                                 do_handshake_on_connect=False)
        self.port = self.server.server_address[1]
        self.url = "%s://127.0.0.1:%d" % ("https" if tls else "http", self.port)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05, ),
                                       daemon=True)
        self.thread.start()

    def serve(self, handler):
        size = int(handler.headers["Content-Length"])
        body = handler.rfile.read(size)
        if len(body) != size:
            return
        windows, plain = self.windows(self.protocol, handler.headers, body)
        request = Request(handler.path, handler.headers, body, windows, plain)
        with self.lock:
            self.requests.append(request)
        answer = self.answer(request) if self.answer else None
        if answer is None and self.protocol == "parca":
            answer = parca_fault(body)
        with self.lock:
            if answer is None or answer is CLOSED:
                self.taken.update(windows)
            if answer is CLOSED:
                self.lost.update(windows)
        if answer is CLOSED:
            handler.close_connection = True
            return
        status, headers, text = answer or (200, {}, TAKEN[self.protocol])
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(text)))
        handler.end_headers()
        handler.wfile.write(text)

    def has(self, numbers):
        with self.lock:
            return set(numbers) <= set(self.taken)

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


def private(path, flags):
    return os.open(path, flags, 0o600)


def free_port():
    import socket
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Pusher:
    """A process that pushes a store; section: the lines of [push test]."""

    def __init__(self, store, sections, state=None, env=None):
        program = os.path.join(os.path.dirname(harness.PYPROFD), "tests/e2e/push_main")
        harness.need(os.path.exists(program), "no push_main: make e2e-programs")
        self.directory = harness.temporary()
        self.state = state or os.path.join(self.directory, "state")
        self.metrics_path = os.path.join(self.directory, "metrics")
        config = os.path.join(self.directory, "conf")
        with open(config, "w", encoding="utf-8", opener=private) as file:
            for name, lines in sections.items():
                file.write("[push %s]\n%s\n" % (name, "\n".join(lines)))
        clean = {key: value for key, value in os.environ.items()
                 if not key.lower().endswith("_proxy") and not key.startswith("OTEL_")}
        self.said_path = os.path.join(self.directory, "said")
        with open(self.said_path, "wb") as said:
            self.process = subprocess.Popen(
                [program, config, store.directory, self.state, self.metrics_path],
                stderr=said, env=dict(clean, **(env or {})))
        harness._running.append(self)

    def path(self, name):
        return os.path.join(self.directory, name)

    def said(self):
        with open(self.said_path, encoding="utf-8") as file:
            return file.read()

    def begun(self, *names):
        """Waits until each sink knows where it begins."""
        return self.until(lambda: all(os.path.exists(os.path.join(self.state, name + ".cursor"))
                                      for name in names), "cursors")

    def until(self, condition, what):
        try:
            harness.wait_for(condition, what=what)
        except AssertionError as error:
            raise AssertionError("%s; %s" % (error, self.said())) from error
        return self

    def metrics(self):
        """{(name, labels): number}"""
        if os.path.exists(self.metrics_path):
            os.unlink(self.metrics_path)
        self.process.send_signal(signal.SIGUSR1)
        harness.wait_for(lambda: os.path.exists(self.metrics_path), what="metrics")
        return self.parsed()

    def parsed(self):
        found = {}
        with open(self.metrics_path, encoding="utf-8") as file:
            for line in file:
                if not line.startswith("#"):
                    name, labels, value = re.match(r"(\w+)\{(.*)\} (\S+)$", line).groups()
                    found[name, labels] = float(value)
        return found

    def dropped(self, reason, sink="test"):
        return self.metrics()["pyprofd_push_dropped_profiles_total",
                              'sink="%s",reason="%s"' % (sink, reason)]

    def kill(self):
        self.process.kill()
        self.process.wait()

    def end(self):
        """Returns the last metrics."""
        self.process.terminate()
        assert self.process.wait(20) == 0, self.said()
        return self.parsed()


def server_tls(directory, name="server", client_ca=None):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(os.path.join(directory, name + ".pem"),
                            os.path.join(directory, name + ".key"))
    if client_ca:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(client_ca)
    return context
