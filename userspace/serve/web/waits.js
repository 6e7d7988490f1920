/* SPDX-License-Identifier: BSD-2-Clause */
/* The ledger: where each second of each thread went, a bar a process. */
import { byId, element } from "../../render/web/dom.js";
import { humanValue, percent } from "../../render/web/format.js";
import { Latest, ask } from "./api.js";

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
