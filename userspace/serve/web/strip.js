/* SPDX-License-Identifier: BSD-2-Clause */
/* The strip of use over time: its units, its data, its drawing, and mouse and keys on it. */
import { announce, byId, humanValue, percent } from "../../render/web/base.js";
import { Latest, ask, pathOf } from "./source.js";

/* What a kind's values are over time, and how times are written. */

const RATES = { cpu: "cores", offcpu: "threads waiting", wall: "threads", gil: "threads waiting for the GIL" };

/* How values become a rate: value / (ms * per_ms), and what it is called. */
function rateOf(kind, unit) {
	if (unit === "nanoseconds")
		return { perMs: 1e6, name: Object.hasOwn(RATES, kind) ? RATES[kind] : "threads" };
	return { perMs: 1e-3, name: unit === "bytes" ? "bytes/s" : unit === "count" ? "events/s" : `${unit}/s` };
}

/* Three figures, with k, M, G. */
function short(value) {
	const steps = [[1e9, "G"], [1e6, "M"], [1e3, "k"]];
	const step = steps.find(([least]) => value >= least * 0.9995);
	const number = step ? value / step[0] : value;
	const digits = number >= 99.95 || number === 0 ? 0 : number >= 9.995 ? 1 : 2;
	return `${number.toFixed(digits)}${step ? step[1] : ""}`;
}

/* Marks of an axis are round: 0.5, 2, 10. */
function mark(value) {
	return short(value).replace(/(\.\d*?)0+(?=\D|$)/, "$1").replace(/\.(?=\D|$)/, "");
}

/* The next of 1, 2, 5, 10, ... */
function roundUp(value) {
	const power = 10 ** Math.floor(Math.log10(value));
	return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= value * 0.9999);
}

const iso = (seconds) => new Date(seconds * 1000).toISOString();

export const clock = (seconds) => iso(seconds).slice(11, 19);
const day = (seconds) => iso(seconds).slice(0, 10);

/* "2026-11-24 14:02:10–14:07:40 UTC"; without the day where that is today. */
export function rangeText(from, until, now) {
	const first = day(from) === day(now) && day(until) === day(now) ? "" : `${day(from)} `;
	const second = day(from) === day(until) ? "" : `${day(until)} `;
	return `${first}${clock(from)}–${second}${clock(until)} UTC`;
}

export function lengthText(seconds) {
	const parts = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
	const found = [];
	for (const [step, name] of parts) {
		if (found.length === 2)
			break;
		if (seconds >= step || (step === 1 && !found.length)) {
			found.push(`${Math.floor(seconds / step)} ${name}`);
			seconds %= step;
		} else if (found.length) {
			break;
		}
	}
	return found.join(" ");
}

/* The use over time, as the server sums it: what it has not summed yet is asked for until it is there. */

/* The server makes this kind of two others, and keeps sums of these alone. */
const PARTS = { wall: ["cpu", "offcpu"] };
const AGAIN_MS = 50;

function sum(strips) {
	const [first, ...others] = strips;
	for (const other of others) {
		first.pending += other.pending;
		first.windows += other.windows;
		first.broken += other.broken;
		for (let i = 0; i < first.value.length; i++) {
			if (other.value[i] !== null)
				first.value[i] = (first.value[i] || 0) + other.value[i];
			first.recorded_ms[i] = Math.max(first.recorded_ms[i], other.recorded_ms[i]);
			first.pending_ms[i] = Math.max(first.pending_ms[i], other.pending_ms[i]);
		}
	}
	return first;
}

/* Rates of the intervals: null is a gap.  pending: the share of the interval's time whose sum is not known. */
function made(strip, kind) {
	const { perMs, name } = rateOf(kind, strip.unit);
	const rate = strip.value.map((value, i) => value === null || !strip.recorded_ms[i] ? null :
		value / (strip.recorded_ms[i] * perMs));
	const pending = strip.pending_ms.map((ms, i) => ms ? ms / (ms + strip.recorded_ms[i]) : 0);
	return { from: strip.from / 1000, until: strip.until / 1000, rate, pending, name, unit: strip.unit,
		value: strip.value, recordedMs: strip.recorded_ms, left: strip.pending, windows: strip.windows, broken: strip.broken,
		most: rate.reduce((most, one) => Math.max(most, one || 0), 0) };
}

