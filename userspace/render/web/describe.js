/* SPDX-License-Identifier: BSD-2-Clause */
/* What a node of a tree is called and how much it holds: for tooltip, details, crumbs and voice. */
import { element, placeElement, humanValue, percent, points } from "./base.js";
import { KINDS, frameName, framePlace, frameWholePlace } from "./data.js";
import { shareChange } from "./palette.js";

export function nodeLabel(app, tree, node) {
	const frame = tree.frame[node];
	if (frame === -1)
		return tree.rootLabel || "all";
	if (frame < 0)
		return tree.labels[-2 - frame];
	const { profile } = app;
	const line = profile.frameLine[frame];
	return frameName(profile, frame) + (tree.byLine && line > 0 ? `:${line}` : "");
}

export function nodePlace(app, tree, node) {
	const frame = tree.frame[node];
	return frame < 0 ? "" : framePlace(app.profile, frame, true);
}

function nodeWholePlace(app, tree, node) {
	const frame = tree.frame[node];
	return frame < 0 ? "" : frameWholePlace(app.profile, frame);
}

function nodeOrigin(app, tree, node) {
	const frame = tree.frame[node];
	if (frame < 0)
		return "";
	const module = app.profile.strings[app.profile.frameModule[frame]];
	const kind = KINDS[app.profile.frameKind[frame]];
	return module && module !== nodeWholePlace(app, tree, node) ? `${kind} · ${module}` : kind;
}

function figures(app, tree, node) {
	const { unit, total, baseTotal } = app.profile;
	const rows = [["total", tree.total[node]], ["self", tree.self[node]]]
		.map(([name, value]) => [name, humanValue(value, unit), percent(value, total)]);
	const parent = tree.parent[node];
	if (parent > 0)
		rows.push(["of caller", "", percent(tree.total[node], tree.total[parent])]);
	if (tree.baseTotal) {
		rows.push(["before", humanValue(tree.baseTotal[node], unit), percent(tree.baseTotal[node], baseTotal)]);
		rows.push(["change", "", points(shareChange(tree, node))]);
	}
	return rows;
}

export function describe(app, tree, node) {
	const parts = [nodeLabel(app, tree, node), nodePlace(app, tree, node)];
	for (const [name, value, share] of figures(app, tree, node))
		parts.push(`${name} ${value} ${share}`);
	return parts.filter(Boolean).join(", ");
}

/* The line below a chart. */
export function fillDetails(host, app, tree, node, openSandwich) {
	if (node < 0) {
		host.replaceChildren(element("span", { class: "place" },
			"Click a box to zoom, arrow keys to move, / to search, ? for all keys."));
		return;
	}
	const [total, self] = figures(app, tree, node);
	const change = tree.baseTotal ? ` · change ${points(shareChange(tree, node))}` : "";
	host.replaceChildren(
		element("span", { class: "name" }, nodeLabel(app, tree, node)),
		placeElement(nodePlace(app, tree, node), nodeWholePlace(app, tree, node)),
		element("span", { class: "figures" }, `total ${total[1]} (${total[2]}) · self ${self[1]} (${self[2]})${change}`));
	if (tree.frame[node] >= 0 && openSandwich) {
		const button = element("button", { type: "button", title: "Callers and callees (s)" }, "Sandwich");
		button.addEventListener("click", openSandwich);
		host.append(button);
	}
}

export function showTooltip(tip, app, tree, node, event) {
	if (node < 0 || !event) {
		tip.hidden = true;
		return;
	}
	const list = element("dl");
	for (const [name, value, share] of figures(app, tree, node))
		list.append(element("dt", {}, name), element("dd", {}, value), element("dd", {}, share));
	const lines = [nodeWholePlace(app, tree, node), nodeOrigin(app, tree, node)].filter(Boolean);
	tip.replaceChildren(element("b", {}, nodeLabel(app, tree, node)), ...lines.map((line) => element("p", {}, line)), list);
	tip.hidden = false;
	const { offsetWidth, offsetHeight } = tip;
	const left = event.clientX + 14 + offsetWidth > innerWidth ? event.clientX - offsetWidth - 10 : event.clientX + 14;
	const top = event.clientY + 18 + offsetHeight > innerHeight ? event.clientY - offsetHeight - 10 : event.clientY + 18;
	tip.style.left = `${Math.max(4, left)}px`;
	tip.style.top = `${Math.max(4, top)}px`;
}
