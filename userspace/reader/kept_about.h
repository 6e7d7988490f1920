/* SPDX-License-Identifier: BSD-2-Clause */
/* What the text file `about` of a kept profile says (store/kept.h): lines KEY=VALUE. */
#ifndef READER_KEPT_ABOUT_H
#define READER_KEPT_ABOUT_H

#include <stddef.h>

#define KEPT_TEXT_BYTES 256U

/* Values, cleaned for a terminal; "" what the file does not say. */
struct kept_about {
	char reason[KEPT_TEXT_BYTES], pid[KEPT_TEXT_BYTES], comm[KEPT_TEXT_BYTES];
	char time[KEPT_TEXT_BYTES], from[KEPT_TEXT_BYTES], to[KEPT_TEXT_BYTES];
};

/* Parses a text of `size` bytes.  Other keys and lines are passed over. */
void kept_about_parse(const char *text, size_t size, struct kept_about *ret_about);
/* Reads STORE/kept/NAME/about; all is "" where it cannot be read. */
void kept_about_read(const char *store, const char *name, struct kept_about *ret_about);
/* Finds the kept profile of a kind.  Returns its path on the heap, or NULL: there is none, or no
 * memory. */
char *kept_profile(const char *store, const char *name, const char *kind);

#endif
