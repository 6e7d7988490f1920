/* SPDX-License-Identifier: BSD-2-Clause */
/* The JSON of the page -> typed arrays.  Nothing in it is trusted: indexes are checked once, here. */

export const KINDS = ["Python", "native", "kernel", "GPU", "other"];
const LONGEST_NAME = 4096;
/* Controls and what turns the direction of writing: a name must not look like another one. pyprof has
   escaped them already (base/utf8.h). */
const UNSAFE = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ufeff]/g;

function escaped(character) {
	return "\\u" + character.charCodeAt(0).toString(16).padStart(4, "0");
}

function cleanText(text) {
	const clean = String(text).replace(UNSAFE, escaped);
	return clean.length > LONGEST_NAME ? clean.slice(0, LONGEST_NAME) + "…" : clean;
}

/* Tabs are part of a source. */
function cleanSource(text) {
	return String(text).split("\t").map(cleanText).join("\t");
}

function need(condition, what) {
	if (!condition)
		throw new Error(`The profile in this page is damaged: ${what}.`);
}

function within(values, limit, what) {
	for (let i = 0; i < values.length; i++) {
		if (values[i] < 0 || values[i] >= limit)
			need(false, `${what} ${i} points outside`);
	}
	return values;
}

/* Column `at` of the rows, as integers. */
function column(rows, at, limit, what) {
	const values = new Int32Array(rows.length);
	for (let i = 0; i < rows.length; i++)
		values[i] = rows[i][at];
	return limit ? within(values, limit, what) : values;
}

/* Frames that differ in their line alone are one function. */
function addFunctions(profile) {
	const { frameName, frameFile, frameLine, frameKind, frameModule } = profile;
	const known = new Map();
	const frameFunction = new Int32Array(frameName.length);
	const firstFrame = [];
	for (let i = 0; i < frameName.length; i++) {
		const key = `${frameName[i]} ${frameFile[i]} ${frameKind[i]} ${frameModule[i]}`;
		let id = known.get(key);
		if (id === undefined) {
			id = firstFrame.length;
			known.set(key, id);
			firstFrame.push(i);
		} else if (frameLine[i] > 0 && !(frameLine[firstFrame[id]] <= frameLine[i] && frameLine[firstFrame[id]] > 0)) {
			firstFrame[id] = i;
		}
		frameFunction[i] = id;
	}
	profile.frameFunction = frameFunction;
	/* The frame that represents a function: the one with its smallest line. */
	profile.functionFrame = Int32Array.from(firstFrame);
}

function addFrames(profile, raw) {
	const rows = raw.frames;
	const strings = profile.strings.length;
	need(Array.isArray(rows) && rows.every((row) => Array.isArray(row) && row.length >= 5), "its frames");
	profile.frameName = column(rows, 0, strings, "name of frame");
	profile.frameFile = column(rows, 1, strings, "file of frame");
	profile.frameLine = column(rows, 2);
	profile.frameKind = column(rows, 3, KINDS.length, "kind of frame");
	profile.frameModule = column(rows, 4, strings, "module of frame");
	addFunctions(profile);
}

/* What is shown for a file in the place of its whole path: by index of the whole path in strings. */
function addShortFiles(profile, raw) {
	const pairs = raw.shortFiles || [];
	need(Array.isArray(pairs) && pairs.every((pair) => Array.isArray(pair) && pair.length === 2), "its short paths");
	within(pairs.map(([file]) => file), profile.strings.length, "short path");
	profile.shortFile = new Map(pairs.map(([file, text]) => [file, cleanText(text)]));
}

/* Source by whole path: { note, lines: [[number, text]] }. */
function addSources(profile, raw) {
	const sources = raw.sources || [];
	need(Array.isArray(sources) && sources.every((one) => one && Array.isArray(one.lines)), "its sources");
	profile.sources = new Map(sources.map(({ file, note, lines }) => [cleanText(file), { note: cleanText(note || ""),
		lines: lines.map(([number, text]) => [Number(number) || 0, cleanSource(text)]) }]));
}

function addNodes(profile, raw) {
	const nodeFrame = new Int32Array(raw.stacks.frame);
	const nodeParent = new Int32Array(raw.stacks.parent);
	need(nodeFrame.length === nodeParent.length && nodeFrame.length > 0, "its stacks");
	const frames = profile.frameName.length;
	for (let i = 1; i < nodeFrame.length; i++) {
		if (nodeParent[i] < 0 || nodeParent[i] >= i || nodeFrame[i] < 0 || nodeFrame[i] >= frames)
			need(false, `node ${i}`);
	}
	nodeFrame[0] = -1;
	nodeParent[0] = -1;
	Object.assign(profile, { nodeFrame, nodeParent });
}

