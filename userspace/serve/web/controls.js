/* SPDX-License-Identifier: BSD-2-Clause */
/* Choices above the strip, tabs and keys. */
import { announce, byId, element } from "../../render/web/dom.js";

const HELP = [
	["Drag on the strip", "select a time; an edge of it can be moved"],
	["← → on the strip", "move the selection; the first press makes one"],
	["Shift+← Shift+→", "move its end"],
	["Home, End", "move it to the begin, to the end"],
	["Escape, double click", "select all that is shown"],
	["+ and −", "zoom in, to the selection; zoom out"],
	["1 2 3 4 5", "the last 5 min, 1 h, 6 h, 24 h, all"],
	["r", "refresh every 10 s, or no more"],
	["/", "filter processes and labels"],
	["p, w", "profile, waits"],
	["t", "theme: system, light, dark"],
	["?", "this page"],
];
const TABS = ["flame", "waits"];

function showKinds(app) {
	const kind = byId("kind");
	const { kinds } = app.source;
	const has = kinds.some((one) => one.kind === app.state.kind);
	const wanted = has ? kinds : [...kinds, { kind: app.state.kind, title: "" }];
	const name = (one) => one.title && one.title !== one.kind ? `${one.kind}: ${one.title}` : one.kind;
	if (kind.options.length !== wanted.length || wanted.some((one, i) => kind.options[i].value !== one.kind))
		kind.replaceChildren(...wanted.map((one) => element("option", { value: one.kind }, name(one))));
	kind.value = app.state.kind;
}

function chip(text, remove) {
	const button = element("button", { type: "button", "aria-label": `Let go of ${text}`, title: "Let go of it" }, "×");
	button.addEventListener("click", remove);
	return element("li", {}, element("span", {}, text), button);
}

function showChips(app) {
	byId("chips").replaceChildren(...app.state.labels.map(([key, value]) =>
		chip(`${key}: ${value}`, () => app.chooseLabel(key, value))));
}

function showTabs(app) {
	const { isLive } = app.source;
	byId("tab-waits").hidden = isLive;
	for (const name of TABS) {
		const chosen = name === (isLive ? "flame" : app.state.tab);
		byId(`panel-${name}`).hidden = !chosen;
		byId(`tab-${name}`).setAttribute("aria-selected", String(chosen));
		byId(`tab-${name}`).tabIndex = chosen ? 0 : -1;
	}
}

function facts({ self, isLive }) {
	const sees = isLive && self.sees === "own" ? "own processes" : "";
	return [self.host, sees, self.version && `pyprofd ${self.version}`].filter(Boolean).join(" · ");
}

export function showControls(app) {
	const { state, source } = app;
	showKinds(app);
	showChips(app);
	showTabs(app);
	byId("facts").textContent = facts(source);
	document.title = [state.kind, state.pid ? `pid ${state.pid}` : "", source.self.host || ""].filter(Boolean).join(" · ") + " – pyprofd";
	byId("strip").hidden = byId("ranges").hidden = source.isLive;
	byId("lengths").hidden = !source.isLive;
	for (const button of byId("ranges").children)
		button.setAttribute("aria-pressed", String(button.dataset.last === state.last));
	for (const button of byId("lengths").children)
		button.setAttribute("aria-pressed", String(Number(button.dataset.seconds) === state.seconds));
	byId("follow").setAttribute("aria-pressed", String(app.follows));
	if (document.activeElement !== byId("pid"))
		byId("pid").value = state.pid || "";
	byId("pid").removeAttribute("aria-invalid");
}

function takePid(app) {
	const text = byId("pid").value.trim();
	const good = /^\d{0,7}$/.test(text);
	byId("pid").setAttribute("aria-invalid", String(!good));
	if (good)
		app.update({ pid: Number(text) });
}

async function copyLink(app) {
	const text = app.link();
	let done = true;
	try {
		await navigator.clipboard.writeText(text);
	} catch {
		/* Not over plain HTTP from another machine. */
		const field = element("textarea", { class: "unseen" }, text);
		document.body.append(field);
		field.select();
		done = document.execCommand("copy");
		field.remove();
	}
	byId("copy").textContent = done ? "Copied" : "Not copied";
	announce(done ? "Link copied" : "The link could not be copied");
	setTimeout(() => {
		byId("copy").textContent = "Copy link";
	}, 1500);
}

function actions(app) {
	const last = (name) => () => app.source.isLive || app.update({ last: name, from: 0, until: 0 });
	return {
		1: last("5m"), 2: last("1h"), 3: last("6h"), 4: last("24h"), 5: last("all"),
		"+": () => app.source.isLive || app.strip.zoom(1), "-": () => app.source.isLive || app.strip.zoom(-1),
		r: () => app.update({ follow: !app.follows }),
		"/": () => byId("filter").select(),
		p: () => byId("tab-flame").click(), w: () => byId("tab-waits").hidden || byId("tab-waits").click(),
		t: () => app.theme.next(),
		Escape: () => app.update({ selected: null }),
		"?": () => byId("help").showModal(),
	};
}

function listenToKeys(app) {
	byId("help-keys").append(element("tbody", {}, ...HELP.map(([keys, does]) => element("tr", {},
		element("td", {}, element("kbd", {}, keys)), element("td", {}, does)))));
	byId("help-open").addEventListener("click", () => byId("help").showModal());
	const known = actions(app);
	document.addEventListener("keydown", (event) => {
		if (byId("help").open || event.ctrlKey || event.altKey || event.metaKey || event.target.closest("input, select, textarea"))
			return;
		if (!Object.hasOwn(known, event.key))
			return;
		known[event.key]();
		event.preventDefault();
	});
	for (const [i, name] of TABS.entries()) {
		byId(`tab-${name}`).addEventListener("keydown", (event) => {
			const other = byId(`tab-${TABS[1 - i]}`);
			if (!["ArrowLeft", "ArrowRight", "Home", "End"].includes(event.key) || other.hidden)
				return;
			other.focus();
			other.click();
			event.preventDefault();
			event.stopPropagation();
		});
	}
}

export function listenToControls(app) {
	byId("form").addEventListener("submit", (event) => event.preventDefault());
	byId("kind").addEventListener("change", (event) => app.update({ kind: event.target.value }));
	byId("ranges").addEventListener("click", ({ target }) => {
		if (!target.dataset.last)
			return;
		if (target.dataset.last === app.state.last)
			app.apply(true); /* up to now */
		else
			app.update({ last: target.dataset.last, from: 0, until: 0 });
	});
	byId("lengths").addEventListener("click", ({ target }) => target.dataset.seconds && app.update({ seconds: Number(target.dataset.seconds) }));
	byId("pid").addEventListener("change", () => takePid(app));
	byId("pid").addEventListener("keydown", (event) => event.key === "Enter" && takePid(app));
	byId("follow").addEventListener("click", () => app.update({ follow: !app.follows }));
	byId("copy").addEventListener("click", () => copyLink(app));
	for (const name of TABS)
		byId(`tab-${name}`).addEventListener("click", () => app.update({ tab: name }));
	listenToKeys(app);
}
