/* SPDX-License-Identifier: BSD-2-Clause */
#include "options/probe_spec.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RETURN_SUFFIX "+ret"

static const char *const forms[] = {
	[PROBE_SPEC_USDT] = "usdt:BINARY:PROVIDER:NAME",
	[PROBE_SPEC_UPROBE] = "uprobe:BINARY:SYMBOL or uprobe:BINARY:SYMBOL" RETURN_SUFFIX,
	[PROBE_SPEC_TRACEPOINT] = "tracepoint:GROUP:NAME",
};

void probe_spec_release(struct probe_spec *spec)
{
	free(spec->text);
	free(spec->binary);
	*spec = (struct probe_spec){};
}

static bool take_word(const char *from, size_t size, char ret_word[PROBE_SPEC_NAME_BYTES])
{
	if (!size || size >= PROBE_SPEC_NAME_BYTES)
		return false;
	memcpy(ret_word, from, size);
	ret_word[size] = '\0';
	return true;
}

/* Splits off the last part behind a colon.  *end moves before that colon. */
static bool take_last(const char *begin, const char **end, char ret_word[PROBE_SPEC_NAME_BYTES])
{
	const char *colon = memrchr(begin, ':', (size_t)(*end - begin));

	if (!colon || !take_word(colon + 1, (size_t)(*end - colon - 1), ret_word))
		return false;
	*end = colon;
	return true;
}

/* From the end: a path may have colons in it. */
static bool split(const char *rest, struct probe_spec *spec)
{
	const char *end = rest + strlen(rest);
	size_t size;

	if (spec->kind == PROBE_SPEC_TRACEPOINT)
		return take_last(rest, &end, spec->name) &&
		       take_word(rest, (size_t)(end - rest), spec->group);
	size = strlen(RETURN_SUFFIX);
	if (spec->kind == PROBE_SPEC_UPROBE && (size_t)(end - rest) > size &&
	    !strcmp(end - size, RETURN_SUFFIX)) {
		spec->is_return = true;
		end -= size;
	}
	if (!take_last(rest, &end, spec->name) ||
	    (spec->kind == PROBE_SPEC_USDT && !take_last(rest, &end, spec->group)) || end == rest)
		return false;
	spec->binary = strndup(rest, (size_t)(end - rest));
	return true;
}

static int find_kind(const char *text, const char **ret_rest, enum probe_spec_kind *ret_kind)
{
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		size_t size = strcspn(forms[i], ":") + 1;

		if (strncmp(text, forms[i], size))
			continue;
		*ret_rest = text + size;
		*ret_kind = (enum probe_spec_kind)i;
		return 0;
	}
	return -EINVAL;
}

int probe_spec_parse(const char *text, struct probe_spec *ret_spec, char why[PROBE_SPEC_WHY_BYTES])
{
	struct probe_spec spec = {};
	const char *rest;

	if (find_kind(text, &rest, &spec.kind)) {
		snprintf(why, PROBE_SPEC_WHY_BYTES,
			 "is not known: give %s, uprobe:BINARY:SYMBOL[+ret] or %s",
			 forms[PROBE_SPEC_USDT], forms[PROBE_SPEC_TRACEPOINT]);
		return -EINVAL;
	}
	if (!split(rest, &spec)) {
		snprintf(why, PROBE_SPEC_WHY_BYTES, "is not whole: give %s", forms[spec.kind]);
		probe_spec_release(&spec);
		return -EINVAL;
	}
	spec.text = strdup(text);
	if (!spec.text || (spec.kind != PROBE_SPEC_TRACEPOINT && !spec.binary)) {
		probe_spec_release(&spec);
		return -ENOMEM;
	}
	*ret_spec = spec;
	return 0;
}
