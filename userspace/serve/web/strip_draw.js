/* SPDX-License-Identifier: BSD-2-Clause */
/* Draws the strip: bars where somebody recorded (no use is a line at the foot), hatching where nobody did, and a
 * grey block where sums are not known yet. */
import { clock, day, mark, roundUp } from "./units.js";

export const LEFT = 44;
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

export class StripDrawing {
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
