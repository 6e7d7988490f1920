/* SPDX-License-Identifier: BSD-2-Clause */
#include "query/select.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/intern.h"
#include "base/kinds.h"
#include "base/regex_copies.h"

#define MS_PER_SEC 1000U

void select_free_regex(regex_t *regex)
{
	if (!regex)
		return;
	regfree(regex);
	free(regex);
}

void select_release(struct select *select)
{
	select_free_regex(select->comm);
	select_free_regex(select->thread);
	select_free_regex(select->focus);
	select_free_regex(select->ignore);
	for (unsigned int i = 0; i < select->label_count; i++) {
		free(select->label[i].key);
		select_free_regex(select->label[i].regex);
	}
	free(select->path);
	free(select->from_set);
	*select = (struct select){0};
}

int select_range(const char *text, uint64_t now_ms, struct select_range *ret_range)
{
	struct select_range range = {.text = text};
	const char *dots = strstr(text, "..");
	OWNED_MEM char *from = dots ? strndup(text, (size_t)(dots - text)) : NULL;
	const char *until = dots ? dots + strlen("..") : NULL;

	if (!from || (!*from && !*until))
		return -EINVAL;
	if (*from && select_time(from, now_ms, &range.since_ms))
		return -EINVAL;
	if (*until && select_time(until, now_ms, &range.until_ms))
		return -EINVAL;
	if (range.until_ms && range.since_ms >= range.until_ms)
		return -EINVAL;
	*ret_range = range;
	return 0;
}

int select_regex(const char *text, char why[SELECT_WHY_BYTES], regex_t **ret_regex)
{
	regex_t *regex = calloc(1, sizeof(*regex));
	int bad;

	if (!regex) {
		snprintf(why, SELECT_WHY_BYTES, "%s", strerror(ENOMEM));
		return -ENOMEM;
	}
	if (regex_copies_too_much(text)) {
		snprintf(why, SELECT_WHY_BYTES, "it repeats too much");
		free(regex);
		return -EINVAL;
	}
	bad = regcomp(regex, text, REG_EXTENDED | REG_NOSUB);
	if (bad) {
		regerror(bad, regex, why, SELECT_WHY_BYTES);
		free(regex);
		return -EINVAL;
	}
	*ret_regex = regex;
	return 0;
}

int select_add_pids(struct select *select, const char *text)
{
	while (*text) {
		char *end;
		long pid = strtol(text, &end, 10);

		if (end == text || pid < 0 || pid > INT32_MAX || (*end && *end != ','))
			return -EINVAL;
		if (select->pid_count == SELECT_MAX_PIDS)
			return -E2BIG;
		select->pid[select->pid_count++] = pid;
		text = *end ? end + 1 : end;
	}
	return 0;
}

/* ---- labels ---- */

int select_add_label(struct select *select, const char *text, char why[SELECT_WHY_BYTES])
{
	struct select_label *label = &select->label[select->label_count];
	const char *equals = strchr(text, '=');
	regex_t *regex;
	int err;

	if (!equals || equals == text) {
		snprintf(why, SELECT_WHY_BYTES, "not KEY=REGEX");
		return -EINVAL;
	}
	if (select->label_count == SELECT_MAX_LABELS) {
		snprintf(why, SELECT_WHY_BYTES, "more than %u labels", SELECT_MAX_LABELS);
		return -E2BIG;
	}
	err = select_regex(equals + 1, why, &regex);
	if (err)
		return err;
	*label = (struct select_label){strndup(text, (size_t)(equals - text)), regex};
	if (!label->key) {
		select_free_regex(regex);
		snprintf(why, SELECT_WHY_BYTES, "%s", strerror(ENOMEM));
		return -ENOMEM;
	}
	select->label_count++;
	return 0;
}

static uint32_t group_key(const char *text, size_t size)
{
	static const struct {
		const char *name;
		uint32_t key;
	} keys[] = {
		{"process", GROUP_BY_PROCESS},	   {"pid", GROUP_BY_PROCESS},
		{"thread", GROUP_BY_THREAD},	   {"tid", GROUP_BY_THREAD},
		{"comm", GROUP_BY_COMM},	   {"thread-name", GROUP_BY_THREAD_NAME},
		{"container", GROUP_BY_CONTAINER}, {"wait", GROUP_BY_WAIT},
	};

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (strlen(keys[i].name) == size && !strncmp(keys[i].name, text, size))
			return keys[i].key;
	return 0;
}

/* A wrong name is an error, not a label that no sample has: others than those that pyprofd writes
 * are asked for with a prefix. */
