# SPDX-License-Identifier: BSD-2-Clause
"""What a user does with the page: mouse, keys, search, theme, links.  The figures are those of
make_profile.small(): 1000 ms in all."""
import json
import os
import subprocess

import browser as browser_module
import make_profile

LABEL = "(n) => pyprof.flame.chart.style.label(pyprof.flame.layout.tree, n)"


class Pages:
    """Pages in one browser."""

    def __init__(self, program, directory, shots):
        self.program, self.directory, self.shots = program, directory, shots
        self.browser = browser_module.Browser()
        self.made = {}

    def close(self):
        self.browser.close()

    def no_errors(self):
        assert not self.browser.errors, self.browser.errors

    def path(self, kind):
        if kind not in self.made:
            data = {
                "small": lambda: make_profile.small().data(),
                "diff": lambda: make_profile.small().data(True),
                "diffsources": lambda: make_profile.sources().data(True),
                "sources": lambda: make_profile.sources().data(),
                "badsource": lambda: dict(make_profile.small().data(), sources=[{"file": "/x.py"}]),
                "times": lambda: make_profile.times().data(),
                "tenths": lambda: make_profile.tenths().data(), "badtime": lambda: dict(
                    make_profile.small().data(), times={
                        "start": [0, 1], "duration": [1, 1], "first": [0, 1], "sample": [0, 99],
                        "value": [1, 1]
                    }), "paths": lambda: make_profile.paths().data(),
                "badpath": lambda: dict(make_profile.small().data(), shortFiles=[[10**6, "x"]]),
                "hostile": lambda: make_profile.hostile().data(),
                "large": lambda: make_profile.large(20000).data(),
                "empty": lambda: make_profile.Maker("nothing").data(), "damaged": lambda: dict(
                    make_profile.small().data(), stacks={"frame": [0, 1], "parent": [0, 1]}),
                "future": lambda: {"version": 2}
            }[kind]()
            self.made[kind] = os.path.join(self.directory, kind + ".html")
            with open(self.made[kind], "wb") as out:
                subprocess.run([self.program, kind], input=json.dumps(data).encode(), stdout=out,
                               check=True)
        return self.made[kind]

    def open(self, kind="small", fragment="", scheme="light"):
        self.browser.scheme(scheme)
        self.browser.open(self.path(kind), fragment)
        self.browser.run("localStorage.clear()")
        return self.browser

    def shot(self, name):
        if self.shots:
            os.makedirs(self.shots, exist_ok=True)
            self.browser.picture(os.path.join(self.shots, name + ".png"))


def text(page, selector):
    return page.run("document.querySelector(%s).textContent" % json.dumps(selector))


def place_of(page, name, chart="pyprof.flame.chart"):
    """Where the first box of this name is: [x, y] of the middle of what is in sight."""
    return page.run("""((chart, name) => {
        const { layout, host, view } = chart, box = host.getBoundingClientRect();
        const node = layout.order.find((n) => chart.style.label(layout.tree, n) === name);
        let row = 0;
        for (let at = node; layout.tree.parent[at] >= 0; at = layout.tree.parent[at]) row++;
        const from = Math.max(view[0], layout.x[node]);
        const to = Math.min(view[1], layout.x[node] + layout.weight[node]);
        const x = ((from + to) / 2 - view[0]) / (view[1] - view[0]) * host.clientWidth;
        const top = chart.flip
            ? Math.max(host.clientHeight, layout.rows * 19) - (row + 1) * 19 : row * 19;
        return [box.x + x, box.y + top - host.scrollTop + 9];
    })(%s, %s)""" % (chart, json.dumps(name)))


def crumbs(page):
    return page.run("[...document.querySelectorAll('#crumbs button')].map((b) => b.textContent)")


def rows(page, host):
    return page.run("[...document.querySelectorAll('#%s tbody tr[data-row]')].map((r) => "
                    "[...r.cells].map((c) => c.textContent))" % host)


def selected(page):
    return page.run("(%s)(pyprof.flame.chart.selected)" % LABEL)


def same(found, wanted):
    assert found == wanted, "%r instead of %r" % (found, wanted)