/* Sums of a range: value, and the seconds in it that are known and that are not. */
function sumOf(data, from, until) {
	const found = { value: 0, recordedMs: 0, pending: false };
	const step = (data.until - data.from) / data.rate.length;
	for (let i = 0; i < data.rate.length; i++) {
		const begin = data.from + i * step;
		const share = (Math.min(until, begin + step) - Math.max(from, begin)) / step;
		if (share <= 0)
			continue;
		found.value += share * (data.value[i] || 0);
		found.recordedMs += share * data.recordedMs[i];
		found.pending = found.pending || data.pending[i] > 0;
	}
	return found;
}

/* Draws the strip: bars where somebody recorded (no use is a line at the foot), hatching where nobody did, and a
 * grey block where sums are not known yet. */

const LEFT = 44;
const TOP = 6;
const FOOT = 18;
const TICKS = [1, 2, 5, 10, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800, 2592000];
const TICK_PIXELS = 84;

function colours() {
	const style = getComputedStyle(document.documentElement);
	const get = (name) => style.getPropertyValue(name).trim();
	return { ground: get("--ground"), raised: get("--raised"), line: get("--line"), muted: get("--muted"), text: get("--text"),
		accent: get("--accent"), use: get("--use"), font: style.getPropertyValue("--font") };
}

/* Oblique lines, as nobody draws values. */
function hatching(context, colour, ratio) {
	const tile = document.createElement("canvas");
	tile.width = tile.height = 6 * ratio;
	const pen = tile.getContext("2d");
	pen.strokeStyle = colour;
	pen.lineWidth = ratio;
	pen.beginPath();
	for (const off of [-6, 0, 6]) {
		pen.moveTo((off - 1) * ratio, 7 * ratio);
		pen.lineTo((off + 7) * ratio, -ratio);
	}
	pen.stroke();
	const pattern = context.createPattern(tile, "repeat");
	pattern.setTransform(new DOMMatrix().scale(1 / ratio));
	return pattern;
}

/* Neighbours of one sort: [sort, first, behind the last]. */
function runs(count, sortOf) {
	const found = [];
	for (let i = 0; i < count; i++) {
		const sort = sortOf(i);
		const last = found[found.length - 1];
		if (last && last[0] === sort)
			last[2] = i + 1;
		else
			found.push([sort, i, i + 1]);
	}
	return found;
}

class StripDrawing {
	constructor(canvas) {
		this.canvas = canvas;
	}

	get width() {
		return Math.max(1, this.canvas.clientWidth - LEFT);
	}

	/* Pixels from the left of a time, and back. */
	xOf(span, seconds) {
		return LEFT + (seconds - span.from) / (span.until - span.from) * this.width;
	}

	timeAt(span, x) {
		const share = Math.max(0, Math.min(1, (x - LEFT) / this.width));
		return span.from + share * (span.until - span.from);
	}

	draw(span, data, selected) {
		const { canvas } = this;
		const ratio = window.devicePixelRatio || 1;
		const [width, height] = [canvas.clientWidth, canvas.clientHeight];
		if (!width || !height)
			return;
		canvas.width = Math.round(width * ratio);
		canvas.height = Math.round(height * ratio);
		const context = canvas.getContext("2d");
		context.scale(ratio, ratio);
		const look = { ...colours(), ratio, foot: height - FOOT, width, right: width };
		context.font = `11px ${look.font}`;
		this.drawTimes(context, span, look);
		if (data) {
			const top = data.most > 0 ? roundUp(data.most) : 1;
			this.drawBars(context, span, data, top, look);
			if (selected)
				this.drawSelection(context, span, selected, look);
			this.drawAxis(context, top, data.name, look);
		} else if (selected) {
			this.drawSelection(context, span, selected, look);
		}
	}

