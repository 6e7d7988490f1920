/* SPDX-License-Identifier: BSD-2-Clause */
#include "collectors/collector.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/proto.h"

/* ---- a target ---- */

#define DEFAULT_KINDS (1U << PP_PROFILE_CPU | 1U << PP_PROFILE_OFFCPU)

void push_target_free(struct push_target *target)
{
	if (!target)
		return;
	http_identity_release(&target->as);
	for (size_t i = 0; i < target->label_count; i++)
		free(target->label[i]);
	relabel_rules_free(target->rules);
	free(target->url);
	free(target);
}

int push_target_complain(const struct push_target *target, char *why, const char *what)
{
	snprintf(why, CONFIG_WHY_BYTES, "[push %s] %s", target->name, what);
	return -EINVAL;
}

int push_target_add_header(struct push_target *target, const char *item, size_t size, char *why)
{
	char *header;

	if (target->as.header_count == HTTP_CLIENT_HEADERS_MAX)
		return push_target_complain(target, why, "has more than 32 headers");
	header = strndup(item, size);
	if (!header)
		return -ENOMEM;
	target->as.header[target->as.header_count++] = header;
	return 0;
}

static int add_headers(struct push_target *target, const char *text, char why[CONFIG_WHY_BYTES])
{
	const char *item;
	size_t size;
	int err = 0;

	while (!err && config_next_item(&text, '\n', &item, &size))
		err = push_target_add_header(target, item, size, why);
	return err;
}

static int add_labels(struct push_target *target, const char *text, char why[CONFIG_WHY_BYTES])
{
	const char *item;
	size_t size;

	while (config_next_item(&text, ',', &item, &size)) {
		if (target->label_count == PUSH_LABELS_MAX)
			return push_target_complain(target, why, "has more than 24 labels=");
		target->label[target->label_count] = strndup(item, size);
		if (!target->label[target->label_count])
			return -ENOMEM;
		target->label_count++;
	}
	return 0;
}

static int add_rules(struct push_target *target, const char *text, char why[CONFIG_WHY_BYTES])
{
	char fault[RELABEL_WHY_BYTES];
	int err = relabel_rules_parse(text, &target->rules, fault);

	return err == -EINVAL ? push_target_complain(target, why, fault) : err;
}

int push_target_set_url(struct push_target *target, const char *base, bool is_whole)
{
	const size_t path_end = strcspn(base, "?#");
	const char *path = is_whole ? "" : collector_push_path(target->collector->id);
	size_t size = path_end;

	while (!is_whole && size && base[size - 1] == '/')
		size--;
	if (asprintf(&target->url, "%.*s%s%s", (int)size, base, path, base + path_end) < 0) {
		target->url = NULL;
		return -ENOMEM;
	}
	config_url_hide(target->url, target->shown_url);
	return 0;
}