def test_is_drawn_from_a_file_without_network(pages):
    page = pages.open()
    same([url for url in page.events if not url.startswith("about:")],
         ["file://" + pages.path("small")])
    same(text(page, "#title"), "train.py on host1")
    same(text(page, "#facts"), "cpu · 1.00 s · over 60.0 s · 99 samples · 12 windows")
    same(page.run("document.title"), "train.py on host1 – pyprof")
    same(page.run("[...document.querySelectorAll('#legend li')].map((i) => i.textContent)"),
         ["Python 60.0%", "native 25.0%", "kernel 10.0%", "GPU 5.00%"])
    # Boxes of four kinds, the ground and letters.
    colours = page.run("""(() => { const c = document.querySelector('#flame-chart canvas');
        const d = new Uint32Array(
            c.getContext('2d').getImageData(0, 0, c.width, c.height).data.buffer);
        return new Set(d).size; })()""")
    assert colours > 6, colours
    pages.shot("flame-light")


def test_click_zooms_and_crumbs_lead_back(pages):
    page = pages.open()
    page.click(*place_of(page, "Trainer.fit"))
    page.settle()
    same(crumbs(page), ["all", "<module>", "Trainer.fit"])
    same(page.run("pyprof.flame.chart.view.map(Math.round)"), [0, 600000000])
    pages.shot("zoomed")
    page.click(*place_of(page, "cudaLaunchKernel"))
    page.settle()
    same(crumbs(page), ["all", "<module>", "Trainer.fit", "cudaLaunchKernel"])
    page.click(*place_of(page, "<module>"))
    page.settle()
    same(crumbs(page), ["all", "<module>"])
    page.run("history.back()")
    page.wait("document.querySelectorAll('#crumbs button').length === 4")
    page.click_on("#crumbs button:first-child")
    page.settle()
    same(page.run("pyprof.flame.chart.view.map(Math.round)"), [0, 1000000000])


def test_tooltip_tells_place_and_figures(pages):
    page = pages.open()
    x, y = place_of(page, "Trainer.fit")
    page.mouse("mouseMoved", x, y)
    page.wait("!document.getElementById('tooltip').hidden")
    told = page.run(
        "[...document.querySelectorAll('#tooltip b, #tooltip p, #tooltip dt, #tooltip "
        "dd')].map((e) => e.textContent)"
    )
    same(told, [
        "Trainer.fit", "/srv/app/train.py:88", "Python", "total", "600 ms", "60.0%", "self",
        "100 ms", "10.0%", "of caller", "", "60.0%"
    ])
    pages.shot("tooltip")
    page.mouse("mouseMoved", x, 5)
    page.wait("document.getElementById('tooltip').hidden")


def test_wheel_and_drag(pages):
    page = pages.open()
    x, y = place_of(page, "Trainer.fit")
    page.mouse("mouseWheel", x, y, deltaX=0, deltaY=-300, modifiers=2)
    page.settle()
    narrow = page.run("pyprof.flame.chart.view")
    assert 0 < narrow[0] < narrow[1] < 1e9, narrow
    page.mouse("mousePressed", x, y, button="left", buttons=1, clickCount=1)
    page.mouse("mouseMoved", x + 100, y, button="left", buttons=1)
    page.mouse("mouseReleased", x + 100, y, button="left", clickCount=1)
    page.settle()
    moved = page.run("pyprof.flame.chart.view")
    assert moved[0] < narrow[0] and abs((moved[1] - moved[0]) - (narrow[1] - narrow[0])) < 10, (
        narrow, moved)
    same(crumbs(page), ["all"])


def test_keys_move_zoom_and_leave(pages):
    page = pages.open()
    page.key("1")
    for key, wanted in (("ArrowDown", "all"), ("ArrowDown", "<module>"),
                        ("ArrowDown", "Trainer.fit"), ("ArrowRight", "walk"), ("ArrowDown", "walk"),
                        ("ArrowUp", "walk"), ("ArrowLeft", "Trainer.fit")):
        page.key(key)
        same(selected(page), wanted)
    assert "Trainer.fit, /srv/app/train.py:88, total 600 ms 60.0%" in text(page, "#live"), text(
        page, "#live")
    page.key("Enter")
    page.settle()
    same(crumbs(page), ["all", "<module>", "Trainer.fit"])
    page.key("Backspace")
    page.settle()
    same(crumbs(page), ["all", "<module>"])
    page.key("Escape")
    page.settle()
    same(crumbs(page), ["all"])
    page.key("+")
    page.settle()
    assert page.run("pyprof.flame.chart.view[1] - pyprof.flame.chart.view[0]") < 0.7e9
    page.key("0")
    page.settle()
    same(page.run("pyprof.flame.chart.view.map(Math.round)"), [0, 1000000000])


