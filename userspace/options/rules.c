/* SPDX-License-Identifier: BSD-2-Clause */
#include "options/rules.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "live/request.h"

static bool ends_with(const char *text, const char *end)
{
	size_t text_size = strlen(text), end_size = strlen(end);

	return text_size >= end_size && !strcmp(text + text_size - end_size, end);
}

static enum options_output_kind kind_of_output(const struct option_given *given,
					       const struct options *options)
{
	struct stat status;

	if (!strcmp(options->output, "-"))
		return OPTIONS_OUTPUT_PPROF;
	if (!strcmp(options->output, "no"))
		return OPTIONS_OUTPUT_NONE;
	if (options->output_is_default || given->store_path || ends_with(options->output, "/"))
		return OPTIONS_OUTPUT_DIRECTORY;
	if (!stat(options->output, &status) && S_ISDIR(status.st_mode))
		return OPTIONS_OUTPUT_DIRECTORY;
	if (ends_with(options->output, ".folded") || ends_with(options->output, ".txt"))
		return OPTIONS_OUTPUT_FOLDED;
	return OPTIONS_OUTPUT_PPROF;
}

static bool is_one_file(const struct options *options)
{
	return options->output_kind == OPTIONS_OUTPUT_PPROF ||
	       options->output_kind == OPTIONS_OUTPUT_FOLDED;
}

/* Returns the default: a file holds one kind of profile, a directory all.  Cycles pass only on a
 * CPU. */
static uint32_t default_events(const struct options *options)
{
	if (options->lines.file_bytes && is_one_file(options))
		return PP_CAPTURE_LINES;
	if (options->probe_count && is_one_file(options))
		return PP_CAPTURE_PROBE;
	if (is_one_file(options) || options->clock == OPTIONS_CLOCK_CYCLES)
		return PP_CAPTURE_CPU;
	return options->no_probes ? PP_CAPTURES_DEFAULT & ~PP_CAPTURES_OF_PROBES
				  : PP_CAPTURES_DEFAULT;
}

static int check_events(const struct options *options, char why[OPTION_WHY_BYTES])
{
	uint32_t waits = options->events & PP_CAPTURES_OF_WAITS;
	char names[CAPTURE_NAMES_CHARS];

	if (waits && options->clock == OPTIONS_CLOCK_CYCLES) {
		capture_names(waits, ",", names);
		snprintf(why, OPTION_WHY_BYTES,
			 "--clock cycles and --events %s exclude each other: waits are measured in "
			 "time",
			 names);
		return -EINVAL;
	}
	/* The counter's interrupt cannot be masked.  If it comes while a switch updates a map, it
	 * waits for the map's lock, which its own CPU holds. */
	if (options->timeline && options->clock == OPTIONS_CLOCK_CYCLES) {
		snprintf(why, OPTION_WHY_BYTES,
			 "--clock cycles and --timeline exclude each other: a cycle counter's "
			 "interrupt in a context switch could lock the CPU up");
		return -EINVAL;
	}
	/* Wakers' profile takes the place of that of waits. */
	if (is_one_file(options) &&
	    __builtin_popcount(options->events & PP_CAPTURE_WAKERS
				       ? options->events & ~PP_CAPTURE_OFFCPU
				       : options->events) > 1) {
		capture_names(options->events, ",", names);
		snprintf(
			why, OPTION_WHY_BYTES,
			"--events %s makes several profiles: give a directory with --output, as in "
			"-o profiles/",
			names);
		return -EINVAL;
	}
	return 0;
}

/* Breakpoints in code that runs often slow a program down: somebody has to choose which. */
static int check_chosen(const struct options *options, char why[OPTION_WHY_BYTES])
{
	const bool is_chosen = options->pid_count || options->command;
	const uint32_t exact = options->events & PP_CAPTURES_EXACT;
	char names[CAPTURE_NAMES_CHARS];

	if (!is_chosen && options->events & PP_CAPTURES_OF_CHOSEN) {
		capture_names(options->events & PP_CAPTURES_OF_CHOSEN, ",", names);
		snprintf(why, OPTION_WHY_BYTES,
			 "--events %s slows programs down, so it needs chosen ones: give --pid or "
			 "-- COMMAND",
			 names);
		return -EINVAL;
	}
	capture_names(exact, ",", names);
	if (exact == PP_CAPTURES_EXACT) {
		snprintf(why, OPTION_WHY_BYTES,
			 "--events %s: one would be in the other's times: run pyprofd twice, one "
			 "after the other",
			 names);
		return -EINVAL;
	}
	if (exact && !options->duration_ns) {
		snprintf(why, OPTION_WHY_BYTES,
			 "--events %s slows programs down, so it needs an end: give --duration, as "
			 "in -d 10",
			 names);
		return -EINVAL;
	}
	return 0;
}

