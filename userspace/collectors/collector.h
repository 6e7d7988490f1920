/* SPDX-License-Identifier: BSD-2-Clause */
/* What a collector is: how profiles are sent to it, how its answers are judged, and how profiles
 * are read from it.  Each has a file here, and a row in base/collectors.h. */
#ifndef COLLECTORS_COLLECTOR_H
#define COLLECTORS_COLLECTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/collectors.h"

struct profile;
struct push_division;
struct push_target;
struct push_writer;
struct session;

/* Looks into an environment, as getenv(). */
typedef const char *push_environment(const char *name);

struct collector {
	enum collector_id id;

	/* ---- sending, by pyprofd-serve ---- */
	const char *const *header; /* "Name: value", NULL at the end */
	bool packs;		   /* bodies are gzip'd, unless a target says otherwise */
	/* Encodes the rows of a division as requests below the collector's limits.  Returns as
	 * push_encode(). */
	int (*encode)(struct push_writer *writer, struct profile *profile,
		      const struct push_division *division);
	/* Completes a target from the usual environment.  NULL: there is none. */
	int (*take_environment)(struct push_target *target, push_environment *environment,
				char *why);
	/* What a 2xx has for a body, or it is somebody else's page: JSON, else protobuf. */
	bool answers_json;
	bool tells_rejected; /* how many it left out in a success: OTLP's partial_success */
	uint64_t max_age_ms; /* of windows; 0: any */

	/* ---- reading, by pyprof-fetch ---- */
	/* Fetches what the settings name.  NULL: nothing can be read there.  Returns 0; -EINVAL
	 * with session->why; -ENOMEM. */
	int (*fetch)(struct session *session);
	bool gives_files; /* of a store; else FETCH_PROFILE_NAME */
	bool is_slow;	  /* a profile of the next hour comes when the hour is over */
};

#define COLLECTOR_DECLARE(id, name, ...) extern const struct collector collector_##name;
COLLECTORS(COLLECTOR_DECLARE)

const struct collector *collector_get(enum collector_id id);

#endif