def test_flame_graph_grows_upward(pages):
    page = pages.open()
    page.key("i")
    same(page.run("document.getElementById('shape').value"), "flame")
    page.key("1")
    page.click(*place_of(page, "<module>"))
    page.key("ArrowUp")
    same(selected(page), "Trainer.fit")
    page.key("ArrowDown")
    same(selected(page), "<module>")
    pages.shot("flame-upward")


def test_search_marks_counts_and_steps(pages):
    page = pages.open()
    page.key("/")
    same(page.run("document.activeElement.id"), "search")
    page.type("decode")
    page.wait("document.getElementById('search-result').textContent")
    # 450 below fit, 100 below <module>; what decode calls is part of it.
    same(text(page, "#search-result"), "1 function, 55.0% (550 ms)")
    page.key("Enter")
    same(selected(page), "decode")
    first = page.run("pyprof.flame.chart.selected")
    page.key("Enter")
    assert page.run("pyprof.flame.chart.selected") != first
    page.key("Enter", "Shift")
    same(page.run("pyprof.flame.chart.selected"), first)
    pages.shot("search")
    page.key("2")
    same(page.run("document.getElementById('search').value"), "decode2")
    same(text(page, "#search-result"), "no match")
    page.key("Escape")
    same(page.run("[document.getElementById('search').value, pyprof.search.active]"), ["", False])
    page.key("f", "Control")
    same(page.run("document.activeElement.id"), "search")
    page.type("walk|^vfs")
    same(text(page, "#search-result"), "no match")
    page.click_on("#search-regex")
    same(text(page, "#search-result"), "2 functions, 30.0% (300 ms)")
    page.run("pyprof.update({ q: '(' })")
    assert text(page, "#search-result").startswith("Not a regular expression"), text(
        page, "#search-result")
    page.run("pyprof.update({ q: 'codec.py' })")
    same(text(page, "#search-result"), "1 function, 55.0% (550 ms)")


def test_groups_by_thread_and_process(pages):
    page = pages.open()
    page.key("g")
    page.key("g")
    same(page.run("document.getElementById('group').value"), "thread")
    labels = page.run("[...pyprof.flame.layout.order].slice(1, 6).map(%s)" % LABEL)
    same(labels, [
        "pid 12 python3", "pid 90 uwsgi", "thread 12 main", "thread 14 loader-0", "thread 90 uwsgi"
    ])
    same(page.run("pyprof.flame.layout.tree.total[pyprof.flame.layout.order[1]]"), 900000000)
    pages.shot("threads")
    page.key("g")
    same(page.run("document.getElementById('group').value"), "all")


def test_lines_split_functions(pages):
    page = pages.open()
    same(page.run("[...pyprof.flame.layout.order].map(%s).filter((t) => /decode/.test(t))" % LABEL),
         ["decode"] * 2)
    page.key("l")
    same(
        sorted(
            page.run(
                "[...pyprof.flame.layout.order].map(%s).filter((t) => /decode/.test(t))" % LABEL)),
        ["decode:10", "decode:10", "decode:12"])


def test_sandwich_shows_callers_and_callees(pages):
    page = pages.open()
    page.click(*place_of(page, "decode"))
    page.key("s")
    same(page.run("pyprof.state.tab"), "sandwich")
    same(text(page, "#sandwich-name"), "decode")
    same(text(page, "#sandwich-figures"), "total 550 ms (55.0%) · self 300 ms (30.0%)")
    tree = ("((c) => [...c.layout.order].map((n) => [c.style.label(c.layout.tree, n), "
            "c.layout.tree.total[n] / 1e6]))")
    same(page.run(tree + "(pyprof.sandwich.callers)"),
         [["decode", 550], ["Trainer.fit", 450], ["<module>", 100], ["<module>", 450]])
    same(page.run(tree + "(pyprof.sandwich.callees)"),
         [["decode", 550], ["__memmove_avx_unaligned_erms", 150], ["vfs_read", 100]])
    pages.shot("sandwich")
    # A recursive function's total counts once.
    page.run(
        "pyprof.update({ fn: pyprof.sandwich.list.table.rows.find((id) => "
        "pyprof.profile.strings[pyprof.profile.frameName[pyprof.profile.functionFrame[id]]] === "
        "'walk') })"
    )
    same(text(page, "#sandwich-figures"), "total 200 ms (20.0%) · self 200 ms (20.0%)")
    same(page.run(tree + "(pyprof.sandwich.callers)"),
         [["walk", 200], ["walk", 120], ["<module>", 80], ["walk", 120], ["<module>", 120]])
    # Another function by the list.
    page.run("document.querySelector('#sandwich-list table').focus()")
    page.key("Home")
    same(text(page, "#sandwich-name"), "decode")
    page.key("ArrowDown")
    same(text(page, "#sandwich-name"), "__memmove_avx_unaligned_erms")