function addSamples(profile, raw) {
	const { samples } = raw;
	const amount = samples.node.length;
	profile.sampleNode = within(new Int32Array(samples.node), profile.nodeFrame.length, "node of sample");
	profile.sampleGroup = within(new Int32Array(samples.group), Math.max(1, profile.groups.length), "group of sample");
	profile.sampleValue = new Float64Array(samples.value);
	profile.sampleBase = samples.base ? new Float64Array(samples.base) : null;
	for (const values of [profile.sampleGroup, profile.sampleValue, profile.sampleBase])
		need(!values || values.length === amount, "its samples differ in number");
	profile.total = sum(profile.sampleValue);
	profile.baseTotal = profile.sampleBase ? sum(profile.sampleBase) : 0;
}

function sum(values) {
	let all = 0;
	for (let i = 0; i < values.length; i++) {
		if (!(values[i] >= 0))
			need(false, `the value of sample ${i} is negative`);
		all += values[i];
	}
	return all;
}

/* Windows, and what each added to which sample. */
function addTimes(profile, raw) {
	profile.times = null;
	if (!raw.times)
		return;
	const [start, duration, first, sample, value] = ["start", "duration", "first", "sample", "value"]
		.map((name) => Float64Array.from(raw.times[name] || []));
	need(start.length > 1 && duration.length === start.length && first.length === start.length && sample.length === value.length, "its times");
	within(sample, profile.sampleNode.length, "sample of time");
	for (let i = 0; i < first.length; i++)
		need(first[i] >= (i ? first[i - 1] : 0) && first[i] <= sample.length, "its times");
	sum(value);
	profile.times = { start, duration, first, sample, value, all: { value: profile.sampleValue, total: profile.total } };
}

/* The values of the windows from..to alone; from < 0: of all. */
export function chooseTimes(profile, from, to) {
	const { first, sample, value, all } = profile.times;
	if (from < 0) {
		Object.assign(profile, { sampleValue: all.value, total: all.total });
		return;
	}
	const values = new Float64Array(all.value.length);
	const end = to + 1 < first.length ? first[to + 1] : sample.length;
	for (let i = first[from]; i < end; i++)
		values[sample[i]] += value[i];
	Object.assign(profile, { sampleValue: values, total: sum(values) });
}

export function loadProfile(raw) {
	need(raw && typeof raw === "object", "no data");
	if (raw.version !== 1)
		throw new Error(`This page reads profiles of version 1, not ${raw.version}.`);
	need(Array.isArray(raw.strings) && raw.stacks && raw.samples, "a part is missing");
	const profile = {
		title: cleanText(raw.title || "Profile"), unit: raw.unit || "", kind: cleanText(raw.kind || ""),
		duration: Number(raw.duration_ns) || 0, period: Number(raw.period) || 0,
		windows: Number(raw.windows) || 0, sampleCount: Number(raw.sampleCount) || 0,
		strings: raw.strings.map(cleanText), groups: raw.groups || [],
	};
	if (!profile.strings.length)
		profile.strings.push("");
	addFrames(profile, raw);
	addShortFiles(profile, raw);
	addSources(profile, raw);
	addNodes(profile, raw);
	addSamples(profile, raw);
	addTimes(profile, raw);
	profile.differential = profile.sampleBase !== null;
	return profile;
}

export function frameName(profile, frame) {
	const name = profile.strings[profile.frameName[frame]];
	return name.trim() ? name : "[unknown]";
}

function withLineOf(profile, frame, file) {
	const line = profile.frameLine[frame];
	return file && line > 0 ? `${file}:${line}` : file;
}

/* What identifies the file: "json/decoder.py:337". */
export function framePlace(profile, frame, withLine) {
	const file = profile.frameFile[frame];
	const text = profile.shortFile.get(file) || profile.strings[file];
	return withLine ? withLineOf(profile, frame, text) : text;
}

/* The whole path, for the pointer and for sorting. */
export function frameWholePlace(profile, frame) {
	return withLineOf(profile, frame, profile.strings[profile.frameFile[frame]]);
}

export function groupLabel(group, withThread) {
	const part = String(group.label || "").split(" / ");
	const process = part.length > 1 ? part[0] : `pid ${group.pid} ${group.comm || ""}`;
	const thread = part.length > 1 ? part.slice(1).join(" / ") : group.label || `thread ${group.tid} ${group.thread || ""}`;
	return cleanText(withThread ? thread : process).trim();
}
