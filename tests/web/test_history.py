# SPDX-License-Identifier: BSD-2-Clause
"""What a user does with the page of pyprofd-serve: mouse, keys, links, Back.  A real pyprofd-serve
serves the store of make_store.py."""
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.parse
import urllib.request

import browser as browser_module
import make_store

TOKEN = "0123456789abcdef-web-token"
USER = 54327
SHOWN = "document.querySelector('#frames iframe:not(.waiting)')"
FRAMES = "performance.getEntriesByName('pyprofd-frame').length"
CANVAS_LEFT = 44  # strip.js: LEFT


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


class Server:
    def __init__(self, program, store, directory, live="none.sock", options=()):
        self.port = free_port()
        self.process = subprocess.Popen(
            [program, "--listen", "127.0.0.1:%d" % self.port, "--store", store, "--live",
             os.path.join(directory, live), *options], stderr=subprocess.PIPE)
        said = self.process.stderr.readline().decode()
        assert "serves at" in said, said

    def close(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)
        self.process.stderr.close()

    def address(self, fragment=""):
        return "http://127.0.0.1:%d/%s" % (self.port, fragment)

    def get(self, path):
        with urllib.request.urlopen("http://127.0.0.1:%d%s" % (self.port, path)) as answer:
            return json.load(answer)


class Pages:
    """Servers, by the store that they have, and one browser."""

    def __init__(self, program, directory, shots):
        self.program, self.directory, self.shots = program, directory, shots
        self.browser = browser_module.Browser()
        self.servers, self.spans = {}, {}

    def close(self):
        self.browser.close()
        for server in self.servers.values():
            server.close()

    def no_errors(self):
        assert not self.browser.errors, self.browser.errors

    def server(self, kind="hour"):
        if kind not in self.servers:
            store = os.path.join(self.directory, kind)
            os.mkdir(store)
            self.spans[kind] = {
                "hour": lambda: make_store.make(store), "empty": lambda: None,
                "live": lambda: make_store.make(store, 600, time.time() - 10),
                "gone": lambda: make_store.make(store, 600),
                "hostile": lambda: make_store.make_hostile(store),
                "heavy": lambda: make_store.make_heavy(store, 600)
            }[kind]()
            self.servers[kind] = Server(self.program, store, self.directory)
        return self.servers[kind]

    def open(self, kind="hour", fragment="", scheme="light", until=FRAMES):
        server = self.server(kind)
        self.browser.scheme(scheme)
        self.browser.errors, self.browser.events = [], []
        self.browser.call("Page.navigate", url="about:blank")
        self.browser.call("Page.navigate", url=server.address(fragment))
        self.browser.wait("window.pyprofd && (%s)" % until, 30)
        return self.browser

    def whole(self, kind="hour"):
        """A fragment with all of the store, in absolute times, and its range."""
        self.server(kind)
        begin, end = self.spans[kind]
        return "#range=%d-%d" % (begin, end), begin, end

    def shot(self, name):
        if self.shots:
            os.makedirs(self.shots, exist_ok=True)
            self.browser.picture(os.path.join(self.shots, name + ".png"))


def text(page, selector):
    return page.run("document.querySelector(%s).textContent" % json.dumps(selector))


def same(found, wanted):
    assert found == wanted, "%r instead of %r" % (found, wanted)


def frame_query(page):
    """The parameters of the profile that is on show."""
    path = page.run(SHOWN + "?.getAttribute('src')") or ""
    return dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(path).query))


def wait_frame(page, wanted):
    """Till a profile with these parameters is drawn."""
    end = time.monotonic() + 20
    while not wanted.items() <= frame_query(page).items():
        assert time.monotonic() < end, (wanted, frame_query(page))
        time.sleep(0.05)


def state(page):
    return dict(urllib.parse.parse_qsl(page.run("location.hash.slice(1)")))


def point(page, begin, end, at, y=40):
    """Where a moment lies on the strip."""
    box = page.run("(() => { const b = document.getElementById('strip-canvas')"
                   ".getBoundingClientRect(); return [b.x, b.y, b.width]; })()")
    return (box[0] + CANVAS_LEFT + (at - begin) / (end - begin) * (box[2] - CANVAS_LEFT),
            box[1] + y)


