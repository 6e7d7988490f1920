/* SPDX-License-Identifier: BSD-2-Clause */
/* One run of pyprof-fetch: whom it asks, where the files go, and what pyprof hears of it. */
#ifndef COLLECTORS_SESSION_H
#define COLLECTORS_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "collectors/http_client.h"
#include "collectors/settings.h"

/* ---- where the files go ---- */

/* The temporary directory that what was fetched lies in, until pyprof has read it.  A second thread
 * may remove it at any time; then nothing more is written. */

#define FETCH_MAX_BYTES (2ULL << 30) /* of all files */

struct place;

/* Makes a directory below $TMPDIR, or /tmp.  Returns 0; -ENOMEM; -errno. */
int place_new(struct place **ret_place);
/* Removes the directory with all that is in it.  Thread-safe; may be called again. */
void place_remove(struct place *place);
/* Removes it, and frees. */
void place_free(struct place *place);
DEFINE_OWNED(struct place, place)

/* Returns the directory's path. */
const char *place_path(const struct place *place);

/* One file is written at a time: begin, write, end.  `name` has no '/'.
 * Return 0; -EFBIG: FETCH_MAX_BYTES are reached; -ECANCELED: the directory has been removed;
 * -errno. */
int place_begin(struct place *place, const char *name);
int place_write(struct place *place, const void *bytes, size_t size);
int place_end(struct place *place);
/* Gives up the file that was begun, if there is one. */
void place_abandon(struct place *place);
/* Returns whether there is a file of that name; deletes it. */
bool place_has(const struct place *place, const char *name);
void place_delete(struct place *place, const char *name);
/* Returns the first byte of a file; -ENODATA: it has none; -errno. */
int place_first_byte(const struct place *place, const char *name);

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
	bool is_missing;       /* the server has no profiles like these; why says so */
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

/* Gets an object of JSON, and copies a text of it; "" where it has none.  Returns likewise. */
int session_get_member(struct session *session, const struct session_ask *ask, const char *name,
		       char **ret_text, size_t *ret_size);

/* Tell pyprof: how far it is, and a line about what is missing. */
void session_progress(const struct session *session, uint64_t done, uint64_t wanted);
void session_note(const struct session *session, const char *line);

/* Returns the begin and the end of the range that is asked of a collector, in ms since 1970: the
 * last hour, where the settings are silent. */
void session_range(struct session *session, uint64_t *ret_since_ms, uint64_t *ret_until_ms);
/* Returns the kind that is asked for. */
const char *session_kind(const struct session *session);

/* ---- what collectors that merge a range have in common ---- */

#define SESSION_TYPE_BYTES (FETCH_TYPE_BYTES * 6)
/* Writes NAME:TYPE:UNIT:PERIOD:UNIT and what follows, or what the URL names.  Returns 0; -EINVAL,
 * and in session->why. */
int session_find_type(struct session *session, const char *name, const char *behind,
		      char ret_type[SESSION_TYPE_BYTES]);
int session_complain_missing(struct session *session, const char *type, const char *selector);
/* Tells pyprof what no collector keeps. */
void session_tell_limits(const struct session *session);

#endif
