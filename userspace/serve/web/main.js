/* SPDX-License-Identifier: BSD-2-Clause */
/* The page of the history: its state, and who leads each change of that to the parts. */
import { byId, Theme } from "../../render/web/base.js";
import { Frames, Lists, Waits, listenToControls, showControls } from "./parts.js";
import { Source, askWhy } from "./source.js";
import { Strip, clock, lengthText, rangeText } from "./strip.js";

/* What is on show, in the address behind the #: it can be sent, and Back goes back.
 * last: a range up to now, or ""; then from and until, seconds since 1970.  selected: [from, until] within it, or null.
 * labels: [[key, value]].  view: what is on show in the frame, in its own words.  follow: null: as it is usual. */

const LASTS = { "5m": 300, "1h": 3600, "6h": 21600, "24h": 86400, all: 0 };
const LABELS_MAX = 8;
const VIEW_MAX = 2000;
const SECONDS_MAX = 3600;

const DEFAULTS = { last: "1h", from: 0, until: 0, selected: null, kind: "cpu", pid: 0, labels: [], tab: "flame",
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
function readState(hash) {
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

function writeState(state) {
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
function keepState(state, changed) {
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
function stableView(view) {
	const words = new URLSearchParams(view);
	for (const name of ["zoom", "fn", "from", "to"])
		words.delete(name);
	return String(words);
}

/* The page of the history: leads each change of state to the parts, and asks for no more than has changed. */

const FOLLOW_MS = 10000;
/* A server with too much to do is asked again. */
const TRIES = 4;
const BUSY_MS = 1000;
const REST_SHARE = 10;
const ZOOMED = " · not refreshed while zoomed in";
/* What makes another profile of it. */
const OF_PROFILE = ["last", "from", "until", "selected", "kind", "pid", "labels", "seconds"];

class App {
	constructor(source) {
		this.source = source;
		this.state = readState(location.hash);
		this.span = { from: 0, until: 1 };
		this.strip = new Strip(this);
		this.lists = new Lists(this);
		this.waits = new Waits(this);
		this.frames = new Frames(this);
		this.followMs = FOLLOW_MS;
		this.nextAt = 0; /* when it is looked again, by performance.now() */
	}

	now() {
		return this.source.now();
	}

	get follows() {
		return this.state.follow ?? this.source.isLive;
	}

	/* Changes state, as a step that can be gone back. */
	update(changes) {
		const before = this.state;
		const next = { ...before, ...changes };
		const changed = Object.keys(next).filter((name) => JSON.stringify(next[name]) !== JSON.stringify(before[name]));
		if (!changed.length)
			return;
		if (changed.some((name) => OF_PROFILE.includes(name)))
			next.view = stableView(next.view);
		const moved = ["last", "from", "until"].some((name) => changed.includes(name));
		if (moved && !("selected" in changes) && !this.overlaps(next))
			next.selected = null;
		this.state = next;
		keepState(next, changed);
		this.apply(moved);
	}

	/* From the address: a link, or Back. */
	reread() {
		const next = readState(location.hash);
		this.strip.drop();
		const moved = ["last", "from", "until"].some((name) => next[name] !== this.state[name]);
		this.state = next;
		this.apply(moved);
	}

	spanOf(state) {
		if (!state.last)
			return { from: state.from, until: state.until };
		const until = this.source.end();
		const from = state.last === "all" ? this.source.begin() : until - LASTS[state.last];
		return { from: Math.min(from, until - 1), until };
	}

	overlaps(state) {
		const { from, until } = this.spanOf(state);
		return state.selected && state.selected[0] < until && state.selected[1] > from;
	}

	get range() {
		return this.state.selected || [this.span.from, this.span.until];
	}

	rangeText() {
		const [from, until] = this.range;
		return `${rangeText(from, until, this.now())}, ${lengthText(until - from)}`;
	}

	/* moved: times that count from now are counted anew.  again: what runs now is recorded anew.  keeps: the profile
	 * that is on show stays. */
	apply(moved, again, keeps) {
		const { source, state } = this;
		const { isLive } = source;
		if (moved)
			this.span = this.spanOf(state);
		showControls(this);
		if (state.tab === "waits" && !isLive)
			byId("shown").textContent = this.rangeText();
		if (isLive)
			this.applyLive();
		else
			this.applyHistory();
		const path = source.profile(state, this.range, "html");
		byId("download").href = source.profile(state, this.range, "pprof");
		if (keeps)
			return;
		if (path !== this.shownPath)
			this.tries = 0;
		this.shownPath = path;
		this.showFrame(path, again);
	}

	/* A store may be gone. */
	applyLive() {
		this.strip.stop();
		this.stripKey = "";
		this.lists.hide();
	}

	applyHistory() {
		const { source, state } = this;
		const key = `${state.kind} ${this.span.from} ${this.span.until}`;
		if (key !== this.stripKey) {
			this.stripKey = key;
			this.strip.load(state.kind, this.span, source.intervalMs);
		} else {
			this.strip.update();
		}
		this.lists.load(source.labels(state, this.range));
		if (state.tab === "waits")
			this.waits.load(source.waits(state, this.range));
	}

	/* In the background it would be drawn without a size, and nobody sees it. */
	showFrame(path, again) {
		if (this.state.tab === "flame")
			this.frames.show(path, this.state.view, again);
	}

	chooseLabel(key, value) {
		const others = this.state.labels.filter(([one]) => one !== key);
		const has = this.state.labels.some(([one, other]) => one === key && other === value);
		this.update({ labels: has ? others : [...others, [key, value]] });
	}

	/* ---- what the parts tell ---- */

	stripFailed(error) {
		if (error.status === 401)
			showNote(refusal(error));
	}

	viewChanged(view) {
		if (view === this.state.view)
			return;
		this.state = { ...this.state, view };
		keepState(this.state, ["view"]);
	}

	/* "loading", "shown", or "refused": there was an answer, but no profile. */
	async frameState(name, path) {
		const { isLive } = this.source;
		clearInterval(this.timer);
		const note = byId("frame-note");
		if (name === "loading") {
			note.hidden = true;
			this.tellLoading(isLive ? performance.now() : 0);
			return;
		}
		if (name === "shown") {
			note.hidden = true;
			byId("shown").textContent = isLive ? `Recorded until ${clock(this.now())} UTC` : this.rangeText();
			/* One recording follows the other; a profile that took long is not asked for all the time. */
			this.nextAt = performance.now() + (isLive ? 0 : Math.max(this.followMs, REST_SHARE * this.frames.lastMs));
			this.tries = 0;
			return;
		}
		const why = await askWhy(path);
		if (path !== this.shownPath)
			return;
		const tries = this.tries = (this.tries || 0) + 1;
		this.frames.clear();
		this.nextAt = performance.now() + this.followMs;
		if (!isLive && tries <= TRIES && (!why || why.status === 503)) {
			setTimeout(() => path === this.shownPath && this.showFrame(path, true), BUSY_MS * tries);
			return;
		}
		byId("shown").textContent = "";
		note.hidden = false;
		note.textContent = `No profile of this: ${why ? why.message : "try again"}`;
	}

	tellLoading(since) {
		const shown = byId("shown");
		const tell = () => {
			const seconds = Math.min(this.state.seconds, Math.floor((performance.now() - since) / 1000));
			shown.textContent = since ? `Recording: ${seconds} of ${this.state.seconds} s` : "Reading…";
		};
		tell();
		if (since)
			this.timer = setInterval(tell, 1000);
	}

	/* ---- live ---- */

	/* A profile that somebody has zoomed into stays: boxes of another one are others. */
	get isZoomed() {
		return stableView(this.state.view) !== this.state.view;
	}

	async tick() {
		const now = performance.now();
		if (document.hidden || !this.follows || this.ticking || this.frames.loading || now < this.nextAt)
			return;
		this.nextAt = now + this.followMs;
		const keeps = this.isZoomed && this.state.tab === "flame";
		if (keeps && !byId("shown").textContent.endsWith(ZOOMED))
			byId("shown").textContent += ZOOMED;
		if (keeps && this.source.isLive)
			return;
		this.ticking = true;
		try {
			await this.source.refresh();
			showNote(this.source.why());
			this.apply(Boolean(this.state.last), this.source.isLive, keeps);
		} catch (error) {
			showNote(refusal(error));
		}
		this.ticking = false;
	}

	/* A link with these times, whatever time it is when it is opened. */
	link() {
		const { from, until } = this.span;
		const state = this.source.isLive ? this.state : { ...this.state, last: "", from, until, follow: null };
		return `${location.origin}${location.pathname}#${writeState(state)}`;
	}
}

/* A session ends after hours, and with the server. */
function refusal(error) {
	return error.status === 401 ? "Not allowed: open this page with its token, as /?token=…" : error.message;
}

function showNote(text) {
	byId("note").textContent = text;
	byId("note").hidden = !text;
}

async function begin() {
	const source = new Source();
	let theme;
	try {
		await source.refresh();
	} catch (error) {
		theme = new Theme(() => {});
		showNote(refusal(error));
		return;
	}
	const app = new App(source);
	theme = new Theme((dark) => {
		app.dark = dark;
		app.frames.setTheme(dark);
		app.strip.update();
		app.waits.render();
	});
	app.theme = theme;
	showNote(source.why());
	listenToControls(app);
	app.apply(true);
	addEventListener("popstate", () => app.reread());
	addEventListener("hashchange", () => app.reread());
	setInterval(() => app.tick(), 1000);
	document.addEventListener("visibilitychange", () => app.tick());
	/* For the console. */
	window.pyprofd = app;
}

begin();
