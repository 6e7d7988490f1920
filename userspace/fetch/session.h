/* SPDX-License-Identifier: BSD-2-Clause */
/* One run of pyprof-fetch: whom it asks, where the files go, and what pyprof hears of it. */
#ifndef FETCH_SESSION_H
#define FETCH_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/http_client.h"
#include "fetch/address.h"
#include "fetch/place.h"
#include "fetch/settings.h"

#define FETCH_WHY_BYTES 1024U
#define FETCH_TEXT_MAX_BYTES (128U << 20) /* of an answer that is kept in memory */
#define FETCH_PROFILE_NAME "profile.pb.gz"

struct session {
	const struct fetch_settings *settings;
	const struct fetch_address *address;
	struct http_client *client;
	struct place *place;
	FILE *lines; /* what pyprof hears; borrowed */
	/* One line, without the URL in front of it: what went wrong. */
	char why[FETCH_WHY_BYTES];
	bool is_default_range; /* the last hour was asked for */
	bool is_missing; /* the server has no profiles like these; why says so */
};

/* Writes the line; returns -EINVAL. */
int session_complain(struct session *session, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Gets `url`, or posts `body`, into a file of the place.  Returns 0; -ENOENT: the server answers
 * 404; -EINVAL, and in session->why what is wrong; -ENOMEM. */
struct session_ask {
	const char *url;
	const char *const *header; /* as in http_client_request */
	const void *body;	   /* NULL: GET */
	size_t size;
};
int session_get_file(struct session *session, const struct session_ask *ask, const char *name);
/* Gets it as a text on the heap, NUL-terminated.  Returns as session_get_file(). */
int session_get_text(struct session *session, const struct session_ask *ask, char **ret_text,
		     size_t *ret_size);

/* Tell pyprof: how far it is, and a line about what is missing. */
void session_progress(const struct session *session, uint64_t done, uint64_t wanted);
void session_note(const struct session *session, const char *line);

/* Returns the begin and the end of the range that is asked of a collector, in ms since 1970: the
 * last hour, where the settings are silent. */
void session_range(struct session *session, uint64_t *ret_since_ms, uint64_t *ret_until_ms);
/* Writes "cpu:nanoseconds:cpu:nanoseconds" of the kind, as collectors name what pushing sent: type
 * and unit of the values, and of the period.  Returns 0; -EINVAL, and in session->why. */
int session_value_names(struct session *session, char ret_names[FETCH_TYPE_BYTES * 4]);
/* Returns the kind that is asked for. */
const char *session_kind(const struct session *session);

/* Fetch what the settings name.  Return 0; -EINVAL with session->why; -ENOMEM. */
int fetch_node(struct session *session);	/* files of a store */
int fetch_pyroscope(struct session *session);	/* these: FETCH_PROFILE_NAME */
int fetch_parca(struct session *session);
int fetch_profile(struct session *session);

#endif
