/* SPDX-License-Identifier: BSD-2-Clause */
/* What a sink has still to send.  The store is the spool: it deletes and merges files meanwhile,
 * and knows nothing of sinks.  The cursor is how far one sink has come: durable, so that a
 * restart repeats nothing.  Its times are those of windows, not of files: a merged file has
 * windows in front of the mark and behind it.  One thread an object. */
#ifndef COLLECTORS_QUEUE_H
#define COLLECTORS_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pyprofd/kinds.h>

#include "store/store_query.h"

/* ---- the cursor ---- */

#define PUSH_CURSOR_BYTES 1024U	 /* of the file, with its NUL */
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

/* ---- files that wait ---- */

/* The list goes back so far behind the cursor, to find what was written there meanwhile: as far as
 * a clock may be set back before a sink follows it. */
#define PUSH_AHEAD_MAX_MS (10U * 60000U)

/* Files that are listed at once; what is behind them comes with the next list. */
struct push_queue {
	const char *directory;	      /* of the store; borrowed */
	uint32_t kind_bits;	      /* 1 << enum pp_profile */
	struct store_listing listing; /* owned */
	size_t next;
	uint64_t since_ms; /* of the listing */
	bool has_listed;
	/* The newest file of each kind that was read to its end; 0: none. */
	uint64_t read_ms[PP_PROFILE_COUNT], read_duration_ms[PP_PROFILE_COUNT];
};

void push_queue_release(struct push_queue *queue);

/* Lists what a cursor leaves to be sent.  *ret_gone: files of the last list that are neither there
 * any more nor part of a merged one: retention has deleted them.  *ret_late: files that came since
 * the last list with a time that the cursor has passed: the clock was set back.  Returns 0 or
 * -errno of store_list(). */
int push_queue_list(struct push_queue *queue, const struct push_cursor *cursor, uint64_t *ret_gone,
		    uint64_t *ret_late);
/* Returns the oldest file with something to send, or NULL; valid until the next list. */
const struct store_entry *push_queue_first(struct push_queue *queue,
					   const struct push_cursor *cursor,
					   enum pp_profile *ret_kind);
/* Notes that the first file was read to its end, or cannot be. */
void push_queue_pass(struct push_queue *queue);
/* Returns how many files of the list have something to send. */
size_t push_queue_count(const struct push_queue *queue, const struct push_cursor *cursor);
/* Returns how many files are left. */
size_t push_queue_left(const struct push_queue *queue);

/* Begins a cursor behind everything that is in the store now: a new sink gets what comes. */
int push_queue_begin(const struct push_queue *queue, struct push_cursor *ret_cursor);

#endif
