/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/profiles.h"

#include <pyprofd/wait.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "version.h"

/* Types and units as the collectors know them. */
static const struct profile_options kinds[PROFILES_COUNT] = {
	[PROFILES_CPU] = {.kind = "cpu",
			  .value_type = {{"samples", "count"}, {"cpu", "nanoseconds"}},
			  .value_count = 2,
			  .default_value_type = "cpu",
			  .period_type = {"cpu", "nanoseconds"}},
	[PROFILES_OFFCPU] = {.kind = "offcpu",
			     .value_type = {{"off_cpu", "nanoseconds"}, {"events", "count"}},
			     .value_count = 2,
			     .default_value_type = "off_cpu",
			     .period_type = {"off_cpu", "nanoseconds"},
			     .period = 1},
	[PROFILES_WALL] = {.kind = "wall",
			   .value_type = {{"wall", "nanoseconds"}},
			   .value_count = 1,
			   .default_value_type = "wall",
			   .period_type = {"wall", "nanoseconds"},
			   .period = 1},
	[PROFILES_GIL] = {.kind = "gil",
			  .value_type = {{"gil_wait", "nanoseconds"},
					 {"gil_blame", "nanoseconds"},
					 {"gil_held", "nanoseconds"}},
			  .value_count = 3,
			  .default_value_type = "gil_wait",
			  .period_type = {"gil_wait", "nanoseconds"},
			  .period = 1},
	[PROFILES_WAKER] = {.kind = "waker",
			    .value_type = {{"off_cpu", "nanoseconds"}, {"events", "count"}},
			    .value_count = 2,
			    .default_value_type = "off_cpu",
			    .period_type = {"off_cpu", "nanoseconds"},
			    .period = 1},
};

static bool is_asked_for(const struct options *options, enum profiles_kind kind)
{
	switch (kind) {
	case PROFILES_CPU:
		return options->events & OPTIONS_EVENT_CPU;
	case PROFILES_OFFCPU:
		/* One file has one kind. */
		return options->events & OPTIONS_EVENT_OFFCPU &&
		       (!options->wakers ||
			options->output_kind == OPTIONS_OUTPUT_DIRECTORY ||
			options->output_kind == OPTIONS_OUTPUT_NONE);
	case PROFILES_WALL:
		return options->events & OPTIONS_EVENT_CPU &&
		       options->events & OPTIONS_EVENT_OFFCPU;
	case PROFILES_GIL:
		return options->events & OPTIONS_EVENT_GIL;
	case PROFILES_WAKER:
		return options->wakers;
	default:
		return false;
	}
}

static struct profile_options options_of(const struct options *options, enum profiles_kind kind)
{
	struct profile_options profile = kinds[kind];

	if (kind != PROFILES_CPU)
		return profile;
	if (options->clock == OPTIONS_CLOCK_CYCLES) {
		profile.value_type[1] = profile.period_type =
			(struct profile_value_type){"cycles", "count"};
		profile.default_value_type = "cycles";
		profile.period = 1;
	} else {
		profile.period = (int64_t)(NS_PER_SEC / options->hz);
	}
	return profile;
}

static int open_one(struct profiles *profiles, const struct options *options,
		    struct intern *strings, enum profiles_kind kind, uint64_t start_wall_ns)
{
	struct profile_options profile = options_of(options, kind);
	char host[64] = "", comment[160];
	int err;

	profile.start_wall_ns = start_wall_ns;
	err = profile_new(&profile, strings, &profiles->profile[kind]);
	if (err)
		return err;
	gethostname(host, sizeof(host) - 1);
	snprintf(comment, sizeof(comment), "pyprofd %s %s %uHz host=%s", PYPROFD_VERSION,
		 profile.kind, options->hz, host);
	return profile_add_comment(profiles->profile[kind], comment);
}

uint32_t profiles_kinds(const struct options *options)
{
	uint32_t asked = 0;

	for (unsigned int kind = 0; kind < PROFILES_COUNT; kind++)
		if (is_asked_for(options, (enum profiles_kind)kind))
			asked |= 1U << kind;
	return asked;
}

int profiles_open(struct profiles *profiles, const struct options *options,
		  struct intern *strings, uint64_t start_wall_ns)
{
	return profiles_open_some(profiles, options, UINT32_MAX, strings, start_wall_ns);
}

