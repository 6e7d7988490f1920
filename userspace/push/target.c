/* SPDX-License-Identifier: BSD-2-Clause */
/* The environment: opentelemetry.io, "OTLP Exporter Configuration" (a setting of the signal alone
 * counts before the one of all signals, and its endpoint is the whole URL); parca.dev,
 * parca-agent's PARCA_BEARER_TOKEN. */
#include "push/target.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_KINDS (1U << PP_PROFILE_CPU | 1U << PP_PROFILE_OFFCPU)
#define TOKEN_MAX_BYTES 16384U
#define HEX_DIGITS 2
#define HEX 16

void push_target_free(struct push_target *target)
{
	if (!target)
		return;
	if (target->token)
		explicit_bzero(target->token, strlen(target->token));
	for (size_t i = 0; i < target->header_count; i++) {
		explicit_bzero(target->header[i], strlen(target->header[i]));
		free(target->header[i]);
	}
	for (size_t i = 0; i < target->label_count; i++)
		free(target->label[i]);
	relabel_rules_free(target->rules);
	free(target->url);
	free(target->token_file);
	free(target->token);
	free(target->user);
	free(target->ca);
	free(target->cert);
	free(target->key);
	free(target->proxy);
	free(target->tenant);
	free(target);
}

static int complain(const struct push_target *target, char why[CONFIG_WHY_BYTES], const char *what)
{
	snprintf(why, CONFIG_WHY_BYTES, "[push %s] %s", target->name, what);
	return -EINVAL;
}

/* Copies a text; NULL stays NULL. */
static int copy(const char *text, char **ret_copy)
{
	if (!text)
		return 0;
	*ret_copy = strdup(text);
	return *ret_copy ? 0 : -ENOMEM;
}

/* ---- lists ---- */

static int add_header(struct push_target *target, const char *item, size_t size,
		      char why[CONFIG_WHY_BYTES])
{
	char *header;

	if (target->header_count == PUSH_HEADERS_MAX)
		return complain(target, why, "has more than 32 headers");
	header = strndup(item, size);
	if (!header)
		return -ENOMEM;
	target->header[target->header_count++] = header;
	return 0;
}

static int add_headers(struct push_target *target, const char *text, char why[CONFIG_WHY_BYTES])
{
	const char *item;
	size_t size;
	int err = 0;

	while (!err && config_next_item(&text, '\n', &item, &size))
		err = add_header(target, item, size, why);
	return err;
}

