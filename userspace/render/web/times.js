/* SPDX-License-Identifier: BSD-2-Clause */
/* The time map: a bar and a colour for each window; the range that is dragged over is what all views show. */
import { byId } from "./dom.js";
import { humanValue } from "./format.js";

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
		new ResizeObserver(() => this.draw()).observe(this.canvas);
		this.canvas.addEventListener("pointerdown", (event) => {
			this.begun = this.windowAt(event);
			this.canvas.setPointerCapture(event.pointerId);
		});
		this.canvas.addEventListener("pointermove", (event) => this.dragged(event));
		this.canvas.addEventListener("pointerup", (event) => {
			this.dragged(event);
			this.begun = -1;
		});
		this.canvas.addEventListener("dblclick", () => app.update({ from: -1, to: -1 }));
		this.canvas.addEventListener("keydown", (event) => this.key(event));
		byId("time-all").addEventListener("click", () => app.update({ from: -1, to: -1 }));
	}

	windowAt(event) {
		const box = this.canvas.getBoundingClientRect();
		const count = this.rates.length;
		return Math.max(0, Math.min(count - 1, Math.floor((event.clientX - box.left) / box.width * count)));
	}

	dragged(event) {
		if (this.begun < 0)
			return;
		const at = this.windowAt(event);
		this.app.update({ from: Math.min(at, this.begun), to: Math.max(at, this.begun) });
	}

	/* Left and right move the range, with Shift its end. */
	key(event) {
		const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
		if (!step)
			return;
		const { from, to } = this.range();
		const last = this.rates.length - 1;
		const clamp = (at) => Math.max(0, Math.min(last, at));
		const begin = event.shiftKey ? from : clamp((this.app.state.from < 0 ? -step : from) + step);
		this.app.update(this.app.state.from < 0 ? { from: step > 0 ? 0 : last, to: step > 0 ? 0 : last } :
			{ from: begin, to: Math.max(begin, clamp(to + step)) });
		event.preventDefault();
		event.stopPropagation();
	}

	range() {
		const last = this.rates.length - 1;
		const { from, to } = this.app.state;
		return from < 0 || from > last || to < from ? { from: 0, to: last, all: true } : { from, to: Math.min(to, last), all: false };
	}

	draw() {
		const { canvas, app } = this;
		const { times } = app.profile;
		const ratio = window.devicePixelRatio || 1;
		const [width, height] = [Math.round(canvas.clientWidth * ratio), Math.round(canvas.clientHeight * ratio)];
		if (!times || !width)
			return;
		Object.assign(canvas, { width, height });
		const context = canvas.getContext("2d");
		const style = getComputedStyle(document.documentElement);
		const { from, to, all } = this.range();
		const count = this.rates.length;
		for (let i = 0; i < count; i++) {
			const [left, right] = [Math.floor(i * width / count), Math.floor((i + 1) * width / count)];
			const share = this.rates[i] / this.most;
			const wide = Math.max(1, right - left - (right - left > 3 ? 1 : 0));
			context.globalAlpha = i < from || i > to ? 0.12 : 0.25;
			context.fillStyle = style.getPropertyValue("--heat");
			context.fillRect(left, 0, wide, height);
			context.globalAlpha = i < from || i > to ? 0.25 : 0.3 + 0.7 * share;
			context.fillRect(left, height - Math.round(share * height), wide, Math.round(share * height));
		}
		context.globalAlpha = 1;
		const clock = (ms) => new Date(ms).toISOString().slice(11, 19);
		const end = times.start[to] + times.duration[to];
		byId("time-range").textContent = `${clock(times.start[from])}–${clock(end)} UTC, ${humanValue((end - times.start[from]) * 1e6, "nanoseconds")}`;
		byId("time-all").disabled = all;
		canvas.setAttribute("aria-valuetext", byId("time-range").textContent);
		canvas.setAttribute("aria-valuenow", from);
		canvas.setAttribute("aria-valuemin", 0);
		canvas.setAttribute("aria-valuemax", count - 1);
	}
}
