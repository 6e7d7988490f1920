/* SPDX-License-Identifier: BSD-2-Clause */
#include "serve/request.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/nearest.h"
#include "query/select.h"
#include "serve/strip.h"

#define PID_MAX (4U << 20) /* the kernel's PID_MAX_LIMIT */
#define SHOWN_CHARS 40	   /* of a value that is wrong */

static const char debug_path[] = "/debug/pprof/";

/* ---- paths ---- */

static int route_live(const char *kind, struct request *request)
{
	request->endpoint = REQUEST_LIVE;
	request->seconds = REQUEST_SECONDS_DEFAULT;
	request->kind = PP_PROFILE_CPU;
	if (!strcmp(kind, "profile")) /* its name in Go */
		return 0;
	return kind_find(kind, strlen(kind), &request->kind) && KINDS_SERVED & 1U << request->kind
		       ? 0
		       : -ENOENT;
}

int request_route(const char *path, struct request *ret_request)
{
	static const struct {
		const char *path;
		enum request_endpoint endpoint;
	} fixed[] = {
		{"/", REQUEST_PAGE},		     {debug_path, REQUEST_INDEX},
		{"/debug/pprof", REQUEST_INDEX},     {"/metrics", REQUEST_METRICS},
		{"/api/v1/profile", REQUEST_STORED}, {"/healthz", REQUEST_HEALTH},
		{"/readyz", REQUEST_READY},	     {"/api/v1/strip", REQUEST_STRIP},
	};
	struct request request = {.points = STRIP_POINTS_DEFAULT};

	snprintf(request.stored, sizeof(request.stored), "%s", kind_get(PP_PROFILE_DEFAULT)->name);
	for (size_t i = 0; i < ARRAY_SIZE(fixed); i++) {
		if (strcmp(path, fixed[i].path))
			continue;
		request.endpoint = fixed[i].endpoint;
		*ret_request = request;
		return 0;
	}
	if (strncmp(path, debug_path, strlen(debug_path)) ||
	    route_live(path + strlen(debug_path), &request))
		return -ENOENT;
	*ret_request = request;
	return 0;
}

/* ---- parameters ---- */

static int refuse(char why[REQUEST_WHY_BYTES], const char *name, const char *value,
		  const char *wanted)
{
	snprintf(why, REQUEST_WHY_BYTES, "%s=%.*s: not %s", name, SHOWN_CHARS, value, wanted);
	return -EINVAL;
}

/* Parses digits.  Returns 0; -EINVAL: not from 1 to most. */
static int parse_number(const char *text, uint64_t most, uint64_t *ret_number)
{
	uint64_t number = 0;

	for (const char *at = text; *at; at++) {
		if (*at < '0' || *at > '9')
			return -EINVAL;
		number = number * 10 + (uint64_t)(*at - '0');
		if (number > most)
			return -EINVAL;
	}
	if (!number)
		return -EINVAL;
	*ret_number = number;
	return 0;
}

/* Digits alone are seconds since 1970, as with --since @SECONDS. */
static int take_time(const char *name, const char *value, uint64_t now_ms, uint64_t *ret_ms,
		     char why[REQUEST_WHY_BYTES])
{
	char seconds[REQUEST_VALUE_BYTES + 1];
	const bool is_number = value[0] && !value[strspn(value, "0123456789")];

	snprintf(seconds, sizeof(seconds), "@%s", value);
	return select_time(is_number ? seconds : value, now_ms, ret_ms)
		       ? refuse(why, name, value, "a time: 1h, 1795273360, 2026-11-21T15:04")
		       : 0;
}

static int take_seconds(struct request *request, const char *value, char why[REQUEST_WHY_BYTES])
{
	uint64_t seconds;

	if (parse_number(value, REQUEST_SECONDS_MAX, &seconds))
		return refuse(why, "seconds", value, "from 1 to 3600");
	request->seconds = (uint32_t)seconds;
	return 0;
}

static int take_pid(struct request *request, const char *value, char why[REQUEST_WHY_BYTES])
{
	uint64_t pid;

	if (parse_number(value, PID_MAX, &pid))
		return refuse(why, "pid", value, "a process id");
	request->pid = (uint32_t)pid;
	return 0;
}

static int take_kind(struct request *request, const char *value, char why[REQUEST_WHY_BYTES])
{
	if (!store_kind_is_valid(value))
		return refuse(why, "kind", value, "a kind: cpu, offcpu, wall, gil");
	snprintf(request->stored, sizeof(request->stored), "%s", value);
	return 0;
}

static int take_format(struct request *request, const char *value, char why[REQUEST_WHY_BYTES])
{
	static const char *const formats[] = {
		[REQUEST_PPROF] = "pprof", [REQUEST_JSON] = "json", [REQUEST_FOLDED] = "folded",
		[REQUEST_HTML] = "html"};

	for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
		if (!strcmp(value, formats[i])) {
			request->format = (enum request_format)i;
			return 0;
		}
	}
	return refuse(why, "format", value, "pprof, json, folded or html");
}