def test_table_sorts_and_filters(pages):
    page = pages.open()
    page.key("3")
    found = rows(page, "functions")
    same([row[0] for row in found], [
        "decode", "__memmove_avx_unaligned_erms", "walk", "Trainer.fit", "vfs_read",
        "cudaLaunchKernel", "<module>"
    ])
    same(found[0], ["decode", "/srv/app/codec.py:10", "300 ms", "30.0%", "550 ms", "55.0%"])
    same(page.run("document.querySelector('#functions th[aria-sort=descending]').textContent"),
         "Self")
    page.click_on("#functions th:nth-child(5) button")
    same([row[5] for row in rows(page, "functions")],
         ["100%", "60.0%", "55.0%", "25.0%", "20.0%", "10.0%", "5.00%"])
    page.click_on("#functions th:nth-child(1) button")
    same(rows(page, "functions")[0][0], "<module>")
    pages.shot("table")
    page.key("/")
    page.type("srv")
    same(sorted(row[0] for row in rows(page, "functions")),
         ["<module>", "Trainer.fit", "decode", "walk"])
    page.key("Escape")
    same(page.run("document.activeElement.tagName"), "TABLE")
    page.key("End")
    page.key("Enter")
    same([page.run("pyprof.state.tab"), text(page, "#sandwich-name")], ["sandwich", "walk"])


def test_lines_tab_tells_lines_apart(pages):
    page = pages.open()
    page.key("4")
    found = {row[0]: row[2:] for row in rows(page, "line-list")}
    same(found["/srv/app/codec.py:10"], ["20.0%", "30.0%"])
    same(found["/srv/app/codec.py:12"], ["10.0%", "25.0%"])
    titles = page.run(
        "[...document.querySelectorAll('#line-list tr[data-row]')].map((r) => [...r.cells].map((c) "
        "=> c.title))"
    )
    assert ["", "decode\n/srv/app/codec.py:10", "200 ms", "300 ms"] in titles, titles
    pages.shot("lines")


def test_short_path_is_shown_and_the_whole_one_on_hover(pages):
    page = pages.open("paths", "#tab=lines")
    first = ("[...document.querySelectorAll('#line-list tr[data-row]')].find((row) => "
             "row.textContent.includes('main.py'))")
    same(page.run(first + ".cells[0].textContent"), "pip/_internal/cli/main.py:46")
    same(page.run(first + ".querySelector('[title]').title"),
         make_profile.WHOLE + "pip/_internal/cli/main.py:46")
    page = pages.open("paths")
    page.mouse("mouseMoved", *place_of(page, "main"))
    same(page.run("document.querySelector('#tooltip p').textContent"),
         make_profile.WHOLE + "pip/_internal/cli/main.py:46")
    page.click(*place_of(page, "main"))
    same(text(page, "#flame-details .place"), "pip/_internal/cli/main.py:46")


def test_line_number_is_in_sight_however_long_the_path(pages):
    page = pages.open("paths", "#tab=lines")
    for width in (1280, 700, 420):
        page.size(width, 600)
        seen = page.run("""[...document.querySelectorAll('#line-list tr[data-row]')].map((row) => {
            const cell = row.cells[0].getBoundingClientRect();
            const line = row.cells[0].querySelector('.line').getBoundingClientRect();
            return line.width > 0 && line.left >= cell.left && line.right <= cell.right; })""")
        same(seen, [True, True])
    page.size(1280, 800)


def drag(page, begin, end):
    """Over the time map, from one share of its width to another."""
    box = page.run(
        "(() => { const b = document.getElementById('time-map').getBoundingClientRect(); return "
        "[b.x, b.y, b.width, b.height]; })()"
    )
    at = [(box[0] + share * box[2], box[1] + box[3] / 2)
          for share in (begin, (begin + end) / 2, end)]
    page.mouse("mouseMoved", *at[0])
    page.mouse("mousePressed", *at[0], button="left", buttons=1, clickCount=1)
    page.mouse("mouseMoved", *at[1], button="left", buttons=1)
    page.mouse("mouseMoved", *at[2], button="left", buttons=1)
    page.mouse("mouseReleased", *at[2], button="left", clickCount=1)
    page.settle()


