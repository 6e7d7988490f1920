/* SPDX-License-Identifier: BSD-2-Clause */
/* Call trees as typed arrays, one entry for each node.  Node 0 is the root and a parent comes before its
 * children, so that one pass forward (or backward) visits parents (children) first.
 * frame[i] is a frame of the profile; below 0 it is the root (-1) or labels[-2 - frame[i]]. */

class TreeBuilder {
	constructor(capacity, profile) {
		const withBase = profile.differential;
		this.scale = { total: profile.total, base: profile.baseTotal };
		this.size = 1;
		this.frame = new Int32Array(capacity).fill(-1, 0, 1);
		this.parent = new Int32Array(capacity).fill(-1, 0, 1);
		this.self = new Float64Array(capacity);
		this.base = withBase ? new Float64Array(capacity) : null;
		this.table = new Int32Array(2 ** Math.ceil(Math.log2(capacity * 2)));
		this.labels = [];
	}
	slot(parent, frame) {
		let mixed = Math.imul(parent, 0x9e3779b1) ^ Math.imul(frame + 7, 0x85ebca6b);
		mixed = Math.imul(mixed ^ (mixed >>> 15), 0x2c1b3c6d);
		const mask = this.table.length - 1;
		let at = (mixed ^ (mixed >>> 13)) & mask;
		for (let id = this.table[at]; id !== 0; id = this.table[at]) {
			if (this.parent[id] === parent && this.frame[id] === frame)
				break;
			at = (at + 1) & mask;
		}
		return at;
	}
	grow() {
		const larger = (old, Type) => {
			const values = new Type(old.length * 2);
			values.set(old);
			return values;
		};
		this.frame = larger(this.frame, Int32Array);
		this.parent = larger(this.parent, Int32Array);
		this.self = larger(this.self, Float64Array);
		this.base = this.base && larger(this.base, Float64Array);
		this.table = new Int32Array(this.table.length * 2);
		for (let id = 1; id < this.size; id++)
			this.table[this.slot(this.parent[id], this.frame[id])] = id;
	}
	/* The child of `parent` that shows `frame`, made when there is none. */
	child(parent, frame) {
		if (this.size === this.frame.length)
			this.grow();
		const at = this.slot(parent, frame);
		if (this.table[at] === 0) {
			this.frame[this.size] = frame;
			this.parent[this.size] = parent;
			this.table[at] = this.size++;
		}
		return this.table[at];
	}
	add(id, value, base) {
		this.self[id] += value;
		if (this.base)
			this.base[id] += base;
	}
	label(text) {
		this.labels.push(text);
		return -1 - this.labels.length;
	}
	finish() {
		const cut = (values) => values && values.subarray(0, this.size);
		return totals({ size: this.size, frame: cut(this.frame), parent: cut(this.parent), self: cut(this.self),
			baseSelf: cut(this.base), labels: this.labels, scale: this.scale });
	}
}

function totals(tree) {
	const upward = (self) => {
		if (!self)
			return null;
		const total = Float64Array.from(self);
		for (let i = tree.size - 1; i > 0; i--)
			total[tree.parent[i]] += total[i];
		return total;
	};
	tree.total = upward(tree.self);
	tree.baseTotal = upward(tree.baseSelf);
	return tree;
}

/* What represents a frame in a tree: itself, or its function. */
function keys(profile, byLine) {
	const { frameFunction, functionFrame } = profile;
	return byLine ? frameFunction.map((_, frame) => frame) : frameFunction.map((id) => functionFrame[id]);
}

/* All samples in one tree. */
export function wholeTree(profile, byLine) {
	const { nodeFrame, nodeParent, sampleNode, sampleValue, sampleBase } = profile;
	const builder = new TreeBuilder(nodeFrame.length + 1, profile);
	const of = new Int32Array(nodeFrame.length);
	if (byLine || profile.functionFrame.length === profile.frameName.length) {
		builder.frame.set(nodeFrame);
		builder.parent.set(nodeParent);
		builder.size = nodeFrame.length;
		for (let i = 0; i < of.length; i++)
			of[i] = i;
	} else {
		const key = keys(profile, byLine);
		for (let i = 1; i < nodeFrame.length; i++)
			of[i] = builder.child(of[nodeParent[i]], key[nodeFrame[i]]);
	}
	for (let i = 0; i < sampleNode.length; i++)
		builder.add(of[sampleNode[i]], sampleValue[i], sampleBase && sampleBase[i]);
	return builder.finish();
}

/* The nodes of the groups that come above the stacks: processes, or processes and their threads. */
function groupNodes(builder, profile, withThreads) {
	const codes = new Map();
	const code = (text) => codes.get(text) || codes.set(text, builder.label(text)).get(text);
	return profile.groups.map((group) => {
		const process = builder.child(0, code(profile.groupLabel(group, false)));
		return withThreads ? builder.child(process, code(profile.groupLabel(group, true))) : process;
	});
}

/* One subtree for each process or thread. */
export function groupedTree(profile, byLine, withThreads) {
	const { nodeFrame, nodeParent, sampleNode, sampleGroup, sampleValue, sampleBase } = profile;
	const builder = new TreeBuilder(nodeFrame.length * 2 + 64, profile);
	const tops = groupNodes(builder, profile, withThreads);
	const key = keys(profile, byLine);
	const order = Uint32Array.from(sampleNode.keys()).sort((a, b) => tops[sampleGroup[a]] - tops[sampleGroup[b]]);
	/* to[node] is its place below the group that mark[node] names. */
	const to = new Int32Array(nodeFrame.length);
	const mark = new Int32Array(nodeFrame.length).fill(-1);
	const path = [];
	for (const i of order) {
		const top = tops[sampleGroup[i]];
		let node = sampleNode[i];
		for (path.length = 0; node > 0 && mark[node] !== top; node = nodeParent[node])
			path.push(node);
		let at = node > 0 ? to[node] : top;
		while (path.length) {
			node = path.pop();
			at = builder.child(at, key[nodeFrame[node]]);
			to[node] = at;
			mark[node] = top;
		}
		builder.add(at, sampleValue[i], sampleBase && sampleBase[i]);
	}
	return builder.finish();
}

