/* SPDX-License-Identifier: BSD-2-Clause */
/* One flame graph on a canvas: zoom, selection, mouse and keys.  Events: onSelect(node), onZoom(node),
 * onHover(node, event), onOpen(node). */
import { nodeAt, rowOf, besideNode, firstChild, firstPast } from "./layout.js";
import { FADED, GROUND, MATCH, nodeColour } from "./palette.js";

const ZOOM_MS = 140;
const CLICK_SLACK = 4;

export class Chart {
	constructor(host, name, handlers) {
		this.host = host;
		this.name = name;
		this.on = handlers;
		this.canvas = document.createElement("canvas");
		this.canvas.setAttribute("aria-hidden", "true");
		this.spacer = document.createElement("div");
		this.spacer.className = "spacer";
		host.append(this.canvas, this.spacer);
		host.tabIndex = 0;
		host.setAttribute("role", "application");
		host.setAttribute("aria-roledescription", "flame graph");
		host.setAttribute("aria-label", name);
		this.view = [0, 1];
		this.zoomed = 0;
		this.selected = this.hovered = -1;
		this.flip = false;
		this.widths = new Map();
		this.style = {};
		this.drag = null;
		host.addEventListener("scroll", () => this.redraw());
		new ResizeObserver(() => this.resized()).observe(host);
		this.listen();
	}

	/* style: { palette, colours, label(tree, node), matches, searching } */
	setStyle(style) {
		Object.assign(this.style, style);
		this.redraw();
	}

	show(layout, flip) {
		this.layout = layout;
		this.flip = flip;
		this.zoomed = 0;
		this.selected = this.hovered = -1;
		this.view = this.target = [0, layout.weight[0] || 1];
		this.widths.clear();
		this.fitContent();
		this.host.scrollTop = flip ? this.host.scrollHeight : 0;
		this.redraw();
	}

	fitContent() {
		const content = this.layout ? this.layout.rows * ROW_HEIGHT + 1 : 0;
		const height = this.onPaper ? content : this.host.clientHeight;
		/* The canvas is in the flow, above the spacer. */
		this.canvas.style.height = `${height}px`;
		this.spacer.style.height = `${Math.max(0, content - height)}px`;
	}

	resized() {
		const atEnd = this.host.scrollTop + this.host.clientHeight >= this.host.scrollHeight - 2;
		this.fitContent();
		if (this.flip && atEnd)
			this.host.scrollTop = this.host.scrollHeight;
		this.redraw();
	}

	redraw() {
		if (!this.frameAsked)
			this.frameAsked = requestAnimationFrame(() => this.draw());
	}

	/* On paper in full height. */
	setPaper(onPaper) {
		this.onPaper = onPaper;
		if (!this.layout)
			return;
		this.fitContent();
		this.draw();
	}

	draw() {
		cancelAnimationFrame(this.frameAsked);
		this.frameAsked = 0;
		if (!this.layout)
			return;
		const whole = this.onPaper;
		const width = this.host.clientWidth;
		const height = whole ? this.layout.rows * ROW_HEIGHT + 1 : this.host.clientHeight;
		if (!width || !height)
			return;
		const ratio = Math.min(window.devicePixelRatio || 1, 16000 / height);
		const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
		if (this.canvas.width !== w || this.canvas.height !== h)
			Object.assign(this.canvas, { width: w, height: h });
		const context = this.canvas.getContext("2d", { alpha: false });
		const { tree } = this.layout;
		drawChart({ ...this.style, context, ratio, layout: this.layout, width, height, flip: this.flip, view: this.view,
			scroll: whole ? 0 : this.host.scrollTop, selected: this.selected, hovered: this.hovered,
			widths: this.widths, label: (node) => this.style.label(tree, node) });
	}

	/* Where the pointer is: [node, x in tree units]. */
	at(event) {
		const box = this.host.getBoundingClientRect();
		const x = this.view[0] + (event.clientX - box.left) / this.host.clientWidth * (this.view[1] - this.view[0]);
		const height = this.host.clientHeight;
		const lift = this.flip ? Math.max(0, height - this.layout.rows * ROW_HEIGHT) : 0;
		const line = Math.floor((event.clientY - box.top + this.host.scrollTop - lift) / ROW_HEIGHT);
		return [nodeAt(this.layout, this.flip ? this.layout.rows - 1 - line : line, x), x];
	}

