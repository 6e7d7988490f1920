/* SPDX-License-Identifier: BSD-2-Clause */
/* The tabs with flame graphs: of all samples, and of one function. */
import { byId, element, announce, placeElement, humanValue, percent } from "./base.js";
import { Chart } from "./chart.js";
import { frameName, framePlace, frameWholePlace } from "./data.js";
import { describe, fillDetails, nodeLabel, showTooltip } from "./describe.js";
import { sumsOf, ListTab } from "./functions.js";
import { layOut, nextMatch } from "./layout.js";
import { groupedTree, wholeTree, calleesTree, callersTree } from "./tree.js";

const SHAPING = ["group", "order", "width", "byLine", "shape"];
const MOST_CRUMBS = 5;

export function buildTree(app, group, byLine) {
	const tree = group === "all" ? wholeTree(app.profile, byLine) : groupedTree(app.profile, byLine, group === "thread");
	tree.byLine = byLine;
	return tree;
}

/* Children in the order of their names. */
function byNames(app, tree) {
	const collator = new Intl.Collator("en");
	return (a, b) => collator.compare(nodeLabel(app, tree, a), nodeLabel(app, tree, b)) || a - b;
}

export class FlameTab {
	constructor(app) {
		this.app = app;
		this.chart = new Chart(byId("flame-chart"), "Flame graph", {
			onSelect: (node) => this.selected(node),
			onZoom: (node) => app.update({ zoom: node }),
			onHover: (node, event) => this.hovered(node, event),
		});
		this.trees = new Map();
		byId("zoom-in").addEventListener("click", () => this.chart.zoomBy(0.6));
		byId("zoom-out").addEventListener("click", () => this.chart.zoomBy(1 / 0.6));
		byId("zoom-reset").addEventListener("click", () => this.chart.zoomTo(0));
	}

	/* The tree of what `state` asks for; kept, as people go back and forth. */
	tree(state) {
		const key = `${state.group} ${state.byLine}`;
		if (!this.trees.has(key))
			this.trees.set(key, buildTree(this.app, state.group, state.byLine));
		return this.trees.get(key);
	}

	/* The values have changed. */
	forget() {
		this.trees.clear();
		this.stale = true;
	}

	apply(state, changed) {
		if (state.tab !== "flame") {
			this.stale = this.stale || SHAPING.some((name) => changed.has(name));
			this.staleZoom = this.staleZoom || changed.has("zoom");
			return;
		}
		if (!this.layout || this.stale || SHAPING.some((name) => changed.has(name)))
			this.rebuild(state);
		if ((changed.has("zoom") || this.staleZoom) && state.zoom !== this.chart.zoomed)
			this.chart.zoomTo(this.validNode(state.zoom), true);
		if (changed.has("zoom") || this.stale || !this.crumbed)
			this.drawCrumbs();
		this.stale = this.staleZoom = false;
	}

	validNode(node) {
		return node < this.layout.tree.size && this.layout.rank[node] >= 0 ? node : 0;
	}

	rebuild(state) {
		const tree = this.tree(state);
		const weight = state.width === "before" && tree.baseTotal ? tree.baseTotal : tree.total;
		this.layout = layOut(tree, weight, state.order === "name" ? byNames(this.app, tree) : null);
		this.chart.show(this.layout, state.shape === "flame");
		if (state.zoom)
			this.chart.zoomTo(this.validNode(state.zoom), true);
		this.drawCrumbs();
		fillDetails(byId("flame-details"), this.app, tree, -1);
	}

	selected(node) {
		const { tree } = this.layout;
		fillDetails(byId("flame-details"), this.app, tree, node, () => this.openSandwich());
		if (node >= 0)
			announce(describe(this.app, tree, node));
	}

	hovered(node, event) {
		showTooltip(byId("tooltip"), this.app, this.layout.tree, node, event);
	}

	openSandwich() {
		const { selected } = this.chart;
		const frame = selected >= 0 ? this.layout.tree.frame[selected] : -1;
		if (frame >= 0)
			this.app.update({ tab: "sandwich", fn: this.app.profile.frameFunction[frame] });
	}

	nextMatch(step) {
		const { search } = this.app;
		if (!search.active)
			return;
		const node = nextMatch(this.layout, search.matches, this.chart.selected, step);
		if (node >= 0)
			this.chart.select(node, true);
	}