def drag(page, start, stop):
    page.mouse("mouseMoved", *start)
    page.mouse("mousePressed", *start, button="left", buttons=1, clickCount=1)
    page.mouse("mouseMoved", (start[0] + stop[0]) / 2, start[1], button="left", buttons=1)
    page.mouse("mouseMoved", *stop, button="left", buttons=1)
    page.mouse("mouseReleased", *stop, button="left", clickCount=1)


def select(page, begin, end, start, stop):
    """Drags; the selection, of which a pixel is up to four seconds."""
    drag(page, point(page, begin, end, start), point(page, begin, end, stop))
    chosen = [int(part) for part in state(page)["selected"].split("-")]
    assert abs(chosen[0] - start) <= 5 and abs(chosen[1] - stop) <= 5, (chosen, start, stop)
    return chosen


def click_frame(page, x, y, until):
    """Clicks at a place in the frame.  It is of another process, which learns a moment after it is
    drawn that clicks are for it: till something comes of one."""
    for _ in range(10):
        box = page.run("(() => { const b = %s.getBoundingClientRect(); return [b.x, b.y]; })()"
                       % SHOWN)
        page.click(box[0] + x, box[1] + y)
        try:
            page.wait(until, 1)
            return
        except AssertionError:
            continue
    raise AssertionError("clicks do nothing: " + until)


def focus_strip(page):
    page.run("document.getElementById('strip-canvas').focus()")


def test_history_loads_from_its_own_server_alone(pages):
    fragment, begin, end = pages.whole()
    page = pages.open("hour", fragment)
    own = pages.server().address()
    asked = [url for url in page.events if not url.startswith(("about:", "data:"))]
    assert asked and all(url.startswith(own) for url in asked), asked
    wait_frame(page, {"from": str(begin), "until": str(end), "kind": "cpu", "format": "html"})
    # Its frame has an origin of its own: the page cannot look into it, nor it into the page.
    same(page.run(SHOWN + ".contentDocument"), None)
    same(page.run("(() => { try { document.body.append(Object.assign("
                  "document.createElement('script'), {textContent: 'window.evil = 1'})); }"
                  " catch {} return window.evil; })()"), None)
    page.errors.clear()  # the policy's own message
    pages.shot("history-light")


def test_history_strip_tells_gaps_from_zero(pages):
    fragment, begin, end = pages.whole()
    page = pages.open("hour", fragment)
    page.settle()

    def colours(share):
        """Of a part of the strip at that share of the time: pixels of a row above the foot that are
        not as most of them, and the colour at the foot."""
        x, _ = point(page, begin, end, begin + share * (end - begin))
        return page.run("""((x) => {
            const c = document.getElementById('strip-canvas'), b = c.getBoundingClientRect();
            const data = c.getContext('2d').getImageData(Math.round(x - b.x) - 6, 0, 12, c.height);
            const pixel = (y, i) => data.data.slice((y * 12 + i) * 4, (y * 12 + i) * 4 + 3).join();
            const row = (y) => { const found = new Map();
                for (let i = 0; i < 12; i++)
                    found.set(pixel(y, i), (found.get(pixel(y, i)) || 0) + 1);
                return 12 - Math.max(...found.values()); };
            return [row(c.height - 30), pixel(c.height - 19, 0)]; })(%f)""" % x)

    busy, gap, idle = colours(0.1), colours(0.25), colours(0.43)
    # Hatching has several shades in a row; a bar and the ground have one, and a line of the hour.
    assert gap[0] > 1 and busy[0] <= 1 and idle[0] <= 1, (busy, gap, idle)
    # What is recorded has a line at the foot, a gap has none.
    assert idle[1] == busy[1] != gap[1], (busy, gap, idle)
    for share, words in ((0.1, "cores"), (0.25, "nobody recorded"), (0.43, "0 cores")):
        page.mouse("mouseMoved", *point(page, begin, end, begin + share * (end - begin)))
        page.wait("document.getElementById('strip-at').textContent.includes('%s')" % words)
    said = text(page, "#strip-range")
    assert said.startswith("All: ") and " 1 h · " in said and "recorded 83" in said, said


