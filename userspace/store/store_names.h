/* SPDX-License-Identifier: BSD-2-Clause */
/* Formats and parses the store's names: YYYY-MM-DD / HH / <start_ms>-<dur_ms>-<kind>.pb.gz, all in
 * UTC. A name is one of the store's only when it parses and formats back to the same name.  A file
 * that merges several windows ends in .merged.pb.gz; until the files that it was made of are
 * deleted, in .merging.pb.gz (docs/design/profiles.md). */
#ifndef STORE_STORE_NAMES_H
#define STORE_STORE_NAMES_H

#include <stdbool.h>
#include <stdint.h>

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
	bool is_merged; /* has several windows */
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

#endif
