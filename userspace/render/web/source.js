/* SPDX-License-Identifier: BSD-2-Clause */
/* The source beside the list of lines: heat by line, and callers and callees of the line that is chosen. */
import { byId, element, placeElement, humanValue, percent } from "./base.js";
import { frameName, framePlace, frameWholePlace } from "./data.js";
import { sumsOf } from "./functions.js";
import { lineCalls } from "./tree.js";

const MOST_CALLS = 50;
const GROWTH = 0.4; /* of colour over share: small shares show, too */

const heads = (titles) => element("thead", {}, element("tr", {}, ...["Line", ...titles, ""].map((title) =>
	element("th", { scope: "col" }, title))));

function heat(value, all) {
	const shade = Math.round(70 * (value / (all || 1)) ** GROWTH);
	return element("td", { class: "number", style: value > 0 ? `background:color-mix(in srgb, var(--heat) ${shade}%, transparent)` : "" },
		value > 0 ? percent(value, all) : "");
}

export class SourcePane {
	constructor(app) {
		this.app = app;
		this.shown = -1;
		byId("source-text").addEventListener("click", (event) => {
			const row = event.target.closest("tr[data-frame]");
			if (row)
				app.views.lines.table.choose(Number(row.dataset.frame));
		});
	}

	/* The frames of a file by line; the one of most time first. */
	framesByLine(file) {
		const { profile } = this.app;
		const { total, baseTotal } = sumsOf(this.app, true);
		const found = new Map();
		const ran = (frame) => total[frame] > 0 || (baseTotal && baseTotal[frame] > 0);
		for (let frame = 0; frame < total.length; frame++) {
			const line = profile.frameLine[frame];
			if (profile.frameFile[frame] !== file || !(line > 0) || !ran(frame))
				continue;
			const frames = found.get(line) || found.set(line, []).get(line);
			frames.push(frame);
			frames.sort((a, b) => total[b] - total[a]);
		}
		return found;
	}

	show(frame) {
		const { profile } = this.app;
		const file = profile.frameFile[frame];
		const source = profile.sources.get(profile.strings[file]);
		const byLine = this.framesByLine(file);
		const frames = byLine.get(profile.frameLine[frame]) || [frame];
		this.shown = frame;
		byId("source-name").replaceChildren(placeElement(framePlace(profile, frame, true), frameWholePlace(profile, frame), ""));
		this.showText(source, byLine, profile.frameLine[frame]);
		this.showCalls(frames);
	}

	showText(source, byLine, chosen) {
		const note = byId("source-note");
		const known = source && source.lines.length;
		note.textContent = known ? source.note : `${(source && source.note) || "The source is not in this page."} These lines ran:`;
		note.hidden = !note.textContent;
		const lines = known ? source.lines : [...byLine.keys()].sort((a, b) => a - b).map((line) => [line, ""]);
		const body = element("tbody");
		let last = 0;
		for (const [line, text] of lines) {
			if (known && last && line > last + 1)
				body.append(element("tr", { class: "gap" }, element("td", { colspan: this.titles().length + 2 }, "…")));
			body.append(this.line(line, text, byLine.get(line), line === chosen));
			last = line;
		}
		byId("source-text").replaceChildren(element("table", {}, heads(this.titles()), body));
		const row = body.querySelector("[aria-selected='true']");
		if (row)
			row.scrollIntoView({ block: "center" });
	}

	titles() {
		return this.app.profile.differential ? ["Self", "Total", "Self before", "Total before"] : ["Self", "Total"];
	}

	line(line, text, frames, chosen) {
		const all = sumsOf(this.app, true);
		const { total, baseTotal } = this.app.profile;
		const attributes = frames ? { "data-line": line, "data-frame": frames[0], "aria-selected": chosen } : {};
		const sum = (values) => (frames ? frames.reduce((before, frame) => before + values[frame], 0) : 0);
		/* Frames of one line may be nested: a lambda that stands in the call that runs it. */
		const whole = (values, name) => (frames && frames.length > 1 ?
			lineCalls(this.app.flame.tree({ group: "all", byLine: true }), frames)[name] : sum(values));
		const cells = [heat(sum(all.self), total), heat(whole(all.total, "total"), total)];
		if (all.baseTotal)
			cells.push(heat(sum(all.baseSelf), baseTotal), heat(whole(all.baseTotal, "baseTotal"), baseTotal));
		return element("tr", attributes, element("td", { class: "line" }, String(line)), ...cells, element("td", {}, text));
	}

	showCalls(frames) {
		const { app } = this;
		const tree = app.flame.tree({ group: "all", byLine: true });
		const calls = lineCalls(tree, frames);
		const { unit, total, baseTotal, differential } = app.profile;
		const before = differential ? `, before ${humanValue(calls.baseTotal, unit)} (${percent(calls.baseTotal, baseTotal)})` : "";
		byId("source-figures").textContent = `total ${humanValue(calls.total, unit)} (${percent(calls.total, total)})${before}`;
		for (const [host, found, none] of [["line-callers", calls.callers, "nobody: it is the root"], ["line-callees", calls.callees, "nothing"]]) {
			const rows = [...found].sort((a, b) => b[1] - a[1]).slice(0, MOST_CALLS);
			byId(host).replaceChildren(...rows.map(([frame, value]) => this.call(frame, value, calls.total)));
			if (!rows.length)
				byId(host).append(element("li", { class: "place" }, none));
		}
	}

	call(frame, value, whole) {
		const { app } = this;
		const { profile } = app;
		const module = profile.strings[profile.frameModule[frame]];
		const button = element("button", { type: "button" }, element("span", { class: "share" }, percent(value, whole)),
			element("span", { class: "name" }, frameName(profile, frame)),
			placeElement(framePlace(profile, frame, true) || module.split("/").pop(), frameWholePlace(profile, frame) || module));
		button.addEventListener("click", () => {
			if (profile.frameLine[frame] > 0)
				app.views.lines.table.choose(frame);
			else
				app.update({ tab: "sandwich", fn: profile.frameFunction[frame] });
		});
		return element("li", {}, button);
	}
}
