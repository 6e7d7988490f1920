/* SPDX-License-Identifier: BSD-2-Clause */
/* Tables of functions and of lines: their columns, rows and figures. */
import { byId, element, placeElement, humanValue, percent, points } from "./base.js";
import { KINDS, frameName, framePlace, frameWholePlace } from "./data.js";
import { kindColour } from "./palette.js";
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

/* A sortable table that holds only the rows in sight.  A row is a number; columns tell what it shows. */

const ROW_PX = 26;
const AROUND = 12;
const MOST_ON_PAPER = 400;

let tables = 0;

/* columns: [{ title, hint, number, width, value(row), text(row), fill(cell, row) }]; `value` sorts. */
class Table {
	constructor(host, name, columns, handlers) {
		this.host = host;
		this.columns = columns;
		this.on = handlers;
		this.id = `table${++tables}`;
		this.rows = [];
		this.current = -1;
		this.sorted = { column: columns.findIndex((column) => column.first), down: true };
		this.body = element("tbody");
		this.heads = columns.map((column, i) => this.head(column, i));
		this.table = element("table", { role: "grid", tabindex: "0", "aria-label": name },
			element("colgroup", {}, ...columns.map((column) => element("col", { style: `width:${column.width}` }))),
			element("thead", {}, element("tr", {}, ...this.heads)), this.body);
		this.none = element("p", { class: "none", hidden: "" }, "Nothing to show here.");
		host.append(this.table, this.none);
		host.addEventListener("scroll", () => this.render());
		new ResizeObserver(() => this.render()).observe(host);
		this.table.addEventListener("keydown", (event) => this.key(event));
		this.body.addEventListener("click", (event) => this.clicked(event, false));
		this.body.addEventListener("dblclick", (event) => this.clicked(event, true));
		this.showOrder();
	}

	head(column, i) {
		const button = element("button", { type: "button", title: column.hint || column.title }, column.title);
		button.addEventListener("click", () => this.sortBy(i));
		return element("th", { scope: "col", class: column.number ? "number" : "" }, button);
	}

	sortBy(i) {
		const same = this.sorted.column === i;
		this.sorted = { column: i, down: same ? !this.sorted.down : Boolean(this.columns[i].number) };
		this.showOrder();
		this.setRows(this.rows);
	}

	showOrder() {
		this.heads.forEach((head, i) => head.setAttribute("aria-sort",
			i === this.sorted.column ? (this.sorted.down ? "descending" : "ascending") : "none"));
	}

	setRows(rows) {
		const { value } = this.columns[this.sorted.column];
		const sign = this.sorted.down ? -1 : 1;
		const keyed = Array.from(rows, (row) => [value(row), row]);
		keyed.sort(([a, x], [b, y]) => (a < b ? -sign : a > b ? sign : x - y));
		this.rows = keyed.map(([, row]) => row);
		this.none.hidden = this.rows.length > 0;
		this.table.setAttribute("aria-rowcount", this.rows.length + 1);
		this.host.scrollTop = 0;
		this.render();
	}

	/* Marks a row, and scrolls to it. */
	choose(row, quiet) {
		this.current = row;
		const at = this.rows.indexOf(row);
		const head = this.heads[0].offsetHeight;
		if (at >= 0) {
			const top = at * ROW_PX;
			if (top < this.host.scrollTop)
				this.host.scrollTop = top;
			else if (top + ROW_PX + head > this.host.scrollTop + this.host.clientHeight)
				this.host.scrollTop = top + ROW_PX + head - this.host.clientHeight;
		}
		this.render();
		if (!quiet && this.on.onChoose)
			this.on.onChoose(row);
	}

	/* On paper: the first rows, whatever is in sight. */
	setPaper(onPaper) {
		this.onPaper = onPaper;
		this.render();
	}

	render() {
		const { onPaper } = this;
		const height = this.host.clientHeight;
		if (!height && !onPaper)
			return;
		const first = onPaper ? 0 : Math.max(0, Math.floor(this.host.scrollTop / ROW_PX) - AROUND);
		const last = onPaper ? Math.min(this.rows.length, MOST_ON_PAPER) :
			Math.min(this.rows.length, first + Math.ceil(height / ROW_PX) + 2 * AROUND);
		const gap = (rows) => element("tr", { class: "gap", "aria-hidden": "true" },
			element("td", { colspan: this.columns.length, style: `height:${onPaper ? 0 : rows * ROW_PX}px` }));
		const shown = [];
		for (let i = first; i < last; i++)
			shown.push(this.row(this.rows[i], i));
		this.body.replaceChildren(gap(first), ...shown, gap(this.rows.length - last));
		if (this.rows.includes(this.current))
			this.table.setAttribute("aria-activedescendant", `${this.id}-${this.current}`);
		else
			this.table.removeAttribute("aria-activedescendant");
	}

	row(row, at) {
		const line = element("tr", { id: `${this.id}-${row}`, "data-row": row, "aria-rowindex": at + 2,
			"aria-selected": row === this.current });
		for (const column of this.columns) {
			const cell = element("td", { role: "gridcell", class: column.number ? "number" : column.class || "" });
			if (column.fill)
				column.fill(cell, row);
			else
				cell.textContent = column.text(row);
			line.append(cell);
		}
		return line;
	}

	clicked(event, twice) {
		const line = event.target.closest("tr[data-row]");
		if (!line)
			return;
		const row = Number(line.dataset.row);
		if (twice)
			this.on.onOpen(row);
		else
			this.choose(row);
	}

	key(event) {
		if (event.target !== this.table || event.ctrlKey || event.altKey || event.metaKey)
			return;
		const page = Math.max(1, Math.floor(this.host.clientHeight / ROW_PX) - 2);
		const last = this.rows.length - 1;
		const at = this.rows.indexOf(this.current);
		const to = { ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + page, PageUp: at - page, Home: 0, End: last }[event.key];
		if (to !== undefined && last >= 0)
			this.choose(this.rows[Math.max(0, Math.min(last, to))]);
		else if (event.key === "Enter" && at >= 0)
			this.on.onOpen(this.current);
		else
			return;
		event.preventDefault();
		event.stopPropagation();
	}
}
