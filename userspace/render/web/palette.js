/* SPDX-License-Identifier: BSD-2-Clause */
/* Colours of boxes.  The kind of code gives the hue, the module its shade; blue and orange, the two that
 * are seen most, are told apart by every kind of colour vision.  A colour is a number: its place in
 * palette.css (for the page) and palette.pixel (for the canvas). */

const SHADES = 7;
const KIND_COUNT = 5;
const STEPS = 8;
/* By kind: hue, saturation, lightness in the light theme; the same in the dark one. */
const LIGHT = [[212, 72, 78], [36, 82, 74], [352, 70, 81], [142, 48, 72], [220, 10, 82]];
const DARK = [[213, 44, 35], [30, 48, 31], [350, 38, 37], [146, 40, 27], [220, 8, 34]];
/* Places of the other colours, behind kind * SHADES + shade; differences are SAME - STEPS … SAME + STEPS. */
const GROUP = KIND_COUNT * SHADES;
export const MATCH = GROUP + 1;
export const FADED = GROUP + 2;
export const GROUND = GROUP + 3;
const SAME = GROUP + 4 + STEPS;

/* Hue in degrees, the others in percent -> [red, green, blue] of 0 … 255. */
function rgb(hue, saturation, lightness) {
	const light = lightness / 100;
	const chroma = saturation / 100 * Math.min(light, 1 - light);
	return [0, 8, 4].map((part) => {
		const at = (part + hue / 30 + 12) % 12;
		return Math.round(255 * (light - chroma * Math.max(-1, Math.min(at - 3, 9 - at, 1))));
	});
}

function kindColours(dark) {
	return (dark ? DARK : LIGHT).flatMap(([hue, saturation, lightness]) => Array.from({ length: SHADES }, (_, i) => {
		const off = (i - (SHADES - 1) / 2) / SHADES;
		return rgb(hue + off * 22, saturation, lightness + off * (dark ? 10 : 9));
	}));
}

/* Grey for equal; blue for less, red for more. */
function differenceColours(dark) {
	return Array.from({ length: 2 * STEPS + 1 }, (_, i) => {
		const amount = (i - STEPS) / STEPS;
		const strength = Math.abs(amount);
		const lightness = dark ? 32 + 4 * strength : 88 - 14 * strength;
		return rgb(amount < 0 ? 212 : 4, strength * (dark ? 52 : 85), lightness);
	});
}

export function makePalette(dark) {
	const single = dark ? [[48, 52, 60], [138, 63, 168], [37, 40, 46], [21, 23, 27]] :
		[[227, 230, 235], [229, 155, 245], [236, 238, 241], [255, 255, 255]];
	const colours = [...kindColours(dark), ...single, ...differenceColours(dark)];
	return {
		css: colours.map((parts) => `rgb(${parts.join(" ")})`),
		/* As ImageData lies in memory, on machines with the low byte first (all that browsers run on). */
		pixel: Uint32Array.from(colours, ([red, green, blue]) => (0xff000000 | blue << 16 | green << 8 | red) >>> 0),
		text: dark ? "#f2f4f8" : "#16181c",
		fadedText: dark ? "#a3abb8" : "#5a6270",
		outline: dark ? "#ffffff" : "#16181c",
	};
}

function hash(text) {
	let value = 2166136261;
	for (let i = 0; i < text.length; i++)
		value = Math.imul(value ^ text.charCodeAt(i), 16777619);
	return (value ^ (value >>> 15)) >>> 0;
}

/* The colour of each frame, by kind and module. */
export function frameColours(profile) {
	const byModule = new Map();
	return Uint8Array.from(profile.frameName, (_, frame) => {
		const module = profile.frameModule[frame] || profile.frameFile[frame];
		if (!byModule.has(module))
			byModule.set(module, hash(profile.strings[module]) % SHADES);
		return profile.frameKind[frame] * SHADES + byModule.get(module);
	});
}

export function kindColour(palette, kind) {
	return palette.css[kind * SHADES + (SHADES - 1) / 2];
}

/* amount: -1 (less), 0 or 1 (more) */
export function differenceColour(palette, amount) {
	return palette.css[SAME + amount * STEPS];
}

/* The colour of a node before search: by kind, or by how its share changed. */
export function nodeColour(colours, tree, node) {
	if (tree.baseTotal)
		return SAME + differenceStep(tree, node);
	return tree.frame[node] < 0 ? GROUP : colours[tree.frame[node]];
}

export function shareChange(tree, node) {
	return tree.total[node] / (tree.scale.total || 1) - tree.baseTotal[node] / (tree.scale.base || 1);
}

/* Relative to the larger share, so that a small box that doubled shows; the root makes small changes seen. */
function differenceStep(tree, node) {
	const after = tree.total[node] / (tree.scale.total || 1);
	const before = tree.baseTotal[node] / (tree.scale.base || 1);
	const larger = Math.max(after, before);
	return larger > 0 ? Math.round(Math.sign(after - before) * Math.sqrt(Math.abs(after - before) / larger) * STEPS) : 0;
}
