/* SPDX-License-Identifier: BSD-2-Clause */
/* The processes and labels of the selection, most first: a click chooses one, another click lets go of it. */
import { byId, element } from "../../render/web/dom.js";
import { percent } from "../../render/web/format.js";
import { Latest, ask } from "./api.js";

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
