/* SPDX-License-Identifier: BSD-2-Clause */
/* The names of a store's files, and lists of them: of a store, or of any directory with its
 * layout. */
#ifndef STORE_STORE_QUERY_H
#define STORE_STORE_QUERY_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"

/* ---- names ---- */

/* YYYY-MM-DD / HH / <start_ms>-<dur_ms>-<kind>.pb.gz, all in UTC.
 * A name is one of the store's only when it parses and formats back to the same name.  A file
 * that merges several windows ends in .merged.pb.gz; until the files that it was made of are
 * deleted, in .merging.pb.gz (docs/design/profiles.md). */

#define STORE_DAY_CHARS 16U  /* "2026-01-31" */
#define STORE_HOUR_CHARS 4U  /* "07" */
#define STORE_KIND_CHARS 33U /* [a-z0-9_]{1,32} */
#define STORE_FILE_CHARS 96U /* room for a temporary name, too */
/* A start that is taken moves on by at most this many milliseconds. */
#define STORE_RENAMES_MAX 1000U

struct store_file {
	uint64_t start_ms, duration_ms;
	char kind[STORE_KIND_CHARS];
	bool is_temporary;
	bool is_merged;	 /* has several windows */
	bool is_merging; /* besides: the files of its windows may still be there */
};

bool store_kind_is_valid(const char *kind);
void store_day_name(uint64_t start_ms, char name[STORE_DAY_CHARS]);
void store_hour_name(uint64_t start_ms, char name[STORE_HOUR_CHARS]);
/* A temporary file is ".<name>.tmp". */
void store_file_name(const struct store_file *file, char name[STORE_FILE_CHARS]);

bool store_day_parse(const char *name);
bool store_hour_parse(const char *name);
bool store_file_parse(const char *name, struct store_file *ret_file);

/* Calls back for the first names of a directory, which is no link, `most` of them, until the result
 * is not 0.  Returns that result; 0; -errno: it cannot be opened. */
typedef int store_on_name(void *context, int directory_fd, const char *name);
int store_each_name(int parent_fd, const char *path, size_t most, store_on_name *on_name,
		    void *context);

/* Names of a store's directory, of files or of directories.  Release with name_list_release(). */
struct name_list {
	char (*name)[STORE_FILE_CHARS];
	size_t count, capacity;
};

static inline void name_list_release(struct name_list *names)
{
	free(names->name);
	*names = (struct name_list){0};
}

/* Adds a name of the store, all of which fit.  Returns 0 or -ENOMEM. */
static inline int name_list_add(struct name_list *names, const char *name)
{
	if (ARRAY_RESERVE(names->name, names->count, names->capacity))
		return -ENOMEM;
	snprintf(names->name[names->count++], sizeof(names->name[0]), "%.95s", name);
	return 0;
}

/* ---- files in a range of time ---- */

struct store_range {
	uint64_t since_ms, until_ms; /* windows that overlap [since, until); 0, UINT64_MAX: all */
	const char *kind;	     /* NULL: every kind */
};

struct store_entry {
	struct store_file file;
	char *path; /* DIR/day/hour/name */
};

/* Release with store_listing_release(), even when store_list() failed.  Sorted by start, then
 * merged files before others, then by kind. */
struct store_listing {
	struct store_entry *entry;
	size_t count, capacity;
};

/* Returns whether a window with these times is in a range. */
bool store_range_has(const struct store_range *range, uint64_t start_ms, uint64_t duration_ms);
/* Lists the files in a range, of which merged files may have windows outside of it.  Also accepts a
 * directory that holds the files themselves, with names of the store but without the directories of
 * days.  Symbolic links are not followed, other names are ignored.  A file that is renamed
 * meanwhile, as merging does, is listed under its old name, its new one, or both.
 * Returns 0, also when there are no files; -ENOTDIR, -ENOENT, -EACCES, -errno. */
int store_list(const char *directory, const struct store_range *range,
	       struct store_listing *ret_listing);
void store_listing_release(struct store_listing *listing);

#endif
