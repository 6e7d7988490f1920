# SPDX-License-Identifier: BSD-2-Clause
"""tests/tools/pyroscope_stub: a server with Pyroscope's own API, within its measured limits."""
import http.client
import json
import os
import subprocess

import harness
import pprof
from collector import message

PROGRAM = os.path.join(os.path.dirname(harness.PYPROFD), "tools/pyroscope_stub")
PROCESS_CPU = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
OFF_CPU = "off_cpu:off_cpu:nanoseconds:off_cpu:nanoseconds"


class Server:
    """url: what a sink's `url=` wants; dump: a file with all bytes that came, with dump=True."""

    def __init__(self, *options, dump=False):
        harness.need(os.path.exists(PROGRAM), "no stub: tests/tools/pyroscope_stub.sh %s"
                     % os.path.dirname(PROGRAM))
        self.directory = harness.temporary()
        self.dump = self.path("dump") if dump else ""
        self.process = subprocess.Popen([PROGRAM, "-dump", self.dump, *options],
                                        stdout=subprocess.PIPE)
        harness._running.append(self)
        self.url = self.process.stdout.readline().decode().strip()
        assert self.url.startswith("http://127.0.0.1:"), self.url
        self.address = self.url[len("http://"):]

    def path(self, name):
        return os.path.join(self.directory, name)

    def ask(self, path, body=None, method=None, headers=(), limit_s=60):
        """(status, body) of one request; a POST where there is a body."""
        connection = http.client.HTTPConnection(self.address, timeout=limit_s)
        try:
            connection.request(method or ("POST" if body is not None else "GET"), path, body,
                               {"Content-Type": "application/proto", **dict(headers)})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def counts(self):
        """As `type counts` of the stub has it."""
        status, body = self.ask("/stub/counts")
        assert status == 200, body
        return json.loads(body)

    def query(self, method, **fields):
        """The answer as JSON, by the names of the schema."""
        status, body = self.ask("/querier.v1.QuerierService/" + method,
                                json.dumps(fields).encode(),
                                headers={"Content-Type": "application/json"})
        assert status == 200, body
        return json.loads(body)

    def profile(self, type_id, selector="{}", start_ms=0, end_ms=0):
        """What SelectMergeProfile answers, as pprof.load() gives it."""
        request = message(*((number, text.encode()) for number, text in
                            ((1, type_id), (2, selector)) if text), (3, start_ms), (4, end_ms))
        status, body = self.ask("/querier.v1.QuerierService/SelectMergeProfile", request)
        assert status == 200, body
        return pprof.Profile(body)

    def stop(self):
        """Returns the last counts."""
        last = self.counts()
        self.kill()
        return last

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