	drawTimes(context, span, look) {
		const wanted = (span.until - span.from) * TICK_PIXELS / this.width;
		const step = TICKS.find((one) => one >= wanted) || TICKS[TICKS.length - 1];
		context.textAlign = "center";
		context.textBaseline = "alphabetic";
		for (let at = Math.ceil(span.from / step) * step; at <= span.until; at += step) {
			const x = Math.round(this.xOf(span, at)) + 0.5;
			context.strokeStyle = look.line;
			context.globalAlpha = 0.5;
			context.beginPath();
			context.moveTo(x, TOP);
			context.lineTo(x, look.foot + 4);
			context.stroke();
			context.globalAlpha = 1;
			const text = step >= 86400 || at % 86400 === 0 ? day(at).slice(5) : step >= 60 ? clock(at).slice(0, 5) : clock(at);
			const half = context.measureText(text).width / 2;
			context.fillStyle = look.muted;
			if (x + half <= look.right && x - half >= LEFT - 12)
				context.fillText(text, x, look.foot + 15);
		}
	}

	drawBars(context, span, data, top, look) {
		const { foot } = look;
		const step = (data.until - data.from) / data.rate.length;
		const edge = (i) => Math.max(LEFT, Math.min(look.right, Math.round(this.xOf(span, data.from + i * step))));
		const sortOf = (i) => data.pending[i] > 0 ? "pending" : data.rate[i] === null ? "gap" : "known";
		const gap = hatching(context, look.line, look.ratio);
		for (const [sort, first, end] of runs(data.rate.length, sortOf)) {
			const [left, right] = [edge(first), edge(end)];
			if (right <= left)
				continue;
			if (sort === "gap") {
				context.fillStyle = gap;
				context.fillRect(left, TOP, right - left, foot - TOP);
			} else {
				context.fillStyle = look.muted;
				context.globalAlpha = 0.3;
				if (sort === "pending")
					context.fillRect(left, foot - (foot - TOP) / 3, right - left, (foot - TOP) / 3);
				context.globalAlpha = 1;
				context.fillStyle = look.use;
				context.fillRect(left, foot - 1, right - left, 1);
			}
		}
		context.fillStyle = look.use;
		for (let i = 0; i < data.rate.length; i++) {
			if (data.rate[i] === null || data.rate[i] === 0)
				continue;
			const [left, right] = [edge(i), edge(i + 1)];
			const high = Math.max(1, Math.round(data.rate[i] / top * (foot - TOP)));
			context.fillRect(left, foot - high, Math.max(1, right - left), high);
		}
	}

	drawAxis(context, top, name, look) {
		context.textAlign = "right";
		context.textBaseline = "middle";
		for (const value of [0, top / 2, top]) {
			const y = Math.round(look.foot - value / top * (look.foot - TOP)) + 0.5;
			context.fillStyle = look.muted;
			context.fillText(mark(value), LEFT - 6, Math.min(look.foot - 1, Math.max(TOP + 4, y)));
			context.strokeStyle = look.line;
			context.globalAlpha = 0.7;
			context.beginPath();
			context.moveTo(LEFT - 3, y);
			context.lineTo(look.right, y);
			context.stroke();
			context.globalAlpha = 1;
		}
		const wide = context.measureText(name).width;
		context.fillStyle = look.ground;
		context.globalAlpha = 0.8;
		context.fillRect(LEFT + 3, TOP + 2, wide + 6, 15);
		context.globalAlpha = 1;
		context.fillStyle = look.muted;
		context.textAlign = "left";
		context.fillText(name, LEFT + 6, TOP + 10);
	}

