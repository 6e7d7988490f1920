/* SPDX-License-Identifier: BSD-2-Clause */
/* The use over time, as the server sums it: what it has not summed yet is asked for until it is there. */
import { Latest, ask, pathOf } from "./api.js";
import { rateOf } from "./units.js";

/* The server makes this kind of two others, and keeps sums of these alone. */
const PARTS = { wall: ["cpu", "offcpu"] };
const AGAIN_MS = 50;

function sum(strips) {
	const [first, ...others] = strips;
	for (const other of others) {
		first.pending += other.pending;
		first.windows += other.windows;
		first.broken += other.broken;
		for (let i = 0; i < first.value.length; i++) {
			if (other.value[i] !== null)
				first.value[i] = (first.value[i] || 0) + other.value[i];
			first.recorded_ms[i] = Math.max(first.recorded_ms[i], other.recorded_ms[i]);
			first.pending_ms[i] = Math.max(first.pending_ms[i], other.pending_ms[i]);
		}
	}
	return first;
}

/* Rates of the intervals: null is a gap.  pending: the share of the interval's time whose sum is not known. */
function made(strip, kind) {
	const { perMs, name } = rateOf(kind, strip.unit);
	const rate = strip.value.map((value, i) => value === null || !strip.recorded_ms[i] ? null :
		value / (strip.recorded_ms[i] * perMs));
	const pending = strip.pending_ms.map((ms, i) => ms ? ms / (ms + strip.recorded_ms[i]) : 0);
	return { from: strip.from / 1000, until: strip.until / 1000, rate, pending, name, unit: strip.unit,
		value: strip.value, recordedMs: strip.recorded_ms, left: strip.pending, windows: strip.windows, broken: strip.broken,
		most: rate.reduce((most, one) => Math.max(most, one || 0), 0) };
}

export class StripData {
	constructor(shown, failed) {
		this.shown = shown;
		this.failed = failed;
		this.latest = new Latest();
	}

	/* Calls shown(data) with what there is, as often as there is more; or failed(error). */
	async load(kind, { from, until }, points) {
		const signal = this.latest.begin();
		const kinds = Object.hasOwn(PARTS, kind) ? PARTS[kind] : [kind];
		try {
			for (;;) {
				const strips = await Promise.all(kinds.map((one) => ask(pathOf("/api/v1/strip",
					{ from: String(from), until: String(until), kind: one, points: String(points) }), signal)));
				const data = made(sum(strips), kind);
				this.shown(data);
				if (!data.left)
					return;
				await new Promise((done) => setTimeout(done, AGAIN_MS));
			}
		} catch (error) {
			if (!signal.aborted)
				this.failed(error);
		}
	}

	stop() {
		this.latest.stop();
	}
}

/* Sums of a range: value, and the seconds in it that are known and that are not. */
export function sumOf(data, from, until) {
	const found = { value: 0, recordedMs: 0, pending: false };
	const step = (data.until - data.from) / data.rate.length;
	for (let i = 0; i < data.rate.length; i++) {
		const begin = data.from + i * step;
		const share = (Math.min(until, begin + step) - Math.max(from, begin)) / step;
		if (share <= 0)
			continue;
		found.value += share * (data.value[i] || 0);
		found.recordedMs += share * data.recordedMs[i];
		found.pending = found.pending || data.pending[i] > 0;
	}
	return found;
}
