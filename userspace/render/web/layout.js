/* SPDX-License-Identifier: BSD-2-Clause */
/* A tree -> where its boxes lie.  order[] holds the nodes row by row, each row from left to right, so
 * that what is in sight of a row is found by halving. */

const SMALL = 12;

/* The children of node i are child[start[i]] … child[start[i + 1] - 1]. */
function childLists(tree, weight) {
	const start = new Int32Array(tree.size + 2);
	for (let i = 1; i < tree.size; i++) {
		if (weight[i] > 0)
			start[tree.parent[i] + 2]++;
	}
	for (let i = 2; i < start.length; i++)
		start[i] += start[i - 1];
	const child = new Int32Array(start[start.length - 1]);
	for (let i = 1; i < tree.size; i++) {
		if (weight[i] > 0)
			child[start[tree.parent[i] + 1]++] = i;
	}
	return { start, child };
}

/* The heavy ones first. */
function sortByWeight(list, begin, end, weight) {
	if (end - begin > SMALL) {
		list.subarray(begin, end).sort((a, b) => weight[b] - weight[a] || a - b);
		return;
	}
	for (let i = begin + 1; i < end; i++) {
		const one = list[i];
		const own = weight[one];
		let at = i;
		for (; at > begin && weight[list[at - 1]] < own; at--)
			list[at] = list[at - 1];
		list[at] = one;
	}
}

/* { order, rowStart, x, rank, weight, rows }: row r is order[rowStart[r]] … order[rowStart[r + 1] - 1];
 * rank[node] is its place in order, -1 when it has no width.  `before` compares siblings; without it the
 * heavy ones come first. */
export function layOut(tree, weight, before) {
	const { start, child } = childLists(tree, weight);
	const order = new Int32Array(child.length + 1);
	const rank = new Int32Array(tree.size).fill(-1);
	const x = new Float64Array(tree.size);
	const rowStart = [0];
	let filled = 1;
	rank[0] = 0;
	for (let at = 0; at < filled;) {
		const rowEnd = filled;
		for (; at < rowEnd; at++) {
			const node = order[at];
			const begin = start[node];
			const end = start[node + 1];
			if (end - begin > 1 && before)
				child.subarray(begin, end).sort(before);
			else if (end - begin > 1)
				sortByWeight(child, begin, end, weight);
			let left = x[node];
			for (let i = begin; i < end; i++) {
				x[child[i]] = left;
				left += weight[child[i]];
				rank[child[i]] = filled;
				order[filled++] = child[i];
			}
		}
		rowStart.push(rowEnd);
	}
	return { tree, order, rank, rowStart, x, weight, rows: rowStart.length - 1 };
}

/* The first place in order[begin..end) whose box ends right of `edge`. */
export function firstPast(layout, begin, end, edge) {
	const { order, x, weight } = layout;
	while (begin < end) {
		const middle = (begin + end) >> 1;
		const node = order[middle];
		if (x[node] + weight[node] > edge)
			end = middle;
		else
			begin = middle + 1;
	}
	return begin;
}

export function rowOf(layout, node) {
	let row = -1;
	for (let at = node; at >= 0; at = layout.tree.parent[at])
		row++;
	return row;
}

export function nodeAt(layout, row, edge) {
	if (row < 0 || row >= layout.rows)
		return -1;
	const [begin, end] = [layout.rowStart[row], layout.rowStart[row + 1]];
	const at = firstPast(layout, begin, end, edge);
	return at < end && layout.x[layout.order[at]] <= edge ? layout.order[at] : -1;
}

/* The neighbour in the same row; -1 at its end. */
export function besideNode(layout, node, step) {
	const row = rowOf(layout, node);
	const at = layout.rank[node] + step;
	return at >= layout.rowStart[row] && at < layout.rowStart[row + 1] ? layout.order[at] : -1;
}

/* The leftmost child; -1 for none. */
export function firstChild(layout, node) {
	const below = rowOf(layout, node) + 1;
	if (below >= layout.rows)
		return -1;
	const end = layout.rowStart[below + 1];
	const at = firstPast(layout, layout.rowStart[below], end, layout.x[node]);
	return at < end && layout.tree.parent[layout.order[at]] === node ? layout.order[at] : -1;
}

/* Search in names, files and modules of functions. */

/* { active, error, matches: by frame, found: number of functions, test(function id) } */
export function runSearch(profile, query, isRegex) {
	const none = { active: false, error: "", matches: new Uint8Array(profile.frameName.length), found: 0, test: () => true };
	if (!query)
		return none;
	const source = isRegex ? query : query.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
	let pattern;
	try {
		/* A capital letter asks for exactly that case. */
		pattern = new RegExp(source, /\p{Lu}/u.test(query) ? "u" : "iu");
	} catch (error) {
		return { ...none, error: `Not a regular expression: ${String(error.message).split(": ").pop()}` };
	}
	return matchFunctions(profile, pattern);
}

function matchFunctions(profile, pattern) {
	const hits = new Int8Array(profile.strings.length);
	const hit = (string) => {
		if (hits[string] === 0)
			hits[string] = pattern.test(profile.strings[string]) ? 1 : -1;
		return hits[string] > 0;
	};
	const byFunction = Uint8Array.from(profile.functionFrame, (frame) =>
		hit(profile.frameName[frame]) || hit(profile.frameFile[frame]) || hit(profile.frameModule[frame]));
	return { active: true, error: "", found: byFunction.reduce((sum, one) => sum + one, 0),
		matches: profile.frameFunction.map((id) => byFunction[id]), test: (id) => byFunction[id] === 1 };
}

/* The next node in `order` (step 1 or -1) whose frame matches, from `node` on; -1 for none. */
export function nextMatch(layout, matches, node, step) {
	const { order, tree } = layout;
	const begin = node >= 0 ? layout.rank[node] : step > 0 ? -1 : 0;
	for (let i = 1; i <= order.length; i++) {
		const at = (begin + step * i + 2 * order.length) % order.length;
		const frame = tree.frame[order[at]];
		if (frame >= 0 && matches[frame])
			return order[at];
	}
	return -1;
}