def test_time_map_chooses_what_all_views_show(pages):
    page = pages.open("times")
    whole = "Math.round(pyprof.flame.layout.weight[0] / 1e6)"
    same(page.run(whole), 1000)
    drag(page, 0.30, 0.70)
    same(page.run("[pyprof.state.from, pyprof.state.to]"), [1, 2])
    same(page.run(whole), 500)
    assert text(page, "#time-range").endswith(":02–15:00:03 UTC, 2.00 s") or "2.00 s" in text(
        page, "#time-range"), text(page, "#time-range")
    pages.shot("times")
    page.key("3")
    same(rows(page, "functions")[0][2:], ["150 ms", "30.0%", "275 ms", "55.0%"])
    page.key("4")
    same({row[0]: row[2:] for row in rows(page, "line-list")}["/srv/app/codec.py:12"],
         ["10.0%", "25.0%"])
    choose(page, "/srv/app/codec.py:12")
    same(text(page, "#source-figures"), "total 125 ms (25.0%)")
    page.key("1")
    page.run("document.getElementById('time-map').focus()")
    page.key("ArrowRight")
    same(page.run("[pyprof.state.from, pyprof.state.to]"), [2, 3])
    same(text(page, "#source-figures"), "total 175 ms (25.0%)")
    same(page.run(whole), 700)
    page.click_on("#time-all")
    same(page.run(whole), 1000)
    page = pages.open("times", "#from=3&to=3")
    same(page.run(whole), 400)
    page = pages.open("times", "#from=3&to=99999")
    same(page.run(whole), 400)
    page = pages.open("small")
    assert page.run("document.getElementById('time').hidden")


def test_many_windows_are_a_heat_map(pages):
    """20 s in windows of 100 ms: a column a second, time runs down it, and a range goes on in the
    next column."""
    page = pages.open("tenths")
    same(page.run("[pyprof.times.column, pyprof.times.columns]"), [1000, 20])
    box = page.run(
        "(() => { const b = document.getElementById('time-map').getBoundingClientRect(); return "
        "[b.x, b.y, b.width, b.height]; })()"
    )
    assert box[3] >= 100, box

    def at(second, tenth):
        return box[0] + (second + 0.5) / 20 * box[2], box[1] + (tenth + 0.5) / 10 * box[3]
    page.mouse("mouseMoved", *at(2, 7))
    same(text(page, "#time-at"), "15:00:02.7: 10.0 ms in 100 ms")
    page.mouse("mousePressed", *at(2, 7), button="left", buttons=1, clickCount=1)
    page.mouse("mouseMoved", *at(4, 0), button="left", buttons=1)
    page.mouse("mouseMoved", *at(4, 1), button="left", buttons=1)
    page.mouse("mouseReleased", *at(4, 1), button="left", clickCount=1)
    page.settle()
    same(page.run("[pyprof.state.from, pyprof.state.to]"), [27, 41])
    same(text(page, "#time-range"), "15:00:02.7–15:00:04.2 UTC, 1.50 s; columns: second")
    # 14 quiet windows, and the busy one at 3.5 s: 14 * 10 + 100.
    whole = "Math.round(pyprof.flame.layout.weight[0] / 1e6)"
    same(page.run(whole), 240)
    page.key("3")
    same(
        rows(page, "functions")[0][0:1] + rows(page, "functions")[0][2:4],
        ["quiet", "140 ms", "58.3%"])
    page.key("1")
    # The same moment of each second is a row: each column has its hot cell at 0.5 s.
    heat = page.run("""(() => {
        const { canvas, columns } = pyprof.times;
        const pixels = (column, tenth) => canvas.getContext("2d").getImageData(
            (column + 0.5) / columns * canvas.width,
            (tenth + 0.5) / 10 * canvas.height, 1, 1).data[3];
        return [3, 9].map((column) => [0, 5, 9].map((tenth) => pixels(column, tenth)));
    })()""")
    assert heat[0][1] > 250 and heat[0][0] < 60 and heat[0][2] < 60, heat
    assert 50 < heat[1][1] < 80 and heat[1][0] < 15, heat
    pages.shot("tenths")
    page.run("document.getElementById('time-map').focus()")
    page.key("ArrowRight")
    same(page.run("[pyprof.state.from, pyprof.state.to]"), [37, 51])
    page.key("ArrowUp")
    same(page.run("[pyprof.state.from, pyprof.state.to]"), [36, 50])
    page.key("ArrowDown", "Shift")
    same(page.run("[pyprof.state.from, pyprof.state.to]"), [36, 51])
    page.key("ArrowLeft")
    same(page.run("[pyprof.state.from, pyprof.state.to]"), [26, 41])
    page.click_on("#time-all")
    same(page.run(whole), 180 * 10 + 20 * 100)
    page = pages.open("tenths", scheme="dark")
    pages.shot("tenths-dark")