/* Takes "KEY:VALUE", as a regular expression that matches VALUE alone. */
static int take_label(struct request *request, const char *value, char why[REQUEST_WHY_BYTES])
{
	const char *colon = strchr(value, ':');
	char *at;

	if (!colon || colon == value || memchr(value, '=', (size_t)(colon - value)))
		return refuse(why, "label", value, "KEY:VALUE");
	if (request->label_count == REQUEST_LABELS_MAX)
		return refuse(why, "label", value, "one of 8 at most");
	/* A value is shorter than half of the room, and a key has a character at least. */
	at = mempcpy(request->label[request->label_count++], value, (size_t)(colon - value));
	at = mempcpy(at, "=^", 2);
	for (const char *from = colon + 1; *from; from++) {
		if (strchr(".[]{}()*+?^$|\\", *from))
			*at++ = '\\';
		*at++ = *from;
	}
	memcpy(at, "$", 2);
	return 0;
}

static int take_stored(struct request *request, const char *name, const char *value,
		       uint64_t now_ms, char why[REQUEST_WHY_BYTES])
{
	if (!strcmp(name, "kind"))
		return take_kind(request, value, why);
	if (!strcmp(name, "from"))
		return take_time(name, value, now_ms, &request->from_ms, why);
	if (!strcmp(name, "until"))
		return take_time(name, value, now_ms, &request->until_ms, why);
	return -ENOENT;
}

static int take_points(struct request *request, const char *value, char why[REQUEST_WHY_BYTES])
{
	uint64_t points;

	if (parse_number(value, STRIP_POINTS_MAX, &points))
		return refuse(why, "points", value, "from 1 to 2000");
	request->points = (uint32_t)points;
	return 0;
}

/* Returns 0; -ENOENT: the endpoint has no such parameter; -EINVAL. */
static int take_known(struct request *request, const char *name, const char *value, uint64_t now_ms,
		      char why[REQUEST_WHY_BYTES])
{
	if (request->endpoint == REQUEST_STRIP)
		return strcmp(name, "points") ? take_stored(request, name, value, now_ms, why)
					      : take_points(request, value, why);
	if (!strcmp(name, "pid"))
		return take_pid(request, value, why);
	if (!strcmp(name, "label"))
		return take_label(request, value, why);
	if (!strcmp(name, "format"))
		return take_format(request, value, why);
	if (request->endpoint == REQUEST_LIVE)
		return strcmp(name, "seconds") ? -ENOENT : take_seconds(request, value, why);
	return take_stored(request, name, value, now_ms, why);
}

/* Says that there is no such parameter, and what there is. */
static void explain_unknown(const struct request *request, const char *name,
			    char why[REQUEST_WHY_BYTES])
{
	static const char *const strip[] = {"from", "until", "kind", "points", NULL};
	static const char *const live[] = {"seconds", "pid", "label", "format", NULL};
	static const char *const stored[] = {"from", "until",  "kind", "pid",
					     "label", "format", NULL};
	const char *const *known = request->endpoint == REQUEST_STRIP  ? strip
				   : request->endpoint == REQUEST_LIVE ? live
								       : stored;
	struct nearest nearest = NEAREST_NONE;
	int used = snprintf(why, REQUEST_WHY_BYTES, "%.*s: there is no such parameter",
			    SHOWN_CHARS, name);

	for (size_t i = 0; known[i]; i++)
		nearest_compare(&nearest, name, strlen(name), known[i]);
	if (nearest.name) {
		snprintf(why + used, REQUEST_WHY_BYTES - (size_t)used, "; did you mean '%s'?",
			 nearest.name);
		return;
	}
	for (size_t i = 0; known[i]; i++)
		used += snprintf(why + used, REQUEST_WHY_BYTES - (size_t)used, "%s%s",
				 i ? ", " : ": there are ", known[i]);
}

int request_take(struct request *request, const char *name, const char *value, uint64_t now_ms,
		 char why[REQUEST_WHY_BYTES])
{
	const char *text = value ? value : "";
	int err;

	/* Who asks is looked at before (access.h). */
	if (!request_needs_work(request) || !strcmp(name, "token"))
		return 0;
	if (strlen(text) >= REQUEST_VALUE_BYTES)
		return refuse(why, "a parameter", text, "as short as it should be");
	err = take_known(request, name, text, now_ms, why);
	if (err != -ENOENT)
		return err;
	explain_unknown(request, name, why);
	return -EINVAL;
}

bool request_needs_work(const struct request *request)
{
	return request->endpoint == REQUEST_LIVE || request->endpoint == REQUEST_STORED ||
	       request->endpoint == REQUEST_STRIP;
}
