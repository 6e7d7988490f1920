/* SPDX-License-Identifier: BSD-2-Clause */
/* What a kind's values are over time, and how times are written. */

const RATES = { cpu: "cores", offcpu: "threads waiting", wall: "threads", gil: "threads waiting for the GIL" };

/* How values become a rate: value / (ms * per_ms), and what it is called. */
export function rateOf(kind, unit) {
	if (unit === "nanoseconds")
		return { perMs: 1e6, name: Object.hasOwn(RATES, kind) ? RATES[kind] : "threads" };
	return { perMs: 1e-3, name: unit === "bytes" ? "bytes/s" : unit === "count" ? "events/s" : `${unit}/s` };
}

/* Three figures, with k, M, G. */
export function short(value) {
	const steps = [[1e9, "G"], [1e6, "M"], [1e3, "k"]];
	const step = steps.find(([least]) => value >= least * 0.9995);
	const number = step ? value / step[0] : value;
	const digits = number >= 99.95 || number === 0 ? 0 : number >= 9.995 ? 1 : 2;
	return `${number.toFixed(digits)}${step ? step[1] : ""}`;
}

/* Marks of an axis are round: 0.5, 2, 10. */
export function mark(value) {
	return short(value).replace(/(\.\d*?)0+(?=\D|$)/, "$1").replace(/\.(?=\D|$)/, "");
}

/* The next of 1, 2, 5, 10, ... */
export function roundUp(value) {
	const power = 10 ** Math.floor(Math.log10(value));
	return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= value * 0.9999);
}

const iso = (seconds) => new Date(seconds * 1000).toISOString();

export const clock = (seconds) => iso(seconds).slice(11, 19);
export const day = (seconds) => iso(seconds).slice(0, 10);

/* "2026-11-24 14:02:10–14:07:40 UTC"; without the day where that is today. */
export function rangeText(from, until, now) {
	const first = day(from) === day(now) && day(until) === day(now) ? "" : `${day(from)} `;
	const second = day(from) === day(until) ? "" : `${day(until)} `;
	return `${first}${clock(from)}–${second}${clock(until)} UTC`;
}

export function lengthText(seconds) {
	const parts = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
	const found = [];
	for (const [step, name] of parts) {
		if (found.length === 2)
			break;
		if (seconds >= step || (step === 1 && !found.length)) {
			found.push(`${Math.floor(seconds / step)} ${name}`);
			seconds %= step;
		} else if (found.length) {
			break;
		}
	}
	return found.join(" ");
}