LINES = ("[...document.querySelectorAll('#source-text tbody tr')].map((row) => "
         "[...row.cells].map((cell) => cell.textContent))")
CALLS = "[...document.querySelectorAll('#line-%s li')].map((one) => one.textContent)"


def choose(page, place):
    page.run("(() => { const { table } = pyprof.views.lines; table.choose(table.rows.find((row) => "
             "table.columns[0].text(row) === %s)); })()" % json.dumps(place))


def test_source_has_heat_callers_and_callees(pages):
    page = pages.open("sources", "#tab=lines")
    choose(page, "/srv/app/codec.py:12")
    same(page.run(LINES),
         [["9", "", "", "def decode(block):"], ["10", "20.0%", "30.0%", "\tfor part in block:"],
          ["…"], ["12", "10.0%", "25.0%", "\t\tcopy(part)  # </script>"]])
    same(page.run(CALLS % "callers"), ["100%Trainer.fit/srv/app/train.py:88"])
    same(page.run(CALLS % "callees"), ["60.0%__memmove_avx_unaligned_ermslibc.so.6"])
    pages.shot("source")
    page.click_on("#source-text tr[data-line='10']")
    same(
        page.run(
            "document.querySelector('#source-text tr[aria-selected=true]').cells[0].textContent"),
        "10")
    same(sorted(page.run(CALLS % "callers")),
         ["33.3%<module>/srv/app/train.py:3", "66.7%Trainer.fit/srv/app/train.py:88"])
    page.click_on("#line-callers button")
    same(text(page, "#source-name"), "/srv/app/train.py:88")
    assert text(page, "#source-note").startswith("The source is not in this page."), text(
        page, "#source-note")
    choose(page, "/srv/app/tree.py:7")
    assert text(page, "#source-note").startswith("The source has changed since it ran."), text(
        page, "#source-note")
    same(page.run("document.getElementById('source-figures').textContent"), "total 200 ms (20.0%)")


def test_source_of_a_difference_has_the_heat_of_both(pages):
    page = pages.open("diffsources", "#tab=lines")
    choose(page, "/srv/app/codec.py:12")
    same(
        page.run(
            "[...document.querySelectorAll('#source-text th')].map((cell) => cell.textContent)"),
        ["Line", "Self", "Total", "Self before", "Total before", ""])
    # In all 1000 ms both times: line 10 took 200 + 100 ms, before 100 + 50; line 12 took 100 + 150,
    # before 150 + 150.
    same(page.run(LINES),
         [["9", "", "", "", "", "def decode(block):"],
          ["10", "20.0%", "30.0%", "10.0%", "15.0%", "\tfor part in block:"], ["…"],
          ["12", "10.0%", "25.0%", "15.0%", "30.0%", "\t\tcopy(part)  # </script>"]])
    same([row[2:] for row in rows(page, "line-list") if row[0] == "/srv/app/codec.py:12"],
         [["25.0%", "-5.00 pp"]])
    pages.shot("difference-source")


def test_tabs_have_roles_and_arrow_keys(pages):
    page = pages.open()
    page.run("document.getElementById('tab-flame').focus()")
    for wanted in ("sandwich", "table", "lines", "flame"):
        page.key("ArrowRight")
        same(
            page.run(
                "[document.activeElement.id, "
                "document.querySelector('[role=tab][aria-selected=true]').id,"
                " document.querySelectorAll('[role=tabpanel]:not([hidden])').length]"),
            ["tab-" + wanted, "tab-" + wanted, 1])
    # Everything that can be used has a name.
    same(
        page.run(
            """[...document.querySelectorAll('button, input, select, [tabindex="0"]')].filter(
        (e) => !(e.ariaLabel || e.textContent.trim() || e.labels?.length)
        ).map((e) => e.outerHTML)"""), [])
    same(
        page.run(
            """[...document.querySelectorAll('[aria-controls], [aria-labelledby], [for]')].filter(
        (e) => !['aria-controls', 'aria-labelledby', 'for'].every(
            (a) => !e.getAttribute(a) || document.getElementById(e.getAttribute(a)))
        ).map((e) => e.outerHTML)"""), [])


