/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the profile, makes the views, and leads every change of state to them. */
import { byId, element, humanCount, humanValue, listenToTabs, percent, showTab, Theme } from "./base.js";
import { KINDS, chooseTimes, groupLabel, loadProfile } from "./data.js";
import { nodeLabel } from "./describe.js";
import { FlameTab, SandwichTab } from "./flame.js";
import { ListTab } from "./functions.js";
import { listenToKeys } from "./keys.js";
import { runSearch } from "./layout.js";
import { askedTheme, listenToParent, tellView, DEFAULTS, readLink, writeLink } from "./link.js";
import { differenceColour, frameColours, kindColour, makePalette } from "./palette.js";
import { SourcePane } from "./source.js";
import { TimeMap } from "./times.js";
import { matchedTotal } from "./tree.js";

const TABS = ["flame", "sandwich", "table", "lines"];
const CHOICES = ["shape", "group", "order", "width"];

class App {
	constructor(profile) {
		this.profile = profile;
		profile.groupLabel = groupLabel;
		this.colours = frameColours(profile);
		this.state = { ...DEFAULTS };
		this.search = runSearch(profile, "", false);
		this.flame = new FlameTab(this);
		this.sandwich = new SandwichTab(this);
		const open = { onOpen: (id) => this.update({ tab: "sandwich", fn: id }) };
		this.times = new TimeMap(this);
		this.source = new SourcePane(this);
		const openLine = { onChoose: (frame) => this.source.show(frame), onOpen: (frame) => this.update({ tab: "sandwich", fn: profile.frameFunction[frame] }) };
		this.views = { flame: this.flame, sandwich: this.sandwich,
			table: new ListTab(this, { tab: "table", host: "functions", name: "Functions" }, open),
			lines: new ListTab(this, { tab: "lines", host: "line-list", name: "Lines", byLine: true, narrow: true }, openLine) };
	}

	get charts() {
		return [this.flame.chart, this.sandwich.callers, this.sandwich.callees];
	}

	/* Changes state; `quiet` when it came from the address. */
	update(changes, quiet) {
		const next = { ...this.state, ...changes };
		if (["group", "byLine"].some((name) => next[name] !== this.state[name]) && !("zoom" in changes))
			next.zoom = 0;
		const changed = new Set(Object.keys(next).filter((name) => next[name] !== this.state[name]));
		this.state = next;
		if (!changed.size && this.begun)
			return;
		this.begun = true;
		if (!quiet)
			writeLink(next, changed);
		if (this.profile.times && (changed.has("from") || changed.has("to")))
			this.showTimes();
		if (changed.has("q") || changed.has("regex"))
			this.searchFor(next);
		this.showControls(next);
		for (const view of Object.values(this.views))
			view.apply(this.state, changed);
		tellView(next);
	}

	/* All figures are those of the chosen range. */
	showTimes() {
		const { from, to, all } = this.times.range();
		chooseTimes(this.profile, all ? -1 : from, to);
		this.functionSums = this.lineSums = this.kindShares = null;
		this.flame.forget();
		this.sandwich.shown = -1;
		for (const list of [this.views.table, this.views.lines, this.sandwich.list])
			list.forget();
		if (this.source.shown >= 0)
			this.source.show(this.source.shown);
		this.times.draw();
		showLegend(this);
		if (this.search.active)
			this.searchFor(this.state);
	}

	searchFor({ q, regex }) {
		this.search = runSearch(this.profile, q, regex);
		this.styleCharts();
		const { active, error, found, matches } = this.search;
		const result = byId("search-result");
		result.classList.toggle("error", Boolean(error));
		byId("search").setAttribute("aria-invalid", String(Boolean(error)));
		if (byId("search").value !== q)
			byId("search").value = q;
		if (!active) {
			result.textContent = error;
			return;
		}
		const part = matchedTotal(this.flame.tree({ group: "all", byLine: false }), matches);
		result.textContent = found === 0 ? "no match" : `${humanCount(found)} function${found === 1 ? "" : "s"}, ` +
			`${percent(part, this.profile.total)} (${humanValue(part, this.profile.unit)})`;
	}

	styleCharts() {
		const style = { palette: this.palette, colours: this.colours, matches: this.search.matches,
			searching: this.search.active, label: (tree, node) => nodeLabel(this, tree, node) };
		for (const chart of this.charts)
			chart.setStyle(style);
	}

	recolour(dark) {
		this.palette = makePalette(dark);
		this.styleCharts();
		showLegend(this);
		for (const list of [this.views.table, this.views.lines, this.sandwich.list]) {
			if (list.table)
				list.table.render();
		}
		this.times.draw();
	}

	showControls(state) {
		showTab(TABS, state.tab);
		for (const name of CHOICES)
			byId(name).value = state[name];
		byId("by-line").checked = state.byLine;
		byId("search-regex").setAttribute("aria-pressed", state.regex);
		byId("tooltip").hidden = true;
	}

	activeChart() {
		return { flame: this.flame.chart, sandwich: this.sandwich.active }[this.state.tab] || null;
	}

	focusView() {
		const chart = this.activeChart();
		(chart ? chart.host : this.views[this.state.tab].table.table).focus();
	}