	/* What is not selected fades. */
	drawSelection(context, span, selected, look) {
		const clamp = (x) => Math.max(LEFT, Math.min(look.right, Math.round(x)));
		const [left, right] = selected.map((at) => clamp(this.xOf(span, at)));
		context.fillStyle = look.ground;
		context.globalAlpha = 0.62;
		context.fillRect(LEFT, 0, left - LEFT, look.foot);
		context.fillRect(right, 0, look.right - right, look.foot);
		context.globalAlpha = 0.12;
		context.fillStyle = look.accent;
		context.fillRect(left, 0, Math.max(1, right - left), look.foot);
		context.globalAlpha = 1;
		context.fillRect(left - 1, 0, 2, look.foot);
		context.fillRect(right - 1, 0, 2, look.foot);
		for (const x of [left, right]) {
			context.beginPath();
			context.roundRect(x - 3, look.foot / 2 - 8, 6, 16, 3);
			context.fill();
		}
	}
}

/* The strip by mouse and keys: a range is chosen by dragging over it or by arrows, and moved by its edges. */

const PIXELS_A_BAR = 3;
const POINTS_MAX = 1000;
const EDGE_PIXELS = 5;
const CLICK_PIXELS = 3;
/* Held keys move on; what hangs on the range waits until they rest. */
const KEY_REST_MS = 350;
const STEPS = 100; /* of an arrow key, over the whole strip */
const LEAST_SPAN_S = 30;

export class Strip {
	constructor(app) {
		this.app = app;
		this.canvas = byId("strip-canvas");
		this.drawing = new StripDrawing(this.canvas);
		this.data = null;
		this.span = { from: 0, until: 1 };
		this.draft = undefined; /* a range that is being chosen; undefined: none */
		this.drag = null;
		this.latest = new Latest();
		this.listen();
	}

	load(kind, span, intervalMs) {
		const length = span.until - span.from;
		const most = Math.floor(length * 1000 / intervalMs);
		const points = Math.max(1, Math.min(POINTS_MAX, most, Math.floor(this.drawing.width / PIXELS_A_BAR)));
		if (kind !== this.kind || span.from >= this.span.until || span.until <= this.span.from)
			this.data = null;
		this.kind = kind;
		this.span = span;
		this.intervalS = intervalMs / 1000;
		this.failure = "";
		this.update();
		this.ask(kind, span, points);
	}

	/* Shows what there is, as often as there is more. */
	async ask(kind, { from, until }, points) {
		const signal = this.latest.begin();
		const kinds = Object.hasOwn(PARTS, kind) ? PARTS[kind] : [kind];
		try {
			for (;;) {
				const strips = await Promise.all(kinds.map((one) => ask(pathOf("/api/v1/strip",
					{ from: String(from), until: String(until), kind: one, points: String(points) }), signal)));
				const data = made(sum(strips), kind);
				this.show(data);
				if (!data.left)
					return;
				await new Promise((done) => setTimeout(done, AGAIN_MS));
			}
		} catch (error) {
			if (!signal.aborted)
				this.fail(error);
		}
	}

	stop() {
		this.latest.stop();
	}

	show(data) {
		this.data = data;
		this.update();
		if (!this.painted) {
			this.painted = true;
			performance.mark("pyprofd-strip");
		}
		if (!data.left)
			performance.mark("pyprofd-strip-whole");
	}

	fail(error) {
		this.failure = error.message;
		this.update();
		this.app.stripFailed(error);
	}

	/* The range that all else shows. */
	get range() {
		const selected = this.draft === undefined ? this.app.state.selected : this.draft;
		return selected || [this.span.from, this.span.until];
	}

	update() {
		const selected = this.draft === undefined ? this.app.state.selected : this.draft;
		this.drawing.draw(this.span, this.data, selected);
		this.say(selected);
	}

