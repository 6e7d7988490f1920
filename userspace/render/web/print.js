/* SPDX-License-Identifier: BSD-2-Clause */
/* Before paper: light colours, charts in full height, tables with their first rows. */

export function listenToPrint(app) {
	const lists = [app.views.table, app.views.lines];
	addEventListener("beforeprint", () => {
		app.theme.apply(true);
		for (const chart of app.charts) {
			if (chart.layout)
				chart.draw(true);
		}
		for (const { table } of lists) {
			if (table)
				table.render(true);
		}
	});
	addEventListener("afterprint", () => {
		app.theme.apply();
		for (const chart of app.charts)
			chart.resized();
		for (const { table } of lists) {
			if (table)
				table.render();
		}
	});
}
