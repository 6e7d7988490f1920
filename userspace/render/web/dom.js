/* SPDX-License-Identifier: BSD-2-Clause */
/* Elements by hand.  Text goes in as text, never as markup: names in a profile are foreign. */

export const byId = (id) => document.getElementById(id);

export function element(tag, attributes, ...children) {
	const made = document.createElement(tag);
	for (const [name, value] of Object.entries(attributes || {})) {
		/* A policy without 'unsafe-inline' forbids the attribute, but not this. */
		if (name === "style")
			made.style.cssText = value;
		else
			made.setAttribute(name, value);
	}
	made.append(...children);
	return made;
}

/* A place as "pip/_internal/cli/main.py:46" whose end stays when room lacks: first the directories are cut, then the
 * name of the file, never the line. */
export function placeElement(place, whole, className = "place") {
	const [, directory, file, line] = /^([^]*\/)?([^]*?)(:\d+)?$/.exec(place);
	const parts = [["directory", directory], ["file", file], ["line", line]].filter(([, text]) => text);
	return element("span", { class: `${className} fit`, title: whole || place },
		...parts.map(([name, text]) => element("span", { class: name }, text)));
}

/* For those who hear the page. */
export function announce(text) {
	byId("live").textContent = text;
}
