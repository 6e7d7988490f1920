/* SPDX-License-Identifier: BSD-2-Clause */
/* Callers above, callees below: one function as the filling. */
import { Chart } from "./chart.js";
import { byId, announce, placeElement } from "./dom.js";
import { describe, fillDetails, nodeLabel, showTooltip } from "./describe.js";
import { frameName, framePlace, frameWholePlace } from "./data.js";
import { humanValue, percent } from "./format.js";
import { sumsOf, ListTab } from "./functions.js";
import { layOut } from "./layout.js";
import { nextMatch } from "./search.js";
import { calleesTree, callersTree } from "./tree.js";

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