def test_history_drag_selects_and_back_undoes(pages):
    fragment, begin, end = pages.whole()
    page = pages.open("hour", fragment)
    chosen = select(page, begin, end, begin + 2400, begin + 3000)
    wait_frame(page, {"from": str(chosen[0]), "until": str(chosen[1])})
    assert text(page, "#strip-range").startswith("Selected: "), text(page, "#strip-range")
    assert "format=pprof" in page.run("document.getElementById('download').href")
    pages.shot("history-selected")
    # An edge can be moved; the other one stays.
    drag(page, point(page, begin, end, chosen[1]), point(page, begin, end, begin + 3300))
    wider = [int(part) for part in state(page)["selected"].split("-")]
    assert wider[0] == chosen[0] and abs(wider[1] - begin - 3300) <= 5, (chosen, wider)
    wait_frame(page, {"until": str(wider[1])})
    page.run("history.back()")
    wait_frame(page, {"until": str(chosen[1])})
    page.run("history.back()")
    wait_frame(page, {"from": str(begin), "until": str(end)})
    same(state(page).get("selected"), None)
    page.run("history.forward()")
    wait_frame(page, {"from": str(chosen[0]), "until": str(chosen[1])})
    # A double click selects all.
    x, y = point(page, begin, end, begin + 300)
    page.click(x, y)
    page.click(x, y, 2)
    wait_frame(page, {"from": str(begin), "until": str(end)})


def test_history_keys_choose_a_range(pages):
    fragment, begin, end = pages.whole()
    page = pages.open("hour", fragment)
    focus_strip(page)
    # A hundredth of an hour is 40 s, in whole windows.
    for keys, wanted in ((("ArrowRight", ), (0, 40)), (("ArrowRight", "Shift"), (0, 80)),
                         (("ArrowRight", ), (40, 120)), (("ArrowLeft", "Shift"), (40, 80)),
                         (("End", ), (3560, 3600)), (("ArrowRight", ), (3560, 3600)),
                         (("ArrowLeft", ), (3520, 3560)), (("Home", ), (0, 40))):
        page.key(*keys)
        same(page.run("pyprofd.strip.range.map((at) => at - %d)" % begin), list(wanted))
        same(page.run("document.getElementById('strip-canvas').getAttribute('aria-valuetext')"),
             text(page, "#strip-range"))
    same(text(page, "#live"), text(page, "#strip-range"))
    wait_frame(page, {"from": str(begin), "until": str(begin + 40)})
    same(page.run("document.activeElement.id"), "strip-canvas")
    outline = page.run("getComputedStyle(document.activeElement).outlineStyle")
    assert outline != "none", outline
    page.key("+")
    same(state(page)["range"], "%d-%d" % (begin, begin + 40))
    wait_frame(page, {"from": str(begin), "until": str(begin + 40)})
    page.key("-")
    span = [int(part) for part in state(page)["range"].split("-")]
    same(span[1] - span[0], 80)
    page.key("ArrowLeft")
    page.key("Escape")
    page.wait("!location.hash.includes('selected')")


def test_history_quick_ranges_and_all(pages):
    pages.whole()
    begin, end = pages.spans["hour"]
    page = pages.open("hour")
    same(page.run("document.querySelector('#ranges [aria-pressed=true]').textContent"), "1 h")
    first = frame_query(page)
    same(int(first["until"]) - int(first["from"]), 3600)
    page.click_on("#ranges [data-last='5m']")
    page.wait("location.hash === '#last=5m'")
    page.wait(FRAMES + " === 2")
    found = frame_query(page)
    same(int(found["until"]) - int(found["from"]), 300)
    page.key("5")
    page.wait("location.hash === '#last=all'")
    wait_frame(page, {"from": str(begin)})
    assert int(frame_query(page)["until"]) >= end, (frame_query(page), end)
    page.run("history.back()")
    page.wait("document.querySelector('#ranges [aria-pressed=true]')?.textContent === '5 min'")


