/* SPDX-License-Identifier: BSD-2-Clause */
/* What a collector is: how profiles are sent to it, how its answers are judged, and how profiles
 * are read from it; and a target, which is one with its address.  Each collector has a file here,
 * and a row in base/collectors.h. */
#ifndef COLLECTORS_COLLECTOR_H
#define COLLECTORS_COLLECTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pyprofd/kinds.h>

#include "base/cleanup.h"
#include "base/collectors.h"
#include "collectors/http_client.h"
#include "collectors/series.h"
#include "config/config.h"
#include "config/relabel.h"
#include "config/url.h"

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
	int (*encode)(struct push_writer *writer, const struct push_division *division);
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

static inline const struct collector *collector_get(enum collector_id id)
{
#define COLLECTOR_POINTER(id, name, ...) [COLLECTOR_##id] = &collector_##name,
	static const struct collector *const all[] = {COLLECTORS(COLLECTOR_POINTER)};

	return all[id];
}

/* ---- a target ---- */

/* Where a sink sends, and as whom: from its section of the configuration and, where that is silent,
 * from the usual environment.  Texts are owned by the target. */

#define PUSH_TIMEOUT_DEFAULT_MS 30000U
#define PUSH_TIMEOUT_MIN_MS 1000U
#define PUSH_TIMEOUT_MAX_MS 300000U
#define PUSH_SINK_NAME_CHARS 33U /* [A-Za-z0-9_-][A-Za-z0-9_.-]{0,31} */

struct push_target {
	char name[PUSH_SINK_NAME_CHARS];
	const struct collector *collector;
	uint32_t kind_bits; /* 1 << enum pp_profile */
	char *url;	    /* with the protocol's path; may have a token in its query */
	char shown_url[CONFIG_URL_SHOWN_BYTES]; /* what may be told of it */
	struct http_identity as;
	char *label[PUSH_LABELS_MAX];
	size_t label_count;
	struct relabel_rules *rules; /* NULL: none */
	bool is_packed;		     /* bodies are gzip'd */
	uint32_t timeout_ms;	     /* of one request */
};

/* Returns whether a name of a sink can be part of a file's name. */
bool push_sink_name_is_valid(const char *name);
/* Makes a target.  collector: its own.  Returns 0; -EINVAL with one line in `why`; -ENOMEM. */
int push_target_new(const struct config_push *push, const struct collector *collector,
		    push_environment *environment, char why[CONFIG_WHY_BYTES],
		    struct push_target **ret_target);
void push_target_free(struct push_target *target);
DEFINE_OWNED(struct push_target, push_target)

/* For take_environment().  Writes "[push NAME] what"; returns -EINVAL. */
int push_target_complain(const struct push_target *target, char *why, const char *what);
/* Adds a header of `size` bytes.  Returns 0; -EINVAL: there are too many; -ENOMEM. */
int push_target_add_header(struct push_target *target, const char *item, size_t size, char *why);
/* Sets the URL: `base` with the protocol's path behind it, unless it is whole.  Returns 0,
 * -ENOMEM. */
int push_target_set_url(struct push_target *target, const char *base, bool is_whole);

/* ---- what becomes of a request ---- */

/* It is decided by the answer.  Pure functions; any thread.
 * The tables are measured at real collectors (docs/design/collectors.md): Pyroscope 2, Parca 0.2x,
 * the OpenTelemetry collector 0.155. */

/* Pauses between two tries of the same request. */
#define PUSH_PAUSE_FIRST_MS 1000U
#define PUSH_PAUSE_MAX_MS 60000U	/* of those that double */
#define PUSH_PAUSE_CAP_MS (5U * 60000U) /* of Retry-After, and where someone has to act */
/* A malformed profile is a 500 as often as a collector in trouble is: so many tries decide. */
#define PUSH_TRIES_OF_500 3U

enum push_verdict {
	PUSH_DONE,    /* the collector has it */
	PUSH_RETRY,   /* the collector, or the way there, does not work now */
	PUSH_HOLD,    /* nothing will work before someone acts: a token, a password */
	PUSH_POISON,  /* the collector refuses this profile, and will do so again */
	PUSH_REFUSED, /* the collector has no use for such requests at this address */
};

struct push_answer {
	enum http_client_end end;
	unsigned int status; /* of HTTP, with HTTP_CLIENT_ANSWERED */
	const char *body;    /* NUL-terminated; "" when there is none */
	size_t body_size;
};

struct push_decision {
	enum push_verdict verdict;
	/* The collector may have taken the request; another try may count it twice. */
	bool is_ambiguous;
};

/* tries: how often this request was sent, with this time; from 1. */
struct push_decision push_decide(const struct collector *collector,
				 const struct push_answer *answer, unsigned int tries);

/* Returns how many profiles a collector of OTLP says that it has left out, in an answer that is a
 * success for the rest (partial_success.rejected_profiles). */
uint64_t push_rejected_count(const struct collector *collector, const struct push_answer *answer);

/* Returns how long to wait before the next try.  random: any number, which spreads the tries of
 * many nodes; retry_after_ms: what the answer asks for, 0: nothing. */
uint64_t push_pause_ms(enum push_verdict verdict, unsigned int tries, uint32_t random,
		       uint64_t retry_after_ms);

/* Returns whether the collector refuses a window that ended then, because it is too old. */
bool push_is_too_old(const struct collector *collector, uint64_t end_ms, uint64_t now_ms);

#endif
