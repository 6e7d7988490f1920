/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of the page beside the strip. */
import { announce, byId, element, humanValue, listenToHelp, listenToTabs, percent, showTab } from "../../render/web/base.js";
import { Latest, ask } from "./source.js";

/* Choices above the strip, tabs and keys. */

const HELP = [
	["Drag on the strip", "select a time; an edge of it can be moved"],
	["← → on the strip", "move the selection; the first press makes one"],
	["Shift+← Shift+→", "move its end"],
	["Home, End", "move it to the begin, to the end"],
	["Escape, double click", "select all that is shown"],
	["+ and −", "zoom in, to the selection; zoom out"],
	["1 2 3 4 5", "the last 5 min, 1 h, 6 h, 24 h, all"],
	["r", "refresh every 10 s, or no more"],
	["/", "filter processes and labels"],
	["p, w", "profile, waits"],
	["t", "theme: system, light, dark"],
	["?", "this page"],
];
const TABS = ["flame", "waits"];

function showKinds(app) {
	const kind = byId("kind");
	const { kinds } = app.source;
	const has = kinds.some((one) => one.kind === app.state.kind);
	const wanted = has ? kinds : [...kinds, { kind: app.state.kind, title: "" }];
	const name = (one) => one.title && one.title !== one.kind ? `${one.kind}: ${one.title}` : one.kind;
	if (kind.options.length !== wanted.length || wanted.some((one, i) => kind.options[i].value !== one.kind))
		kind.replaceChildren(...wanted.map((one) => element("option", { value: one.kind }, name(one))));
	kind.value = app.state.kind;
}

function chip(text, remove) {
	const button = element("button", { type: "button", "aria-label": `Let go of ${text}`, title: "Let go of it" }, "×");
	button.addEventListener("click", remove);
	return element("li", {}, element("span", {}, text), button);
}

function showChips(app) {
	byId("chips").replaceChildren(...app.state.labels.map(([key, value]) =>
		chip(`${key}: ${value}`, () => app.chooseLabel(key, value))));
}

function showTabs(app) {
	const { isLive } = app.source;
	byId("tab-waits").hidden = isLive;
	showTab(TABS, isLive ? "flame" : app.state.tab);
}

function facts({ self, isLive }) {
	const sees = isLive && self.sees === "own" ? "own processes" : "";
	return [self.host, sees, self.version && `pyprofd ${self.version}`].filter(Boolean).join(" · ");
}

export function showControls(app) {
	const { state, source } = app;
	showKinds(app);
	showChips(app);
	showTabs(app);
	byId("facts").textContent = facts(source);
	document.title = [state.kind, state.pid ? `pid ${state.pid}` : "", source.self.host || ""].filter(Boolean).join(" · ") + " – pyprofd";
	byId("strip").hidden = byId("ranges").hidden = source.isLive;
	byId("lengths").hidden = !source.isLive;
	for (const button of byId("ranges").children)
		button.setAttribute("aria-pressed", String(button.dataset.last === state.last));
	for (const button of byId("lengths").children)
		button.setAttribute("aria-pressed", String(Number(button.dataset.seconds) === state.seconds));
	byId("follow").setAttribute("aria-pressed", String(app.follows));
	if (document.activeElement !== byId("pid"))
		byId("pid").value = state.pid || "";
	byId("pid").removeAttribute("aria-invalid");
}

function takePid(app) {
	const text = byId("pid").value.trim();
	const good = /^\d{0,7}$/.test(text);
	byId("pid").setAttribute("aria-invalid", String(!good));
	if (good)
		app.update({ pid: Number(text) });
}

async function copyLink(app) {
	const text = app.link();
	let done = true;
	try {
		await navigator.clipboard.writeText(text);
	} catch {
		/* Not over plain HTTP from another machine. */
		const field = element("textarea", { class: "unseen" }, text);
		document.body.append(field);
		field.select();
		done = document.execCommand("copy");
		field.remove();
	}
	byId("copy").textContent = done ? "Copied" : "Not copied";
	announce(done ? "Link copied" : "The link could not be copied");
	setTimeout(() => {
		byId("copy").textContent = "Copy link";
	}, 1500);
}