def test_history_form_chooses_kind_and_process(pages):
    fragment, begin, end = pages.whole()
    page = pages.open("hour", fragment)
    page.run("document.getElementById('kind').focus()")
    page.type("o")  # the one that begins so
    wait_frame(page, {"kind": "offcpu"})
    page.wait("document.getElementById('strip-range').textContent.includes('threads waiting')")
    page.click_on("#pid")
    page.type("4300")
    page.key("Enter")
    wait_frame(page, {"kind": "offcpu", "pid": "4300"})
    page.run("document.getElementById('pid').select()")
    page.type("x")
    page.key("Enter")
    same(page.run("document.getElementById('pid').getAttribute('aria-invalid')"), "true")
    same(state(page)["pid"], "4300")
    # Back changes the form, too.
    page.run("document.activeElement.blur()")
    page.run("history.back()")
    page.wait("document.getElementById('pid').value === ''")
    page.run("history.back()")
    page.wait("document.getElementById('kind').value === 'cpu'")
    wait_frame(page, {"kind": "cpu"})
    # Both kinds of which a wall clock is made.
    page.run("pyprofd.update({ kind: 'wall' })")
    wait_frame(page, {"kind": "wall"})
    page.wait("document.getElementById('strip-range').textContent.includes('threads on average')")
    page.run("pyprofd.update({ kind: 'cpu', pid: 999 })")
    wait_frame(page, {"pid": "999"})


def side(page, section):
    """The rows of a list beside the profile: [name, note, share]."""
    return page.run("""[...document.querySelectorAll('#lists details')].filter((d) =>
        d.querySelector('summary').textContent === %s).flatMap((d) =>
        [...d.querySelectorAll('li button')].map((b) =>
            [...b.children].map((c) => c.textContent)))""" % json.dumps(section))


def test_history_lists_choose_process_and_label(pages):
    fragment, begin, end = pages.whole()
    page = pages.open("hour", fragment)
    page.wait("document.querySelectorAll('#lists li').length")
    # The shares are those of the profile.
    same([row[:2] for row in side(page, "Processes")],
         [["train.py", "4242 python3"], ["shop.wsgi", "4300 gunicorn"], ["logrotate", "977"]])
    shares = [float(row[2].rstrip("%")) for row in side(page, "Processes")]
    assert abs(shares[0] - 77.1) < 0.2 and abs(sum(shares) - 100) < 0.2, shares
    same([row[0] for row in side(page, "app")], ["train.py", "shop.wsgi"])
    pages.shot("history-lists")
    # By keyboard: / goes to the filter, Tab from there to what is left.
    page.run("document.activeElement.blur()")
    page.key("/")
    page.type("UNIT shop")
    page.wait("document.querySelectorAll('#lists li').length === 1")
    page.key("Tab")
    page.key("Tab")
    page.key("Enter")
    wait_frame(page, {"label": "unit:shop.service"})
    same(text(page, "#chips span"), "unit: shop.service")
    page.wait("document.querySelector('#lists li button').getAttribute('aria-pressed') === 'true'")
    page.run("document.getElementById('filter').focus()")
    page.key("Escape")
    page.wait("document.querySelectorAll('#lists details').length > 2")
    same([row[1] for row in side(page, "Processes")], ["4300 gunicorn"])
    page.click_on("#lists li button")
    wait_frame(page, {"label": "unit:shop.service", "pid": "4300"})
    same(page.run("document.getElementById('pid').value"), "4300")
    page.click_on("#lists li button")
    page.wait("!location.hash.includes('pid')")
    page.run("history.back()")
    page.run("history.back()")
    page.wait("location.hash.includes('label') && !location.hash.includes('pid')")


