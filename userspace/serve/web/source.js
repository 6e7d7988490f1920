/* SPDX-License-Identifier: BSD-2-Clause */
/* What the server is asked. */

const RETRIES = 5;
const RETRY_MS = 1000;

class Refused extends Error {
	constructor(status, text) {
		super(text.trim() || `The server answers ${status}.`);
		this.status = status;
	}
}

/* The path of an endpoint with its parameters; those without a value are left out.  Lists give one each. */
export function pathOf(path, parameters) {
	const words = new URLSearchParams();
	for (const [name, value] of Object.entries(parameters)) {
		for (const one of Array.isArray(value) ? value : [value]) {
			if (one)
				words.append(name, one);
		}
	}
	return String(words) ? `${path}?${words}` : path;
}

const wait = (ms, signal) => new Promise((done, fail) => {
	const timer = setTimeout(done, ms);
	signal?.addEventListener("abort", () => {
		clearTimeout(timer);
		fail(signal.reason);
	});
});

/* What fetch() says of a server that does not answer differs between browsers. */
async function answer(path, signal) {
	try {
		return await fetch(path, { signal, cache: "no-store" });
	} catch (error) {
		if (signal?.aborted)
			throw error;
		throw new Refused(0, "pyprofd-serve does not answer.");
	}
}

/* Gets JSON; throws Refused.  A server that is busy is asked again. */
export async function ask(path, signal) {
	for (let tries = 0; ; tries++) {
		const got = await answer(path, signal);
		if (got.ok)
			return got.json();
		if (got.status !== 503 || tries === RETRIES)
			throw new Refused(got.status, await got.text());
		await wait(RETRY_MS * 2 ** tries, signal);
	}
}

/* Why a path gives nothing: Refused; null: it does give something. */
export async function askWhy(path) {
	try {
		const got = await answer(path);
		if (got.ok) {
			got.body?.cancel();
			return null;
		}
		return new Refused(got.status, await got.text());
	} catch (error) {
		return error;
	}
}

/* Of several questions, one behind the other, only the last one matters. */
export class Latest {
	begin() {
		this.stop();
		this.controller = new AbortController();
		return this.controller.signal;
	}

	stop() {
		this.controller?.abort();
		this.controller = null;
	}
}

/* Where profiles come from: the store, or what runs from now on, for who may not see the store or where there is none. */

const KINDS = [["cpu", "CPU time"], ["offcpu", "Waits"], ["wall", "CPU time and waits"], ["gil", "Waits for the GIL"]]
	.map(([kind, title]) => ({ kind, title, unit: "nanoseconds" }));
const INTERVAL_MS = 10000;

/* A store keeps no profiles of this kind: the server makes them of two others. */
function withWall(kinds) {
	const has = (name) => kinds.some(({ kind }) => kind === name);
	return has("cpu") && has("offcpu") && !has("wall") ? [...kinds, KINDS.find(({ kind }) => kind === "wall")] : kinds;
}

/* What the server says of itself; of an older one, what it lets see. */
async function askSelf() {
	try {
		return await ask("/api/v1/self");
	} catch (error) {
		if (error.status !== 404)
			throw error;
	}
	try {
		await ask("/api/v1/strip?from=1m&points=1");
		return { sees: "all", store: {} };
	} catch (error) {
		if (error.status === 403)
			return { sees: "own", store: null };
		return { sees: "all", store: null };
	}
}

export class Source {
	async refresh() {
		const self = await askSelf();
		this.self = self;
		this.kinds = withWall(self.kinds && self.kinds.length ? self.kinds : KINDS);
		this.intervalMs = self.interval_ms || INTERVAL_MS;
		this.isLive = self.sees === "own" || !self.store;
		this.ahead = self.now_ms ? self.now_ms - Date.now() : 0;
	}

	/* The server's clock, in seconds. */
	now() {
		return (Date.now() + (this.ahead || 0)) / 1000;
	}

	/* Why there is no history; "": there is. */
	why() {
		if (!this.isLive)
			return "";
		return this.self.sees === "own" ?
			"You see your own processes, as they run from now on: the history is for root, and for who opens this page with the token." :
			"There is no history here: the store is empty, or pyprofd-serve has none. You see what runs from now on.";
	}

	/* The newest moment that is stored, where that is not long ago; else now. */
	end() {
		const now = Math.ceil(this.now());
		const stored = Math.ceil((this.self.store?.until_ms || 0) / 1000);
		return stored <= now && now - stored < 60 ? stored : now;
	}

	begin() {
		return Math.floor((this.self.store?.from_ms || 1000 * (this.end() - 86400)) / 1000);
	}

	/* Path of the selection in a format. */
	profile(state, [from, until], format) {
		const labels = state.labels.map(([key, value]) => `${key}:${value}`);
		const chosen = { pid: state.pid ? String(state.pid) : "", label: labels, format };
		if (this.isLive)
			return pathOf(`/debug/pprof/${state.kind}`, { seconds: String(state.seconds), ...chosen });
		return pathOf("/api/v1/profile", { from: String(from), until: String(until), kind: state.kind, ...chosen });
	}

	labels(state, [from, until]) {
		return pathOf("/api/v1/labels", { from: String(from), until: String(until), kind: state.kind,
			pid: state.pid ? String(state.pid) : "", label: state.labels.map(([key, value]) => `${key}:${value}`) });
	}

	waits(state, [from, until]) {
		return pathOf("/api/v1/waits", { from: String(from), until: String(until), pid: state.pid ? String(state.pid) : "" });
	}
}