static bool is_known_label(const char *text, size_t size)
{
#define LABEL_KEY(id, key) key,
	static const char *const keys[] = {IDENTITY_LABELS(LABEL_KEY) "cgroup",
					   "container_id",
					   "python_version",
					   "gil",
					   "gc",
					   "thread_name"};

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (strlen(keys[i]) == size && !strncmp(keys[i], text, size))
			return true;
	return false;
}

static int add_group(struct grouping *grouping, const char *text, size_t size,
		     char why[SELECT_WHY_BYTES])
{
	static const char prefix[] = "label:";
	const size_t prefix_size = sizeof(prefix) - 1;
	const uint32_t key = group_key(text, size);

	if (key) {
		grouping->keys |= key;
		return 0;
	}
	if (size > prefix_size && !strncmp(text, prefix, prefix_size)) {
		text += prefix_size;
		size -= prefix_size;
	} else if (!is_known_label(text, size)) {
		snprintf(why, SELECT_WHY_BYTES,
			 "'%.*s' is no label that pyprofd writes; for another one give label:KEY",
			 (int)(size < 40 ? size : 40), text);
		return -EINVAL;
	}
	if (grouping->label_count == GROUP_LABELS_MAX || size >= GROUP_LABEL_BYTES) {
		snprintf(why, SELECT_WHY_BYTES, "more than %u labels, or one that is too long",
			 GROUP_LABELS_MAX);
		return -E2BIG;
	}
	snprintf(grouping->label[grouping->label_count++], GROUP_LABEL_BYTES, "%.*s", (int)size,
		 text);
	grouping->keys |= GROUP_BY_LABELS;
	return 0;
}

int select_add_groups(struct grouping *grouping, const char *text, char why[SELECT_WHY_BYTES])
{
	int err = 0;

	while (*text && !err) {
		const size_t size = strcspn(text, ",");

		err = add_group(grouping, text, size, why);
		text += size + (text[size] == ',');
	}
	return err;
}

/* ---- times ---- */

static int ago(const char *text, uint64_t now_ms, uint64_t *ret_ms)
{
	static const struct {
		const char *unit;
		uint64_t ms;
	} units[] = {{"ms", 1},
		     {"s", MS_PER_SEC},
		     {"m", 60ULL * MS_PER_SEC},
		     {"min", 60ULL * MS_PER_SEC},
		     {"h", 3600ULL * MS_PER_SEC},
		     {"d", 86400ULL * MS_PER_SEC}};
	uint64_t span;
	char *end;
	unsigned long number;

	errno = 0;
	number = strtoul(text, &end, 10);
	if (end == text || errno)
		return -EINVAL;
	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		if (strcmp(end, units[i].unit))
			continue;
		if (__builtin_mul_overflow(number, units[i].ms, &span) || span > now_ms)
			span = now_ms;
		*ret_ms = now_ms - span;
		return 0;
	}
	return -EINVAL;
}

static int at(const char *text, uint64_t now_ms, uint64_t *ret_ms)
{
	static const char *const formats[] = {
		"%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M",
		"%Y-%m-%d",	     "%H:%M:%S",	  "%H:%M"};
	time_t now = (time_t)(now_ms / MS_PER_SEC), seconds;

	for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
		struct tm parts = {0};
		const char *end;
		bool is_utc;

		if (formats[i][1] == 'H') {
			localtime_r(&now, &parts);
			parts.tm_sec = 0;
		}
		end = strptime(text, formats[i], &parts);
		if (!end)
			continue;
		is_utc = !strcmp(end, "Z");
		if (*end && !is_utc)
			continue;
		parts.tm_isdst = -1;
		seconds = is_utc ? timegm(&parts) : mktime(&parts);
		if (seconds < 0)
			return -EINVAL;
		*ret_ms = (uint64_t)seconds * MS_PER_SEC;
		return 0;
	}
	return -EINVAL;
}

int select_time(const char *text, uint64_t now_ms, uint64_t *ret_ms)
{
	unsigned long seconds;
	char *end;

	if (text[0] < '0' || (text[0] > '9' && text[0] != '@'))
		return -EINVAL;
	if (text[0] == '@') {
		errno = 0;
		seconds = strtoul(text + 1, &end, 10);
		if (end == text + 1 || *end || errno || seconds > UINT64_MAX / MS_PER_SEC)
			return -EINVAL;
		*ret_ms = seconds * MS_PER_SEC;
		return 0;
	}
	return ago(text, now_ms, ret_ms) ? at(text, now_ms, ret_ms) : 0;
}

/* ---- which samples a selection takes ---- */

/* What is known of a string of the profile. */
enum known { KNOWN_NOT_ASKED, KNOWN_YES, KNOWN_NO };

