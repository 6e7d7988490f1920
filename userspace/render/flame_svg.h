/* SPDX-License-Identifier: BSD-2-Clause */
/* A flame graph as one static SVG without scripts.  The source location and figures of a box are in
 * its <title>, which browsers show as a tooltip.  It follows the browser's light or dark theme. */
#ifndef RENDER_FLAME_SVG_H
#define RENDER_FLAME_SVG_H

#include <stdio.h>

#include "render/flame_tree.h"

/* Rows above this depth are left out, and the picture says so. */
#define FLAME_SVG_MAX_ROWS 400U

/* Writes the SVG.  Returns 0, -ENOMEM or -errno of writing. */
int flame_svg_write(FILE *out, const struct flame_tree *tree, const char *title);

#endif