	hover(node, event) {
		if (node !== this.hovered) {
			this.hovered = node;
			this.redraw();
		}
		this.on.onHover(node, event);
	}

	select(node, reveal) {
		this.selected = node;
		if (node >= 0 && reveal)
			this.reveal(node);
		this.redraw();
		this.on.onSelect(node);
	}

	/* Scrolls so that the node's row is in sight, and pans when the box is outside. */
	reveal(node) {
		const { layout, host } = this;
		const row = rowOf(layout, node);
		const top = (this.flip ? layout.rows - 1 - row : row) * ROW_HEIGHT;
		if (top < host.scrollTop + ROW_HEIGHT)
			host.scrollTop = top - ROW_HEIGHT * 2;
		else if (top + 2 * ROW_HEIGHT > host.scrollTop + host.clientHeight)
			host.scrollTop = top + 3 * ROW_HEIGHT - host.clientHeight;
		const [from, to] = [layout.x[node], layout.x[node] + layout.weight[node]];
		const span = this.view[1] - this.view[0];
		if (to <= this.view[0] || from >= this.view[1])
			this.moveTo([from + (to - from) / 2 - span / 2, from + (to - from) / 2 + span / 2]);
	}

	zoomTo(node, quiet) {
		this.zoomed = node;
		this.moveTo([this.layout.x[node], this.layout.x[node] + this.layout.weight[node]], quiet);
		this.reveal(node);
		if (!quiet)
			this.on.onZoom(node);
	}

	zoomOut() {
		this.zoomTo(this.zoomed > 0 ? this.layout.tree.parent[this.zoomed] : 0);
	}

	zoomBy(factor, centre) {
		const [from, to] = this.target;
		const middle = centre === undefined ? (from + to) / 2 : centre;
		this.moveTo([middle - (middle - from) * factor, middle + (to - middle) * factor]);
	}

	pan(share) {
		const [from, to] = this.target;
		this.moveTo([from + (to - from) * share, to + (to - from) * share], true);
	}

	/* Keeps the interval inside the tree, then goes there. */
	moveTo([from, to], atOnce) {
		const whole = this.layout.weight[0] || 1;
		const span = Math.min(Math.max(to - from, whole * 1e-9), whole);
		from = Math.min(Math.max(from, 0), whole - span);
		this.target = [from, from + span];
		if (atOnce || matchMedia("(prefers-reduced-motion: reduce)").matches) {
			this.view = this.target;
			this.redraw();
			return;
		}
		const [begin, source] = [performance.now(), this.view];
		const goal = this.target;
		const step = () => {
			if (this.target !== goal)
				return;
			const done = Math.min((performance.now() - begin) / ZOOM_MS, 1);
			const eased = 1 - (1 - done) ** 3;
			this.view = done === 1 ? goal : [0, 1].map((i) => source[i] + (goal[i] - source[i]) * eased);
			this.draw();
			if (done < 1)
				requestAnimationFrame(step);
		};
		step();
	}

	listen() {
		const { host } = this;
		host.addEventListener("pointermove", (event) => this.pointerMoved(event));
		host.addEventListener("pointerleave", () => this.layout && this.hover(-1));
		host.addEventListener("pointerdown", (event) => {
			/* Not on the scroll bar. */
			if (event.button === 0 && event.offsetX < host.clientWidth)
				this.drag = { x: event.clientX, y: event.clientY, view: this.view, moved: false };
		});
		window.addEventListener("pointerup", (event) => this.released(event));
		host.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
	}

	pointerMoved(event) {
		if (!this.layout)
			return;
		const { drag } = this;
		if (drag && event.buttons & 1) {
			const by = event.clientX - drag.x;
			drag.moved = drag.moved || Math.abs(by) > CLICK_SLACK || Math.abs(event.clientY - drag.y) > CLICK_SLACK;
			const units = by / this.host.clientWidth * (drag.view[1] - drag.view[0]);
			if (drag.moved)
				this.moveTo([drag.view[0] - units, drag.view[1] - units], true);
			return;
		}
		this.hover(this.at(event)[0], event);
	}