function actions(app) {
	const last = (name) => () => app.source.isLive || app.update({ last: name, from: 0, until: 0 });
	return {
		1: last("5m"), 2: last("1h"), 3: last("6h"), 4: last("24h"), 5: last("all"),
		"+": () => app.source.isLive || app.strip.zoom(1), "-": () => app.source.isLive || app.strip.zoom(-1),
		r: () => app.update({ follow: !app.follows }),
		"/": () => byId("filter").select(),
		p: () => byId("tab-flame").click(), w: () => byId("tab-waits").hidden || byId("tab-waits").click(),
		t: () => app.theme.next(),
		Escape: () => app.update({ selected: null }),
		"?": () => byId("help").showModal(),
	};
}

function listenToKeys(app) {
	listenToHelp(HELP);
	const known = actions(app);
	document.addEventListener("keydown", (event) => {
		if (byId("help").open || event.ctrlKey || event.altKey || event.metaKey || event.target.closest("input, select, textarea"))
			return;
		if (!Object.hasOwn(known, event.key))
			return;
		known[event.key]();
		event.preventDefault();
	});
}

export function listenToControls(app) {
	byId("form").addEventListener("submit", (event) => event.preventDefault());
	byId("kind").addEventListener("change", (event) => app.update({ kind: event.target.value }));
	byId("ranges").addEventListener("click", ({ target }) => {
		if (!target.dataset.last)
			return;
		if (target.dataset.last === app.state.last)
			app.apply(true); /* up to now */
		else
			app.update({ last: target.dataset.last, from: 0, until: 0 });
	});
	byId("lengths").addEventListener("click", ({ target }) => target.dataset.seconds && app.update({ seconds: Number(target.dataset.seconds) }));
	byId("pid").addEventListener("change", () => takePid(app));
	byId("pid").addEventListener("keydown", (event) => event.key === "Enter" && takePid(app));
	byId("follow").addEventListener("click", () => app.update({ follow: !app.follows }));
	byId("copy").addEventListener("click", () => copyLink(app));
	listenToTabs(TABS, (tab) => app.update({ tab }));
	listenToKeys(app);
}

/* The processes and labels of the selection, most first: a click chooses one, another click lets go of it. */

const ROWS = 12; /* of a list, until all are asked for */
/* Who a process is comes first, and in sight; what else there is can be opened. */
const FIRST = ["app", "unit", "container", "pod", "namespace", "user", "thread_name", "wait", "slurm_job", "rank"];

const placeOfKey = (key) => FIRST.includes(key) ? FIRST.indexOf(key) : FIRST.length;

export class Lists {
	constructor(app) {
		this.app = app;
		this.latest = new Latest();
		this.path = "";
		this.data = null;
		this.long = new Set(); /* lists whose rows are all in sight */
		this.turned = new Set(); /* lists that were opened, or closed */
		byId("filter").addEventListener("input", () => this.render());
		byId("filter").addEventListener("keydown", (event) => {
			if (event.key !== "Escape")
				return;
			byId("filter").value = "";
			this.render();
		});
	}

	async load(path) {
		if (path === this.path)
			return;
		this.path = path;
		/* At once, so that the profile beside them does not jump. */
		byId("side").hidden = false;
		const signal = this.latest.begin();
		try {
			this.data = await ask(path, signal);
		} catch (error) {
			if (signal.aborted)
				return;
			this.data = null;
			this.path = "";
		}
		this.render();
	}

	hide() {
		this.latest.stop();
		this.path = "";
		this.data = null;
		this.render();
	}

	/* [{ title, key, rows: [{ name, note, total, chosen, choose }], more }] */
	sections() {
		const { data, app } = this;
		const { pid, labels } = app.state;
		const chosen = new Map(labels);
		const processes = { title: "Processes", key: "", more: data.processes_more, rows: (data.processes || []).map((one) => ({
			name: one.app || one.comm || "?", note: `${one.pid}${one.app && one.app !== one.comm ? ` ${one.comm}` : ""}`,
			total: one.total, chosen: one.pid === pid, choose: () => app.update({ pid: one.pid === pid ? 0 : one.pid }) })) };
		const keys = [...data.labels || []].sort((one, other) => placeOfKey(one.key) - placeOfKey(other.key));
		return [processes, ...keys.map(({ key, values, more }) => ({ title: key, key, more,
			rows: values.map(({ value, total }) => ({ name: value, note: "", total, chosen: chosen.get(key) === value,
				choose: () => app.chooseLabel(key, value) })) }))];
	}