def test_tab_key_reaches_the_chart(pages):
    page = pages.open()
    seen = set()
    for _ in range(30):
        page.key("Tab")
        seen.add(page.run("document.activeElement.id"))
    assert {"search", "theme", "tab-flame", "shape", "group", "flame-chart"} <= seen, seen


def test_help_lists_the_keys(pages):
    page = pages.open()
    page.key("?")
    page.wait("document.getElementById('help').open")
    told = text(page, "#help-keys")
    for key in ("Backspace", "Ctrl+F", "Shift+←", "n, N", "1 2 3 4"):
        assert key in told, key
    pages.shot("help")
    page.key("Escape")
    page.wait("!document.getElementById('help').open")


def test_theme_follows_the_system_until_chosen(pages):
    page = pages.open()
    ground = ("document.querySelector('#flame-chart canvas').getContext('2d').getImageData(5, 600, "
              "1, 1).data[0]")
    same(page.run("document.documentElement.dataset.theme"), "light")
    page.settle()
    same(page.run(ground), 255)
    page.scheme("dark")
    page.settle()
    same(page.run("document.documentElement.dataset.theme"), "dark")
    same(page.run(ground), 21)
    pages.shot("flame-dark")
    for tab, name in (("2", "sandwich"), ("3", "table")):
        page.key(tab)
        pages.shot(name + "-dark")
    page.key("t")
    same([text(page, "#theme"),
          page.run("document.documentElement.dataset.theme")], ["Theme: light", "light"])
    page.key("t")
    page.scheme("light")
    page.settle()
    same([text(page, "#theme"),
          page.run("document.documentElement.dataset.theme")], ["Theme: dark", "dark"])
    page.open(pages.path("small"))
    same(page.run("document.documentElement.dataset.theme"), "dark")
    page.run("localStorage.clear()")


CONTRAST = """(() => {
    const canvas = new OffscreenCanvas(1, 1).getContext('2d', { willReadFrequently: true });
    const rgb = (css) => { canvas.fillStyle = css; canvas.fillRect(0, 0, 1, 1);
        return canvas.getImageData(0, 0, 1, 1).data; };
    const light = (css) => [0.2126, 0.7152, 0.0722].reduce((sum, part, i) => {
        const c = rgb(css)[i] / 255;
        return sum + part * (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4); }, 0);
    const contrast = (a, b) => { const [x, y] = [light(a), light(b)];
        return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05); };
    const { palette } = pyprof, style = getComputedStyle(document.documentElement);
    const value = (name) => style.getPropertyValue('--' + name);
    const pairs = palette.css.map((colour) => ['box', colour, palette.text]);
    pairs.push(['faded', palette.css[37], palette.fadedText]);
    for (const ground of ['ground', 'raised', 'chosen', 'bar'])
        pairs.push([ground, value(ground), value('text')]);
    for (const name of ['muted', 'accent', 'error'])
        for (const ground of ['ground', 'raised'])
            pairs.push([name + ' on ' + ground, value(ground), value(name)]);
    pairs.push(['button', value('accent'), value('accent-text')]);
    return pairs.map(([name, ground, text]) => [contrast(ground, text), name, ground, text])
        .sort((a, b) => a[0] - b[0])[0];
})()"""


def test_text_has_contrast(pages):
    for scheme in ("light", "dark"):
        page = pages.open(scheme=scheme)
        worst = page.run(CONTRAST)
        assert worst[0] >= 4.5, worst


def test_link_brings_the_same_view(pages):
    page = pages.open()
    page.click(*place_of(page, "walk"))
    page.key("/")
    page.type("walk")
    page.settle()
    fragment = page.run("location.hash")
    page = pages.open(fragment=fragment)
    same(crumbs(page), ["all", "<module>", "walk"])
    same(text(page, "#search-result"), "1 function, 20.0% (200 ms)")
    page = pages.open(
        fragment="#tab=table&zoom=99999999&fn=-5&group=nonsense&constructor=1&q=%3Cb%3E")
    same(page.run("[pyprof.state.tab, pyprof.state.group, pyprof.state.q]"),
         ["table", "all", "<b>"])
    page.key("1")
    same(crumbs(page), ["all"])