	released(event) {
		const { drag } = this;
		this.drag = null;
		if (!drag || drag.moved || !this.layout || !this.host.contains(event.target))
			return;
		const [node] = this.at(event);
		if (node < 0)
			return;
		this.select(node, false);
		this.zoomTo(node);
	}

	wheel(event) {
		if (!this.layout)
			return;
		if (event.ctrlKey || event.metaKey) {
			event.preventDefault();
			this.zoomBy(Math.exp(Math.max(-100, Math.min(100, event.deltaY)) / 240), this.at(event)[1]);
		} else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
			event.preventDefault();
			this.pan((event.deltaX || event.deltaY) / this.host.clientWidth);
		}
	}

	/* The node that a key moves to; undefined when the key is not ours. */
	neighbour(key) {
		const { layout, selected } = this;
		if (!/^Arrow/.test(key))
			return undefined;
		if (selected < 0)
			return this.zoomed;
		if (key === "ArrowLeft" || key === "ArrowRight")
			return besideNode(layout, selected, key === "ArrowLeft" ? -1 : 1);
		return (key === "ArrowDown") !== this.flip ? firstChild(layout, selected) : layout.tree.parent[selected];
	}

	/* True when the key was used. */
	key(event) {
		if (!this.layout)
			return false;
		if (event.shiftKey && (event.key === "ArrowLeft" || event.key === "ArrowRight")) {
			this.pan(event.key === "ArrowLeft" ? -0.1 : 0.1);
			return true;
		}
		const node = this.neighbour(event.key);
		if (node !== undefined) {
			if (node >= 0)
				this.select(node, true);
			return true;
		}
		const action = {
			Enter: () => this.zoomTo(Math.max(this.selected, 0)), Backspace: () => this.zoomOut(),
			0: () => this.zoomTo(0), Home: () => this.zoomTo(0),
			"+": () => this.zoomBy(0.6), "=": () => this.zoomBy(0.6), "-": () => this.zoomBy(1 / 0.6),
		}[event.key];
		if (action)
			action();
		return Boolean(action);
	}
}

/* Draws the rows in sight of a layout.  The cost follows the pixels, not the nodes: of boxes that share
 * one pixel the first is drawn and the rest are skipped by halving; boxes are written as pixels, one line
 * for each row that is then copied down. */

const ROW_HEIGHT = 19;
const FONT = '12px ui-sans-serif, system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif';
const PADDING = 4;
const NARROWEST_TEXT = 22;
/* Device pixels: from this width on a box keeps one free at its right. */
const LEAST_WITH_GAP = 4;

/* What one picture needs: { context, ratio (device pixels), layout, width, height, scroll, view: [x0, x1],
 * flip, palette, colours, label(node), matches, searching, selected, hovered, widths: label -> pixels }. */
function drawChart(picture) {
	const { context, ratio, layout, width, height, scroll, flip } = picture;
	const image = context.createImageData(context.canvas.width, context.canvas.height);
	const lines = new Uint32Array(image.data.buffer);
	lines.fill(picture.palette.pixel[GROUND]);
	const boxes = [];
	const lift = flip ? Math.max(0, height - layout.rows * ROW_HEIGHT) : 0;
	for (let row = 0; row < layout.rows; row++) {
		const y = (flip ? layout.rows - 1 - row : row) * ROW_HEIGHT - scroll + lift;
		if (y > -ROW_HEIGHT && y < height)
			drawRow(picture, lines, image, row, y, boxes);
	}
	context.setTransform(1, 0, 0, 1, 0, 0);
	context.putImageData(image, 0, 0);
	context.setTransform(ratio, 0, 0, ratio, 0, 0);
	context.font = FONT;
	context.textBaseline = "middle";
	for (let i = 0; i < boxes.length; i += 4)
		drawLabel(picture, boxes[i], boxes[i + 1], boxes[i + 2], boxes[i + 3]);
	for (const node of [picture.hovered, picture.selected])
		outline(picture, node, width, lift);
}

