/* SPDX-License-Identifier: BSD-2-Clause */
/* Keys that work everywhere, and the page that lists them all. */
import { byId, listenToHelp } from "./base.js";

const HELP = [
	["/ or Ctrl+F", "search; Enter and Shift+Enter go to the next and the previous match, Escape clears"],
	["n, N", "next, previous match"],
	["1 2 3 4", "Flame, Sandwich, Table, Lines"],
	["↑ ↓ ← →", "move through the boxes, or the rows of a table"],
	["Enter", "zoom to the box; in a table: open the function in Sandwich"],
	["Backspace or Escape", "zoom out by one caller"],
	["0 or Home", "whole profile"],
	["+ and −", "zoom in and out"],
	["Shift+← Shift+→", "move sideways"],
	["On the time map", "↑ ↓ ← → move the range, with Shift its end; drag chooses one, a double click all"],
	["s", "callers and callees of the chosen box"],
	["i", "icicle or flame graph"],
	["g", "group: whole profile, process, thread"],
	["o", "order: left heavy, by name"],
	["l", "split functions by line"],
	["t", "theme: system, light, dark"],
	["?", "this page"],
	["Click", "zoom to the box; on one above: zoom out to it"],
	["Ctrl+wheel, drag", "zoom at the pointer, move sideways"],
];

function cycle(app, name, values) {
	app.update({ tab: "flame", [name]: values[(values.indexOf(app.state[name]) + 1) % values.length] });
}

function actions(app) {
	const tab = (name) => () => {
		app.update({ tab: name });
		app.focusView();
	};
	return {
		"/": () => byId("search").select(),
		n: () => app.nextMatch(1), N: () => app.nextMatch(-1),
		1: tab("flame"), 2: tab("sandwich"), 3: tab("table"), 4: tab("lines"),
		i: () => cycle(app, "shape", ["icicle", "flame"]),
		g: () => cycle(app, "group", ["all", "process", "thread"]),
		o: () => cycle(app, "order", ["heavy", "name"]),
		l: () => app.update({ tab: "flame", byLine: !app.state.byLine }),
		s: () => app.openSandwich(),
		t: () => byId("theme").hidden || app.theme.next(),
		"?": () => byId("help").showModal(),
		Escape: () => app.escape(),
	};
}

export function listenToKeys(app) {
	listenToHelp(HELP);
	const known = actions(app);
	document.addEventListener("keydown", (event) => {
		if (byId("help").open)
			return;
		if ((event.ctrlKey || event.metaKey) && !event.altKey && event.key === "f") {
			event.preventDefault();
			byId("search").select();
			return;
		}
		if (event.ctrlKey || event.altKey || event.metaKey || event.target.closest("input, select, textarea"))
			return;
		/* Enter on a button presses it. */
		const onButton = event.target.closest("button") && (event.key === "Enter" || event.key === " ");
		const chart = app.activeChart();
		if (onButton || !((chart && chart.key(event)) || (known[event.key] && (known[event.key](), true))))
			return;
		event.preventDefault();
	});
}
