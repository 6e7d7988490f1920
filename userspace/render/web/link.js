/* SPDX-License-Identifier: BSD-2-Clause */
/* What is on show, in the address: it can be sent, and Back goes back. */

export const DEFAULTS = { tab: "flame", shape: "icicle", group: "all", order: "heavy", width: "after", byLine: false,
	q: "", regex: false, zoom: 0, fn: -1, from: -1, to: -1 };
const ALLOWED = { tab: ["flame", "sandwich", "table", "lines"], shape: ["icicle", "flame"],
	group: ["all", "process", "thread"], order: ["heavy", "name"], width: ["after", "before"] };
/* A step of these can be gone back. */
const GOES_BACK = ["tab", "zoom", "fn"];

export function readLink() {
	const state = { ...DEFAULTS };
	for (const [name, text] of new URLSearchParams(location.hash.slice(1))) {
		if (!Object.hasOwn(DEFAULTS, name))
			continue;
		if (typeof DEFAULTS[name] === "boolean")
			state[name] = text === "1";
		else if (typeof DEFAULTS[name] === "number")
			state[name] = /^\d{1,9}$/.test(text) ? Number(text) : DEFAULTS[name];
		else if (!ALLOWED[name] || ALLOWED[name].includes(text))
			state[name] = text;
	}
	return state;
}

/* The part of an address behind the #. */
export function linkOf(state) {
	const parts = new URLSearchParams();
	for (const [name, value] of Object.entries(state)) {
		if (value !== DEFAULTS[name])
			parts.set(name, value === true ? "1" : String(value));
	}
	return String(parts);
}

export function writeLink(state, changed) {
	const hash = `#${linkOf(state)}`;
	if (hash === (location.hash || "#"))
		return;
	try {
		if (GOES_BACK.some((name) => changed.has(name)))
			history.pushState(null, "", hash);
		else
			history.replaceState(null, "", hash);
	} catch {
		/* A page inside another one may have no address of its own. */
	}
}
