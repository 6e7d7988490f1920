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
	static const struct {
		const char *path;
		enum request_endpoint endpoint;
	} fixed[] = {
		{"/", REQUEST_PAGE},
		{"/page.css", REQUEST_STYLE},
		{"/page.js", REQUEST_SCRIPT},
		{debug_path, REQUEST_INDEX},
		{"/debug/pprof", REQUEST_INDEX},
		{"/metrics", REQUEST_METRICS},
		{"/api/v1/profile", REQUEST_STORED},
		{"/healthz", REQUEST_HEALTH},
		{"/readyz", REQUEST_READY},
		{"/api/v1/strip", REQUEST_STRIP},
		{"/api/v1/labels", REQUEST_LABELS},
		{"/api/v1/waits", REQUEST_WAITS},
		{"/api/v1/self", REQUEST_SELF},
		{"/api/v1/files", REQUEST_FILES},
	};
	struct request request = {.points = REQUEST_POINTS_DEFAULT};

	snprintf(request.stored, sizeof(request.stored), "%s", kind_get(PP_PROFILE_DEFAULT)->name);
	for (size_t i = 0; i < ARRAY_SIZE(fixed); i++) {
		if (strcmp(path, fixed[i].path))
			continue;
		request.endpoint = fixed[i].endpoint;
		if (request.endpoint == REQUEST_FILES)
			request.stored[0] = '\0';
		*ret_request = request;
		return 0;
	}
	if (route_named(path, &request))
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

/* Which parameters an endpoint has, in the order in which they are told. */
#define FROM (1U << 0)
#define UNTIL (1U << 1)
#define KIND (1U << 2)
#define SECONDS (1U << 3)
#define PID (1U << 4)
#define LABEL (1U << 5)
#define FORMAT (1U << 6)
#define POINTS (1U << 7)
#define RANGE (FROM | UNTIL)

static const struct {
	uint32_t bit;
	const char *name;
} parameters[] = {{FROM, "from"}, {UNTIL, "until"}, {KIND, "kind"},	{SECONDS, "seconds"},
		  {PID, "pid"},	  {LABEL, "label"}, {FORMAT, "format"}, {POINTS, "points"}};

static uint32_t known_parameters(const struct request *request)
{
	switch (request->endpoint) {
	case REQUEST_LIVE:
		return SECONDS | PID | LABEL | FORMAT;
	case REQUEST_STORED:
		return RANGE | KIND | PID | LABEL | FORMAT;
	case REQUEST_STRIP:
		return RANGE | KIND | POINTS;
	case REQUEST_LABELS:
		return RANGE | KIND | PID | LABEL;
	case REQUEST_WAITS:
		return RANGE | PID;
	case REQUEST_FILES:
		return RANGE | KIND;
	default:
		return 0;
	}
}

static int take_known(struct request *request, uint32_t bit, const char *value, uint64_t now_ms,
		      char why[REQUEST_WHY_BYTES])
{
	switch (bit) {
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

/* Returns whether any endpoint has it: then it is not mistyped. */
static bool is_parameter(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(parameters); i++)
		if (!strcmp(name, parameters[i].name))
			return true;
	return false;
}

/* Says that there is no such parameter, and what there is. */
static void explain_unknown(const struct request *request, const char *name,
			    char why[REQUEST_WHY_BYTES])
{
	const uint32_t known = known_parameters(request);
	const char *between = ": there are ";
	struct nearest nearest = NEAREST_NONE;
	int used = snprintf(why, REQUEST_WHY_BYTES, "%.*s: there is no such parameter", SHOWN_CHARS,
			    name);

	for (size_t i = 0; i < ARRAY_SIZE(parameters) && !is_parameter(name); i++)
		if (known & parameters[i].bit)
			nearest_compare(&nearest, name, strlen(name), parameters[i].name);
	if (nearest.name) {
		snprintf(why + used, REQUEST_WHY_BYTES - (size_t)used, "; did you mean '%s'?",
			 nearest.name);
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(parameters); i++) {
		if (!(known & parameters[i].bit))
			continue;
		used += snprintf(why + used, REQUEST_WHY_BYTES - (size_t)used, "%s%s", between,
				 parameters[i].name);
		between = ", ";
	}
}

int request_take(struct request *request, const char *name, const char *value, uint64_t now_ms,
		 char why[REQUEST_WHY_BYTES])
{
	const char *text = value ? value : "";

	/* Who asks is looked at before (exchange.h). */
	if (!request_needs_work(request) || !strcmp(name, "token"))
		return 0;
	if (strlen(text) >= REQUEST_VALUE_BYTES)
		return refuse(why, "a parameter", text, "as short as it should be");
	for (size_t i = 0; i < ARRAY_SIZE(parameters); i++)
		if (!strcmp(name, parameters[i].name) &&
		    known_parameters(request) & parameters[i].bit)
			return take_known(request, parameters[i].bit, text, now_ms, why);
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

bool request_needs_work(const struct request *request)
{
	switch (request->endpoint) {
	case REQUEST_LIVE:
	case REQUEST_STORED:
	case REQUEST_STRIP:
	case REQUEST_LABELS:
	case REQUEST_WAITS:
	case REQUEST_SELF:
	case REQUEST_FILES:
	case REQUEST_FILE:
		return true;
	default:
		return false;
	}
}