int profiles_open_some(struct profiles *profiles, const struct options *options, uint32_t wanted,
		       struct intern *strings, uint64_t start_wall_ns)
{
	int err = 0;

	wanted &= profiles_kinds(options);
	for (unsigned int kind = 0; kind < PROFILES_COUNT && !err; kind++)
		if (wanted & 1U << kind)
			err = open_one(profiles, options, strings, (enum profiles_kind)kind,
				       start_wall_ns);
	profiles->is_open = true;
	return err;
}

void profiles_close(struct profiles *profiles)
{
	for (unsigned int kind = 0; kind < PROFILES_COUNT; kind++)
		profile_free(profiles->profile[kind]);
	*profiles = (struct profiles){};
}

const struct profile *profiles_any(const struct profiles *profiles)
{
	for (unsigned int kind = 0; kind < PROFILES_COUNT; kind++)
		if (profiles->profile[kind])
			return profiles->profile[kind];
	return NULL;
}

int profiles_add_module(struct profiles *profiles, const struct module *module,
			uint32_t *ret_index)
{
	int err = 0;

	for (unsigned int kind = 0; kind < PROFILES_COUNT && !err; kind++)
		if (profiles->profile[kind])
			err = profile_add_module(profiles->profile[kind], module, ret_index);
	return err;
}

static int add(struct profiles *profiles, enum profiles_kind kind, struct profile_sample *sample,
	       uint64_t first, uint64_t second, uint64_t third)
{
	if (!profiles->profile[kind] || !(first | second | third))
		return 0;
	sample->value[0] = (int64_t)first;
	sample->value[1] = (int64_t)second;
	sample->value[2] = (int64_t)third;
	return profile_add(profiles->profile[kind], sample);
}

static int add_on_cpu(struct profiles *profiles, const struct pp_count_key *key,
		      const struct pp_count *count, struct profile_sample *sample)
{
	int err = add(profiles, PROFILES_CPU, sample, count->samples, count->weight, 0);

	if (!err)
		err = add(profiles, PROFILES_WALL, sample, count->weight, 0, 0);
	if (!err && key->flags & PP_COUNT_GIL_HELD)
		err = add(profiles, PROFILES_GIL, sample, 0, 0, count->weight);
	return err;
}

static int add_wait(struct profiles *profiles, const struct pp_count_key *key,
		    const struct pp_count *count, struct profile_sample *sample)
{
	int err = add(profiles, PROFILES_OFFCPU, sample, count->weight, count->samples, 0);

	if (!err)
		err = add(profiles, PROFILES_WALL, sample, count->weight, 0, 0);
	if (!err && pp_count_wait(key->flags) == PP_WAIT_GIL)
		err = add(profiles, PROFILES_GIL, sample, count->weight, 0, 0);
	return err;
}

int profiles_add(struct profiles *profiles, const struct pp_count_key *key,
		 const struct pp_count *count, struct profile_sample *sample)
{
	switch (key->kind) {
	case PP_KIND_CPU:
		return add_on_cpu(profiles, key, count, sample);
	case PP_KIND_WAIT:
		return add_wait(profiles, key, count, sample);
	case PP_KIND_BLAME:
		return add(profiles, PROFILES_GIL, sample, 0, count->weight, 0);
	default:
		return 0;
	}
}

int profiles_add_wake(struct profiles *profiles, const struct pp_count *count,
		      struct profile_sample *sample)
{
	return add(profiles, PROFILES_WAKER, sample, count->weight, count->samples, 0);
}

int profiles_add_comment(struct profiles *profiles, const char *comment)
{
	int err = 0;

	for (unsigned int kind = 0; kind < PROFILES_COUNT && !err; kind++)
		if (profiles->profile[kind])
			err = profile_add_comment(profiles->profile[kind], comment);
	return err;
}

int profiles_write(struct profiles *profiles, struct output *output, uint64_t start_wall_ns,
		   uint64_t duration_ns, bool is_last)
{
	int first_err = 0;

	for (unsigned int kind = 0; kind < PROFILES_COUNT; kind++) {
		int err;

		if (!profiles->profile[kind])
			continue;
		profile_set_duration(profiles->profile[kind], duration_ns);
		err = output_write(output, profiles->profile[kind], start_wall_ns, duration_ns,
				   is_last);
		if (!first_err)
			first_err = err;
	}
	return first_err;
}
