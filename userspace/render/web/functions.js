/* SPDX-License-Identifier: BSD-2-Clause */
/* Tables of functions and of lines: their columns, rows and figures. */
import { byId, element, placeElement } from "./dom.js";
import { KINDS, frameName, framePlace, frameWholePlace } from "./data.js";
import { humanValue, percent, points } from "./format.js";
import { kindColour } from "./palette.js";
import { Table } from "./table.js";
import { sums } from "./tree.js";

/* Self and total of functions, or of lines, counted once. */
export function sumsOf(app, byLine) {
	const key = byLine ? "lineSums" : "functionSums";
	if (!app[key])
		app[key] = sums(app.flame.tree({ group: "all", byLine }), app.profile, byLine);
	return app[key];
}

function swatch(app, kind) {
	return element("span", { class: "swatch", style: `background:${kindColour(app.palette, kind)}`, title: KINDS[kind] });
}

/* frameOf(row) is the frame that the row shows. */
function nameColumn(app, frameOf, width) {
	const text = (row) => frameName(app.profile, frameOf(row));
	return { title: "Function", width, value: (row) => text(row).toLowerCase(), text,
		fill: (cell, row) => {
			cell.title = `${text(row)}\n${frameWholePlace(app.profile, frameOf(row))}`;
			cell.append(swatch(app, app.profile.frameKind[frameOf(row)]), text(row));
		} };
}

/* withLine in the table of lines: sorted by file and number. */
function placeColumn(app, frameOf, title, width) {
	const { profile } = app;
	const text = (row) => framePlace(profile, frameOf(row), true) || profile.strings[profile.frameModule[frameOf(row)]];
	const value = (row) => `${framePlace(profile, frameOf(row), false)} ${String(profile.frameLine[frameOf(row)]).padStart(9)}`;
	return { title, width, class: "place", value, text, fill: (cell, row) => {
		cell.append(placeElement(text(row), frameWholePlace(profile, frameOf(row))));
	} };
}

function valueColumn(app, values, title, width) {
	return { title, width, number: true, value: (row) => values[row], text: (row) => humanValue(values[row], app.profile.unit) };
}

function shareColumn(app, values, title, width, hint) {
	const text = (row) => percent(values[row], app.profile.total);
	return { title, width, hint, number: true, value: (row) => values[row], text, fill: (cell, row) => {
		cell.textContent = text(row);
		cell.title = humanValue(values[row], app.profile.unit);
		cell.classList.add("share");
		cell.style.backgroundSize = `${100 * values[row] / (app.profile.total || 1)}% 100%`;
	} };
}

function changeColumn(app, values, base, title, width) {
	const { total, baseTotal } = app.profile;
	const value = (row) => values[row] / (total || 1) - base[row] / (baseTotal || 1);
	return { title, width, number: true, hint: `${title}: percentage points of the whole, after less before`, value,
		text: (row) => points(value(row)), fill: (cell, row) => {
			cell.textContent = points(value(row));
			cell.classList.add(value(row) > 5e-5 ? "more" : value(row) < -5e-5 ? "less" : "same");
		} };
}

function figureColumns(app, all, narrow) {
	const width = narrow ? "78px" : "104px";
	const columns = [];
	const both = [["Self", all.self, all.baseSelf, "in the function itself"],
		["Total", all.total, all.baseTotal, "in it and in what it calls"]];
	if (narrow && all.baseTotal)
		/* Of a difference, a line that no longer runs has no share. */
		return [{ ...shareColumn(app, all.total, "Total", width, both[1][3]), first: true }, changeColumn(app, all.total, all.baseTotal, "Δ Total", width)];
	for (const [title, values, base, hint] of both) {
		if (!narrow)
			columns.push(valueColumn(app, values, title, width));
		columns.push(shareColumn(app, values, narrow ? title : `${title} %`, width, hint));
		if (base)
			columns.push(changeColumn(app, values, base, `Δ ${title}`, width));
	}
	columns[0].first = true;
	return columns;
}

export class ListTab {
	/* what: { tab, host, name, byLine, narrow } */
	constructor(app, what, handlers) {
		Object.assign(this, { app, what, handlers });
	}

	build() {
		const { app, what } = this;
		this.sums = sumsOf(app, what.byLine);
		const { profile } = app;
		const frameOf = (row) => (what.byLine ? row : profile.functionFrame[row]);
		const columns = [nameColumn(app, frameOf, what.narrow ? "auto" : "38%")];
		if (what.byLine)
			columns.unshift(placeColumn(app, frameOf, "Line", "44%"));
		else if (!what.narrow)
			columns.push(placeColumn(app, frameOf, "Place", "auto"));
		columns.push(...figureColumns(app, this.sums, what.narrow));
		this.table = new Table(byId(what.host), what.name, columns, this.handlers);
	}

	/* Rows that hold something, of the functions that the search leaves; in the table of lines those whose
	 * line is known. */
	fill() {
		const { search, profile } = this.app;
		const { total, baseTotal } = this.sums;
		const wanted = (row) => (this.what.byLine ?
			profile.frameLine[row] > 0 && search.test(profile.frameFunction[row]) : search.test(row));
		const rows = [];
		for (let row = 0; row < total.length; row++) {
			if ((total[row] > 0 || (baseTotal && baseTotal[row] > 0)) && wanted(row))
				rows.push(row);
		}
		this.table.setRows(rows);
	}

	/* The values have changed: the columns are made of them. */
	forget() {
		if (this.table)
			byId(this.what.host).replaceChildren();
		this.table = null;
	}

	apply(state, changed) {
		const searched = changed.has("q") || changed.has("regex");
		this.stale = this.stale || searched || !this.table;
		if (state.tab !== this.what.tab)
			return;
		if (!this.table)
			this.build();
		if (this.stale)
			this.fill();
		else
			this.table.render();
		this.stale = false;
	}

	nextMatch(step) {
		const { rows, current } = this.table;
		if (rows.length)
			this.table.choose(rows[(rows.indexOf(current) + step + rows.length) % rows.length]);
	}
}
