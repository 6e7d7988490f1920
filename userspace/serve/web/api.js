/* SPDX-License-Identifier: BSD-2-Clause */
/* What the server is asked. */

const RETRIES = 5;
const RETRY_MS = 1000;

export class Refused extends Error {
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
