/* SPDX-License-Identifier: BSD-2-Clause */
/* The flame graph as one HTML file that needs nothing else.  Its scripts and styles come from web/
 * and are built in; the profile is embedded as JSON:
 * {"version":1,"title":T,"unit":"nanoseconds","kind":"cpu","sampleTypes":[{"type","unit"}],
 *  "sampleType":"cpu","duration_ns":N,"period":N,"start_ns":N,
 *  "strings":[...],"frames":[[name,file,line,class,module]...],
 *  "groups":[{"label","pid","tid","comm","thread"}...],
 *  "stacks":{"frame":[...],"parent":[...]},
 *  "samples":{"node":[...],"group":[...],"value":[...]},"windows":N,"sampleCount":N}
 * With short paths also "shortFiles":[[index of the file in strings, what is shown for it]...].
 * Further keys, as "sources", are those of put_more.
 * With totals also "functions": docs/pyprof.md.  A differential tree has the values before in
 * "samples":{"base":[...]}, too.
 * Node 0 is the root, its frame and parent are 0; parent[i] < i.  "<" is written as \u003c, so that
 * the text can stand inside of a script element. */
#ifndef RENDER_FLAME_HTML_H
#define RENDER_FLAME_HTML_H

#include <stddef.h>
#include <stdio.h>

#include "base/json_writer.h"
#include "render/flame_tree.h"
#include "render/totals.h"

/* Writes untrusted text inside HTML and SVG so that a browser shows it as text: it is cleaned
 * (base/utf8.h), & < > " ' become references, and what is no character of XML 1.0 becomes U+FFFD.
 * Returns 0, -ENOMEM or -errno of writing. */
int markup_write(FILE *out, const char *text, size_t size);

/* Writes the page; `title` is any UTF-8 text.  `write_data` writes the JSON to the stream that it
 * gets, in any number of parts, and returns 0 or -errno; "<" in it can only be inside a string.
 * Returns 0, the error of `write_data`, -ENOMEM, or -errno of writing to `out`. */
int flame_html_write(FILE *out, const char *title, int (*write_data)(FILE *data, void *arg),
		     void *arg);

struct flame_json_facts {
	const char *title;
	uint64_t windows, sample_count; /* sample_count 0: unknown */
	uint64_t start_wall_ns, duration_ns;
	const struct totals *totals;	       /* NULL: no list of functions */
	const struct short_paths *short_paths; /* NULL: files are shown by their whole paths */
	/* May be NULL: writes further keys.  0 or -errno. */
	int (*put_more)(void *context, struct json_writer *json, const struct flame_tree *tree);
	void *context;
};

/* Writes the JSON.  Returns 0, -ENOMEM or the error of writing. */
int flame_json_write(const struct flame_tree *tree, const struct flame_json_facts *facts,
		     FILE *out);

/* ---- the flame graph as one static SVG, without scripts ----
 * The source location and figures of a box are in its <title>, which browsers show as a tooltip.
 * It follows the browser's light or dark theme. */

/* Rows above this depth are left out, and the picture says so. */
#define FLAME_SVG_MAX_ROWS 400U

/* Writes the SVG.  Returns 0, -ENOMEM or -errno of writing. */
int flame_svg_write(FILE *out, const struct flame_tree *tree, const char *title);

#endif
