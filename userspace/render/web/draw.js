/* SPDX-License-Identifier: BSD-2-Clause */
/* Draws the rows in sight of a layout.  The cost follows the pixels, not the nodes: of boxes that share
 * one pixel the first is drawn and the rest are skipped by halving; boxes are written as pixels, one line
 * for each row that is then copied down. */
import { firstPast } from "./layout.js";
import { FADED, GROUND, MATCH, nodeColour } from "./palette.js";

export const ROW_HEIGHT = 19;
const FONT = '12px ui-sans-serif, system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif';
const PADDING = 4;
const NARROWEST_TEXT = 22;
/* Device pixels: from this width on a box keeps one free at its right. */
const LEAST_WITH_GAP = 4;

/* What one picture needs: { context, ratio (device pixels), layout, width, height, scroll, view: [x0, x1],
 * flip, palette, colours, label(node), matches, searching, selected, hovered, widths: label -> pixels }. */
export function drawChart(picture) {
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