static int check_lines(const struct options *options, char why[OPTION_WHY_BYTES])
{
	if (!(options->events & PP_CAPTURE_LINES) || options->lines.file_bytes)
		return 0;
	snprintf(why, OPTION_WHY_BYTES,
		 "--events lines does not say of what: give --lines FILE[:FUNC], as in --lines "
		 "train.py:Model.step");
	return -EINVAL;
}

static int check_probes(struct options *options, char why[OPTION_WHY_BYTES])
{
	const uint32_t by_probes = PP_CAPTURES_OF_PROBES;
	char names[CAPTURE_NAMES_CHARS];

	if (options->events & PP_CAPTURE_PROBE && !options->probe_count) {
		snprintf(why, OPTION_WHY_BYTES,
			 "--events probe does not say what is probed: give --probe, as in --probe "
			 "usdt:/usr/bin/python3.11:python:gc__start");
		return -EINVAL;
	}
	if (options->no_probes && options->events & by_probes) {
		capture_names(options->events & by_probes, ",", names);
		snprintf(why, OPTION_WHY_BYTES,
			 "--probes no and --events %s exclude each other: leave one out", names);
		return -EINVAL;
	}
	if (options->leaks && !(options->events & PP_CAPTURE_ALLOC)) {
		snprintf(why, OPTION_WHY_BYTES,
			 "--leaks is about allocations: give --events alloc, or leave it out");
		return -EINVAL;
	}
	return check_lines(options, why) ? -EINVAL : check_chosen(options, why);
}

static int check_waits(const struct option_given *given, const struct options *options,
		       char why[OPTION_WHY_BYTES])
{
	if (given->offcpu_min && !(options->events & PP_CAPTURES_OF_WAITS)) {
		snprintf(why, OPTION_WHY_BYTES,
			 "--offcpu-min needs waits to leave out: give --events offcpu or --events "
			 "gil");
		return -EINVAL;
	}
	return 0;
}

/* --probe and --lines say by themselves what is captured. */
static void choose_events(struct options *options)
{
	const uint32_t named = (options->probe_count ? PP_CAPTURE_PROBE : 0U) |
			       (options->lines.file_bytes ? PP_CAPTURE_LINES : 0U);

	options->events_are_default = !options->events && !named;
	if (!options->events)
		options->events = default_events(options);
	options->events |= named;
	if (options->events & PP_CAPTURE_WAKERS)
		options->events |= PP_CAPTURE_OFFCPU;
}

int option_rules_apply(const struct option_given *given, struct options *options,
		       char why[OPTION_WHY_BYTES])
{
	int err;

	options->output_kind = kind_of_output(given, options);
	options->live_is_default = !given->live && !is_one_file(options);
	if (options->live_is_default)
		options->live = LIVE_SOCKET_DEFAULT;
	if (options->output_kind == OPTIONS_OUTPUT_NONE && !options->live && !options->timeline) {
		snprintf(why, OPTION_WHY_BYTES,
			 "--output no leaves nothing to do: it needs --live or --timeline");
		return -EINVAL;
	}
	choose_events(options);
	err = check_events(options, why);
	if (err)
		return err;
	err = check_probes(options, why);
	if (err)
		return err;
	err = check_waits(given, options, why);
	if (err)
		return err;
	if (options->as_root && !options->command) {
		snprintf(why, OPTION_WHY_BYTES,
			 "--as-root needs a command to run: give -- COMMAND");
		return -EINVAL;
	}
	if (given->timeline_max && !options->timeline) {
		snprintf(why, OPTION_WHY_BYTES,
			 "--timeline-max needs a timeline: give --timeline FILE");
		return -EINVAL;
	}
	return 0;
}