	render() {
		byId("side").hidden = !this.data;
		if (!this.data)
			return;
		const words = byId("filter").value.trim().toLowerCase();
		const fits = (section, row) => !words || `${section.title} ${row.name} ${row.note}`.toLowerCase().includes(words);
		const active = document.activeElement?.dataset?.row;
		const made = [];
		for (const section of this.sections()) {
			const rows = section.rows.filter((row) => fits(section, row));
			if (rows.length)
				made.push(this.section(section, rows, Boolean(words)));
		}
		const none = words ? "Nothing fits the filter." : "No process in this range.";
		byId("lists").replaceChildren(...made.length ? made : [element("p", { class: "none" }, none)]);
		if (active)
			[...byId("lists").querySelectorAll("[data-row]")].find((row) => row.dataset.row === active)?.focus();
	}

	section(section, rows, all) {
		const few = all || this.long.has(section.key) ? rows : rows.filter((row, i) => i < ROWS || row.chosen);
		const list = element("ul", {}, ...few.map((row) => element("li", {}, this.row(section, row))));
		const parts = [element("summary", {}, section.title), list];
		if (few.length < rows.length) {
			const more = element("button", { type: "button", class: "more-rows" }, `${rows.length - few.length} more`);
			more.addEventListener("click", () => {
				this.long.add(section.key);
				this.render();
			});
			parts.push(more);
		} else if (section.more && !all) {
			parts.push(element("p", { class: "none" }, `${section.more} more are not listed`));
		}
		const made = element("details", {}, ...parts);
		const usual = !section.key || FIRST.includes(section.key) || rows.some((row) => row.chosen);
		made.open = all || usual !== this.turned.has(section.key);
		made.firstChild.addEventListener("click", () => this.turned.has(section.key) ? this.turned.delete(section.key) : this.turned.add(section.key));
		return made;
	}

	row(section, row) {
		const share = this.data.total > 0 ? Math.min(1, row.total / this.data.total) : 0;
		const button = element("button", { type: "button", "aria-pressed": String(row.chosen), "data-row": `${section.key}:${row.name}:${row.note}`,
			title: `${row.name} ${row.note}`.trim(), style: `background-size: ${(100 * share).toFixed(2)}% 100%` },
		element("span", { class: "name" }, row.name), element("span", { class: "note" }, row.note),
		element("span", { class: "share" }, percent(row.total, this.data.total)));
		button.addEventListener("click", row.choose);
		return button;
	}
}

/* The ledger: where each second of each thread went, a bar a process. */

/* [name in the ledger, what it is called, hue, saturation, lightness in the light theme, in the dark one]; the hues
 * of code are those of the flame graph. */
const PLACES = [
	["python", "Python", 212, 72, 70, 55], ["native", "native", 36, 82, 64, 50], ["kernel", "kernel", 352, 70, 72, 55],
	["unsampled", "on CPU, unsampled", 212, 30, 80, 40], ["running", "on CPU", 212, 72, 70, 55],
	["run_queue", "run queue", 14, 88, 55, 55], ["gil", "GIL", 285, 50, 60, 60],
	["lock", "lock", 262, 45, 74, 45], ["disk", "disk", 150, 45, 48, 45], ["net", "net", 178, 50, 60, 38], ["gpu", "GPU", 68, 62, 48, 42],
	["child", "child", 90, 35, 62, 38], ["fault", "page fault", 330, 60, 60, 55], ["sleep", "sleep", 220, 14, 84, 28],
	["stopped", "stopped", 220, 10, 62, 45], ["unknown", "unknown", 50, 10, 72, 38],
];
const KNOWN = new Map(PLACES.map(([key, name, ...colour], at) => [key, { name, colour, at }]));
const OTHER = { colour: [50, 10, 72, 38], at: PLACES.length };
/* Most threads of most programs sleep: left out until somebody asks. */
const LEFT_OUT = ["sleep"];

