/* SPDX-License-Identifier: BSD-2-Clause */
/* The source around the lines that ran, for the flame graph's page.  A profile may name any path,
 * and pages are sent to others: only absolute paths of Python code that end in .py are opened, only
 * plain files, and of these only the surroundings of lines that ran, where the functions that ran
 * still begin at their lines. */
#ifndef READER_PAGE_SOURCES_H
#define READER_PAGE_SOURCES_H

#include "base/json_writer.h"
#include "render/flame_tree.h"

/* Of all files together; files with more time come first. */
#define PAGE_SOURCES_MAX_BYTES (4U << 20)
#define PAGE_SOURCES_MAX_FILES 400U

/* Writes "sources":[{"file":PATH,"note":"","lines":[[NUMBER,TEXT]...]}...].  A note says why a file
 * has no lines, or, of a difference, that those of the profile before do not fit.
 * end_wall_ns: of the profile.  0 or -ENOMEM. */
int page_sources_write(struct json_writer *json, const struct flame_tree *tree,
		       uint64_t end_wall_ns);

#endif
