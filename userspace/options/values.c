/* SPDX-License-Identifier: BSD-2-Clause */
#include "options/values.h"

#include <errno.h>
#include <math.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pyprofd/calls.h>

#include "base/cleanup.h"
#include "base/text.h"

static int refuse(char why[LINE_SPEC_WHY_BYTES], const char *text)
{
	snprintf(why, LINE_SPEC_WHY_BYTES, "%s", text);
	return -EINVAL;
}

int line_spec_parse(const char *text, struct pp_line_target *ret_target,
		    char why[LINE_SPEC_WHY_BYTES])
{
	const char *end = text + line_target_file_bytes(text);
	const char *name = *end ? end + 1 : "", *dot = strrchr(name, '.');
	struct pp_line_target target = {};
	size_t file_size, name_size;

	if (dot)
		name = dot + 1;
	while (!strncmp(text, "./", 2))
		text += 2;
	file_size = (size_t)(end - text);
	name_size = strlen(name);
	if (!file_size)
		return refuse(why, "names no file: give FILE or FILE:FUNC, as in "
				   "train.py:Model.step");
	if (*end && !name_size)
		return refuse(why, "names no function after the colon: leave the colon out to "
				   "count all functions of the file");
	if (file_size >= PP_LINE_FILE_BYTES)
		return refuse(why, "has too long a path: its end is enough, as in pkg/train.py");
	if (name_size >= PP_LINE_NAME_BYTES)
		return refuse(why, "has a function of more than 127 bytes: leave it out to count "
				   "all functions of the file");
	memcpy(target.file, text, file_size);
	memcpy(target.name, name, name_size);
	target.file_bytes = (__u32)file_size;
	target.name_bytes = (__u32)name_size;
	*ret_target = target;
	return 0;
}

/* Parses digits with at most one point, in any locale.  ret_rest: what follows them. */
static int parse_decimal(const char *text, double *ret_value, const char **ret_rest)
{
	double value = 0, scale = 1;
	bool has_digit = false, has_point = false;

	for (; (*text >= '0' && *text <= '9') || (*text == '.' && !has_point); text++) {
		if (*text == '.') {
			has_point = true;
			continue;
		}
		has_digit = true;
		value = value * 10 + (*text - '0');
		if (has_point)
			scale *= 10;
	}
	if (!has_digit || !isfinite(value) || !isfinite(scale))
		return -EINVAL;
	*ret_value = value / scale;
	*ret_rest = text;
	return 0;
}

int options_parse_duration(const char *text, uint64_t *ret_ns)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = {{"", 1e9},	  {"s", 1e9},	 {"ms", 1e6},	{"us", 1e3},
		     {"m", 60e9}, {"h", 3600e9}, {"d", 86400e9}};
	const char *unit;
	double value;
	int err;

	err = parse_decimal(text, &value, &unit);
	if (err)
		return err;
	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		if (strcmp(unit, units[i].name))
			continue;
		value *= units[i].ns;
		if (value > (double)OPTIONS_TIME_MAX_NS)
			return -ERANGE;
		*ret_ns = (uint64_t)(value + 0.5);
		return 0;
	}
	return -EINVAL;
}

#define SLOWDOWN_MIN_PERCENT 0.1
#define SLOWDOWN_MAX_PERCENT 100000

int option_percent(const char *text, uint32_t *ret_ppm)
{
	const char *rest;
	double percent;
	int err = parse_decimal(text, &percent, &rest);

	if (err || (*rest && strcmp(rest, "%")))
		return -EINVAL;
	if (percent > OPTIONS_PERCENT_MAX)
		return -ERANGE;
	*ret_ppm = (uint32_t)lround(percent * 1e4);
	return 0;
}

int option_slowdown(const char *text, uint32_t *ret_ppm)
{
	const char *rest;
	double value;
	int err = parse_decimal(text, &value, &rest);

	if (err || (*rest && strcmp(rest, "%") && strcmp(rest, "x")))
		return -EINVAL;
	if (*rest == 'x')
		value = (value - 1) * 100;
	if (value > SLOWDOWN_MAX_PERCENT)
		return -ERANGE;
	if (value < SLOWDOWN_MIN_PERCENT)
		return -EINVAL;
	*ret_ppm = (uint32_t)lround(value * 1e4);
	return 0;
}

int options_parse_size(const char *text, uint64_t *ret_bytes)
{
	static const char letters[] = "KMGT";
	const char *unit, *letter;
	double value;
	int err;

	err = parse_decimal(text, &value, &unit);
	if (err)
		return err;
	letter = *unit ? strchr(letters, *unit & ~0x20) : NULL;
	if (letter) {
		value *= (double)(1ULL << 10 * (letter - letters + 1));
		unit++;
		if (*unit == 'i')
			unit++;
	}
	if (*unit == 'B')
		unit++;
	if (*unit)
		return -EINVAL;
	if (value > (double)OPTIONS_SIZE_MAX_BYTES)
		return -ERANGE;
	*ret_bytes = (uint64_t)(value + 0.5);
	return 0;
}

size_t option_list_item(const char **text, const char **ret_item)
{
	size_t size = strcspn(*text, ",");

	*ret_item = *text;
	*text += size;
	return size;
}

int option_timeline(const char *path, enum options_timeline *ret_kind)
{
	static const struct {
		const char *ending;
		enum options_timeline kind;
	} known[] = {
		{".pftrace", OPTIONS_TIMELINE_PERFETTO},
		{".perfetto-trace", OPTIONS_TIMELINE_PERFETTO},
		{".pb", OPTIONS_TIMELINE_PERFETTO},
		{".json", OPTIONS_TIMELINE_CHROME},
		{".json.gz", OPTIONS_TIMELINE_CHROME_GZ},
	};
	size_t size = strlen(path);

	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		size_t ending = strlen(known[i].ending);

		if (size <= ending || strcmp(path + size - ending, known[i].ending))
			continue;
		*ret_kind = known[i].kind;
		return 0;
	}
	return -EINVAL;
}

int option_uid(const char *item, size_t size, uid_t *ret_uid)
{
	char name[256];
	struct passwd *user;
	uint64_t number;

	if (!decimal_parse(item, size, &number)) {
		/* (uid_t)-1 means "nobody" to the kernel's calls. */
		if (number >= UINT32_MAX)
			return -ENOENT;
		*ret_uid = (uid_t)number;
		return 0;
	}
	if (!size || size >= sizeof(name))
		return -ENOENT;
	memcpy(name, item, size);
	name[size] = '\0';
	user = getpwnam(name);
	if (!user)
		return -ENOENT;
	*ret_uid = user->pw_uid;
	return 0;
}

/* ---- what --probe names ---- */

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
	for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
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
