/* SPDX-License-Identifier: BSD-2-Clause */
/* One answer, where it comes from and whose it is. */
#ifndef SERVE_ANSWER_H
#define SERVE_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/json_writer.h"
#include "serve/request.h"

#define ANSWER_MAX_BYTES (64U << 20) /* of a body; more is refused */
#define ANSWER_NAME_BYTES 96U
#define ANSWER_TEXT "text/plain; charset=utf-8"
#define ANSWER_JSON "application/json"
/* Of memory while a profile is read: of the store, and of what runs, whose windows wait in a file
 * meanwhile, which may lie in memory, too. */
#define ANSWER_STORED_MAX_BYTES (320U << 20)
#define ANSWER_LIVE_MAX_BYTES (48U << 20)
#define ANSWER_LIVE_FILE_MAX_BYTES (16U << 20)

/* Release with answer_release(). */
struct answer {
	unsigned int status; /* of HTTP */
	const char *type;    /* static: Content-Type */
	const char *policy;  /* static: Content-Security-Policy; NULL: that of all pages */
	char *body;	     /* owned; of an error: one line with a newline */
	size_t size;
	char file_name[ANSWER_NAME_BYTES]; /* "": it is not to be saved */
	bool is_head; /* what the body's length would be is not known: there is none */
};

struct answer_sources {
	const char *store, *live; /* the store's folder; the live socket */
};

struct answer_view {
	bool is_of_user; /* only what this user may see */
	bool has_uid;	 /* the kernel says who it is */
	uid_t uid;
	int stop_fd; /* readable: nobody waits for the answer any more; borrowed */
};

void answer_release(struct answer *answer);
/* Makes a text the answer; status 500 without memory. */
void answer_say(struct answer *answer, unsigned int status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Makes an error of one line the answer.  The line may hold names that others chose. */
void answer_say_clean(struct answer *answer, unsigned int status, const char *line);

/* Makes what `write` writes the body.  Returns 0; -ENOMEM; -EFBIG: it is more than
 * ANSWER_MAX_BYTES; what `write` returns. */
int answer_write(struct answer *answer, int (*write)(FILE *out, void *context), void *context);

/* Makes an object of JSON, whose members `put` writes, the answer, with status 200; 503 without
 * memory. */
void answer_json(struct answer *answer, void (*put)(struct json_writer *json, const void *context),
		 const void *context);
/* Puts the defaults of request_range() into a request.  Returns false, and an answer: the range is
 * none. */
bool answer_range(struct request *request, uint64_t now_ms, struct answer *ret_answer);

/* Sets what the headers say when the work for a request went well: status, type, policy, name. */
void answer_head_set(const struct request *request, struct answer *answer);
/* Makes the headers alone of what a request for work would get if all goes well: HEAD is not worth
 * the work. */
void answer_head(const struct request *request, struct answer *answer);

#endif