const placeOf = (key) => KNOWN.get(key) || { ...OTHER, name: key };

/* The time on the CPU is divided where samples have done so. */
function timesOf({ ms, running_ms: parts }) {
	const { running, ...others } = ms;
	return parts && Object.values(parts).some((value) => value > 0) ? { ...parts, ...others } : ms;
}

export class Waits {
	constructor(app) {
		this.app = app;
		this.latest = new Latest();
		this.path = "";
		this.data = null;
		this.leftOut = new Set(LEFT_OUT);
		byId("waits-scale").addEventListener("change", () => this.render());
	}

	async load(path) {
		if (path === this.path) {
			this.render();
			return;
		}
		this.path = path;
		const signal = this.latest.begin();
		try {
			this.data = this.taken(await ask(path, signal));
			this.failure = "";
		} catch (error) {
			if (signal.aborted)
				return;
			this.data = null;
			this.path = "";
			this.failure = error.message;
		}
		this.render();
	}

	taken({ processes, more, others }) {
		const all = processes.map((one) => ({ pid: one.pid, comm: one.comm, ms: timesOf(one) }));
		if (others)
			all.push({ pid: 0, comm: more ? `${more} others` : "the others", ms: timesOf(others) });
		return { processes: all };
	}

	/* Where time went, in the order of PLACES, with the sums. */
	places() {
		const sums = new Map();
		for (const { ms } of this.data.processes) {
			for (const [key, value] of Object.entries(ms)) {
				if (value > 0)
					sums.set(key, (sums.get(key) || 0) + value);
			}
		}
		return [...sums].sort(([one], [other]) => placeOf(one).at - placeOf(other).at);
	}

	colour(key) {
		const [hue, saturation, light, dark] = placeOf(key).colour;
		return `hsl(${hue} ${saturation}% ${this.app.dark ? dark : light}%)`;
	}

	render() {
		const { data } = this;
		if (!data || !data.processes.length) {
			byId("waits-legend").replaceChildren();
			byId("waits").replaceChildren(element("p", { class: "none" }, this.failure || (data ? "No ledger in this range." : "Reading the ledger…")));
			return;
		}
		const places = this.places();
		this.legend(places);
		const keys = places.map(([key]) => key).filter((key) => !this.leftOut.has(key));
		const rows = data.processes.map((one) => ({ ...one, sum: keys.reduce((sum, key) => sum + (one.ms[key] || 0), 0) }))
			.filter(({ sum }) => sum > 0).sort((one, other) => !one.pid - !other.pid || other.sum - one.sum);
		/* The rest is of many processes, whose bar would make all others small. */
		const most = rows.length ? rows[0].sum : 1;
		const parts = rows.map((row) => this.row(row, keys, byId("waits-scale").checked ? row.sum : Math.max(most, row.pid ? 0 : row.sum)));
		if (!rows.length)
			parts.push(element("p", { class: "none" }, "All of it is left out."));
		if (this.app.state.labels.length)
			parts.unshift(element("p", { class: "none" }, "Of all values of the labels: the ledger knows processes alone."));
		byId("waits").replaceChildren(...parts);
	}

	legend(places) {
		const active = document.activeElement?.dataset?.place;
		byId("waits-legend").replaceChildren(...places.map(([key, value]) => {
			const button = element("button", { type: "button", "aria-pressed": String(!this.leftOut.has(key)), "data-place": key,
				title: this.leftOut.has(key) ? "Left out: click to show it" : "Click to leave it out" },
			element("span", { class: "swatch", style: `background:${this.colour(key)}` }), `${placeOf(key).name} ${humanValue(value, "milliseconds")}`);
			button.addEventListener("click", () => {
				if (!this.leftOut.delete(key))
					this.leftOut.add(key);
				this.render();
			});
			return element("li", {}, button);
		}));
		if (active)
			byId("waits-legend").querySelector(`[data-place="${CSS.escape(active)}"]`)?.focus();
	}

