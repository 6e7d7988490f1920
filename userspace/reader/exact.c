/* SPDX-License-Identifier: BSD-2-Clause */
#include "reader/exact.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "child/spawn.h"
#include "reader/complain.h"
#include "reader/verb.h"

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

static void write_command(const struct exact_options *options, const char *path,
			  struct recording *recording)
{
	const struct select *select = options->select;
	const char *const fixed[] = {child_row(CHILD_RECORDING)->name,
				     "--quiet",
				     options->lines ? "--lines" : "--events",
				     options->lines ? options->lines : "calls",
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
	if (options->slowdown) {
		recording->argument[count++] = "--max-slowdown";
		recording->argument[count++] = options->slowdown;
	}
	recording->argument[count] = NULL;
}

static void show_seconds(const char *what, uint64_t started_ns, unsigned long wanted)
{
	const uint64_t passed = (mono_ns() - started_ns) / NS_PER_SEC;

	fprintf(stderr, "\rcounting %s: %" PRIu64 " of %lu s; Ctrl-C ends it\033[K", what,
		passed < wanted ? passed : wanted, wanted);
}

/* Ctrl-C reaches both programs: pyprofd ends with a profile, and we wait for it. */
static int await(pid_t pid, const struct exact_options *options)
{
	const bool shows = isatty(STDERR_FILENO);
	const uint64_t started_ns = mono_ns();
	int status = 0;
	pid_t got;

	while (!(got = waitpid(pid, &status, WNOHANG)) || (got < 0 && errno == EINTR)) {
		if (shows)
			show_seconds(options->lines ? "lines" : "calls", started_ns,
				     options->select->live_seconds);
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

int exact_record(const struct exact_options *options, struct exact *ret_exact)
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
	write_command(options, exact->path, recording);
	start = (struct child_start){.argv = (char *const *)recording->argument};
	err = child_spawn(CHILD_RECORDING, &start, &pid);
	before = signal(SIGINT, SIG_IGN);
	status = err ? complain_of("pyprofd", err) : await(pid, options);
	(void)signal(SIGINT, before);
	if (!status)
		status = select_profile(options->select, exact);
	if (status)
		exact_release(exact);
	return status;
}
