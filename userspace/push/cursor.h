/* SPDX-License-Identifier: BSD-2-Clause */
/* How far one sink has come: durable, so that a restart repeats nothing.  Times are those of
 * windows, not of files: a merged file has windows in front of the mark and behind it.
 * One thread an object. */
#ifndef PUSH_CURSOR_H
#define PUSH_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pyprofd/kinds.h>

#define PUSH_CURSOR_BYTES 1024U	  /* of the file, with its NUL */
#define PUSH_SINK_NAME_CHARS 33U /* [A-Za-z0-9_-][A-Za-z0-9_.-]{0,31} */

struct push_cursor {
	/* Start of the newest window of each kind that is sent or dropped, in ms since 1970; 0:
	 * none. */
	uint64_t sent_ms[PP_PROFILE_COUNT];
	/* The window that is being sent. */
	struct {
		bool is_open;
		enum pp_profile kind;
		uint64_t start_ms;
		uint32_t requests; /* that the collector has, or has refused */
		uint64_t hash;	   /* of all of those: another division begins anew */
		/* The next request was begun, and its answer not noted. */
		bool is_in_flight;
	} open;
};

/* Returns whether a name of a sink can be part of a file's name. */
bool push_sink_name_is_valid(const char *name);

void push_cursor_format(const struct push_cursor *cursor, char ret_text[PUSH_CURSOR_BYTES]);
/* Untrusted: returns 0, or -EBADMSG for all that push_cursor_format() does not write; kinds that
 * this version does not know are passed over. */
int push_cursor_parse(const char *text, size_t size, struct push_cursor *ret_cursor);

/* Read and write DIR/NAME.cursor; written whole or not at all: temporary name, fsync, rename.
 * Return 0; -ENOENT: there is none; -EBADMSG; -errno. */
int push_cursor_load(int dir_fd, const char *name, struct push_cursor *ret_cursor);
int push_cursor_save(int dir_fd, const char *name, const struct push_cursor *cursor);

/* Notes that no more is to be sent of a window. */
void push_cursor_pass(struct push_cursor *cursor, enum pp_profile kind, uint64_t start_ms);

#endif
