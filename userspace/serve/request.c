/* SPDX-License-Identifier: BSD-2-Clause */
#include "serve/request.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/nearest.h"
#include "query/select.h"

#define PID_MAX (4U << 20) /* the kernel's PID_MAX_LIMIT */
#define SHOWN_CHARS 40	   /* of a value that is wrong */

static const char debug_path[] = "/debug/pprof/";
static const char files_path[] = "/api/v1/files/";

/* ---- endpoints ---- */

enum parameter { FROM, UNTIL, KIND, SECONDS, PID, LABEL, FORMAT, POINTS };
/* In the order in which they are told. */
static const char *const parameters[] = {"from", "until", "kind",   "seconds",
					 "pid",	 "label", "format", "points"};
#define RANGE (1U << FROM | 1U << UNTIL)
#define CHOICE (1U << PID | 1U << LABEL)

static const struct {
	const char *path; /* NULL: it has a name in it */
	bool needs_work;
	uint32_t parameters; /* 1 << enum parameter */
} endpoints[] = {
	[REQUEST_PAGE] = {"/"},
	[REQUEST_STYLE] = {"/page.css"},
	[REQUEST_SCRIPT] = {"/page.js"},
	[REQUEST_INDEX] = {debug_path},
	[REQUEST_LIVE] = {NULL, true, 1U << SECONDS | CHOICE | 1U << FORMAT},
	[REQUEST_STORED] = {"/api/v1/profile", true, RANGE | 1U << KIND | CHOICE | 1U << FORMAT},
	[REQUEST_STRIP] = {"/api/v1/strip", true, RANGE | 1U << KIND | 1U << POINTS},
	[REQUEST_LABELS] = {"/api/v1/labels", true, RANGE | 1U << KIND | CHOICE},
	[REQUEST_WAITS] = {"/api/v1/waits", true, RANGE | 1U << PID},
	[REQUEST_SELF] = {"/api/v1/self", true, 0},
	[REQUEST_FILES] = {"/api/v1/files", true, RANGE | 1U << KIND},
	[REQUEST_FILE] = {NULL, true, 0},
	[REQUEST_METRICS] = {"/metrics"},
	[REQUEST_HEALTH] = {"/healthz"},
	[REQUEST_READY] = {"/readyz"},
};

bool request_needs_work(const struct request *request)
{
	return endpoints[request->endpoint].needs_work;
}

/* Returns whether the endpoint has it. */
static bool has(const struct request *request, size_t parameter)
{
	return endpoints[request->endpoint].parameters >> parameter & 1;
}

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

static int route_file(const char *name, struct request *request)
{
	request->endpoint = REQUEST_FILE;
	return store_file_parse(name, &request->file) && !request->file.is_temporary ? 0 : -ENOENT;
}

/* Finds a path that has names in it. */
static int route_named(const char *path, struct request *request)
{
	if (!strncmp(path, files_path, strlen(files_path)))
		return route_file(path + strlen(files_path), request);
	return strncmp(path, debug_path, strlen(debug_path))
		       ? -ENOENT
		       : route_live(path + strlen(debug_path), request);
}

