/* SPDX-License-Identifier: BSD-2-Clause */
/* The profiles that pyprofd kept in STORE/kept/ because a process ran out of memory, or because a
 * signal asked for it: a directory NAME each, with one merged profile a kind and a text file
 * `about` of lines KEY=VALUE. */
#ifndef READER_KEPT_H
#define READER_KEPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KEPT_DIRECTORY "kept"
#define KEPT_ABOUT "about"
#define KEPT_ABOUT_MAX_BYTES (64U << 10)
#define KEPT_MAX 4096U /* of a list; the newest ones */
#define KEPT_NAME_BYTES 256U
#define KEPT_TEXT_BYTES 256U

/* What `about` says, cleaned for a terminal; "" what it does not say. */
struct kept_about {
	char reason[KEPT_TEXT_BYTES], pid[KEPT_TEXT_BYTES], comm[KEPT_TEXT_BYTES];
	char time[KEPT_TEXT_BYTES], from[KEPT_TEXT_BYTES], to[KEPT_TEXT_BYTES];
};

struct kept {
	char name[KEPT_NAME_BYTES];
};

/* Returns whether a text is the name of such a directory: "2026-11-27T224637Z-...". */
bool kept_name_is_valid(const char *name);
/* Lists the directories in STORE/kept/, the newest first.  *ret_kept is heap.  Returns 0, also when
 * there are none; -ENOMEM; -errno of opening the store. */
int kept_list(const char *store, struct kept **ret_kept, size_t *ret_count);
/* Parses a text of `size` bytes and a NUL.  Other keys and lines are passed over. */
void kept_about_parse(const char *text, size_t size, struct kept_about *ret_about);
/* Reads STORE/kept/NAME/about; all is "" where it cannot be read. */
void kept_about_read(const char *store, const char *name, struct kept_about *ret_about);
/* Finds the profile of a kind.  Returns its path on the heap, or NULL: there is none, or no
 * memory. */
char *kept_profile(const char *store, const char *name, const char *kind);

#endif