	say(selected) {
		const [from, until] = this.range;
		const { data } = this;
		const parts = [rangeText(from, until, this.app.now()), lengthText(Math.round(until - from))];
		const sum = data && sumOf(data, from, until);
		if (sum && sum.recordedMs) {
			const rate = data.unit === "nanoseconds" ? sum.value / (sum.recordedMs * 1e6) : sum.value / sum.recordedMs * 1e3;
			const { pid, labels } = this.app.state;
			const whose = pid || labels.length ? " of the whole machine" : "";
			parts.push(`${short(rate)} ${data.name} on average${whose}`, `${humanValue(sum.value, data.unit)} ${sum.pending ? "so far" : "in all"}`);
			if (!sum.pending && sum.recordedMs < 0.98 * 1000 * (until - from))
				parts.push(`recorded ${percent(sum.recordedMs, 1000 * (until - from))} of the time`);
		} else if (sum && !sum.pending) {
			parts.push("nobody recorded");
		}
		const text = `${selected ? "Selected" : "All"}: ${parts.join(" · ")}`;
		byId("strip-range").textContent = text;
		this.canvas.setAttribute("aria-valuetext", text);
		this.canvas.setAttribute("aria-valuenow", Math.round(100 * (from - this.span.from) / (this.span.until - this.span.from)));
		byId("clear").disabled = !selected;
		const state = this.failure ? [this.failure] : [];
		if (data && data.left)
			state.push(`summing: ${data.left} of ${data.windows} windows to go`);
		if (data && data.broken)
			state.push(`${data.broken} ${data.broken === 1 ? "file" : "files"} cannot be read`);
		byId("strip-state").textContent = state.join(" · ");
		byId("strip-state").classList.toggle("error", Boolean(this.failure));
	}

	/* What the pointer is on. */
	tell(event) {
		const { data } = this;
		const x = event ? this.xOf(event) : -1;
		if (!data || x < LEFT) {
			byId("strip-at").textContent = "";
			return;
		}
		const at = this.drawing.timeAt(this.span, x);
		const i = Math.max(0, Math.min(data.rate.length - 1,
			Math.floor((at - data.from) / (data.until - data.from) * data.rate.length)));
		const value = data.pending[i] > 0 ? "not summed yet" : data.rate[i] === null ? "nobody recorded" :
			`${short(data.rate[i])} ${data.name}`;
		byId("strip-at").textContent = `${clock(at)}: ${value}`;
	}

	/* ---- mouse ---- */

	xOf(event) {
		return event.clientX - this.canvas.getBoundingClientRect().left;
	}

	/* Whole seconds, at least one. */
	between(one, other) {
		const from = Math.floor(Math.min(one, other));
		return [from, Math.max(from + 1, Math.ceil(Math.max(one, other)))];
	}

	edgeAt(x) {
		const { selected } = this.app.state;
		const edges = selected ? selected.map((at) => this.drawing.xOf(this.span, at)) : [];
		return edges.findIndex((edge) => Math.abs(edge - x) <= EDGE_PIXELS);
	}

	pressed(event) {
		if (event.button !== 0)
			return;
		const x = this.xOf(event);
		const edge = this.edgeAt(x);
		/* Of an edge, the other one stays. */
		const anchor = edge >= 0 ? this.app.state.selected[1 - edge] : this.drawing.timeAt(this.span, x);
		this.drag = { x, anchor, moved: edge >= 0 };
		this.canvas.setPointerCapture(event.pointerId);
	}

	moved(event) {
		const x = this.xOf(event);
		this.tell(event);
		this.canvas.classList.toggle("edge", this.drag ? this.drag.moved && this.edgeAt(this.drag.x) >= 0 : this.edgeAt(x) >= 0);
		if (!this.drag)
			return;
		this.drag.moved = this.drag.moved || Math.abs(x - this.drag.x) >= CLICK_PIXELS;
		if (!this.drag.moved)
			return;
		this.draft = this.between(this.drag.anchor, this.drawing.timeAt(this.span, x));
		this.update();
	}

	released() {
		this.drag = null;
		this.commit();
	}

	/* A range that is being chosen is given up. */
	drop() {
		clearTimeout(this.timer);
		this.draft = undefined;
		this.drag = null;
	}

