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

/* This page inside another one, as pyprofd-serve's is: it has no store, and perhaps no origin, of its own.  The page
 * around it hears what is on show, so that its own address can hold that, and says which theme it has. */

const isInside = window.parent !== window;

/* The theme that the address asks for; null: none, or there is no page around this one. */
export function askedTheme() {
	return isInside ? new URLSearchParams(location.hash.slice(1)).get("theme") : null;
}

export function tellView(state) {
	/* Whoever frames this page may know what it shows: it has opened the page. */
	if (isInside)
		window.parent.postMessage({ pyprofView: linkOf(state) }, "*");
}

/* Calls choose(theme) when the page around this one has another theme.  Nobody else is listened to. */
export function listenToParent(choose) {
	addEventListener("message", (event) => {
		if (isInside && event.source === window.parent && typeof event.data?.pyprofTheme === "string")
			choose(event.data.pyprofTheme);
	});
}
