/* SPDX-License-Identifier: BSD-2-Clause */
/* The page that shows a profile: one HTML file that needs nothing else.  Its scripts and styles lie in
 * web/ and are built in; the profile comes in as JSON (flame_json.h tells of it). */
#ifndef RENDER_FLAME_HTML_H
#define RENDER_FLAME_HTML_H

#include <stdio.h>

/* Writes the page; `write_data` writes the JSON to the stream that it is given, in as many parts as it
 * likes, and returns 0 or -errno.  `title` is any UTF-8 text.  Every "<" of the JSON goes out as \u003c
 * (in JSON it can only stand inside of a string), so that no name can end the script element.
 * Returns 0, what `write_data` returned, -ENOMEM, or -errno of writing to `out`. */
int flame_html_write(FILE *out, const char *title, int (*write_data)(FILE *data, void *arg),
		     void *arg);

#endif
