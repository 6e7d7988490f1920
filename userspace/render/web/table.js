/* SPDX-License-Identifier: BSD-2-Clause */
/* A sortable table that holds only the rows in sight.  A row is a number; columns tell what it shows. */
import { element } from "./dom.js";

const ROW_PX = 26;
const AROUND = 12;
const MOST_ON_PAPER = 400;

let tables = 0;

/* columns: [{ title, hint, number, width, value(row), text(row), fill(cell, row) }]; `value` sorts. */
export class Table {
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