static int add_labels(struct push_target *target, const char *text, char why[CONFIG_WHY_BYTES])
{
	const char *item;
	size_t size;

	while (config_next_item(&text, ',', &item, &size)) {
		if (target->label_count == PUSH_LABELS_MAX)
			return complain(target, why, "has more than 24 labels=");
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

	return err == -EINVAL ? complain(target, why, fault) : err;
}

/* ---- the address ---- */

static int set_url(struct push_target *target, const char *base, bool is_whole)
{
	const size_t path_end = strcspn(base, "?#");
	const char *path = is_whole ? "" : push_path(target->protocol);
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

/* ---- the environment ---- */

static const char *look(push_environment *environment, const char *name)
{
	const char *value = environment(name);

	return value && *value ? value : NULL;
}

/* Looks for OTEL_EXPORTER_OTLP_PROFILES_`what`, then for OTEL_EXPORTER_OTLP_`what`. */
static const char *look_otlp(push_environment *environment, const char *what, bool *ret_is_own)
{
	char name[64];
	const char *value;

	snprintf(name, sizeof(name), "OTEL_EXPORTER_OTLP_PROFILES_%s", what);
	value = look(environment, name);
	*ret_is_own = value != NULL;
	if (value)
		return value;
	snprintf(name, sizeof(name), "OTEL_EXPORTER_OTLP_%s", what);
	return look(environment, name);
}

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -ENOENT;
}

/* Decodes %XX in place.  Returns false for what would end a header. */
static bool decode_percent(char *text)
{
	char *to = text;

	for (; *text; text++) {
		char c = *text;

		if (c == '%' && hex_value(text[1]) >= 0 && hex_value(text[2]) >= 0) {
			c = (char)(hex_value(text[1]) * HEX + hex_value(text[2]));
			text += HEX_DIGITS;
		}
		if ((unsigned char)c < ' ' || c == 0x7f)
			return false;
		*to++ = c;
	}
	*to = '\0';
	return true;
}

/* Adds "key=value,key=value" (W3C Baggage, without properties). */
static int add_otlp_headers(struct push_target *target, const char *text,
			    char why[CONFIG_WHY_BYTES])
{
	const char *item;
	size_t size;

	while (config_next_item(&text, ',', &item, &size)) {
		const char *equals = memchr(item, '=', size);
		OWNED_MEM char *value = NULL, *header = NULL;
		int err;

		if (!equals || equals == item ||
		    memchr(item, ':', (size_t)(equals - item)))
			return complain(target, why,
					"OTEL_EXPORTER_OTLP_HEADERS is not NAME=VALUE,...");
		value = strndup(equals + 1, size - (size_t)(equals + 1 - item));
		if (!value)
			return -ENOMEM;
		if (!decode_percent(value))
			return complain(target, why,
					"OTEL_EXPORTER_OTLP_HEADERS has control codes");
		if (asprintf(&header, "%.*s: %s", (int)(equals - item), item, value) < 0) {
			header = NULL;
			return -ENOMEM;
		}
		err = add_header(target, header, strlen(header), why);
		if (err)
			return err;
	}
	return 0;
}

static int take_timeout(struct push_target *target, const char *text, char why[CONFIG_WHY_BYTES])
{
	char *end;
	unsigned long milliseconds = strtoul(text, &end, 10);

	if (*end || text[0] < '0' || text[0] > '9')
		return complain(target, why, "OTEL_EXPORTER_OTLP_TIMEOUT is not milliseconds");
	if (milliseconds < PUSH_TIMEOUT_MIN_MS)
		milliseconds = PUSH_TIMEOUT_MIN_MS;
	if (milliseconds > PUSH_TIMEOUT_MAX_MS)
		milliseconds = PUSH_TIMEOUT_MAX_MS;
	target->timeout_ms = (uint32_t)milliseconds;
	return 0;
}

static int take_endpoint(struct push_target *target, push_environment *environment,
			 char why[CONFIG_WHY_BYTES])
{
	bool is_own;
	const char *url = look_otlp(environment, "ENDPOINT", &is_own);
	const char *fault = url ? config_url_fault(url) : NULL;

	if (!url)
		return 0;
	if (fault) {
		snprintf(why, CONFIG_WHY_BYTES, "[push %s] OTEL_EXPORTER_OTLP_%sENDPOINT %s",
			 target->name, is_own ? "PROFILES_" : "", fault);
		return -EINVAL;
	}
	return set_url(target, url, is_own);
}

static int take_otlp_environment(struct push_target *target, push_environment *environment,
				 char why[CONFIG_WHY_BYTES])
{
	bool is_own;
	const char *value;
	int err = target->url ? 0 : take_endpoint(target, environment, why);

	value = look_otlp(environment, "HEADERS", &is_own);
	if (!err && !target->header_count && value)
		err = add_otlp_headers(target, value, why);
	value = look_otlp(environment, "CERTIFICATE", &is_own);
	if (!err && !target->ca)
		err = copy(value, &target->ca);
	value = look_otlp(environment, "COMPRESSION", &is_own);
	if (!err && value && strcmp(value, "gzip") != 0) {
		if (strcmp(value, "none") != 0)
			return complain(target, why,
					"OTEL_EXPORTER_OTLP_COMPRESSION is not gzip or none");
		target->packs_otlp = false;
	}
	value = look_otlp(environment, "TIMEOUT", &is_own);
	if (!err && value)
		err = take_timeout(target, value, why);
	return err;
}

static int take_environment(struct push_target *target, push_environment *environment,
			    char why[CONFIG_WHY_BYTES])
{
	const char *token;

	if (target->protocol == PUSH_OTLP)
		return take_otlp_environment(target, environment, why);
	if (target->protocol != PUSH_PARCA || target->token_file)
		return 0;
	token = look(environment, "PARCA_BEARER_TOKEN");
	if (token && strlen(token) > TOKEN_MAX_BYTES)
		return complain(target, why, "PARCA_BEARER_TOKEN is too long");
	for (const char *c = token; c && *c; c++)
		if ((unsigned char)*c <= ' ' || *c == 0x7f)
			return complain(target, why, "PARCA_BEARER_TOKEN has blanks");
	return copy(token, &target->token);
}

/* ---- all ---- */

static enum push_protocol protocol_of(enum config_push_type type)
{
	switch (type) {
	case CONFIG_PUSH_PYROSCOPE:
		return PUSH_PYROSCOPE;
	case CONFIG_PUSH_PARCA:
		return PUSH_PARCA;
	default:
		return PUSH_OTLP;
	}
}

static int take_configuration(struct push_target *target, const struct config_push *push,
			      char why[CONFIG_WHY_BYTES])
{
	int err = push->url.text ? set_url(target, push->url.text, false) : 0;

	if (!err)
		err = copy(push->token_file.text, &target->token_file);
	if (!err)
		err = copy(push->user.text, &target->user);
	if (!err)
		err = copy(push->ca.text, &target->ca);
	if (!err)
		err = copy(push->cert.text, &target->cert);
	if (!err)
		err = copy(push->key.text, &target->key);
	if (!err)
		err = copy(push->proxy.text, &target->proxy);
	if (!err)
		err = copy(push->tenant.text, &target->tenant);
	if (!err && push->header.text)
		err = add_headers(target, push->header.text, why);
	if (!err && push->labels.text)
		err = add_labels(target, push->labels.text, why);
	if (!err && push->relabel.text)
		err = add_rules(target, push->relabel.text, why);
	return err;
}

int push_target_new(const struct config_push *push, push_environment *environment,
		    char why[CONFIG_WHY_BYTES], struct push_target **ret_target)
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
	target->protocol = protocol_of(push->protocol);
	target->kind_bits = push->kind_bits ? push->kind_bits : DEFAULT_KINDS;
	target->packs_otlp = true;
	target->timeout_ms = PUSH_TIMEOUT_DEFAULT_MS;
	err = take_configuration(target, push, why);
	if (!err)
		err = take_environment(target, environment, why);
	if (!err && !target->url)
		err = complain(target, why,
			       target->protocol == PUSH_OTLP
				       ? "needs url=, or OTEL_EXPORTER_OTLP_ENDPOINT in the "
					 "environment"
				       : "needs url=");
	if (err)
		return err;
	*ret_target = TAKE(target);
	return 0;
}
