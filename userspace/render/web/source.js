/* SPDX-License-Identifier: BSD-2-Clause */
/* The source beside the list of lines: heat by line, and callers and callees of the line that is chosen. */
import { byId, element, placeElement } from "./dom.js";
import { frameName, framePlace, frameWholePlace } from "./data.js";
import { humanValue, percent } from "./format.js";
import { sumsOf } from "./functions.js";
import { lineCalls } from "./tree.js";

const MOST_CALLS = 50;
const GROWTH = 0.4; /* of colour over share: small shares show, too */

const HEADS = () => element("thead", {}, element("tr", {}, ...["Line", "Self", "Total", ""].map((title) =>
	element("th", { scope: "col" }, title))));

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
		const { total } = sumsOf(this.app, true);
		const found = new Map();
		for (let frame = 0; frame < total.length; frame++) {
			const line = profile.frameLine[frame];
			if (profile.frameFile[frame] !== file || !(line > 0) || !(total[frame] > 0))
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
		note.hidden = Boolean(known);
		note.textContent = known ? "" : `${(source && source.note) || "The source is not in this page."} These lines ran:`;
		const lines = known ? source.lines : [...byLine.keys()].sort((a, b) => a - b).map((line) => [line, ""]);
		const body = element("tbody");
		let last = 0;
		for (const [line, text] of lines) {
			if (known && last && line > last + 1)
				body.append(element("tr", { class: "gap" }, element("td", { colspan: 4 }, "…")));
			body.append(this.line(line, text, byLine.get(line), line === chosen));
			last = line;
		}
		byId("source-text").replaceChildren(element("table", {}, HEADS(), body));
		const row = body.querySelector("[aria-selected='true']");
		if (row)
			row.scrollIntoView({ block: "center" });
	}

	line(line, text, frames, chosen) {
		const all = sumsOf(this.app, true);
		const { total } = this.app.profile;
		const attributes = frames ? { "data-line": line, "data-frame": frames[0], "aria-selected": chosen } : {};
		/* Frames of one line may be nested: a lambda that stands in the call that runs it. */
		const whole = (values) => (frames.length > 1 ?
			lineCalls(this.app.flame.tree({ group: "all", byLine: true }), frames).total : values[frames[0]]);
		const heat = (values) => {
			const value = !frames ? 0 : values === all.total ? whole(values) :
				frames.reduce((sum, frame) => sum + values[frame], 0);
			const shade = Math.round(70 * (value / (total || 1)) ** GROWTH);
			return element("td", { class: "number", style: value > 0 ? `background:color-mix(in srgb, var(--heat) ${shade}%, transparent)` : "" },
				value > 0 ? percent(value, total) : "");
		};
		return element("tr", attributes, element("td", { class: "line" }, String(line)), heat(all.self), heat(all.total),
			element("td", {}, text));
	}

	showCalls(frames) {
		const { app } = this;
		const tree = app.flame.tree({ group: "all", byLine: true });
		const calls = lineCalls(tree, frames);
		byId("source-figures").textContent = `total ${humanValue(calls.total, app.profile.unit)} (${percent(calls.total, app.profile.total)})`;
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
