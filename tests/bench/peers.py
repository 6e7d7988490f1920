# SPDX-License-Identifier: BSD-2-Clause
"""Finds other profilers from PyPI and Debian; a missing one says why."""
import glob
import os
import shutil
import subprocess
import sys

import otel


def said(words, limit_s=600):
    """(works, last line of what it printed)"""
    try:
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=limit_s, check=False, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired) as error:
        return False, str(error)
    lines = done.stdout.decode("utf-8", "replace").strip().splitlines()
    return done.returncode == 0, lines[-1] if lines else "exit status %d" % done.returncode


PIP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tools/pip.sh")


class Peers:
    """path[name] of those that run; why[name] of the others; version[name]."""

    def __init__(self, build):
        self.path, self.why, self.version = {}, {}, {}
        self.venv = os.path.join(build, "bench-venv")
        for name, package in (("perf", "linux-perf"), ("bpftrace", "bpftrace")):
            self.take(name, shutil.which(name), "not installed (Debian: %s)" % package)
        self.take("otel", shutil.which(otel.PROGRAM),
                  "no %s on PATH (it is in no package registry)" % otel.PROGRAM, "-version")
        if self.make_venv():
            self.pip("py-spy", "/bin", "py-spy")
            self.pip("memray", "/bin", "memray")
            # Its glibc wheel wants a newer libc than Debian 12 has; the musl one brings its own.
            self.pip("austin", "/bin", "austin-dist")
            if "austin" not in self.path:
                self.pip("austin", "/musl/bin", "austin-dist", [
                    "--platform",
                    "musllinux_1_2_%s" % os.uname().machine, "--platform",
                    "musllinux_1_1_%s" % os.uname().machine, "--no-deps", "--upgrade", "--target",
                    self.venv + "/musl"
                ])

    def take(self, name, path, reason, version="--version"):
        if not path:
            self.why.setdefault(name, reason)
            return
        works, line = said([path, version], 30)
        if works:
            self.path[name], self.version[name] = path, line
            self.why.pop(name, None)
        else:
            self.why[name] = "does not start: " + line

    def make_venv(self):
        if os.access(self.venv + "/bin/pip", os.X_OK):
            return True
        candidates = sorted(glob.glob(
            os.path.expanduser("~/.pyenv/versions/3.1[0-9]*/bin/python3")))
        line = "no Python with venv"
        for python in [sys.executable] + candidates:
            works, line = said([python, "-m", "venv", self.venv])
            if works:
                return True
        for name in ("py-spy", "memray", "austin"):
            self.why[name] = "no virtual environment: " + line
        return False

    def pip(self, name, directory, package, options=()):
        path = self.venv + directory + "/" + name
        if not os.path.exists(path):
            works, line = said([PIP, self.venv + "/bin/python", package, *options])
            if not works:
                self.why[name] = "pip: " + line
                return
        self.take(name, path if os.path.exists(path) else None, "the package has no such program")
        if "/musl/" in path and name in self.why:
            self.why[name] += " (Debian: musl)"
