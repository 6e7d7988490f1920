# SPDX-License-Identifier: BSD-2-Clause
"""Drives a headless Chromium over the DevTools protocol."""
import base64
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.request

import websocket

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
# key: (code, number of the key, text that it types)
KEYS = {
    "Enter": ("Enter", 13, "\r"), "Escape": ("Escape", 27, ""), "Backspace": ("Backspace", 8, ""),
    "Tab": ("Tab", 9, ""), "Home": ("Home", 36, ""), "End": ("End", 35, ""),
    "PageDown": ("PageDown", 34, ""), "ArrowLeft": ("ArrowLeft", 37, ""),
    "ArrowUp": ("ArrowUp", 38, ""), "ArrowRight": ("ArrowRight", 39, ""),
    "ArrowDown": ("ArrowDown", 40, "")
}
MODIFIERS = {"Alt": 1, "Control": 2, "Shift": 8}


def find():
    """The program, or None."""
    return next(
        (path for path in map(shutil.which, (os.environ.get("CHROMIUM", ""), ) + NAMES) if path),
        None)


def pages(port):
    """None yet while it does not listen."""
    try:
        return json.load(urllib.request.urlopen("http://127.0.0.1:%s/json" % port, timeout=10))
    except OSError:
        return []


class Browser:
    def __init__(self, width=1280, height=800, user=None):
        """user: a uid, for root; else it is the caller's browser."""
        self.directory = tempfile.mkdtemp(prefix="pyprof-web-")
        if user is not None:
            os.chown(self.directory, user, user)
        words = [
            find(), "--headless=new", "--remote-debugging-port=0", "--remote-allow-origins=*",
            "--user-data-dir=" + self.directory, "--no-first-run", "--disable-gpu",
            "--hide-scrollbars", "--disable-background-networking", "--disable-component-update",
            "--force-color-profile=srgb",
            "--window-size=%d,%d" % (width, height), "about:blank"
        ]
        if os.geteuid() == 0:
            words.insert(1, "--no-sandbox")
        with open(self.directory + "/log", "wb") as log:
            self.process = subprocess.Popen(
                words, stdout=log, stderr=log, start_new_session=True, user=user, group=user,
                extra_groups=None if user is None else [],
                env=dict(os.environ, HOME=self.directory))
        self.number, self.events, self.errors, self.said = 0, [], [], []
        self.socket = websocket.create_connection(self.address(), timeout=300)
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=False)

    def address(self):
        path = self.directory + "/DevToolsActivePort"
        end = time.monotonic() + 30
        while time.monotonic() < end and self.process.poll() is None:
            if os.path.exists(path):
                with open(path, encoding="ascii") as file:
                    port = file.readline().strip()
                found = [
                    page["webSocketDebuggerUrl"] for page in pages(port) if page["type"] == "page"
                ]
                if found:
                    return found[0]
            time.sleep(0.05)
        with open(self.directory + "/log", errors="replace", encoding="utf-8") as file:
            raise RuntimeError("chromium does not start: " + file.read()[-2000:])

    def close(self):
        self.socket.close()
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        shutil.rmtree(self.directory, ignore_errors=True)

    def call(self, method, **parameters):
        self.number += 1
        self.socket.send(json.dumps({"id": self.number, "method": method, "params": parameters}))
        wanted = self.number
        while True:
            said = json.loads(self.socket.recv())
            if said.get("id") == wanted:
                if "error" in said:
                    raise RuntimeError("%s: %s" % (method, said["error"]["message"]))
                return said["result"]
            self.heard(said)

    def heard(self, event):
        """Errors of the page are kept; so is every address that it asked for."""
        method, what = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            details = what["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description") or details["text"])
        elif method == "Log.entryAdded" and what["entry"]["level"] == "error":
            self.errors.append(" ".join((what["entry"]["text"], what["entry"].get("url", ""))))
        elif method == "Runtime.consoleAPICalled":
            self.said += [str(part.get("value")) for part in what["args"]]
        elif method == "Network.requestWillBeSent":
            self.events.append(what["request"]["url"])

    def open(self, path, fragment="", until="window.pyprof", limit_s=60):
        self.errors, self.events, self.said = [], [], []
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url="file://" + os.path.abspath(path) + fragment)
        self.wait(until, limit_s)

    def run(self, script):
        """The value of a JavaScript expression."""
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True,
                           awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"].get("exception", {}).get(
                "description", "script failed"))
        return result["result"].get("value")

    def wait(self, condition, limit_s=10):
        end = time.monotonic() + limit_s
        while not self.run("Boolean(%s)" % condition):
            if time.monotonic() > end:
                raise AssertionError(
                    "not within %d s: %s; errors: %s" % (limit_s, condition, self.errors))
            time.sleep(0.02)

    def key(self, key, *modifiers):
        code, number, text = KEYS.get(key, ("", ord(key.upper()[0]), key))
        bits = sum(MODIFIERS[name] for name in modifiers)
        parts = {"key": key, "code": code, "windowsVirtualKeyCode": number, "modifiers": bits}
        if text and not bits & 3:
            parts["text"] = text
        self.call("Input.dispatchKeyEvent", type="keyDown", **parts)
        parts.pop("text", None)
        self.call("Input.dispatchKeyEvent", type="keyUp", **parts)

    def type(self, text):
        for letter in text:
            self.key(letter)

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, x, y, count=1):
        self.mouse("mouseMoved", x, y)
        self.mouse("mousePressed", x, y, button="left", buttons=1, clickCount=count)
        self.mouse("mouseReleased", x, y, button="left", clickCount=count)

    def click_on(self, selector):
        box = self.run(
            "(() => { const b = document.querySelector(%s).getBoundingClientRect();"
            " return [b.x + b.width / 2, b.y + b.height / 2]; })()" % json.dumps(selector))
        self.click(*box)

    def settle(self):
        """Till animations have ended and a picture is drawn."""
        self.run(
            "new Promise((done) => setTimeout(() => requestAnimationFrame(() => "
            "requestAnimationFrame("
            "() => done(1))), 200))")

    def size(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=False)
        self.settle()

    def picture(self, path):
        self.settle()
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def scheme(self, name):
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": name}])