	commit() {
		clearTimeout(this.timer);
		if (this.draft === undefined)
			return;
		const selected = this.draft;
		this.draft = undefined;
		this.app.update({ selected });
		this.update();
	}

	/* ---- keys ---- */

	/* Whole intervals of the recording. */
	get step() {
		const length = this.span.until - this.span.from;
		return Math.max(1, Math.round(length / STEPS / this.intervalS)) * this.intervalS;
	}

	/* The range after an arrow key. */
	arrow(sign, extends_) {
		const { from, until } = this.span;
		const selected = this.draft === undefined ? this.app.state.selected : this.draft;
		const clamp = (at) => Math.max(from, Math.min(until, Math.round(at)));
		if (!selected)
			return sign > 0 ? [from, clamp(from + this.step)] : [clamp(until - this.step), until];
		const [begin, end] = selected;
		if (extends_)
			return [begin, Math.max(begin + 1, clamp(end + sign * this.step))];
		const by = Math.max(from - begin, Math.min(until - end, sign * this.step));
		return [Math.round(begin + by), Math.round(end + by)];
	}

	edge(sign) {
		const selected = this.draft === undefined ? this.app.state.selected : this.draft;
		const length = selected ? selected[1] - selected[0] : Math.round(this.step);
		const { from, until } = this.span;
		return sign < 0 ? [from, Math.min(until, from + length)] : [Math.max(from, until - length), until];
	}

	key(event) {
		if (event.ctrlKey || event.altKey || event.metaKey)
			return;
		const arrows = { ArrowLeft: -1, ArrowRight: 1, ArrowDown: -1, ArrowUp: 1 };
		if (Object.hasOwn(arrows, event.key))
			this.draft = this.arrow(arrows[event.key], event.shiftKey);
		else if (event.key === "Home" || event.key === "End")
			this.draft = this.edge(event.key === "Home" ? -1 : 1);
		else if (event.key === "Escape")
			this.draft = null;
		else
			return;
		event.preventDefault();
		event.stopPropagation();
		this.update();
		announce(byId("strip-range").textContent);
		clearTimeout(this.timer);
		this.timer = setTimeout(() => this.commit(), event.key === "Escape" ? 0 : KEY_REST_MS);
	}

	/* In: the selection becomes all that is shown; else the middle half.  Out: twice as much, up to now. */
	zoom(sign) {
		this.commit();
		const { from, until } = this.span;
		const length = until - from;
		const { selected } = this.app.state;
		if (sign < 0) {
			const end = Math.min(Math.ceil(this.app.now()), until + Math.ceil(length / 2));
			this.app.update({ last: "", from: Math.max(1, end - 2 * length), until: end });
			return;
		}
		const [begin, end] = selected || [Math.round(from + length / 4), Math.round(until - length / 4)];
		const middle = (begin + end) / 2;
		const half = Math.max(LEAST_SPAN_S, end - begin) / 2;
		if (length > LEAST_SPAN_S)
			this.app.update({ last: "", from: Math.round(middle - half), until: Math.round(middle + half), selected: null });
	}

	listen() {
		const { canvas } = this;
		new ResizeObserver(() => this.update()).observe(canvas);
		canvas.addEventListener("pointerdown", (event) => this.pressed(event));
		canvas.addEventListener("pointermove", (event) => this.moved(event));
		canvas.addEventListener("pointerleave", () => this.tell(null));
		canvas.addEventListener("pointerup", () => this.released());
		canvas.addEventListener("pointercancel", () => {
			this.drop();
			this.update();
		});
		canvas.addEventListener("dblclick", () => this.app.update({ selected: null }));
		canvas.addEventListener("keydown", (event) => this.key(event));
		byId("zoom-in").addEventListener("click", () => this.zoom(1));
		byId("zoom-out").addEventListener("click", () => this.zoom(-1));
		byId("clear").addEventListener("click", () => this.app.update({ selected: null }));
	}
}
