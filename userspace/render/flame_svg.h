/* SPDX-License-Identifier: BSD-2-Clause */
/* A flame graph as one static SVG without scripts.  The source location and figures of a box are in
 * its <title>, which browsers show as a tooltip.  It follows the browser's light or dark theme. */
#ifndef RENDER_FLAME_SVG_H
#define RENDER_FLAME_SVG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Numbered like the kinds of the page. */
enum flame_svg_kind {
	FLAME_SVG_PYTHON = 0,
	FLAME_SVG_NATIVE = 1,
	FLAME_SVG_KERNEL = 2,
	FLAME_SVG_GPU = 3,
	FLAME_SVG_OTHER = 4,
};

/* Texts are borrowed until the next node is requested; NULL is "". */
struct flame_svg_node {
	uint32_t parent;      /* less than its own number; node 0 is the root */
	uint64_t self, total; /* total: with all nodes below it */
	const char *name, *file, *module;
	uint32_t line; /* 0: unknown */
	enum flame_svg_kind kind;
};

struct flame_svg {
	const char *title, *unit; /* unit: "nanoseconds", "bytes", "count" */
	uint32_t node_count;
	uint32_t width_px; /* 0: FLAME_SVG_WIDTH_PX */
	void (*node)(void *arg, uint32_t number, struct flame_svg_node *ret_node);
	void *arg;
};

#define FLAME_SVG_WIDTH_PX 1200U
/* Rows above this depth are left out, and the picture says so. */
#define FLAME_SVG_MAX_ROWS 400U

/* Writes the SVG.  Returns 0, -EINVAL for a node whose parent does not come before it, -ENOMEM or
 * -errno of writing. */
int flame_svg_write(FILE *out, const struct flame_svg *svg);

#endif
