/* SPDX-License-Identifier: BSD-2-Clause */
/* The page of HTML with a flame graph, for flame and diff. */
#ifndef READER_PAGE_H
#define READER_PAGE_H

#include "render/flame_html.h"

/* Writes the page to standard output.  Returns 0; -ENOMEM; -errno. */
int page_write(const struct flame_tree *tree, const struct flame_json_facts *facts);
/* Writes "sources":[{"file":PATH,"note":"","lines":[[NUMBER,TEXT]...]}...]: the source around the
 * lines that ran.  A profile may name any path, and pages are sent to others: only absolute paths
 * of Python code that end in .py are opened, only plain files, and of these only the surroundings
 * of lines that ran, where the functions that ran still begin at their lines.  A note says why a
 * file has no lines, or, of a difference, that those of the profile before do not fit.
 * end_wall_ns: of the profile.  Returns 0 or -ENOMEM. */
int page_sources_write(struct json_writer *json, const struct flame_tree *tree,
		       uint64_t end_wall_ns);

#endif
