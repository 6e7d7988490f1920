/* SPDX-License-Identifier: BSD-2-Clause */
/* What a store has, as the names of its files say: from when until when, which kinds, how long its
 * windows are.  No file is opened. */
#ifndef QUERY_EXTENT_H
#define QUERY_EXTENT_H

#include <stdbool.h>
#include <stdint.h>

/* Without files all is 0. */
struct extent {
	uint64_t files;
	uint64_t from_ms, until_ms; /* since 1970; a clock that was set back leaves some ahead */
	uint64_t interval_ms;	    /* of windows; 0: all files are merged */
	uint32_t kinds;		    /* bits 1 << enum pp_profile */
	uint64_t bytes;		    /* of all files; 0: not asked for */
};

/* wants_bytes: asks the file system for each file's size, too.  Returns 0; -ENOMEM; -errno of
 * store_list(). */
int extent_read(const char *store, bool wants_bytes, struct extent *ret_extent);

#endif
