/* SPDX-License-Identifier: BSD-2-Clause */
/* This page inside another one, as pyprofd-serve's is: it has no store, and perhaps no origin, of its own.  The page
 * around it hears what is on show, so that its own address can hold that, and says which theme it has. */
import { linkOf } from "./link.js";

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
