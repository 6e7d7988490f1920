/* SPDX-License-Identifier: BSD-2-Clause */
#include "collectors/target.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_KINDS (1U << PP_PROFILE_CPU | 1U << PP_PROFILE_OFFCPU)

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

int push_target_complain(const struct push_target *target, char *why, const char *what)
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

int push_target_add_header(struct push_target *target, const char *item, size_t size, char *why)
{
	char *header;

	if (target->header_count == PUSH_HEADERS_MAX)
		return push_target_complain(target, why, "has more than 32 headers");
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

/* ---- the address ---- */

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

/* ---- all ---- */

static int take_configuration(struct push_target *target, const struct config_push *push,
			      char why[CONFIG_WHY_BYTES])
{
	int err = push->url.text ? push_target_set_url(target, push->url.text, false) : 0;

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
