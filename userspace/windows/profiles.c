/* SPDX-License-Identifier: BSD-2-Clause */
#include "windows/profiles.h"

#include <pyprofd/wait.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "profile/comments.h"
#include "version.h"

struct feed {
	enum pp_count_kind from;
	enum pp_profile to;
	unsigned int index; /* of the value */
	size_t member;	    /* offset in struct pp_count */
	enum pp_feed_when when;
};

#define FEED(from_kind, to_kind, value_index, count_member, when_it_holds)                         \
	{.from = PP_KIND_##from_kind,                                                              \
	 .to = PP_PROFILE_##to_kind,                                                               \
	 .index = value_index,                                                                     \
	 .member = offsetof(struct pp_count, count_member),                                        \
	 .when = PP_FEED_##when_it_holds},

static const struct feed feeds[] = {PP_FEEDS(FEED)};

static bool is_one_file(const struct options *options)
{
	return options->output_kind == OPTIONS_OUTPUT_PPROF ||
	       options->output_kind == OPTIONS_OUTPUT_FOLDED;
}

static bool is_asked_for(const struct options *options, enum pp_profile kind)
{
	/* One file has one kind. */
	if (kind == PP_PROFILE_OFFCPU && options->events & PP_CAPTURE_WAKERS &&
	    is_one_file(options))
		return false;
	return kind_is_captured(kind, options->events);
}

struct profile_options profiles_options(const struct options *options, enum pp_profile kind)
{
	const struct kind *known = kind_get(kind);
	struct profile_options profile = {.kind = known->name, .period = 1};
	struct profile_value_type *preferred = &profile.value_type[known->default_value];

	profile.value_count = kind_value_count(kind);
	for (size_t i = 0; i < profile.value_count; i++)
		profile.value_type[i] =
			(struct profile_value_type){known->value[i].type, known->value[i].unit};
	if (kind == PP_PROFILE_CPU && options->clock == OPTIONS_CLOCK_CYCLES)
		*preferred = (struct profile_value_type){PP_CYCLES_TYPE, PP_CYCLES_UNIT};
	else if (kind == PP_PROFILE_CPU)
		profile.period = (int64_t)(NS_PER_SEC / options->hz);
	profile.default_value_type = preferred->type;
	profile.period_type = *preferred;
	return profile;
}

/* One file has records behind the values of its kind. */
static void add_record_values(const struct options *options, struct profile_options *profile)
{
	for (unsigned int kind = 0; kind < PP_PROFILE_COUNT; kind++) {
		const struct kind *known = kind_get((enum pp_profile)kind);

		if (!kind_is_record((enum pp_profile)kind) ||
		    !is_asked_for(options, (enum pp_profile)kind))
			continue;
		for (size_t i = 0; known->value[i].type; i++)
			profile->value_type[profile->value_count++] = (struct profile_value_type){
				known->value[i].type, known->value[i].unit};
	}
}

/* What all profiles of a window begin with. */
struct opening {
	const struct options *options;
	struct intern *strings;
	uint64_t start_wall_ns;
	bool has_records; /* behind the values of the kind */
};

static int open_one(struct profiles *profiles, const struct opening *opening, enum pp_profile kind)
{
	struct profile_options profile = profiles_options(opening->options, kind);
	char comment[192], host[64] = "";
	int err;

	profile.start_wall_ns = opening->start_wall_ns;
	if (opening->has_records)
		add_record_values(opening->options, &profile);
	err = profile_new(&profile, opening->strings, &profiles->profile[kind]);
	if (err)
		return err;
	gethostname(host, sizeof(host) - 1);
	snprintf(comment, sizeof(comment), FACT_WRITER "=%s kind=%s hz=%u host=%s", PYPROFD_VERSION,
		 profile.kind, opening->options->hz, host);
	return profile_add_comment(profiles->profile[kind], comment);
}

uint32_t profiles_kinds(const struct options *options)
{
	uint32_t asked = 0;

	for (unsigned int kind = 0; kind < PP_PROFILE_COUNT; kind++)
		if (is_asked_for(options, (enum pp_profile)kind))
			asked |= 1U << kind;
	return asked;
}

static int open_kinds(struct profiles *profiles, const struct opening *opening, uint32_t wanted)
{
	int err = 0;

	wanted &= profiles_kinds(opening->options);
	for (unsigned int kind = 0; kind < PP_PROFILE_COUNT && !err; kind++)
		if (wanted & 1U << kind)
			err = open_one(profiles, opening, (enum pp_profile)kind);
	profiles->is_open = true;
	profiles->strings = opening->strings;
	return err;
}

int profiles_open(struct profiles *profiles, const struct options *options, struct intern *strings,
		  uint64_t start_wall_ns)
{
	const struct opening opening = {options, strings, start_wall_ns,
					options->output_kind == OPTIONS_OUTPUT_PPROF};
	const bool is_store = options->output_kind == OPTIONS_OUTPUT_DIRECTORY;
	uint32_t wanted = is_one_file(options) ? ~PP_RECORDS : UINT32_MAX;

	/* A store has no file of it, as the reader makes it: docs/design/profiles.md. */
	if (is_store && is_asked_for(options, PP_PROFILE_CPU))
		wanted &= ~(1U << PP_PROFILE_WALL);
	return open_kinds(profiles, &opening, wanted);
}

int profiles_open_some(struct profiles *profiles, const struct options *options, uint32_t wanted,
		       struct intern *strings, uint64_t start_wall_ns)
{
	const struct opening opening = {options, strings, start_wall_ns, false};

	return open_kinds(profiles, &opening, wanted);
}

void profiles_close(struct profiles *profiles)
{
	for (unsigned int kind = 0; kind < PP_PROFILE_COUNT; kind++)
		profile_free(profiles->profile[kind]);
	*profiles = (struct profiles){};
}

const struct profile *profiles_any(const struct profiles *profiles)
{
	for (unsigned int kind = 0; kind < PP_PROFILE_COUNT; kind++)
		if (profiles->profile[kind])
			return profiles->profile[kind];
	return NULL;
}

int profiles_add_module(struct profiles *profiles, const struct module *module, uint32_t *ret_index)
{
	int err = 0;

	for (unsigned int kind = 0; kind < PP_PROFILE_COUNT && !err; kind++)
		if (profiles->profile[kind])
			err = profile_add_module(profiles->profile[kind], module, ret_index);
	return err;
}

static bool holds(enum pp_feed_when when, const struct pp_count_key *key)
{
	switch (when) {
	case PP_FEED_GIL_HELD:
		return key->flags & PP_COUNT_GIL_HELD;
	case PP_FEED_GIL_WAIT:
		return pp_count_wait(key->flags) == PP_WAIT_GIL;
	default:
		return true;
	}
}

/* The values of this kind of profile.  False: nothing but zeros. */
static bool set_values(enum pp_profile kind, const struct pp_count_key *key,
		       const struct pp_count *count, struct profile_sample *sample)
{
	bool has_any = false;

	memset(sample->value, 0, sizeof(sample->value));
	for (size_t i = 0; i < ARRAY_SIZE(feeds); i++) {
		uint64_t value;

		if (feeds[i].from != key->kind || feeds[i].to != kind || !holds(feeds[i].when, key))
			continue;
		memcpy(&value, (const char *)count + feeds[i].member, sizeof(value));
		sample->value[feeds[i].index] += (int64_t)value;
		has_any |= value != 0;
	}
	return has_any;
}

int profiles_add(struct profiles *profiles, const struct pp_count_key *key,
		 const struct pp_count *count, struct profile_sample *sample)
{
	int err = 0;

	for (unsigned int kind = 0; kind < PP_PROFILE_COUNT && !err; kind++)
		if (profiles->profile[kind] &&
		    set_values((enum pp_profile)kind, key, count, sample))
			err = profile_add(profiles->profile[kind], sample);
	return err;
}

int profiles_add_record(struct profiles *profiles, const struct record *record)
{
	int err = 0;

	for (unsigned int kind = 0; kind < PP_PROFILE_COUNT && !err; kind++)
		if (profiles->profile[kind])
			err = profile_add_record(profiles->profile[kind], record);
	return err;
}

int profiles_add_comment(struct profiles *profiles, const char *comment)
{
	int err = 0;

	for (unsigned int i = 0; i < PP_PROFILE_COUNT && !err; i++)
		if (profiles->profile[i])
			err = profile_add_comment(profiles->profile[i], comment);
	return err;
}

int profiles_write(struct profiles *profiles, struct output *output, struct writer_window *window)
{
	for (unsigned int kind = 0; kind < PP_PROFILE_COUNT; kind++) {
		if (!profiles->profile[kind])
			continue;
		profile_set_duration(profiles->profile[kind], window->duration_ns);
		window->profile[kind] = TAKE(profiles->profile[kind]);
	}
	return output_write(output, window);
}
