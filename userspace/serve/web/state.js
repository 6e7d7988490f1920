/* SPDX-License-Identifier: BSD-2-Clause */
/* What is on show, in the address behind the #: it can be sent, and Back goes back.
 * last: a range up to now, or ""; then from and until, seconds since 1970.  selected: [from, until] within it, or null.
 * labels: [[key, value]].  view: what is on show in the frame, in its own words.  follow: null: as it is usual. */

export const LASTS = { "5m": 300, "1h": 3600, "6h": 21600, "24h": 86400, all: 0 };
const LABELS_MAX = 8;
const VIEW_MAX = 2000;
const SECONDS_MAX = 3600;

export const DEFAULTS = { last: "1h", from: 0, until: 0, selected: null, kind: "cpu", pid: 0, labels: [], tab: "flame",
	follow: null, seconds: 30, view: "" };
/* A change of these alone is no step back. */
const QUIET = ["follow", "view"];

function readRange(text) {
	const found = /^(\d{1,11})-(\d{1,11})$/.exec(text || "");
	const range = found && [Number(found[1]), Number(found[2])];
	return range && range[0] < range[1] ? range : null;
}

function readNumber(text, most) {
	return /^\d{1,9}$/.test(text || "") && Number(text) <= most ? Number(text) : 0;
}

function readLabels(texts) {
	const found = new Map();
	for (const text of texts) {
		const colon = text.indexOf(":");
		if (colon > 0 && !text.slice(0, colon).includes("="))
			found.set(text.slice(0, colon), text.slice(colon + 1));
	}
	return [...found].slice(0, LABELS_MAX);
}

/* From the text behind the #, which anybody may have written. */
export function readState(hash) {
	const words = new URLSearchParams(hash.replace(/^#/, ""));
	const range = readRange(words.get("range"));
	const last = Object.hasOwn(LASTS, words.get("last")) ? words.get("last") : DEFAULTS.last;
	return {
		last: range ? "" : last,
		from: range ? range[0] : 0,
		until: range ? range[1] : 0,
		selected: readRange(words.get("selected")),
		kind: /^[a-z0-9_]{1,32}$/.test(words.get("kind") || "") ? words.get("kind") : DEFAULTS.kind,
		pid: readNumber(words.get("pid"), 4194304),
		labels: readLabels(words.getAll("label")),
		tab: words.get("tab") === "waits" ? "waits" : "flame",
		follow: words.has("follow") ? words.get("follow") === "1" : null,
		seconds: readNumber(words.get("seconds"), SECONDS_MAX) || DEFAULTS.seconds,
		view: (words.get("view") || "").slice(0, VIEW_MAX),
	};
}

export function writeState(state) {
	const words = new URLSearchParams();
	const set = (name, value, usual) => value !== usual && words.set(name, String(value));
	if (state.last)
		set("last", state.last, DEFAULTS.last);
	else
		words.set("range", `${state.from}-${state.until}`);
	if (state.selected)
		words.set("selected", state.selected.join("-"));
	set("kind", state.kind, DEFAULTS.kind);
	set("pid", state.pid, DEFAULTS.pid);
	for (const [key, value] of state.labels)
		words.append("label", `${key}:${value}`);
	set("tab", state.tab, DEFAULTS.tab);
	if (state.follow !== null)
		words.set("follow", state.follow ? "1" : "0");
	set("seconds", state.seconds, DEFAULTS.seconds);
	set("view", state.view, DEFAULTS.view);
	return String(words);
}

/* Puts a state into the address. */
export function keepState(state, changed) {
	const text = writeState(state);
	if (text === location.hash.slice(1))
		return;
	const address = text ? `#${text}` : location.pathname;
	if (changed.every((name) => QUIET.includes(name)))
		history.replaceState(null, "", address);
	else
		history.pushState(null, "", address);
}

/* What of a frame's view means the same in another profile: numbers of boxes do not. */
export function stableView(view) {
	const words = new URLSearchParams(view);
	for (const name of ["zoom", "fn", "from", "to"])
		words.delete(name);
	return String(words);
}
