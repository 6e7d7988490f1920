# SPDX-License-Identifier: BSD-2-Clause
"""OpenTelemetry's eBPF profiler as a peer: its command line, and the collector that it insists on.

It is in no package registry: who wants it in the bench builds it and puts `ebpf-profiler` on PATH.
As shipped it ends where RLIMIT_MEMLOCK cannot be raised, though kernels since 5.11 do not ask for
that; such a machine needs a build that goes on."""
import os
import socket
import threading

PROGRAM = "ebpf-profiler"
# RFC 9113, 6.5: an empty SETTINGS frame, and the acknowledgement of the client's.
HTTP2_HELLO = b"\0\0\0\4\0\0\0\0\0" + b"\0\0\0\4\1\0\0\0\0"
# It finds the programs that run after its start one by one.
SETTLE_S = 10


class Collector:
    """A server on loopback that speaks as much HTTP/2 as lets a gRPC client count as connected, and
    reads what it is sent: reports fail at their deadline, which costs the profiler nothing in the
    kernel."""

    def __init__(self):
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port = self.server.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.server.accept()
            except OSError:
                return
            threading.Thread(target=self.read, args=(client,), daemon=True).start()

    @staticmethod
    def read(client):
        try:
            client.sendall(HTTP2_HELLO)
            while client.recv(65536):
                pass
        except OSError:
            pass

    def close(self):
        self.server.close()


def words(path, hz, port):
    """Its command line, with a tracefs of its own: it attaches to tracepoints by their files
    there."""
    return [
        "unshare", "-m", "sh", "-c", 'mount -t tracefs tracefs /sys/kernel/tracing && exec "$@"',
        "sh", os.path.abspath(path), "-no-kernel-version-check", "-disable-tls",
        "-collection-agent", "127.0.0.1:%d" % port, "-samples-per-second", str(hz),
        "-reporter-interval", "1s", "-reporter-jitter", "0", "-t", "python"
    ]