def test_history_waits_are_the_ledger(pages):
    fragment, begin, end = pages.whole()
    page = pages.open("hour", fragment)
    page.key("w")
    same(page.run("document.getElementById('tab-waits').getAttribute('aria-selected')"), "true")
    page.wait("document.querySelectorAll('.waits-row').length")
    names = page.run("[...document.querySelectorAll('.waits-row button')].map((b) => "
                     "b.textContent)")
    same(names[:2], ["python34242", "gunicorn4300"])
    # What bars say is what the server does.
    found = pages.server().get("/api/v1/waits?from=%d&until=%d" % (begin, end))
    train = next(one for one in found["processes"] if one["pid"] == 4242)
    whole = sum(train["ms"].values()) - train["ms"]["sleep"]
    bar = page.run("[...document.querySelector('.waits-bar').children].map((s) => "
                   "[s.title.split(':')[0], parseFloat(s.style.width)])")
    same([name for name, _ in bar],
         ["Python", "native", "kernel", "run queue", "GIL", "lock", "disk", "net"])
    assert abs(sum(width for _, width in bar) - 100) < 0.1, bar
    assert abs(dict(bar)["lock"] - 100 * train["ms"]["lock"] / whole) < 0.1, (bar, train)
    # Sleep is left out until somebody asks.
    sleep = "#waits-legend [data-place=sleep]"
    same(page.run("document.querySelector('%s').getAttribute('aria-pressed')" % sleep), "false")
    pages.shot("history-waits")
    page.run("document.querySelector('%s').focus()" % sleep)
    page.key("Enter")
    same(page.run("document.activeElement.dataset.place"), "sleep")
    assert "sleep" in page.run("document.querySelector('.waits-bar').getAttribute('aria-label')")
    page.click_on("#waits-scale")
    widths = page.run("[...document.querySelectorAll('.waits-bar')].map((b) => [...b.children]"
                      ".reduce((sum, s) => sum + parseFloat(s.style.width), 0))")
    assert all(abs(width - 100) < 0.1 for width in widths), widths
    # The bars are of the selection, and of the process.
    select(page, begin, end, begin + 2400, begin + 3000)
    page.click_on(".waits-row button")
    page.wait("location.hash.includes('pid=4242')")
    page.wait("document.querySelectorAll('.waits-row').length === 1")
    same(frame_query(page).get("pid"), None)  # nobody looks at the profile
    page.run("pyprofd.chooseLabel('app', 'train.py')")
    page.wait("document.getElementById('waits').textContent.includes('processes alone')")
    page.key("p")
    wait_frame(page, {"pid": "4242", "label": "app:train.py"})
    page.run("history.back()")
    page.wait("document.getElementById('tab-waits').getAttribute('aria-selected') === 'true'")


def test_history_link_reopens_the_view(pages):
    fragment, begin, end = pages.whole()
    page = pages.open("hour", fragment + "&label=app:train.py&pid=4242")
    wait_frame(page, {"label": "app:train.py", "pid": "4242"})
    chosen = select(page, begin, end, begin + 2400, begin + 3000)
    wait_frame(page, {"from": str(chosen[0])})
    # What the frame shows is in the address of the page around it.
    click_frame(page, 210, 62,  # its tab Table
                "new URLSearchParams(location.hash.slice(1)).get('view') === 'tab=table'")
    link = page.run("pyprofd.link()")
    page.click_on("#copy")
    page.wait("document.getElementById('copy').textContent !== 'Copy link'")
    pages.shot("history-table")
    page = pages.open("hour", link[link.index("#"):])
    wait_frame(page, {"from": str(chosen[0]), "until": str(chosen[1]), "pid": "4242",
                      "label": "app:train.py"})
    same(state(page)["view"], "tab=table")
    same(text(page, "#chips span"), "app: train.py")
    assert page.run(SHOWN + ".getAttribute('src')").endswith("#tab=table&theme=light")
    page.click_on("#chips button")
    page.wait("!location.hash.includes('label')")
    page.wait("!%s.getAttribute('src').includes('label')" % SHOWN)
    wait_frame(page, {"pid": "4242"})
    # The view outlives another selection.
    same(state(page)["view"], "tab=table")
    # A link of the last hour pins that hour.
    page = pages.open("hour")
    assert re.search(r"#range=\d+-\d+$", page.run("pyprofd.link()")), page.run("pyprofd.link()")


def test_history_frame_keeps_zoom_in_the_address(pages):
    fragment, begin, end = pages.whole()
    page = pages.open("hour", fragment)
    click_frame(page, 100, 145,  # Trainer.fit
                "/zoom=\\d+/.test(new URLSearchParams(location.hash.slice(1)).get('view'))")
    zoomed = state(page)["view"]
    page.run("history.back()")
    page.wait("!location.hash.includes('zoom')")
    page.run("history.forward()")
    page.wait("location.hash.includes('zoom')")
    same(state(page)["view"], zoomed)
    # Boxes of another selection have other numbers.
    select(page, begin, end, begin + 2400, begin + 3000)
    same(state(page).get("view"), None)
    # Nobody else changes the view by a message.
    page.run("postMessage({ pyprofView: 'tab=lines' }, '*')")
    page.settle()
    same(state(page).get("view"), None)