bool push_sink_name_is_valid(const char *name)
{
	static const char characters[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.";
	size_t size = strspn(name, characters);

	return size && size < PUSH_SINK_NAME_CHARS && !name[size] && name[0] != '.';
}

static int take_configuration(struct push_target *target, const struct config_push *push,
			      char why[CONFIG_WHY_BYTES])
{
	const struct {
		const char *from;
		char **to;
	} text[] = {{push->token_file.text, &target->as.token_file},
		    {push->user.text, &target->as.user},
		    {push->ca.text, &target->as.ca},
		    {push->cert.text, &target->as.cert},
		    {push->key.text, &target->as.key},
		    {push->proxy.text, &target->as.proxy},
		    {push->tenant.text, &target->as.tenant}};
	int err = push->url.text ? push_target_set_url(target, push->url.text, false) : 0;

	for (size_t i = 0; !err && i < ARRAY_SIZE(text); i++)
		if (text[i].from && !(*text[i].to = strdup(text[i].from)))
			err = -ENOMEM;
	if (!err && push->header.text)
		err = add_headers(target, push->header.text, why);
	if (!err && push->labels.text)
		err = add_labels(target, push->labels.text, why);
	if (!err && push->relabel.text)
		err = add_rules(target, push->relabel.text, why);
	return err;
}

int push_target_new(const struct config_push *push, const struct collector *collector,
		    push_environment *environment, char why[CONFIG_WHY_BYTES],
		    struct push_target **ret_target)
{
	OWNED(push_target) struct push_target *target = calloc(1, sizeof(*target));
	int err;

	if (!target)
		return -ENOMEM;
	if (!push_sink_name_is_valid(push->section)) {
		snprintf(why, CONFIG_WHY_BYTES,
			 "[push %s] is no name: give at most 32 letters, digits, '_', '-' and '.'",
			 push->section);
		return -EINVAL;
	}
	snprintf(target->name, sizeof(target->name), "%s", push->section);
	target->collector = collector;
	target->kind_bits = push->kind_bits ? push->kind_bits : DEFAULT_KINDS;
	target->is_packed = target->collector->packs;
	target->timeout_ms = PUSH_TIMEOUT_DEFAULT_MS;
	err = take_configuration(target, push, why);
	if (!err && target->collector->take_environment)
		err = target->collector->take_environment(target, environment, why);
	if (!err && !target->url)
		err = push_target_complain(
			target, why,
			collector_has_environment(target->collector->id)
				? "needs url=, or OTEL_EXPORTER_OTLP_ENDPOINT in the "
				  "environment"
				: "needs url=");
	if (err)
		return err;
	*ret_target = TAKE(target);
	return 0;
}

/* ---- what becomes of a request ---- */

/* Returns whether the bytes are one message of protobuf, as far as a look at its fields tells.  An
 * empty one is. */
static bool is_message(const struct push_answer *answer)
{
	struct wire wire = {(const uint8_t *)answer->body,
			    (const uint8_t *)answer->body + answer->body_size};
	struct wire_field field;
	int more;

	while ((more = wire_next(&wire, &field)) > 0)
		;
	return !more;
}

static bool is_object(const struct push_answer *answer)
{
	const char *first = answer->body, *last = answer->body + answer->body_size;

	while (first < last && isspace((unsigned char)*first))
		first++;
	while (last > first && isspace((unsigned char)last[-1]))
		last--;
	return last - first >= 2 && *first == '{' && last[-1] == '}';
}

/* A page of somebody else's (a portal, a proxy's login) is a 200, too.  That is not the collector:
 * what was sent there is not in it. */
static struct push_decision decide_success(const struct collector *collector,
					   const struct push_answer *answer)
{
	bool is_its = collector->answers_json ? is_object(answer) : is_message(answer);

	return (struct push_decision){.verdict = is_its ? PUSH_DONE : PUSH_HOLD};
}

static enum push_verdict decide_server_error(const struct push_answer *answer, unsigned int tries)
{
	switch (answer->status) {
	case 501: /* also Pyroscope's answer to a compression that it does not have */
	case 505:
		return PUSH_REFUSED;
	case 500:
		if (strcasestr(answer->body, "unavailable") || tries < PUSH_TRIES_OF_500)
			return PUSH_RETRY;
		return PUSH_POISON;
	default:
		return PUSH_RETRY;
	}
}

static enum push_verdict decide_client_error(const struct push_answer *answer)
{
	switch (answer->status) {
	case 401:
	case 403:
	case 407:
		return PUSH_HOLD;
	case 408:
	case 425:
		return PUSH_RETRY;
	case 422: /* a Pyroscope that begins to run */
		return strcasestr(answer->body, "unavailable") ? PUSH_RETRY : PUSH_POISON;
	case 429: /* "message size N is larger than configured max": no time makes it smaller */
		return strcasestr(answer->body, "message size") ? PUSH_POISON : PUSH_RETRY;
	case 400:
	case 413:
		return PUSH_POISON;
	default:
		return PUSH_REFUSED;
	}
}

struct push_decision push_decide(const struct collector *collector,
				 const struct push_answer *answer, unsigned int tries)
{
	struct push_decision decision = {PUSH_RETRY, false};

	if (answer->end != HTTP_CLIENT_ANSWERED) {
		decision.is_ambiguous = answer->end == HTTP_CLIENT_CUT_OFF;
		if (answer->end == HTTP_CLIENT_BAD_TLS)
			decision.verdict = PUSH_HOLD;
		return decision;
	}
	if (answer->status >= 200 && answer->status < 300)
		return decide_success(collector, answer);
	if (answer->status >= 500)
		decision.verdict = decide_server_error(answer, tries);
	else if (answer->status >= 400)
		decision.verdict = decide_client_error(answer);
	else
		decision.verdict = PUSH_REFUSED; /* a redirect would carry the token elsewhere */
	/* A proxy that gave up waiting, or lost the collector's answer. */
	decision.is_ambiguous =
		answer->status == 408 || answer->status == 502 || answer->status == 504;
	return decision;
}

uint64_t push_rejected_count(const struct collector *collector, const struct push_answer *answer)
{
	struct wire wire = {(const uint8_t *)answer->body,
			    (const uint8_t *)answer->body + answer->body_size};
	uint64_t rejected = 0, *const place[] = {NULL, &rejected};
	struct wire_field field;

	if (!collector->tells_rejected)
		return 0;
	while (wire_next(&wire, &field) > 0)
		if (field.number == 1 && field.is_bytes)
			(void)wire_numbers(field.bytes, place, ARRAY_SIZE(place));
	return rejected <= INT64_MAX ? rejected : 0;
}

uint64_t push_pause_ms(enum push_verdict verdict, unsigned int tries, uint32_t random,
		       uint64_t retry_after_ms)
{
	uint64_t pause = PUSH_PAUSE_FIRST_MS;

	if (verdict == PUSH_HOLD)
		pause = PUSH_PAUSE_CAP_MS;
	else
		for (unsigned int i = 1; i < tries && pause < PUSH_PAUSE_MAX_MS; i++)
			pause *= 2;
	if (verdict != PUSH_HOLD && pause > PUSH_PAUSE_MAX_MS)
		pause = PUSH_PAUSE_MAX_MS;
	/* From its half on. */
	pause -= (pause / 2) * (uint64_t)random / UINT32_MAX;
	if (pause < PUSH_PAUSE_FIRST_MS)
		pause = PUSH_PAUSE_FIRST_MS;
	if (pause < retry_after_ms)
		pause = retry_after_ms;
	return pause < PUSH_PAUSE_CAP_MS ? pause : PUSH_PAUSE_CAP_MS;
}

bool push_is_too_old(const struct collector *collector, uint64_t end_ms, uint64_t now_ms)
{
	return collector->max_age_ms && end_ms < now_ms && now_ms - end_ms > collector->max_age_ms;
}