def test_difference_has_its_colours(pages):
    page = pages.open("diff")
    colour = """((name) => { const { chart, layout } = pyprof.flame;
        const c = chart.canvas.getContext('2d');
        const node = layout.order.find((n) => chart.style.label(layout.tree, n) === name);
        let row = 0;
        for (let at = node; layout.tree.parent[at] >= 0; at = layout.tree.parent[at]) row++;
        const x = (layout.x[node] + layout.weight[node]) / 1e9 * chart.canvas.width;
        return [...c.getImageData(Math.round(x) - 4, row * 19 + 3, 1, 1).data].slice(0, 3); })"""
    page.settle()
    same(page.run(colour + "('walk')"), [224, 224, 224])
    red, _, blue = page.run(colour + "('vfs_read')")
    assert red > blue + 60, (red, blue)
    red, _, blue = page.run(colour + "('Trainer.fit')")
    assert blue > red + 10, (red, blue)
    page.mouse("mouseMoved", *place_of(page, "vfs_read"))
    page.wait("!document.getElementById('tooltip').hidden")
    assert "+5.00 pp" in page.run("document.getElementById('tooltip').innerText")
    pages.shot("difference")
    page.key("3")
    same(
        rows(page, "functions")[0], [
            "decode", "/srv/app/codec.py:10", "300 ms", "30.0%", "+5.00 pp", "550 ms", "55.0%",
            "+10.00 pp"
        ])


def test_hostile_names_are_only_text(pages):
    page = pages.open("hostile")
    for tab in "1234":
        page.key(tab)
        page.settle()
        same(page.run("[window.broken, document.scripts.length, document.images.length]"),
             [None, 1, 0])
    page.key("1")
    page.mouse("mouseMoved", *place_of(page, "<img src=x onerror=window.broken=1>"))
    page.wait("!document.getElementById('tooltip').hidden")
    same(page.run("[window.broken, document.images.length]"), [None, 0])
    same(text(page, "#title"), "</title><script>window.broken=1</script>")
    pages.shot("hostile")


def test_nothing_and_damage_are_told(pages):
    page = pages.open("empty")
    for tab in "1234":
        page.key(tab)
    for kind, said in (("damaged", "damaged: node 1"), ("future", "version 1, not 2"),
                       ("badpath", "damaged: short path 0"), ("badsource", "damaged: its sources"),
                       ("badtime", "damaged: sample of time 1")):
        page.open(pages.path(kind),
                  until="document.getElementById('loading')?.className === 'error'")
        assert said in text(page, "#loading"), text(page, "#loading")
        page.errors.clear()


def test_paper_shows_the_whole_graph_in_light(pages):
    page = pages.open("large", scheme="dark")
    page.run("dispatchEvent(new Event('beforeprint'))")
    same(page.run("document.documentElement.dataset.theme"), "light")
    wanted = page.run("pyprof.flame.layout.rows * 19 + 1")
    assert page.run("pyprof.flame.chart.canvas.height") >= wanted
    page.run("dispatchEvent(new Event('afterprint'))")
    same(page.run("document.documentElement.dataset.theme"), "dark")
    pdf = page.call("Page.printToPDF", printBackground=True)["data"]
    assert len(pdf) > 5000
    if pages.shots:
        import base64
        with open(os.path.join(pages.shots, "paper.pdf"), "wb") as out:
            out.write(base64.b64decode(pdf))


def test_large_profile_stays_quick(pages):
    page = pages.open("large")
    took = page.run(
        "(() => { const t = performance.now(); for (let i = 0; i < 5; i++) "
        "pyprof.flame.chart.draw();"
        " return (performance.now() - t) / 5; })()")
    print("# one picture of 20,000 stacks: %.0f ms" % took)
    for tab in "23":
        page.key(tab)
    assert page.run("document.querySelectorAll('tr').length") < 400
    page.key("3")
    page.run("document.getElementById('functions').scrollTop = 1e6")
    page.settle()
    last = rows(page, "functions")[-1]
    same(
        last[3],
        page.run(
            "(() => { const t = pyprof.views.table.table; return t.columns[3].text(t.rows.at(-1)); "
            "})()"
        ))
    pages.shot("large-table")


def test_narrow_window_keeps_everything(pages):
    page = pages.open()
    page.call("Emulation.setDeviceMetricsOverride", width=420, height=800, deviceScaleFactor=2,
              mobile=False)
    page.settle()
    same(page.run("document.documentElement.scrollWidth"), 420)
    pages.shot("narrow")
    page.call("Emulation.setDeviceMetricsOverride", width=1280, height=800, deviceScaleFactor=1,
              mobile=False)