def test_history_asks_again_until_all_is_summed(pages):
    fragment, begin, end = pages.whole("heavy")
    page = pages.open("heavy", fragment,
                      until="performance.getEntriesByName('pyprofd-strip').length")
    pages.shot("history-pending")
    assert not page.run("performance.getEntriesByName('pyprofd-strip-whole').length")
    said = text(page, "#strip-state")
    assert re.match(r"summing: \d+ of 600 windows to go", said), said
    page.mouse("mouseMoved", *point(page, begin, end, begin + 100))  # the newest come first
    page.wait("document.getElementById('strip-at').textContent.includes('not summed yet')")
    page.wait("performance.getEntriesByName('pyprofd-strip-whole').length", 60)
    same(text(page, "#strip-state"), "")
    asked = [url for url in page.events if "/api/v1/strip?from=%d" % begin in url]
    assert len(asked) > 1, asked


def test_history_live_follows_and_rests_when_hidden(pages):
    page = pages.open("live")
    server, (_, end_s) = pages.server("live"), pages.spans["live"]
    store = os.path.join(pages.directory, "live")

    def record(at_s):
        make_store.write(store, at_s * 1000, "cpu",
                         make_store.cpu_window(at_s * 1000, {make_store.TRAIN: 1}))

    first = frame_query(page)
    same(page.run("pyprofd.followMs"), 10000)
    page.run("pyprofd.followMs = 2000")
    page.key("r")
    same(page.run("document.getElementById('follow').getAttribute('aria-pressed')"), "true")
    same(state(page)["follow"], "1")
    record(end_s)
    page.wait(FRAMES + " > 1", 60)
    assert int(frame_query(page)["until"]) > int(first["until"]), (first, frame_query(page))
    # Nobody looks: nothing is asked.
    page.run("Object.defineProperty(document, 'hidden', { value: true, configurable: true })")
    page.settle()
    page.events.clear()
    page.run("new Promise((done) => setTimeout(done, 5000))")
    same(page.events, [])
    page.key("w")
    page.wait("document.querySelectorAll('.waits-row').length")
    page.run("delete document.hidden, document.dispatchEvent(new Event('visibilitychange'))")
    end = time.monotonic() + 60
    while not any("/api/v1/self" in url for url in page.events):
        assert time.monotonic() < end
        page.run("new Promise((done) => setTimeout(done, 100))")
    page.events.clear()
    page.run("new Promise((done) => setTimeout(done, 5000))")
    asked = [url for url in page.events if "/api/v1/self" in url]
    assert len(asked) <= 3 and not any("format=html" in url for url in page.events), page.events
    # What somebody has zoomed into stays, and that is said.
    record(end_s + 10)
    page.key("p")
    page.wait(FRAMES + " > 2", 60)
    click_frame(page, 100, 145, "location.hash.includes('zoom')")  # Trainer.fit
    page.wait("document.getElementById('shown').textContent.includes('while zoomed in')", 60)
    same(page.run(FRAMES), 3)
    page.click_on("#follow")  # keys go to the frame now
    same(state(page)["follow"], "0")
    assert server.process.poll() is None


def test_history_without_a_store_shows_what_runs(pages):
    page = pages.open("empty", until="!document.getElementById('frame-note').hidden")
    assert "no history" in text(page, "#note"), text(page, "#note")
    same(page.run("document.getElementById('strip').hidden"), True)
    # No pyprofd runs either, and that is said.
    page.wait("document.getElementById('frame-note').textContent.includes(': ')", 40)
    assert text(page, "#frame-note").startswith("No profile of this: "), text(page, "#frame-note")
    # It is asked again later, not at once.
    asked = len([url for url in page.events if "/debug/pprof/cpu" in url])
    page.run("new Promise((done) => setTimeout(done, 3000))")
    same(len([url for url in page.events if "/debug/pprof/cpu" in url]), asked)
    assert asked <= 2, page.events
    page.errors.clear()
    pages.shot("history-no-store")