	row(row, keys, scale) {
		const words = keys.filter((key) => row.ms[key] > 0)
			.map((key) => `${placeOf(key).name} ${humanValue(row.ms[key], "milliseconds")} (${percent(row.ms[key], row.sum)})`);
		const bar = element("div", { class: "waits-bar", role: "img", "aria-label": words.join(", ") },
			...keys.filter((key) => row.ms[key] > 0).map((key) => element("span", {
				style: `background:${this.colour(key)};width:${(100 * row.ms[key] / scale).toFixed(3)}%`,
				title: `${placeOf(key).name}: ${humanValue(row.ms[key], "milliseconds")}, ${percent(row.ms[key], row.sum)}` })));
		const choose = element("button", { type: "button", title: row.pid ? "Choose this process" : "" },
			element("span", { class: "name" }, row.comm || "?"), element("span", { class: "note" }, row.pid ? String(row.pid) : ""));
		if (row.pid)
			choose.addEventListener("click", () => this.app.update({ pid: this.app.state.pid === row.pid ? 0 : row.pid }));
		else
			choose.disabled = true;
		return element("div", { class: "waits-row" }, choose, bar,
			element("span", { class: "sum" }, humanValue(row.sum, "milliseconds")));
	}
}

/* The flame graph's page of the selection.  It has an origin of its own and cannot be looked into: it says what it
 * shows by messages, which count only from its window.  The old page stays in sight until the new one is drawn. */

/* A page that is an answer of another sort is loaded, too, but says nothing. */
const SILENCE_MS = 500;

export class Frames {
	constructor(app) {
		this.app = app;
		this.current = this.loading = null;
		this.theme = "light";
		this.lastMs = 0; /* what the last one took */
		addEventListener("message", (event) => this.heard(event));
	}

	/* Shows the page at a path; again: also if it is on show. */
	show(path, view, again) {
		const newest = this.loading || this.current;
		if (newest && newest.path === path && !again) {
			this.lead(newest, view);
			return;
		}
		this.drop();
		const frame = element("iframe", { title: "Profile of the selection", sandbox: "allow-scripts allow-downloads",
			class: "waiting", src: this.address(path, view) });
		const loading = { path, view, frame, begun: performance.now() };
		frame.addEventListener("load", () => setTimeout(() => this.loaded(loading), SILENCE_MS));
		this.loading = loading;
		byId("frames").append(frame);
		this.app.frameState("loading");
	}

	address(path, view) {
		const words = new URLSearchParams(view);
		words.set("theme", this.theme);
		return `${path}#${words}`;
	}

	/* Back and links change what a page shows. */
	lead(one, view) {
		if (one.view === view)
			return;
		one.view = view;
		one.frame.contentWindow?.location.replace(new URL(this.address(one.path, view), location.href));
	}

	setTheme(dark) {
		this.theme = dark ? "dark" : "light";
		for (const one of [this.current, this.loading])
			one?.frame.contentWindow?.postMessage({ pyprofTheme: this.theme }, "*");
	}

	heard(event) {
		const view = event.data?.pyprofView;
		if (typeof view !== "string" || view.length > 2000)
			return;
		if (this.loading && event.source === this.loading.frame.contentWindow) {
			this.loading.view = view;
			this.takeOver();
		} else if (this.current && event.source === this.current.frame.contentWindow && !this.loading) {
			this.current.view = view;
			this.app.viewChanged(view);
		}
	}

	takeOver() {
		const old = this.current;
		this.current = this.loading;
		this.loading = null;
		this.lastMs = performance.now() - this.current.begun;
		this.current.frame.className = "";
		old?.frame.remove();
		performance.mark("pyprofd-frame");
		this.app.frameState("shown");
	}

	/* A page that has said nothing is no profile. */
	loaded(one) {
		if (this.loading === one)
			this.app.frameState("refused", one.path);
	}

	/* What is being loaded is no longer asked for. */
	drop() {
		this.loading?.frame.remove();
		this.loading = null;
	}

	clear() {
		this.drop();
		this.current?.frame.remove();
		this.current = null;
	}
}