void match_release(struct match *match)
{
	free(match->focus);
	free(match->ignore);
}

bool match_asks_labels(const struct select *select)
{
	return select->pid_count || select->comm || select->thread || select->label_count;
}

bool match_asks_stacks(const struct select *select)
{
	return select->focus || select->ignore;
}

bool match_takes_processes(const struct select *select)
{
	return !select->thread && !select->label_count && !match_asks_stacks(select);
}

/* Longer texts are matched as far as this: regexec() takes seconds for 16 KiB, and what pyprofd
 * names itself is no longer. */
#define MATCHED_BYTES 4096U

static bool text_matches(const regex_t *regex, const struct intern *strings, uint32_t string)
{
	size_t size;
	const char *text = intern_get(strings, string, &size);
	regmatch_t part = {.rm_eo = (regoff_t)(size < MATCHED_BYTES ? size : MATCHED_BYTES)};

	return !regexec(regex, text, 1, &part, REG_STARTEND);
}

static bool label_matches(const regex_t *regex, const struct intern *strings,
			  const struct profile_label *label)
{
	char number[24];

	if (!label->is_number)
		return text_matches(regex, strings, label->string);
	snprintf(number, sizeof(number), "%" PRId64, label->number);
	return !regexec(regex, number, 0, NULL, 0);
}

static bool pid_matches_filter(const struct select *select, const struct profile_label *label)
{
	for (unsigned int i = 0; i < select->pid_count; i++)
		if (label->is_number && select->pid[i] == label->number)
			return true;
	return false;
}

/* Returns whether each label that is asked for matches; "" stands for one that is missing. */
static bool others_match(const struct select *select, const struct intern *strings,
			 const struct profile_label *label, size_t label_count)
{
	for (unsigned int i = 0; i < select->label_count; i++) {
		const struct select_label *wanted = &select->label[i];
		size_t at = 0;

		while (at < label_count && strcmp(label[at].key, wanted->key) != 0)
			at++;
		if (at < label_count ? !label_matches(wanted->regex, strings, &label[at])
				     : regexec(wanted->regex, "", 0, NULL, 0))
			return false;
	}
	return true;
}

bool match_labels(void *context, const struct intern *strings, const struct profile_label *label,
		  size_t label_count)
{
	const struct select *select = ((const struct match *)context)->select;
	bool pid = !select->pid_count, comm = !select->comm, thread = !select->thread;

	for (size_t i = 0; i < label_count; i++) {
		const char *key = label[i].key;

		if (!pid && !strcmp(key, "pid"))
			pid = pid_matches_filter(select, &label[i]);
		else if (!comm && !strcmp(key, "comm"))
			comm = label_matches(select->comm, strings, &label[i]);
		else if (!thread && (!strcmp(key, "thread_name") || !strcmp(key, "thread")))
			thread = label_matches(select->thread, strings, &label[i]);
		else if (!thread && !strcmp(key, "tid"))
			thread = label_matches(select->thread, strings, &label[i]);
	}
	return pid && comm && thread && others_match(select, strings, label, label_count);
}

/* Matches each string only once. */
static bool string_matches(const regex_t *regex, const struct profile *profile, uint32_t string,
			   uint8_t **known, size_t *known_count)
{
	if (string >= *known_count &&
	    ARRAY_EXTEND(*known, (size_t)intern_count(profile->strings) * 2, *known_count))
		return false;
	if ((*known)[string] == KNOWN_NOT_ASKED)
		(*known)[string] =
			text_matches(regex, profile->strings, string) ? KNOWN_YES : KNOWN_NO;
	return (*known)[string] == KNOWN_YES;
}

static bool stack_matches(const regex_t *regex, const struct profile *profile, uint32_t stack_id,
			  uint8_t **known, size_t *known_count)
{
	const struct stack *stack = &profile->stacks.stack[stack_id];

	for (uint32_t i = 0; i < stack->count; i++) {
		const struct frame *frame = &profile->stacks.location[stack->location[i]];
		const struct module *module = profile_frame_module(profile, frame);

		if (string_matches(regex, profile, frame->name, known, known_count) ||
		    string_matches(regex, profile, frame->file, known, known_count) ||
		    (module && string_matches(regex, profile, module->path, known, known_count)))
			return true;
	}
	return false;
}

bool match_stack(void *context, const struct profile *profile, uint32_t stack)
{
	struct match *match = context;
	const struct select *select = match->select;

	if (select->focus &&
	    !stack_matches(select->focus, profile, stack, &match->focus, &match->focus_count))
		return false;
	return !select->ignore ||
	       !stack_matches(select->ignore, profile, stack, &match->ignore, &match->ignore_count);
}
