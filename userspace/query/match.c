/* SPDX-License-Identifier: BSD-2-Clause */
#include "query/match.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/intern.h"

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

static bool label_matches(const regex_t *regex, const struct intern *strings,
			  const struct profile_label *label)
{
	char number[24];

	if (!label->is_number)
		return !regexec(regex, intern_get(strings, label->string, NULL), 0, NULL, 0);
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
	if (string >= *known_count) {
		size_t count = (size_t)intern_count(profile->strings) * 2;
		uint8_t *grown = realloc(*known, count);

		if (!grown)
			return false;
		memset(grown + *known_count, KNOWN_NOT_ASKED, count - *known_count);
		*known = grown;
		*known_count = count;
	}
	if ((*known)[string] == KNOWN_NOT_ASKED)
		(*known)[string] =
			regexec(regex, intern_get(profile->strings, string, NULL), 0, NULL, 0)
				? KNOWN_NO
				: KNOWN_YES;
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