	nextMatch(step) {
		this.views[this.state.tab].nextMatch(step);
	}

	openSandwich() {
		const { tab } = this.state;
		if (tab === "flame" || tab === "sandwich")
			this.views[tab].openSandwich();
		else if (this.views[tab].table.current >= 0)
			this.views[tab].handlers.onOpen(this.views[tab].table.current);
	}

	escape() {
		const chart = this.activeChart();
		if (!byId("tooltip").hidden)
			byId("tooltip").hidden = true;
		else if (chart && chart.zoomed > 0)
			chart.zoomOut();
		else if (chart && chart.layout)
			chart.zoomTo(0);
	}
}

/* The share of self of each kind, as a legend. */
function showLegend(app) {
	const { profile } = app;
	if (!app.kindShares) {
		app.kindShares = new Float64Array(KINDS.length);
		for (let i = 0; i < profile.sampleNode.length; i++) {
			const frame = profile.nodeFrame[profile.sampleNode[i]];
			if (frame >= 0)
				app.kindShares[profile.frameKind[frame]] += profile.sampleValue[i];
		}
	}
	const items = [...app.kindShares.keys()].filter((kind) => app.kindShares[kind] > 0).map((kind) => element("li", {},
		element("span", { class: "swatch", style: `background:${kindColour(app.palette, kind)}` }),
		`${KINDS[kind]} ${percent(app.kindShares[kind], profile.total)}`));
	if (profile.differential)
		items.unshift(...[["less", -1], ["same", 0], ["more", 1]].map(([name, amount]) => element("li", {},
			element("span", { class: "swatch", style: `background:${differenceColour(app.palette, amount)}` }), name)));
	byId("legend").replaceChildren(...items);
}

function showFacts(profile) {
	document.title = `${profile.title} – pyprof`;
	byId("title").textContent = byId("title").title = profile.title;
	const facts = [profile.kind, humanValue(profile.total, profile.unit)];
	if (profile.differential)
		facts.push(`before: ${humanValue(profile.baseTotal, profile.unit)}`);
	if (profile.duration)
		facts.push(`over ${humanValue(profile.duration, "nanoseconds")}`);
	if (profile.sampleCount)
		facts.push(`${humanCount(profile.sampleCount)} samples`);
	if (profile.windows > 1)
		facts.push(`${humanCount(profile.windows)} windows`);
	byId("facts").textContent = facts.filter(Boolean).join(" · ");
	byId("width-label").hidden = !profile.differential;
}

function listenToControls(app) {
	listenToTabs(TABS, (tab) => app.update({ tab }));
	for (const name of CHOICES)
		byId(name).addEventListener("change", (event) => app.update({ [name]: event.target.value }));
	byId("by-line").addEventListener("change", (event) => app.update({ byLine: event.target.checked }));
	const search = byId("search");
	search.addEventListener("input", () => app.update({ q: search.value }));
	search.addEventListener("keydown", (event) => {
		if (event.key !== "Escape")
			return;
		app.update({ q: "" });
		app.focusView();
		event.preventDefault();
	});
	byId("search-form").addEventListener("submit", (event) => event.preventDefault());
	search.addEventListener("keydown", (event) => {
		if (event.key === "Enter")
			app.nextMatch(event.shiftKey ? -1 : 1);
	});
	byId("search-regex").addEventListener("click", () => app.update({ regex: !app.state.regex }));
	byId("search-next").addEventListener("click", () => app.nextMatch(1));
	byId("search-previous").addEventListener("click", () => app.nextMatch(-1));
	addEventListener("popstate", () => app.update(readLink(), true));
	addEventListener("hashchange", () => app.update(readLink(), true));
}

function begin() {
	const loading = byId("loading");
	try {
		const data = byId("profile-data");
		const profile = loadProfile(JSON.parse(data.textContent));
		data.remove();
		showFacts(profile);
		const app = new App(profile);
		loading.hidden = true;
		app.theme = new Theme((dark) => app.recolour(dark), askedTheme());
		/* The page around this one has them. */
		byId("theme").hidden = byId("title").hidden = askedTheme() !== null;
		app.update(readLink(), true);
		for (const chart of app.charts)
			chart.draw();
		performance.mark("pyprof-painted");
		listenToControls(app);
		listenToKeys(app);
		listenToPrint(app);
		listenToParent((theme) => app.theme.follow(theme));
		/* For the console. */
		window.pyprof = app;
	} catch (error) {
		loading.hidden = false;
		loading.className = "error";
		loading.textContent = error instanceof SyntaxError ? "The profile in this page cannot be read." : error.message;
		throw error;
	}
}

begin();

/* Before paper: light colours, charts in full height, tables with their first rows. */

function listenToPrint(app) {
	const setPaper = (onPaper) => {
		app.theme.apply(onPaper);
		for (const chart of app.charts)
			chart.setPaper(onPaper);
		for (const { table } of [app.views.table, app.views.lines]) {
			if (table)
				table.setPaper(onPaper);
		}
	};
	addEventListener("beforeprint", () => setPaper(true));
	addEventListener("afterprint", () => setPaper(false));
}