int request_route(const char *path, struct request *ret_request)
{
	struct request request = {.endpoint = REQUEST_INDEX, .points = REQUEST_POINTS_DEFAULT};
	int err = strcmp(path, "/debug/pprof") ? -ENOENT : 0;

	for (size_t i = 0; err && i < ARRAY_SIZE(endpoints); i++)
		if (endpoints[i].path && !strcmp(path, endpoints[i].path)) {
			request.endpoint = (enum request_endpoint)i;
			err = 0;
		}
	if (err)
		err = route_named(path, &request);
	if (err)
		return err;
	if (request.endpoint != REQUEST_FILES)
		snprintf(request.stored, sizeof(request.stored), "%s",
			 kind_get(PP_PROFILE_DEFAULT)->name);
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

/* Takes digits: a number from 1 to most. */
static int take_number(const char *name, const char *value, uint32_t most, const char *wanted,
		       uint32_t *ret_number, char why[REQUEST_WHY_BYTES])
{
	uint64_t number = 0;

	for (const char *at = value; *at && number <= most; at++) {
		if (*at < '0' || *at > '9')
			return refuse(why, name, value, wanted);
		number = number * 10 + (uint64_t)(*at - '0');
	}
	if (!number || number > most)
		return refuse(why, name, value, wanted);
	*ret_number = (uint32_t)number;
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
	static const char *const formats[] = {[REQUEST_PPROF] = "pprof",
					      [REQUEST_JSON] = "json",
					      [REQUEST_FOLDED] = "folded",
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

static int take_known(struct request *request, enum parameter parameter, const char *value,
		      uint64_t now_ms, char why[REQUEST_WHY_BYTES])
{
	switch (parameter) {
	case FROM:
		return take_time("from", value, now_ms, &request->from_ms, why);
	case UNTIL:
		return take_time("until", value, now_ms, &request->until_ms, why);
	case KIND:
		return take_kind(request, value, why);
	case SECONDS:
		return take_number("seconds", value, REQUEST_SECONDS_MAX, "from 1 to 3600",
				   &request->seconds, why);
	case PID:
		return take_number("pid", value, PID_MAX, "a process id", &request->pid, why);
	case LABEL:
		return take_label(request, value, why);
	case FORMAT:
		return take_format(request, value, why);
	default:
		return take_number("points", value, REQUEST_POINTS_MAX, "from 1 to 2000",
				   &request->points, why);
	}
}

/* Returns the parameter of that name; ARRAY_SIZE(parameters): there is none. */
static size_t find_parameter(const char *name)
{
	size_t at = 0;

	while (at < ARRAY_SIZE(parameters) && strcmp(name, parameters[at]) != 0)
		at++;
	return at;
}

/* Says that there is no such parameter, and what there is: the nearest, unless it is another
 * endpoint's, which is not mistyped. */
static void explain_unknown(const struct request *request, const char *name,
			    char why[REQUEST_WHY_BYTES])
{
	const bool is_mistyped = find_parameter(name) == ARRAY_SIZE(parameters);
	const char *between = ": there are ";
	struct nearest nearest = NEAREST_NONE;
	int used = snprintf(why, REQUEST_WHY_BYTES, "%.*s: there is no such parameter", SHOWN_CHARS,
			    name);

	for (size_t i = 0; i < ARRAY_SIZE(parameters) && is_mistyped; i++)
		if (has(request, i))
			nearest_compare(&nearest, name, strlen(name), parameters[i]);
	if (nearest.name) {
		snprintf(why + used, REQUEST_WHY_BYTES - (size_t)used, "; did you mean '%s'?",
			 nearest.name);
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(parameters); i++) {
		if (!has(request, i))
			continue;
		used += snprintf(why + used, REQUEST_WHY_BYTES - (size_t)used, "%s%s", between,
				 parameters[i]);
		between = ", ";
	}
}

int request_take(struct request *request, const char *name, const char *value, uint64_t now_ms,
		 char why[REQUEST_WHY_BYTES])
{
	const char *text = value ? value : "";
	const size_t parameter = find_parameter(name);

	/* Who asks is looked at before (exchange.h). */
	if (!request_needs_work(request) || !strcmp(name, "token"))
		return 0;
	if (strlen(text) >= REQUEST_VALUE_BYTES)
		return refuse(why, "a parameter", text, "as short as it should be");
	if (parameter < ARRAY_SIZE(parameters) && has(request, parameter))
		return take_known(request, (enum parameter)parameter, text, now_ms, why);
	explain_unknown(request, name, why);
	return -EINVAL;
}

const char *request_kind(const struct request *request)
{
	return request->endpoint == REQUEST_LIVE ? kind_get(request->kind)->name : request->stored;
}

void request_range(const struct request *request, uint64_t now_ms, uint64_t *ret_from_ms,
		   uint64_t *ret_until_ms)
{
	const uint64_t until_ms = request->until_ms ? request->until_ms : now_ms;
	const uint64_t before_ms = until_ms > REQUEST_RANGE_MS ? until_ms - REQUEST_RANGE_MS : 0;

	*ret_from_ms = request->from_ms ? request->from_ms : before_ms;
	*ret_until_ms = until_ms;
}
