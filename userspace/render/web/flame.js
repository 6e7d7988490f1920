/* SPDX-License-Identifier: BSD-2-Clause */
/* The tab with the flame graph of all samples. */
import { Chart } from "./chart.js";
import { byId, element, announce } from "./dom.js";
import { describe, fillDetails, nodeLabel, showTooltip } from "./describe.js";
import { layOut } from "./layout.js";
import { nextMatch } from "./search.js";
import { groupedTree, wholeTree } from "./tree.js";

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
