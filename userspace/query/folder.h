/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the windows of one kind from a directory of profiles, each once: from their own files, from
 * merged ones, and from those that an agent merges meanwhile (docs/design/profiles.md). */
#ifndef QUERY_FOLDER_H
#define QUERY_FOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/index_table.h"
#include "pprof/profile_read.h"
#include "store/store_query.h"

/* A set of windows, or of files, by the times in their names. */

struct window_times {
	uint64_t start_ms, duration_ms;
};

/* A zeroed one is empty.  Release with window_set_release(). */
struct window_set {
	struct window_times *item;
	uint32_t count, capacity;
	struct index_table index;
};

void window_set_release(struct window_set *set);
bool window_set_has(const struct window_set *set, uint64_t start_ms, uint64_t duration_ms);
/* Adds a window, unless the set has it.  Returns 0 or -ENOMEM. */
int window_set_add(struct window_set *set, uint64_t start_ms, uint64_t duration_ms);

/* How often the directory is listed again because files were merged while it was read. */
#define FOLDER_ROUNDS_MAX 8U

/* A zeroed one is empty.  Release with folder_release(). */
struct folder {
	struct store_range range; /* its kind is not used */
	const char *kind;	  /* borrowed */
	struct store_listing listing;
	struct window_set listed; /* files of the kind of one window each, in this listing */
	struct window_set merged; /* merged files of the kind, in this listing */
	struct window_set read;	  /* merged files that were read */
	struct window_set done;	  /* windows that were read; not of merged files in the 1st round */
	struct window_set known;  /* windows of which it is known what they have */
	unsigned int round;
	bool is_filtered; /* the file that is read now has windows that may be done */
	bool was_gone;	  /* a file was not there any more */
	int err;	  /* of a callback that returns none */
};

struct folder_calls {
	/* Reads one file.  Returns 0; -ENOENT: it is gone; an error that ends the reading. */
	int (*read)(void *context, const char *path, const char *kind);
	/* Reads the files of cpu and offcpu (NULL: there is none) of the same windows as one of
	 * wall.  As read(). */
	int (*read_wall)(void *context, const char *cpu_path, const char *offcpu_path);
	/* Adds a window without samples.  Returns 0 or an error.  NULL: nobody wants these, and no
	 * file is opened to find them. */
	int (*add_empty)(void *context, const struct window_mark *mark);
	/* Lists the windows of a merged file, of which some may be empty ones of the kind.  Returns
	 * 0, also when that is not known; -ENOENT: it is gone; -ENOMEM.  NULL: the file is
	 * opened. */
	int (*list)(void *context, const char *path,
		    void (*on_window)(void *windows, const struct window_mark *mark),
		    void *windows);
	void *context;
};

void folder_release(struct folder *folder);
/* Lists the files of a directory, of all kinds, in a range.  Returns 0; -errno of store_list(). */
int folder_list(struct folder *folder, const char *path, const struct store_range *range);
/* Reads the windows of a kind.  Returns 0; -errno; an error of a callback. */
int folder_read(struct folder *folder, const char *path, const char *kind,
		const struct folder_calls *calls);
/* The wants_window of profile_read_options while folder_read() reads. */
bool folder_wants(struct folder *folder, const struct window_mark *mark);

/* What a store has, as the names of its files say; no file is opened.  Without files all is 0. */
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
