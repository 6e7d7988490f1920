/* SPDX-License-Identifier: BSD-2-Clause */
/* Before paper: light colours, charts in full height, tables with their first rows. */

export function listenToPrint(app) {
	const setPaper = (onPaper) => {
		app.theme.apply(onPaper);
		for (const chart of app.charts)
			chart.setPaper(onPaper);
		for (const { table } of [app.views.table, app.views.lines]) {
			if (table)
				table.setPaper(onPaper);
		}
	};
	addEventListener("beforeprint", () => setPaper(true));
	addEventListener("afterprint", () => setPaper(false));
}
