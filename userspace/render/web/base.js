/* SPDX-License-Identifier: BSD-2-Clause */
/* The scripts that the flame graph's page and that of pyprofd-serve have in common. */

/* Elements by hand.  Text goes in as text, never as markup: names in a profile are foreign. */

export const byId = (id) => document.getElementById(id);

export function element(tag, attributes, ...children) {
	const made = document.createElement(tag);
	for (const [name, value] of Object.entries(attributes || {})) {
		/* A policy without 'unsafe-inline' forbids the attribute, but not this. */
		if (name === "style")
			made.style.cssText = value;
		else
			made.setAttribute(name, value);
	}
	made.append(...children);
	return made;
}

/* A place as "pip/_internal/cli/main.py:46" whose end stays when room lacks: first the directories are cut, then the
 * name of the file, never the line. */
export function placeElement(place, whole, className = "place") {
	const [, directory, file, line] = /^([^]*\/)?([^]*?)(:\d+)?$/.exec(place);
	const parts = [["directory", directory], ["file", file], ["line", line]].filter(([, text]) => text);
	return element("span", { class: `${className} fit`, title: whole || place },
		...parts.map(([name, text]) => element("span", { class: name }, text)));
}

/* For those who hear the page. */
export function announce(text) {
	byId("live").textContent = text;
}

/* Tabs: one is chosen, arrow keys lead to the others that are in sight. */
export function showTab(names, chosen) {
	for (const name of names) {
		byId(`panel-${name}`).hidden = name !== chosen;
		byId(`tab-${name}`).setAttribute("aria-selected", String(name === chosen));
		byId(`tab-${name}`).tabIndex = name === chosen ? 0 : -1;
	}
}

export function listenToTabs(names, choose) {
	for (const name of names) {
		const tab = byId(`tab-${name}`);
		tab.addEventListener("click", () => choose(name));
		tab.addEventListener("keydown", (event) => {
			const shown = names.map((one) => byId(`tab-${one}`)).filter((one) => !one.hidden);
			const at = shown.indexOf(tab);
			const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: shown.length - 1 }[event.key];
			if (to === undefined)
				return;
			const next = shown[(to + shown.length) % shown.length];
			next.focus();
			next.click();
			event.preventDefault();
			event.stopPropagation();
		});
	}
}

/* rows: [keys, what they do]. */
export function listenToHelp(rows) {
	byId("help-keys").append(element("tbody", {}, ...rows.map(([keys, does]) => element("tr", {},
		element("td", {}, element("kbd", {}, keys)), element("td", {}, does)))));
	byId("help-open").addEventListener("click", () => byId("help").showModal());
}

/* Values as people read them: three figures, a unit that fits. */

const TIME_STEPS = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];
const NANOSECONDS = { nanoseconds: 1, microseconds: 1e3, milliseconds: 1e6, seconds: 1e9 };
const BYTE_STEPS = [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"], [1, "B"]];

function threeFigures(number) {
	const size = Math.abs(number);
	return number.toFixed(size >= 99.95 || size === 0 ? 0 : size >= 9.995 ? 1 : 2);
}

function stepped(value, steps) {
	const size = Math.abs(value);
	const step = steps.find(([least]) => size >= least * 0.9995) || steps[steps.length - 1];
	return `${threeFigures(value / step[0])} ${step[1]}`;
}

function longTime(nanoseconds) {
	const seconds = Math.round(nanoseconds / 1e9);
	const [h, m, s] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
	return h ? `${h} h ${m} min` : `${m} min ${s} s`;
}

export function humanCount(value) {
	return Math.round(value).toLocaleString("en-US");
}

export function humanValue(value, unit) {
	if (Object.hasOwn(NANOSECONDS, unit)) {
		const time = value * NANOSECONDS[unit];
		return Math.abs(time) >= 120e9 ? longTime(time) : stepped(time, TIME_STEPS);
	}
	if (unit === "bytes")
		return stepped(value, BYTE_STEPS);
	return unit === "count" || !unit ? humanCount(value) : `${humanCount(value)} ${unit}`;
}

export function percent(part, whole) {
	if (!(whole > 0) || part === 0)
		return "0%";
	const share = 100 * part / whole;
	if (share > 0 && share < 0.005)
		return "<0.01%";
	return `${share.toFixed(share >= 99.95 ? 0 : share >= 9.95 ? 1 : 2)}%`;
}

/* A difference of two shares, in percentage points. */
export function points(share) {
	const value = (100 * share).toFixed(2);
	return `${share > 0 ? "+" : ""}${value === "-0.00" ? "0.00" : value} pp`;
}

/* Light or dark: as the system has it, until the reader chooses. */

const THEMES = ["system", "light", "dark"];
const KEY = "pyprof-theme";
const system = matchMedia("(prefers-color-scheme: dark)");

/* Pages from files may be kept from the store. */
function remembered() {
	try {
		return localStorage.getItem(KEY);
	} catch {
		return null;
	}
}

function remember(choice) {
	try {
		localStorage.setItem(KEY, choice);
	} catch {
		/* For this time only, then. */
	}
}

/* Calls changed(dark) now and whenever it changes. */
export class Theme {
	/* asked: instead of the reader's own choice; null: nobody asks. */
	constructor(changed, asked = null) {
		this.changed = changed;
		this.choice = [asked, remembered(), "system"].find((choice) => THEMES.includes(choice));
		system.addEventListener("change", () => this.apply());
		byId("theme").addEventListener("click", () => this.next());
		this.apply();
	}

	next() {
		this.choice = THEMES[(THEMES.indexOf(this.choice) + 1) % THEMES.length];
		remember(this.choice);
		this.apply();
	}

	/* As another page has it: not remembered. */
	follow(choice) {
		if (!THEMES.includes(choice))
			return;
		this.choice = choice;
		this.apply();
	}

	/* Paper is white. */
	apply(onPaper) {
		const dark = !onPaper && (this.choice === "dark" || (this.choice === "system" && system.matches));
		document.documentElement.dataset.theme = dark ? "dark" : "light";
		byId("theme").textContent = `Theme: ${this.choice}`;
		this.changed(dark);
	}
}
