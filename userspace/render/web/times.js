/* SPDX-License-Identifier: BSD-2-Clause */
/* The time map.  Few windows are a strip: a bar each.  Many are a heat map as FlameScope's: a column is a second, a
 * minute, ..., and time runs down the column, so that what repeats each second or minute forms rows.  All views
 * show the range that is dragged over, which goes on from the foot of a column to the head of the next. */
import { byId, humanValue } from "./base.js";

const STRIP_WINDOWS = 60;
const MOST_COLUMNS = 600;
const LEAST_ROWS = 5;
const COLUMNS = [[1e3, "second"], [60e3, "minute"], [600e3, "ten minutes"], [3600e3, "hour"], [86400e3, "day"]];

/* How many ms a column has; 0: a strip. */
function columnOf({ start, duration }) {
	if (start.length <= STRIP_WINDOWS)
		return 0;
	const usual = Float64Array.from(duration).sort()[duration.length >> 1];
	const all = start[start.length - 1] + duration[duration.length - 1] - start[0];
	const found = COLUMNS.find(([ms]) => ms >= LEAST_ROWS * usual && all / ms <= MOST_COLUMNS);
	return found ? found[0] : 0;
}

function inOrder({ start }) {
	return start.every((at, i) => !i || at >= start[i - 1]);
}

/* To the tenth of a second, where that is not 0. */
function clock(ms) {
	const text = new Date(ms).toISOString().slice(11, 21);
	return text.endsWith(".0") ? text.slice(0, 8) : text;
}

export class TimeMap {
	constructor(app) {
		this.app = app;
		this.canvas = byId("time-map");
		this.begun = -1;
		const { times } = app.profile;
		byId("time").hidden = !times;
		if (!times)
			return;
		this.sums = Float64Array.from(times.start, (_, i) => {
			const end = i + 1 < times.first.length ? times.first[i + 1] : times.value.length;
			let sum = 0;
			for (let at = times.first[i]; at < end; at++)
				sum += times.value[at];
			return sum;
		});
		this.rates = this.sums.map((sum, i) => sum / (times.duration[i] || 1));
		this.most = this.rates.reduce((most, rate) => Math.max(most, rate), 0) || 1;
		this.layOut(times);
		this.listen(app);
	}

	layOut(times) {
		const last = times.start.length - 1;
		this.column = inOrder(times) ? columnOf(times) : 0;
		if (!this.column)
			return;
		this.origin = Math.floor(times.start[0] / this.column) * this.column;
		this.columns = Math.ceil((times.start[last] + times.duration[last] - this.origin) / this.column);
		this.canvas.classList.add("map");
	}

	listen(app) {
		const { canvas } = this;
		const all = () => app.update({ from: -1, to: -1 });
		new ResizeObserver(() => this.draw()).observe(canvas);
		canvas.addEventListener("pointerdown", (event) => {
			this.begun = this.windowAt(event);
			canvas.setPointerCapture(event.pointerId);
		});
		canvas.addEventListener("pointermove", (event) => this.moved(event));
		canvas.addEventListener("pointerleave", () => this.tell(-1));
		canvas.addEventListener("pointerup", (event) => {
			this.moved(event);
			this.begun = -1;
		});
		canvas.addEventListener("dblclick", all);
		canvas.addEventListener("keydown", (event) => this.key(event));
		byId("time-all").addEventListener("click", all);
	}

	/* The last window that begins at or before a moment. */
	windowOf(ms) {
		const { start } = this.app.profile.times;
		let [low, high] = [0, start.length];
		while (low < high) {
			const middle = (low + high) >> 1;
			if (start[middle] <= ms)
				low = middle + 1;
			else
				high = middle;
		}
		return Math.max(0, low - 1);
	}

	windowAt(event) {
		const box = this.canvas.getBoundingClientRect();
		const share = (value) => Math.max(0, Math.min(1 - 1e-9, value));
		const [x, y] = [share((event.clientX - box.left) / box.width), share((event.clientY - box.top) / box.height)];
		return this.column ? this.windowOf(this.origin + (Math.floor(x * this.columns) + y) * this.column) :
			Math.floor(x * this.rates.length);
	}

	moved(event) {
		const at = this.windowAt(event);
		this.tell(at);
		if (this.begun >= 0)
			this.app.update({ from: Math.min(at, this.begun), to: Math.max(at, this.begun) });
	}