/* Fills the row's pixels; boxes that have room for text go to `boxes` (node, left, y, width). */
function drawRow(picture, lines, image, row, y, boxes) {
	const { layout, view, width, ratio } = picture;
	const { order, x, weight } = layout;
	const end = layout.rowStart[row + 1];
	const scale = width / (view[1] - view[0]);
	const across = image.width;
	const top = Math.max(0, Math.round(y * ratio));
	const bottom = Math.min(image.height, Math.round((y + ROW_HEIGHT - 1) * ratio));
	const line = lines.subarray(top * across, (top + 1) * across);
	let at = firstPast(layout, layout.rowStart[row], end, view[0]);
	while (at < end && bottom > top) {
		const node = order[at];
		const left = (x[node] - view[0]) * scale * ratio;
		if (left >= across)
			break;
		const right = left + weight[node] * scale * ratio;
		const colour = boxColour(picture, node);
		if (right - left < 1) {
			const pixel = Math.floor(left);
			line[pixel] = colour;
			at = firstPast(layout, at + 1, end, view[0] + (pixel + 1) / (scale * ratio));
			continue;
		}
		const [from, to] = [Math.max(0, Math.round(left)), Math.min(across, Math.round(right))];
		line.fill(colour, from, to - from >= LEAST_WITH_GAP && right <= across ? to - 1 : to);
		if (to - from >= NARROWEST_TEXT * ratio)
			boxes.push(node, from / ratio, y, (to - from) / ratio);
		at++;
	}
	for (let i = top + 1; i < bottom; i++)
		lines.copyWithin(i * across, top * across, (top + 1) * across);
}

function isFaded({ layout, searching, matches }, node) {
	const frame = layout.tree.frame[node];
	return searching && !(frame >= 0 && matches[frame]);
}

function boxColour(picture, node) {
	const { palette, searching, layout } = picture;
	const place = isFaded(picture, node) ? FADED : searching ? MATCH : nodeColour(picture.colours, layout.tree, node);
	return palette.pixel[place];
}

/* Cuts `text` so that it fits `width`; "" when not even a few letters do. */
function fitted(context, text, fullWidth, width) {
	if (fullWidth <= width)
		return text;
	let low = 0;
	let high = Math.min(text.length, Math.ceil(text.length * width / fullWidth * 1.5) + 2);
	while (low < high) {
		const middle = (low + high + 1) >> 1;
		if (context.measureText(text.slice(0, middle) + "…").width <= width)
			low = middle;
		else
			high = middle - 1;
	}
	/* Never half of a surrogate pair. */
	if (low > 0 && /[\ud800-\udbff]/.test(text[low - 1]))
		low--;
	return low >= 2 ? text.slice(0, low) + "…" : "";
}

function drawLabel(picture, node, left, y, width) {
	const { context, palette, widths } = picture;
	const text = picture.label(node);
	let full = widths.get(text);
	if (full === undefined) {
		full = context.measureText(text).width;
		widths.set(text, full);
	}
	const shown = fitted(context, text, full, width - 2 * PADDING);
	if (!shown)
		return;
	context.fillStyle = isFaded(picture, node) ? palette.fadedText : palette.text;
	context.fillText(shown, left + PADDING, y + ROW_HEIGHT / 2);
}

function outline(picture, node, width, lift) {
	const { context, layout, view, selected, palette, flip, scroll } = picture;
	if (node < 0)
		return;
	let row = 0;
	for (let above = layout.tree.parent[node]; above >= 0; above = layout.tree.parent[above])
		row++;
	const y = (flip ? layout.rows - 1 - row : row) * ROW_HEIGHT - scroll + lift;
	const scale = width / (view[1] - view[0]);
	const left = Math.max(0, (layout.x[node] - view[0]) * scale);
	const right = Math.min(width, (layout.x[node] + layout.weight[node] - view[0]) * scale);
	if (right < 0 || left > width)
		return;
	context.strokeStyle = palette.outline;
	context.lineWidth = node === selected ? 2 : 1;
	const inset = context.lineWidth / 2;
	context.strokeRect(left + inset, y + inset - 0.5, Math.max(right - left - 1 - 2 * inset, 1), ROW_HEIGHT - 2 * inset);
}
