/* SPDX-License-Identifier: BSD-2-Clause */
/* The strip by mouse and keys: a range is chosen by dragging over it or by arrows, and moved by its edges. */
import { announce, byId } from "../../render/web/dom.js";
import { humanValue, percent } from "../../render/web/format.js";
import { StripData, sumOf } from "./strip_data.js";
import { LEFT, StripDrawing } from "./strip_draw.js";
import { clock, lengthText, rangeText, short } from "./units.js";

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
		this.loader = new StripData((data) => this.show(data), (error) => this.fail(error));
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
		this.loader.load(kind, span, points);
	}

	stop() {
		this.loader.stop();
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
		this.app.stripKnown(data);
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