	drawCrumbs() {
		this.crumbed = true;
		const path = [];
		for (let node = this.chart.zoomed; node >= 0; node = this.layout.tree.parent[node])
			path.unshift(node);
		const shown = path.length > MOST_CRUMBS + 1 ? [path[0], -1, ...path.slice(-MOST_CRUMBS + 1)] : path;
		const parts = shown.flatMap((node, i) => {
			const part = node < 0 ? element("span", {}, "…") : this.crumb(node, i === shown.length - 1);
			return i ? [element("span", { "aria-hidden": "true" }, "›"), part] : [part];
		});
		byId("crumbs").replaceChildren(...parts);
	}

	crumb(node, isLast) {
		const label = nodeLabel(this.app, this.layout.tree, node);
		const button = element("button", { type: "button", title: label }, label);
		if (isLast)
			button.setAttribute("aria-current", "location");
		button.addEventListener("click", () => this.chart.zoomTo(node));
		return button;
	}
}

/* Callers above, callees below: one function as the filling. */

export class SandwichTab {
	constructor(app) {
		this.app = app;
		this.list = new ListTab(app, { tab: "sandwich", host: "sandwich-list", name: "Functions", narrow: true }, {
			onChoose: (id) => app.update({ fn: id }), onOpen: () => this.callees.host.focus() });
		this.callers = this.chart("callers-chart", "Callers");
		this.callees = this.chart("callees-chart", "Callees");
		this.shown = -1;
	}

	chart(host, name) {
		const chart = new Chart(byId(host), name, {
			onSelect: (node) => this.selected(chart, node),
			onZoom: () => {},
			onHover: (node, event) => showTooltip(byId("tooltip"), this.app, chart.layout.tree, node, event),
		});
		return chart;
	}

	/* The chart that keys are for. */
	get active() {
		return document.activeElement === this.callers.host ? this.callers : this.callees;
	}

	apply(state, changed) {
		this.list.apply(state, changed);
		if (state.tab !== "sandwich")
			return;
		if (state.fn < 0 || state.fn >= this.app.profile.functionFrame.length) {
			if (this.list.table.rows.length)
				this.app.update({ fn: this.list.table.rows[0] });
			return;
		}
		if (state.fn !== this.shown)
			this.show(state.fn);
		if (this.list.table.current !== state.fn)
			this.list.table.choose(state.fn, true);
	}

	show(id) {
		const { app } = this;
		const { profile } = app;
		this.shown = id;
		const whole = app.flame.tree({ group: "all", byLine: false });
		const frame = profile.functionFrame[id];
		const all = sumsOf(app, false);
		byId("sandwich-name").textContent = frameName(profile, frame);
		byId("sandwich-place").replaceChildren(placeElement(framePlace(profile, frame, true), frameWholePlace(profile, frame)));
		byId("sandwich-figures").textContent = ["total", "self"].map((name) =>
			`${name} ${humanValue(all[name][id], profile.unit)} (${percent(all[name][id], profile.total)})`).join(" · ");
		for (const [chart, make, flip] of [[this.callers, callersTree, true], [this.callees, calleesTree, false]]) {
			const tree = make(whole, profile, id);
			const layout = layOut(tree, tree.total);
			chart.show(layout, flip);
		}
		fillDetails(byId("sandwich-details"), app, this.callees.layout.tree, -1);
		announce(`${frameName(profile, frame)}, ${byId("sandwich-figures").textContent}`);
	}

	selected(chart, node) {
		const { app } = this;
		const { tree } = chart.layout;
		fillDetails(byId("sandwich-details"), app, tree, node, () => this.openSandwich());
		this.last = chart;
		if (node >= 0)
			announce(describe(app, tree, node));
	}

	openSandwich() {
		const chart = this.last || this.active;
		const frame = chart.selected >= 0 ? chart.layout.tree.frame[chart.selected] : -1;
		if (frame >= 0)
			this.app.update({ fn: this.app.profile.frameFunction[frame] });
	}

	nextMatch(step) {
		const chart = this.active;
		const node = chart.layout && this.app.search.active ? nextMatch(chart.layout, this.app.search.matches, chart.selected, step) : -1;
		if (node >= 0)
			chart.select(node, true);
	}
}
