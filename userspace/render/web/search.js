/* SPDX-License-Identifier: BSD-2-Clause */
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
