/* SPDX-License-Identifier: BSD-2-Clause */
/* The flame graph's page of the selection.  It has an origin of its own and cannot be looked into: it says what it
 * shows by messages, which count only from its window.  The old page stays in sight until the new one is drawn. */
import { byId, element } from "../../render/web/dom.js";

/* A page that is an answer of another sort is loaded, too, but says nothing. */
const SILENCE_MS = 500;

export class Frames {
	constructor(app) {
		this.app = app;
		this.current = this.loading = null;
		this.theme = "light";
		this.lastMs = 0; /* what the last one took */
		addEventListener("message", (event) => this.heard(event));
	}

	/* Shows the page at a path; again: also if it is on show. */
	show(path, view, again) {
		const newest = this.loading || this.current;
		if (newest && newest.path === path && !again) {
			this.lead(newest, view);
			return;
		}
		this.drop();
		const frame = element("iframe", { title: "Profile of the selection", sandbox: "allow-scripts allow-downloads",
			class: "waiting", src: this.address(path, view) });
		const loading = { path, view, frame, begun: performance.now() };
		frame.addEventListener("load", () => setTimeout(() => this.loaded(loading), SILENCE_MS));
		this.loading = loading;
		byId("frames").append(frame);
		this.app.frameState("loading");
	}

	address(path, view) {
		const words = new URLSearchParams(view);
		words.set("theme", this.theme);
		return `${path}#${words}`;
	}

	/* Back and links change what a page shows. */
	lead(one, view) {
		if (one.view === view)
			return;
		one.view = view;
		one.frame.contentWindow?.location.replace(new URL(this.address(one.path, view), location.href));
	}

	setTheme(dark) {
		this.theme = dark ? "dark" : "light";
		for (const one of [this.current, this.loading])
			one?.frame.contentWindow?.postMessage({ pyprofTheme: this.theme }, "*");
	}

	heard(event) {
		const view = event.data?.pyprofView;
		if (typeof view !== "string" || view.length > 2000)
			return;
		if (this.loading && event.source === this.loading.frame.contentWindow) {
			this.loading.view = view;
			this.takeOver();
		} else if (this.current && event.source === this.current.frame.contentWindow && !this.loading) {
			this.current.view = view;
			this.app.viewChanged(view);
		}
	}

	takeOver() {
		const old = this.current;
		this.current = this.loading;
		this.loading = null;
		this.lastMs = performance.now() - this.current.begun;
		this.current.frame.className = "";
		old?.frame.remove();
		performance.mark("pyprofd-frame");
		this.app.frameState("shown");
	}

	/* A page that has said nothing is no profile. */
	loaded(one) {
		if (this.loading === one)
			this.app.frameState("refused", one.path);
	}

	/* What is being loaded is no longer asked for. */
	drop() {
		this.loading?.frame.remove();
		this.loading = null;
	}

	clear() {
		this.drop();
		this.current?.frame.remove();
		this.current = null;
	}
}