	/* What the pointer is on. */
	tell(at) {
		const { profile } = this.app;
		byId("time-at").textContent = at < 0 ? "" :
			`${clock(profile.times.start[at])}: ${humanValue(this.sums[at], profile.unit)} in ${humanValue(profile.times.duration[at] * 1e6, "nanoseconds")}`;
	}

	/* Windows from one column to the next; of a strip one. */
	columnStep(from, direction) {
		const { start } = this.app.profile.times;
		return this.column ? Math.max(1, Math.abs(this.windowOf(start[from] + direction * this.column) - from)) : 1;
	}

	/* Arrows move the range, by a window, or sideways by a column; with Shift its end. */
	key(event) {
		const sign = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -1, ArrowDown: 1 }[event.key];
		if (!sign)
			return;
		const { from, to } = this.range();
		const last = this.rates.length - 1;
		const clamp = (at) => Math.max(0, Math.min(last, at));
		const chosen = this.app.state.from >= 0;
		const step = sign * (event.key === "ArrowLeft" || event.key === "ArrowRight" ? this.columnStep(event.shiftKey ? to : from, sign) : 1);
		const begin = event.shiftKey ? from : clamp(from + step);
		const edge = sign > 0 ? 0 : last;
		this.app.update(chosen ? { from: begin, to: Math.max(begin, clamp(to + step)) } : { from: edge, to: edge });
		event.preventDefault();
		event.stopPropagation();
	}

	range() {
		const last = this.rates.length - 1;
		const { from, to } = this.app.state;
		return from < 0 || from > last || to < from ? { from: 0, to: last, all: true } : { from, to: Math.min(to, last), all: false };
	}

	drawStrip(context, { width, height }, chosen) {
		const count = this.rates.length;
		for (let i = 0; i < count; i++) {
			const [left, right] = [Math.floor(i * width / count), Math.floor((i + 1) * width / count)];
			const share = this.rates[i] / this.most;
			const wide = Math.max(1, right - left - (right - left > 3 ? 1 : 0));
			context.globalAlpha = chosen(i) ? 0.25 : 0.12;
			context.fillRect(left, 0, wide, height);
			context.globalAlpha = chosen(i) ? 0.3 + 0.7 * share : 0.25;
			context.fillRect(left, height - Math.round(share * height), wide, Math.round(share * height));
		}
	}

	/* A window that goes on in the next column has a part in both. */
	drawMap(context, { width, height }, chosen) {
		const { start, duration } = this.app.profile.times;
		for (let i = 0; i < start.length; i++) {
			const end = Math.min(start[i] + duration[i], i + 1 < start.length ? start[i + 1] : Infinity);
			context.globalAlpha = (chosen(i) ? 1 : 0.25) * (0.08 + 0.92 * this.rates[i] / this.most);
			for (let at = start[i]; at < end;) {
				const number = Math.floor((at - this.origin) / this.column);
				const head = this.origin + number * this.column;
				const until = Math.min(end, head + this.column);
				const [left, right] = [Math.floor(number * width / this.columns), Math.floor((number + 1) * width / this.columns)];
				const [top, foot] = [(at - head) / this.column * height, (until - head) / this.column * height].map(Math.round);
				context.fillRect(left, top, Math.max(1, right - left - (right - left > 3 ? 1 : 0)), Math.max(1, foot - top));
				at = until;
			}
		}
	}

	draw() {
		const { canvas, app } = this;
		const { times } = app.profile;
		const ratio = window.devicePixelRatio || 1;
		const size = { width: Math.round(canvas.clientWidth * ratio), height: Math.round(canvas.clientHeight * ratio) };
		if (!times || !size.width)
			return;
		Object.assign(canvas, size);
		const context = canvas.getContext("2d");
		const { from, to, all } = this.range();
		context.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--heat");
		this[this.column ? "drawMap" : "drawStrip"](context, size, (i) => i >= from && i <= to);
		const end = times.start[to] + times.duration[to];
		const column = this.column ? `; columns: ${new Map(COLUMNS).get(this.column)}` : "";
		byId("time-range").textContent = `${clock(times.start[from])}–${clock(end)} UTC, ${humanValue((end - times.start[from]) * 1e6, "nanoseconds")}${column}`;
		byId("time-all").disabled = all;
		canvas.setAttribute("aria-valuetext", byId("time-range").textContent);
		canvas.setAttribute("aria-valuenow", from);
		canvas.setAttribute("aria-valuemin", 0);
		canvas.setAttribute("aria-valuemax", this.rates.length - 1);
	}
}
