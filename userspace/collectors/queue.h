/* SPDX-License-Identifier: BSD-2-Clause */
/* What a sink has still to send, and what it is at.  The store is the spool: it deletes and merges
 * files meanwhile, and knows nothing of sinks.  The cursor is how far one sink has come: durable,
 * so that a restart repeats nothing.  Its times are those of windows, not of files: a merged file
 * has windows in front of the mark and behind it.  One thread an object. */
#ifndef COLLECTORS_QUEUE_H
#define COLLECTORS_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pyprofd/kinds.h>

#include "base/cleanup.h"
#include "collectors/collector.h"
#include "collectors/requests.h"
#include "pprof/profile_read.h"
#include "store/store_query.h"

/* ---- the cursor ---- */

#define PUSH_CURSOR_BYTES 1024U /* of the file, with its NUL */

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

/* ---- a file and its windows ---- */

/* A file as it was written has one, a merged one several: docs/design/profiles.md. */

#define PUSH_WINDOWS_MAX 4096U	     /* of one file */
#define PUSH_MEMORY_MAX (192U << 20) /* while it is read */
#define PUSH_WHY_BYTES 256U

struct push_content {
	const struct push_label_choice *choice; /* borrowed */
	struct store_file file;
	int fd; /* stays open, so that retention takes nothing away half-way */
	/* In the order of time; start_ms: as in the name of the file that the window had for
	 * itself. */
	struct window_mark *mark; /* owned */
	size_t count, capacity;
	int error; /* of listing the windows */
	/* Has the file's bytes, and the window that is loaded; owned; NULL: not read yet. */
	struct profile_reader *reader;
	bool is_loaded;
	size_t loaded; /* with is_loaded */
};

/* Opens a file and lists its windows.  choice: the labels that are kept, with those that make a
 * service's name; borrowed.  Returns 0; -ENOENT: the file is gone; -EBADMSG, -EFBIG, -ENODATA,
 * -errno with its fault in `why`; -ENOMEM. */
int push_content_read(const struct store_entry *entry, const struct push_label_choice *choice,
		      char why[PUSH_WHY_BYTES], struct push_content **ret_content);
void push_content_free(struct push_content *content);
DEFINE_OWNED(struct push_content, push_content)

/* Reads one window; the one before is gone.  The file was unpacked with the list, and its bytes are
 * kept, PUSH_MEMORY_MAX at most with what is read of them.  Returns as push_content_read(). */
int push_content_load(struct push_content *content, size_t index, char why[PUSH_WHY_BYTES]);
/* Returns what was loaded last, or NULL. */
struct profile *push_content_profile(struct push_content *content);

/* ---- what is sent of it ---- */

struct push_job {
	struct push_content *content; /* owned; NULL: no file */
	enum pp_profile kind;
	size_t window; /* of the content */
	struct push_requests requests;
	bool is_encoded; /* the requests are the window's */
	uint32_t next;	 /* of the requests */
	unsigned int tries;
	uint64_t hash; /* of the requests before the next one */
};

void push_job_release(struct push_job *job);
/* Begins with a file.  content: taken over. */
void push_job_begin(struct push_job *job, enum pp_profile kind, struct push_content *content);
/* Returns the window; NULL behind the last one, and then the job has no file any more. */
const struct window_mark *push_job_window(struct push_job *job);
struct push_job_counts {
	uint64_t folded;   /* series that became one */
	uint64_t repeated; /* requests that were sent before a restart, as other bytes */
};
/* Reads and encodes the window, and goes on behind the requests that the cursor notes, when they
 * are the same.  Returns 0, or as push_content_read() and push_encode() with the fault in `why`. */
int push_job_encode(struct push_job *job, const struct push_encoding *encoding,
		    const struct push_cursor *cursor, struct push_known_series *known,
		    char why[PUSH_WHY_BYTES], struct push_job_counts *ret_counts);
/* Returns the next request; NULL: the window is done. */
const struct push_request *push_job_request(const struct push_job *job);
/* Leaves the next request behind. */
void push_job_pass_request(struct push_job *job);
void push_job_pass_window(struct push_job *job);
/* Notes in a cursor where the job is. */
void push_job_note(const struct push_job *job, bool is_in_flight, struct push_cursor *cursor);

#endif
