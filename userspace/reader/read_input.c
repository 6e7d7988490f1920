/* SPDX-License-Identifier: BSD-2-Clause */
#include "reader/read_input.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/collectors.h"
#include "base/kinds.h"
#include "child/spawn.h"
#include "query/folder.h"
#include "reader/verb.h"
#include "render/format.h"

#define PROGRESS_AFTER_NS NS_PER_SEC
#define PROGRESS_EVERY_NS (100 * NS_PER_MS)

const char *const input_no_labels[] = {NULL};
const char *const input_thread_labels[] = {"pid", "tid", "comm", "thread_name", "thread", NULL};

/* State while a verb's input is read. */
struct reading {
	uint64_t started_ns, shown_ns; /* shown_ns 0: nothing is shown */
	int signals;		       /* readable after SIGINT; -1: SIGINT ends the program */
	sigset_t before;
};

/* ---- SIGINT ---- */

static void catch_interrupt(struct reading *reading)
{
	sigset_t wanted;

	sigemptyset(&wanted);
	sigaddset(&wanted, SIGINT);
	(void)sigprocmask(SIG_BLOCK, &wanted, &reading->before);
	reading->signals = signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void release_interrupt(struct reading *reading)
{
	struct signalfd_siginfo info;

	if (reading->signals < 0)
		return;
	(void)!read(reading->signals, &info, sizeof(info));
	(void)sigprocmask(SIG_SETMASK, &reading->before, NULL);
	close(TAKE_FD(reading->signals));
}

/* ---- progress ---- */

static void clear_progress(struct reading *reading)
{
	if (reading->shown_ns)
		fprintf(stderr, "\r\033[K");
	reading->shown_ns = 0;
}

static void show_files(struct reading *reading, const struct watcher_progress *progress)
{
	uint64_t now_ns = mono_ns();

	if (progress->wanted < 2 || now_ns - reading->started_ns < PROGRESS_AFTER_NS ||
	    now_ns - reading->shown_ns < PROGRESS_EVERY_NS || !isatty(STDERR_FILENO))
		return;
	reading->shown_ns = now_ns;
	fprintf(stderr, "\r%s %" PRIu64 " of %" PRIu64 " windows (%" PRIu64 " %%)\033[K",
		progress->fetches ? "fetching" : "reading", progress->done, progress->wanted,
		progress->done * 100 / progress->wanted);
	fflush(stderr);
}

static void show_seconds(const char *what, uint64_t done, uint64_t wanted)
{
	fprintf(stderr, "\r%s: %" PRIu64 " of %" PRIu64 " s; Ctrl-C ends it\033[K", what, done,
		wanted);
}

static void on_progress(void *context, const struct watcher_progress *progress)
{
	struct reading *reading = context;

	if (!progress->live && reading->signals >= 0) {
		/* The windows have come. */
		clear_progress(reading);
		release_interrupt(reading);
	}
	if (!progress->live) {
		show_files(reading, progress);
	} else if (isatty(STDERR_FILENO)) {
		reading->shown_ns = mono_ns();
		show_seconds("watching", progress->done, progress->wanted);
	}
}

static void on_note(void *context, const char *line)
{
	clear_progress(context);
	complain("%s", line);
}

/* Says what shares are of where they are not of the sum. */
static void note_signs(const struct input *input)
{
	const struct profile *profile = input_profile(input);
	char text[FORMAT_BYTES];

	if (profile->signs.has_negative)
		complain("%s: values have both signs, as those of a difference: shares are of %s, "
			 "%s",
			 input_title(input),
			 profile->signs.base ? "the base's total" : "all without their signs",
			 format_value(profile_signed_whole(profile), input_value_type(input)->unit,
				      text));
}

int read_input(struct input_options options, struct input **ret_input)
{
	struct reading reading = {.started_ns = mono_ns(), .signals = -1};
	struct watcher watcher = {.progress = on_progress,
				  .note = on_note,
				  .context = &reading,
				  .stop_fd = -1,
				  .words = stderr};
	char text[WHY_BYTES] = "";
	int err;

	if (options.select->live && !options.live_from) {
		catch_interrupt(&reading);
		watcher.stop_fd = reading.signals;
	}
	options.watcher = &watcher;
	err = input_read(&options, text, ret_input);
	clear_progress(&reading);
	release_interrupt(&reading);
	if (!err && *ret_input)
		note_signs(*ret_input);
	if (!err)
		return 0;
	return text[0] ? complain("%s", text) : READER_BAD_INPUT;
}

int read_records(struct input_options options, const struct input *from, struct input **ret_input)
{
	const struct select *select = options.select;
	enum collector_id collector;
	const char *plain;

	*ret_input = NULL;
	/* Collectors of others have no such kinds. */
	for (int i = 0; i < select->path_count; i++)
		if (remote_url_parse(select->path[i], &collector, &plain) &&
		    collector != COLLECTOR_NODE)
			return 0;
	options.live_from = select->live ? from : NULL;
	options.may_be_none = true;
	return read_input(options, ret_input);
}

/* ---- the kinds that a path has ---- */

int input_has_none(const struct wanted_kinds *wanted, const char *title)
{
	return complain("%s: %s was recorded: %s", title, wanted->nothing, wanted->how_to_record);
}

/* Finds the first of the kinds that are among those of the bits. */
static bool find_kind(const struct wanted_kinds *wanted, uint32_t kinds, const char **ret_kind)
{
	for (unsigned int i = 0; i < wanted->count; i++) {
		if (!(kinds & 1U << wanted->kind[i]))
			continue;
		*ret_kind = kind_get(wanted->kind[i])->name;
		return true;
	}
	return false;
}

static int kind_of_directory(const char *path, const struct wanted_kinds *wanted,
			     const char **ret_kind)
{
	struct extent extent;
	int err = extent_read(path, false, &extent);

	if (err)
		return complain_of(path, err);
	return find_kind(wanted, extent.kinds, ret_kind) ? 0 : input_has_none(wanted, path);
}

/* Reads a file's comments alone. */
static int kind_of_file(char *path, const struct wanted_kinds *wanted, const char **ret_kind)
{
	struct select select = {.path = &path, .path_count = 1};
	const struct input_options input_options = {.select = &select, .comments_only = true};
	OWNED(input) struct input *input = NULL;
	int err = read_input(input_options, &input);
	enum pp_profile kind;
	const char *name;

	if (err)
		return err;
	name = profile_kind(input_profile(input));
	if (kind_find(name, strlen(name), &kind) && find_kind(wanted, 1U << kind, ret_kind))
		return 0;
	return complain("%s: a profile of kind %s, which has %s: %s", input_title(input), name,
			wanted->nothing, wanted->how_to_record);
}

int choose_kind(struct select *select, const struct wanted_kinds *wanted)
{
	enum collector_id ignored;
	const char *plain;
	struct stat status;

	select->kind = kind_get(wanted->kind[0])->name;
	if (!select->path_count || remote_url_parse(select->path[0], &ignored, &plain) ||
	    stat(select->path[0], &status))
		return 0;
	if (S_ISDIR(status.st_mode))
		return kind_of_directory(select->path[0], wanted, &select->kind);
	return S_ISREG(status.st_mode) ? kind_of_file(select->path[0], wanted, &select->kind) : 0;
}

bool path_has_kinds(const char *path, bool of_url)
{
	enum collector_id collector;
	const char *plain;
	struct stat status;

	if (remote_url_parse(path, &collector, &plain))
		return of_url || collector != COLLECTOR_URL;
	return !stat(path, &status) && S_ISDIR(status.st_mode);
}

/* A total is of all threads and stacks. */
int gpu_input_totals(const struct select *select, const struct input *from, bool are_whole,
		     struct input **ret_input, const struct profile **ret_records)
{
	static const char *const labels[] = {"pid",	  "comm",   "device", "api",
					     "direction", "kernel", "below",  NULL};
	struct select own = *select; /* a copy, whose parts are borrowed */
	const struct input_options input_options = {.select = &own,
						    .kind = kind_get(PP_PROFILE_CUDA_CALLS)->name,
						    .keep_labels = are_whole ? NULL : labels,
						    .drop_stacks = !are_whole};
	int err;

	own.thread = own.focus = own.ignore = NULL;
	own.python_only = false;
	err = read_records(input_options, from, ret_input);
	*ret_records = !err && *ret_input ? input_profile(*ret_input) : NULL;
	return err;
}

/* ---- exact modes ---- */

#define FILE_NAME "/exact.pb.gz"
#define LOOK_US 100000U
#define PIDS_BYTES (SELECT_MAX_PIDS * 21)
#define ARGUMENTS_MAX 16

struct recording {
	char pids[PIDS_BYTES], seconds[24];
	const char *argument[ARGUMENTS_MAX];
};

static int make_directory(struct exact *exact)
{
	const char *below = getenv("TMPDIR");
	char *path = exact->path;

	if (!below || !below[0])
		below = "/tmp";
	if (snprintf(path, EXACT_PATH_BYTES - sizeof(FILE_NAME), "%s/pyprof-XXXXXX", below) >=
	    (int)(EXACT_PATH_BYTES - sizeof(FILE_NAME))) {
		path[0] = '\0';
		return complain_of(below, -ENAMETOOLONG);
	}
	if (!mkdtemp(path)) {
		const int err = -errno;

		path[0] = '\0';
		return complain_of(below, err);
	}
	memcpy(path + strlen(path), FILE_NAME, sizeof(FILE_NAME));
	return READER_OK;
}

void exact_release(struct exact *exact)
{
	char *slash = strrchr(exact->path, '/');

	if (!slash)
		return;
	(void)unlink(exact->path);
	*slash = '\0';
	(void)rmdir(exact->path);
	exact->path[0] = '\0';
}

static void write_pids(const struct select *select, char pids[PIDS_BYTES])
{
	size_t size = 0;

	for (unsigned int i = 0; i < select->pid_count; i++)
		size += (size_t)snprintf(pids + size, PIDS_BYTES - size, "%s%" PRId64, i ? "," : "",
					 select->pid[i]);
}

static void write_command(const struct select *select, const char *lines, const char *slowdown,
			  const char *path, struct recording *recording)
{
	const char *const fixed[] = {child_row(CHILD_RECORDING)->name,
				     "--quiet",
				     lines ? "--lines" : "--events",
				     lines ? lines : "calls",
				     "--pid",
				     recording->pids,
				     "--duration",
				     recording->seconds,
				     "--output",
				     path};
	size_t count = ARRAY_SIZE(fixed);

	write_pids(select, recording->pids);
	snprintf(recording->seconds, sizeof(recording->seconds), "%lu", select->live_seconds);
	memcpy(recording->argument, fixed, sizeof(fixed));
	if (slowdown) {
		recording->argument[count++] = "--max-slowdown";
		recording->argument[count++] = slowdown;
	}
	recording->argument[count] = NULL;
}

/* Ctrl-C reaches both programs: pyprofd ends with a profile, and we wait for it. */
static int await(pid_t pid, const char *what, uint64_t wanted)
{
	const bool shows = isatty(STDERR_FILENO);
	const uint64_t started_ns = mono_ns();
	int status = 0;
	pid_t got;

	while (!(got = waitpid(pid, &status, WNOHANG)) || (got < 0 && errno == EINTR)) {
		const uint64_t passed = (mono_ns() - started_ns) / NS_PER_SEC;

		if (shows)
			show_seconds(what, passed < wanted ? passed : wanted, wanted);
		usleep(LOOK_US);
	}
	if (shows)
		fprintf(stderr, "\r\033[K");
	return got == pid && WIFEXITED(status) && !WEXITSTATUS(status) ? READER_OK
								       : READER_BAD_INPUT;
}

/* Lets the profile be read in place of processes.  Children were recorded, too. */
static int select_profile(struct select *select, struct exact *exact)
{
	select->path = calloc(1, sizeof(*select->path));
	if (!select->path)
		return complain_of(exact->path, -ENOMEM);
	select->path[select->path_count++] = exact->path;
	select->pid_count = 0;
	return READER_OK;
}

int exact_record(struct select *select, const char *lines, const char *slowdown,
		 struct exact *ret_exact)
{
	OWNED_MEM struct recording *recording = calloc(1, sizeof(*recording));
	struct exact *exact = ret_exact;
	void (*before)(int);
	struct child_start start;
	pid_t pid = 0;
	int status, err;

	*exact = (struct exact){};
	if (!recording)
		return complain_of("exact counts", -ENOMEM);
	status = make_directory(exact);
	if (status)
		return status;
	write_command(select, lines, slowdown, exact->path, recording);
	start = (struct child_start){.argv = (char *const *)recording->argument};
	err = child_spawn(CHILD_RECORDING, &start, &pid);
	before = signal(SIGINT, SIG_IGN);
	status =
		err ? complain_of("pyprofd", err)
		    : await(pid, lines ? "counting lines" : "counting calls", select->live_seconds);
	(void)signal(SIGINT, before);
	if (!status)
		status = select_profile(select, exact);
	if (status)
		exact_release(exact);
	return status;
}