/* What a function calls, below its outermost calls, so that recursion counts once.  Root: the function. */
export function calleesTree(tree, profile, wanted) {
	const builder = new TreeBuilder(1024, profile);
	const to = new Int32Array(tree.size).fill(-1);
	builder.frame[0] = profile.functionFrame[wanted];
	for (let i = 1; i < tree.size; i++) {
		const above = to[tree.parent[i]];
		if (above >= 0)
			to[i] = builder.child(above, tree.frame[i]);
		else if (tree.frame[i] >= 0 && profile.frameFunction[tree.frame[i]] === wanted)
			to[i] = 0;
		else
			continue;
		builder.add(to[i], tree.self[i], tree.baseSelf && tree.baseSelf[i]);
	}
	return builder.finish();
}

/* Who calls it: from its innermost calls up to the root, so that each sample counts once.  Root: it. */
export function callersTree(tree, profile, wanted) {
	const builder = new TreeBuilder(1024, profile);
	const value = Float64Array.from(tree.self);
	const base = builder.base && Float64Array.from(tree.baseSelf);
	builder.frame[0] = profile.functionFrame[wanted];
	for (let i = tree.size - 1; i > 0; i--) {
		if (tree.frame[i] < 0 || profile.frameFunction[tree.frame[i]] !== wanted) {
			value[tree.parent[i]] += value[i];
			if (base)
				base[tree.parent[i]] += base[i];
			continue;
		}
		let at = 0;
		for (let node = tree.parent[i]; node > 0 && tree.frame[node] >= 0; node = tree.parent[node])
			at = builder.child(at, tree.frame[node]);
		builder.add(at, value[i], base && base[i]);
	}
	return builder.finish();
}

/* Who calls the line that these frames are, and what it calls, as [frame, value]; of nested calls the outermost counts. */
export function lineCalls(tree, frames) {
	const wanted = new Set(frames);
	const inside = new Uint8Array(tree.size);
	const callers = new Map();
	const callees = new Map();
	let [total, baseTotal] = [0, 0];
	const add = (map, frame, value) => {
		if (frame >= 0 && value > 0)
			map.set(frame, (map.get(frame) || 0) + value);
	};
	for (let i = 1; i < tree.size; i++) {
		const above = tree.parent[i];
		const own = wanted.has(tree.frame[i]);
		/* 1: the outermost call itself; 2: below it. */
		inside[i] = inside[above] ? 2 : own ? 1 : 0;
		if (inside[i] === 1) {
			total += tree.total[i];
			baseTotal += tree.baseTotal ? tree.baseTotal[i] : 0;
			add(callers, tree.frame[above], tree.total[i]);
		} else if (inside[above] === 1) {
			add(callees, tree.frame[i], tree.total[i]);
		}
	}
	return { total, baseTotal, callers, callees };
}

/* Self and total by function (or by frame, with `byLine`); within recursion a sample counts once. */
export function sums(tree, profile, byLine) {
	const size = byLine ? profile.frameName.length : profile.functionFrame.length;
	const result = { self: new Float64Array(size), total: new Float64Array(size),
		baseSelf: tree.baseSelf && new Float64Array(size), baseTotal: tree.baseSelf && new Float64Array(size) };
	const depth = new Int32Array(size);
	const { next, first } = links(tree);
	const id = (i) => (tree.frame[i] < 0 ? -1 : byLine ? tree.frame[i] : profile.frameFunction[tree.frame[i]]);
	for (let i = 0; i >= 0;) {
		const key = id(i);
		if (key >= 0)
			count(result, tree, i, key, depth[key]++ === 0);
		if (first[i]) {
			i = first[i];
			continue;
		}
		for (; i >= 0; i = tree.parent[i]) {
			if (id(i) >= 0)
				depth[id(i)]--;
			if (next[i]) {
				i = next[i];
				break;
			}
		}
	}
	return result;
}

function count(result, tree, i, key, outermost) {
	result.self[key] += tree.self[i];
	if (outermost)
		result.total[key] += tree.total[i];
	if (tree.baseSelf) {
		result.baseSelf[key] += tree.baseSelf[i];
		if (outermost)
			result.baseTotal[key] += tree.baseTotal[i];
	}
}

/* First child and next sibling of each node; 0 is none. */
function links(tree) {
	const first = new Int32Array(tree.size);
	const next = new Int32Array(tree.size);
	for (let i = tree.size - 1; i > 0; i--) {
		next[i] = first[tree.parent[i]];
		first[tree.parent[i]] = i;
	}
	return { first, next };
}

/* The part of the tree in frames that `matches` (by frame) marks; nested ones count once. */
export function matchedTotal(tree, matches) {
	const inside = new Uint8Array(tree.size);
	let total = 0;
	for (let i = 1; i < tree.size; i++) {
		const own = tree.frame[i] >= 0 && matches[tree.frame[i]];
		if (own && !inside[tree.parent[i]])
			total += tree.total[i];
		inside[i] = own || inside[tree.parent[i]];
	}
	return total;
}
