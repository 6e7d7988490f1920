/* SPDX-License-Identifier: BSD-2-Clause */
/* Answers with profiles: of what runs from now on, and of the store.  Takes its time: workers call
 * it. */
#ifndef SERVE_ANSWER_H
#define SERVE_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "serve/request.h"

#define ANSWER_MAX_BYTES (64U << 20) /* of a body; more is refused */
#define ANSWER_NAME_BYTES 96U

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
	uid_t uid;
	int stop_fd; /* readable: nobody waits for the answer any more; borrowed */
};

void answer_release(struct answer *answer);
/* Makes a text the answer; status 500 without memory. */
void answer_say(struct answer *answer, unsigned int status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Makes an error of one line the answer.  The line may hold names that others chose. */
void answer_say_clean(struct answer *answer, unsigned int status, const char *line);
/* Makes the headers alone of what a request for work would get if all goes well: HEAD is not worth
 * the work. */
void answer_head(const struct request *request, struct answer *answer);
/* Gets the profile that a request for REQUEST_LIVE or REQUEST_STORED names. */
void answer_profile(const struct answer_sources *sources, const struct request *request,
		    const struct answer_view *view, struct answer *ret_answer);

#endif
