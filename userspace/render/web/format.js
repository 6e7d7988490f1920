/* SPDX-License-Identifier: BSD-2-Clause */
/* Values as people read them: three figures, a unit that fits. */

const TIME_STEPS = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];
const NANOSECONDS = { nanoseconds: 1, microseconds: 1e3, milliseconds: 1e6, seconds: 1e9 };
const BYTE_STEPS = [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"], [1, "B"]];

function threeFigures(number) {
	const size = Math.abs(number);
	return number.toFixed(size >= 99.95 || size === 0 ? 0 : size >= 9.995 ? 1 : 2);
}

function stepped(value, steps) {
	const size = Math.abs(value);
	const step = steps.find(([least]) => size >= least * 0.9995) || steps[steps.length - 1];
	return `${threeFigures(value / step[0])} ${step[1]}`;
}

function longTime(nanoseconds) {
	const seconds = Math.round(nanoseconds / 1e9);
	const [h, m, s] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
	return h ? `${h} h ${m} min` : `${m} min ${s} s`;
}

export function humanCount(value) {
	return Math.round(value).toLocaleString("en-US");
}

export function humanValue(value, unit) {
	if (Object.hasOwn(NANOSECONDS, unit)) {
		const time = value * NANOSECONDS[unit];
		return Math.abs(time) >= 120e9 ? longTime(time) : stepped(time, TIME_STEPS);
	}
	if (unit === "bytes")
		return stepped(value, BYTE_STEPS);
	return unit === "count" || !unit ? humanCount(value) : `${humanCount(value)} ${unit}`;
}

export function percent(part, whole) {
	if (!(whole > 0) || part === 0)
		return "0%";
	const share = 100 * part / whole;
	if (share > 0 && share < 0.005)
		return "<0.01%";
	return `${share.toFixed(share >= 99.95 ? 0 : share >= 9.95 ? 1 : 2)}%`;
}

/* A difference of two shares, in percentage points. */
export function points(share) {
	const value = (100 * share).toFixed(2);
	return `${share > 0 ? "+" : ""}${value === "-0.00" ? "0.00" : value} pp`;
}
