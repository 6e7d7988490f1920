/* SPDX-License-Identifier: BSD-2-Clause */
/* The flame graph as one HTML file that needs nothing else.  Its scripts and styles come from web/
 * and are built in; the profile is embedded as JSON (flame_json.h). */
#ifndef RENDER_FLAME_HTML_H
#define RENDER_FLAME_HTML_H

#include <stdio.h>

/* Writes the page.  `write_data` writes the JSON to the stream that it gets, in any number of
 * parts, and returns 0 or -errno.  `title` is any UTF-8 text.  Every "<" of the JSON is written as
 * \u003c (in JSON it can only be inside a string), so that no name can end the script element.
 * Returns 0, the error of `write_data`, -ENOMEM, or -errno of writing to `out`. */
int flame_html_write(FILE *out, const char *title, int (*write_data)(FILE *data, void *arg),
		     void *arg);

#endif