class Others:
    """A browser of a user who is not root, a program of that user and a pyprofd."""

    def __init__(self, pages):
        self.directory = tempfile.mkdtemp(prefix="pyprof-live-")
        os.chmod(self.directory, 0o755)
        store = os.path.join(self.directory, "store")
        os.mkdir(store)
        make_store.make(store, 600)
        with open(os.path.join(self.directory, "token"), "w", encoding="ascii") as out:
            os.fchmod(out.fileno(), 0o600)
            out.write(TOKEN + "\n")
        self.agent = subprocess.Popen(
            [os.environ["PYPROFD"], "--live", os.path.join(self.directory, "live.sock"),
             "--events", "cpu", "--interval", "1s", "--hz", "199", "-o",
             os.path.join(self.directory, "out/")], stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        self.worker = subprocess.Popen(
            ["/usr/bin/python3", "-c", "def toil():\n    while True: sum(range(1000))\ntoil()"],
            user=USER, group=USER, extra_groups=[])
        end = time.monotonic() + 60
        while not os.path.exists(os.path.join(self.directory, "live.sock")):
            assert self.agent.poll() is None and time.monotonic() < end
            time.sleep(0.1)
        self.server = Server(pages.program, store, self.directory, "live.sock",
                             ["--token-file", os.path.join(self.directory, "token")])
        self.browser = browser_module.Browser(user=USER)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.browser.close()
        self.server.close()
        self.worker.kill()
        self.worker.wait()
        self.agent.send_signal(signal.SIGINT)
        self.agent.wait(60)
        shutil.rmtree(self.directory)


def test_history_of_a_user_is_live_and_of_own_processes(pages):
    if os.geteuid():
        return "only root can become somebody else"
    with Others(pages) as others:
        page = others.browser
        page.call("Page.navigate", url=others.server.address("#seconds=5"))
        page.wait("window.pyprofd && " + FRAMES, 60)
        assert "your own processes" in text(page, "#note"), text(page, "#note")
        same(page.run("document.getElementById('strip').hidden"), True)
        same(page.run("document.getElementById('side').hidden"), True)
        query = frame_query(page)
        same((query["seconds"], query["format"]), ("5", "html"))
        assert "/debug/pprof/cpu?" in page.run(SHOWN + ".getAttribute('src')")
        if pages.shots:
            page.picture(os.path.join(pages.shots, "history-user.png"))
        # One recording follows the other, until somebody stops that.
        page.wait(FRAMES + " >= 2", 60)
        page.key("r")
        same(state(page)["follow"], "0")
        assert not page.errors, page.errors
        # With the token the same user sees the history, and the token leaves the address.
        page.call("Page.navigate", url="about:blank")
        page.call("Page.navigate", url=others.server.address("?token=%s#last=5m" % TOKEN))
        page.wait("window.pyprofd && " + FRAMES, 60)
        same(page.run("location.search + location.hash"), "#last=5m")
        same(page.run("document.getElementById('note').hidden"), True)
        same(page.run("document.getElementById('strip').hidden"), False)
        assert "/api/v1/profile?" in page.run(SHOWN + ".getAttribute('src')")
        same(page.run("document.cookie"), "")
        assert not page.errors, page.errors
        # A session that has ended is told.
        page.call("Network.clearBrowserCookies")
        others.worker.kill()
        page.call("Network.setCookie", name="pyprofd_session", value="0" * 32,
                  url=others.server.address())
        page.run("pyprofd.update({ last: '6h' })")
        page.wait("!document.getElementById('note').hidden")
        assert "with its token" in text(page, "#note"), text(page, "#note")
    return None


def test_history_range_without_windows_says_so(pages):
    fragment, begin, _ = pages.whole()
    del fragment
    page = pages.open("hour", "#range=%d-%d" % (begin - 7200, begin - 3600),
                      until="document.getElementById('frame-note').textContent.includes(': ')")
    assert "nobody recorded" in text(page, "#strip-range"), text(page, "#strip-range")
    assert text(page, "#frame-note").startswith("No profile of this: "), text(page, "#frame-note")
    page.errors.clear()


def test_history_server_that_ends_is_told(pages):
    fragment, begin, _ = pages.whole("gone")
    page = pages.open("gone", fragment)
    pages.servers.pop("gone").close()
    page.run("pyprofd.update({ selected: [%d, %d], kind: 'offcpu' })" % (begin, begin + 100))
    page.wait("document.getElementById('strip-state').classList.contains('error')")
    same(text(page, "#strip-state"), "pyprofd-serve does not answer.")
    page.wait("document.getElementById('frame-note').textContent.includes('does not answer')")
    page.errors.clear()


def test_history_hostile_addresses_do_no_harm(pages):
    for fragment in ("#kind=<img src=x onerror=alert(1)>&pid=-3&label==&label=x&last=__proto__",
                     "#range=9-3&selected=1-0&tab=nonsense&view=%00" + "z" * 9000,
                     "#label=%3Cb%3Eapp:%3Cscript%3Ealert(1)%3C/script%3E&seconds=99999"):
        page = pages.open("hour", fragment,
                          until=FRAMES + " || !document.getElementById('frame-note').hidden")
        same(page.run("[...document.querySelectorAll('#chips b, #chips script, img')].length"), 0)
    same(text(page, "#chips span"), "<b>app: <script>alert(1)</script>")
    page.errors.clear()


def test_history_hostile_names_are_text(pages):
    fragment, begin, _ = pages.whole("hostile")
    page = pages.open("hostile", fragment)
    page.wait("document.querySelectorAll('#lists li').length")
    same(side(page, "app")[0][0], "<img src=x onerror=window.evil=1>")
    same(side(page, "Processes")[0][1], "666 <script>evil=1")
    page.run("[...document.querySelectorAll('#lists details')].find((d) => d.firstChild.textContent"
             " === 'unit').querySelector('button').click()")
    # The reader shows characters that turn text around by their numbers.
    unit = "a:b=c&d#e%41 \\u202e\u00e4"
    wait_frame(page, {"label": "unit:" + unit})
    page.run("pyprofd.chooseLabel('app', '<img src=x onerror=window.evil=1>')")
    page.wait("document.querySelectorAll('#chips li').length === 2")
    page.key("w")
    page.wait("document.querySelectorAll('.waits-row').length")
    same(text(page, ".waits-row .name"), "<script>evil=1")
    pages.shot("history-hostile")
    # The address holds them, and gives them back.
    page = pages.open("hostile", page.run("location.hash"),
                      until="document.querySelectorAll('.waits-row').length")
    same(page.run("pyprofd.state.labels"),
         [["unit", unit], ["app", "<img src=x onerror=window.evil=1>"]])
    page.key("p")
    page.wait(FRAMES)
    same(int(frame_query(page)["from"]), begin)
    same(page.run("window.evil"), None)
    same(page.run("document.querySelectorAll('img, main script').length"), 0)


def test_history_dark_and_narrow(pages):
    fragment, begin, end = pages.whole()
    page = pages.open("hour", fragment + "&selected=%d-%d" % (begin + 2400, begin + 3000),
                      scheme="dark")
    same(page.run("document.documentElement.dataset.theme"), "dark")
    assert page.run(SHOWN + ".getAttribute('src')").endswith("theme=dark")
    pages.shot("history-dark")
    page.run("document.getElementById('theme').click()")  # light
    page.run("document.getElementById('theme').click()")  # dark
    page.run("document.getElementById('theme').click()")  # system
    same(text(page, "#theme"), "Theme: system")
    page.size(480, 800)
    same(page.run("document.documentElement.scrollWidth"), 480)
    pages.shot("history-narrow")
    page.size(1280, 800)


def test_history_help_and_tab_order(pages):
    fragment, _, _ = pages.whole()
    page = pages.open("hour", fragment)
    page.key("?")
    same(page.run("document.getElementById('help').open"), True)
    pages.shot("history-help")
    page.key("Escape")
    same(page.run("document.getElementById('help').open"), False)
    page.run("document.activeElement.blur()")
    seen = []
    for _ in range(16):
        page.key("Tab")
        seen.append(page.run("document.activeElement.id || document.activeElement.textContent"))
    order = [seen.index(name) for name in ("follow", "copy", "download", "kind", "5 min", "pid",
                                           "strip-canvas", "zoom-out")]
    same(order, sorted(order))
