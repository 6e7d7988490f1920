/* SPDX-License-Identifier: BSD-2-Clause */
/* Elements by hand.  Text goes in as text, never as markup: names in a profile are foreign. */

export const byId = (id) => document.getElementById(id);

export function element(tag, attributes, ...children) {
	const made = document.createElement(tag);
	for (const [name, value] of Object.entries(attributes || {}))
		made.setAttribute(name, value);
	made.append(...children);
	return made;
}

/* For those who hear the page. */
export function announce(text) {
	byId("live").textContent = text;
}
