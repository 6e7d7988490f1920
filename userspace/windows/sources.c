/* SPDX-License-Identifier: BSD-2-Clause */
#include "windows/source.h"

#include <errno.h>
#include <stdlib.h>

#include <pyprofd/sample.h>

#include "options/options.h"

_Static_assert(PP_KIND_COUNT <= 32, "bits of labelled_kinds");

#define CAPTURES_OF(id, name, captures) (captures),

/* The open sources that have a verb, in the order of the table. */
#define EACH(sources, i, verb)                                                                     \
	for (uint32_t i = 0; i < PP_SOURCE_COUNT; i++)                                             \
		if ((sources)->state[i] && (sources)->table[i]->verb)
#define CALL(sources, i, verb, ...)                                                                \
	((sources)->table[i]->verb((sources)->state[i] __VA_OPT__(, ) __VA_ARGS__))

bool source_free(const struct source *source, void *state)
{
	const bool has_ended = !state || !source->close || source->close(state);

	free(state);
	return has_ended;
}

int source_new(const struct source *source, const struct services *services, void **ret_state)
{
	const struct services **state = calloc(1, source->bytes);
	int err;

	if (!state)
		return -ENOMEM;
	*state = services;
	err = source->open ? source->open(state) : 0;
	if (!err)
		*ret_state = state;
	else
		(void)source_free(source, state);
	return err < 0 ? err : 0;
}

int sources_open(struct sources *sources, const struct services *services)
{
	static const uint32_t captures[PP_SOURCE_COUNT] = {PP_SOURCES(CAPTURES_OF)};
	int err = 0;

	for (uint32_t i = 0; i < PP_SOURCE_COUNT && !err; i++)
		if (services->options->events & captures[i])
			err = source_new(sources->table[i], services, &sources->state[i]);
	return err;
}

bool sources_close(struct sources *sources)
{
	bool has_ended = true;

	/* There may be no table yet, where no output could be opened. */
	for (uint32_t i = 0; i < PP_SOURCE_COUNT; i++) {
		if (!sources->state[i])
			continue;
		has_ended &= source_free(sources->table[i], sources->state[i]);
		sources->state[i] = NULL;
	}
	return has_ended;
}

void sources_prepare(const struct sources *sources, pid_t pid, const char *command)
{
	EACH(sources, i, prepare) CALL(sources, i, prepare, pid, command);
}

int sources_check(const struct sources *sources)
{
	int err = 0;

	EACH(sources, i, check) err = err ? err : CALL(sources, i, check);
	return err;
}

int sources_are_ready(const struct sources *sources)
{
	int are_ready = 1;

	EACH(sources, i, is_ready)
	{
		int is_ready = CALL(sources, i, is_ready);

		are_ready = is_ready < are_ready ? is_ready : are_ready;
	}
	return are_ready;
}

int sources_begin(const struct sources *sources, uint64_t started_ns)
{
	int err = 0;

	EACH(sources, i, begin) err = err ? err : CALL(sources, i, begin, started_ns);
	return err;
}

int sources_end(const struct sources *sources)
{
	int err = 0;

	EACH(sources, i, end) err = err ? err : CALL(sources, i, end);
	return err;
}

void sources_see_process(const struct sources *sources, const struct process *process, bool is_new)
{
	EACH(sources, i, see_process) CALL(sources, i, see_process, process, is_new);
}

void sources_forget_process(const struct sources *sources, struct pp_process_id id)
{
	EACH(sources, i, forget_process) CALL(sources, i, forget_process, id);
}

bool sources_tick(const struct sources *sources, uint64_t now_ns)
{
	bool is_end = false;

	EACH(sources, i, tick) is_end |= CALL(sources, i, tick, now_ns);
	return is_end;
}

void sources_step(const struct sources *sources)
{
	EACH(sources, i, step) CALL(sources, i, step);
}

int sources_timeout_ms(const struct sources *sources, int longest_ms)
{
	EACH(sources, i, timeout_ms) longest_ms = CALL(sources, i, timeout_ms, longest_ms);
	return longest_ms;
}

bool sources_hurry(const struct sources *sources)
{
	bool is_awaited = false;

	EACH(sources, i, hurry) is_awaited |= CALL(sources, i, hurry);
	return is_awaited;
}

int sources_collect_slots(const struct sources *sources, const struct source_window *window)
{
	int err = 0;

	EACH(sources, i, collect_slots) err = err ? err : CALL(sources, i, collect_slots, window);
	return err;
}

/* What is left in the kernel's tables would be counted in the next window. */
int sources_collect(const struct sources *sources, const struct source_window *window)
{
	int first_err = 0;

	EACH(sources, i, collect)
	{
		int err = CALL(sources, i, collect, window);

		first_err = first_err ? first_err : err;
	}
	return first_err;
}

int sources_add(const struct sources *sources, const struct source_window *window,
		const struct slice *slice, uint32_t *next)
{
	int more = 0;

	for (; *next < PP_SOURCE_COUNT && !more; *next += !more)
		if (sources->state[*next] && sources->table[*next]->add)
			more = CALL(sources, *next, add, window, slice);
	*next = more > 0 ? *next : 0;
	return more;
}

int sources_finish(const struct sources *sources, const struct source_window *window,
		   const struct slice *slice, uint32_t *next)
{
	int more = 0;

	for (; *next < PP_SOURCE_COUNT && !more; *next += !more)
		if (sources->state[*next] && sources->table[*next]->finish)
			more = CALL(sources, *next, finish, window, slice);
	*next = more > 0 ? *next : 0;
	return more;
}

int sources_label(const struct sources *sources, const struct pp_count_key *key,
		  struct intern *strings, struct profile_sample *sample)
{
	int err = 0;

	EACH(sources, i, label)
	{
		if (!err && key->kind < PP_KIND_COUNT &&
		    sources->table[i]->labelled_kinds & 1U << key->kind)
			err = CALL(sources, i, label, key, strings, sample);
	}
	return err;
}

int sources_describe(const struct sources *sources, struct profiles *profiles)
{
	int err = 0;

	EACH(sources, i, describe) err = err ? err : CALL(sources, i, describe, profiles);
	return err;
}

void sources_refresh(const struct sources *sources)
{
	EACH(sources, i, refresh) CALL(sources, i, refresh);
}

void sources_summarize(const struct sources *sources, struct summary *summary)
{
	EACH(sources, i, summarize) CALL(sources, i, summarize, summary);
}

void sources_print(const struct sources *sources, FILE *stream)
{
	EACH(sources, i, print) CALL(sources, i, print, stream);
}
