/* SPDX-License-Identifier: BSD-2-Clause */
/* Light or dark: as the system has it, until the reader chooses. */
import { byId } from "./dom.js";

const THEMES = ["system", "light", "dark"];
const KEY = "pyprof-theme";
const system = matchMedia("(prefers-color-scheme: dark)");

/* Pages from files may be kept from the store. */
function remembered() {
	try {
		return localStorage.getItem(KEY);
	} catch {
		return null;
	}
}

function remember(choice) {
	try {
		localStorage.setItem(KEY, choice);
	} catch {
		/* For this time only, then. */
	}
}

/* Calls changed(dark) now and whenever it changes. */
export class Theme {
	/* asked: instead of the reader's own choice; null: nobody asks. */
	constructor(changed, asked = null) {
		this.changed = changed;
		this.choice = [asked, remembered(), "system"].find((choice) => THEMES.includes(choice));
		system.addEventListener("change", () => this.apply());
		byId("theme").addEventListener("click", () => this.next());
		this.apply();
	}

	next() {
		this.choice = THEMES[(THEMES.indexOf(this.choice) + 1) % THEMES.length];
		remember(this.choice);
		this.apply();
	}

	/* As another page has it: not remembered. */
	follow(choice) {
		if (!THEMES.includes(choice))
			return;
		this.choice = choice;
		this.apply();
	}

	/* Paper is white. */
	apply(onPaper) {
		const dark = !onPaper && (this.choice === "dark" || (this.choice === "system" && system.matches));
		document.documentElement.dataset.theme = dark ? "dark" : "light";
		byId("theme").textContent = `Theme: ${this.choice}`;
		this.changed(dark);
	}
}
