/* SPDX-License-Identifier: BSD-2-Clause */
#include "query/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child/spawn.h"

#define PROGRAM "pyprof-fetch"

struct remote {
	pid_t pid;
	int input;   /* the child's standard input: it removes what it has when this is closed */
	FILE *lines; /* its standard output; owned */
	char *path;  /* owned; NULL: nothing has come yet */
};

/* ---- URLs ---- */

void remote_name(const char *url, char ret_name[REMOTE_NAME_BYTES])
{
	const char *host = strstr(url, "://"), *query = strchr(url, '?');
	const char *at =
		host ? memrchr(host, '@', query ? (size_t)(query - host) : strlen(host)) : NULL;
	const bool hides_query = query && !strncmp(url, "http", 4);

	if (!at)
		host = at = url;
	else
		host += strlen("://");
	snprintf(ret_name, REMOTE_NAME_BYTES, "%.*s%s%.*s%s", (int)(host - url), url,
		 at == url ? "" : "***", (int)(hides_query ? query - at : (ptrdiff_t)strlen(at)),
		 at, hides_query ? "?***" : "");
}

/* ---- the child ---- */

static int write_settings(const struct remote_ask *ask, FILE *file)
{
	fprintf(file, "url=%s\n", ask->url);
	if (ask->kind)
		fprintf(file, "kind=%s\n", ask->kind);
	if (ask->sample_type)
		fprintf(file, "sample-type=%s\n", ask->sample_type);
	if (ask->since_ms)
		fprintf(file, "since-ms=%" PRIu64 "\n", ask->since_ms);
	if (ask->until_ms)
		fprintf(file, "until-ms=%" PRIu64 "\n", ask->until_ms);
	for (unsigned int i = 0; i < ask->set_count; i++)
		fprintf(file, "set=%s\n", ask->set[i]);
	return fflush(file) || ferror(file) ? -EIO : 0;
}

/* Hands the settings over in a file in memory: argv is everybody's.  Returns the descriptor, or
 * -errno. */
static int open_settings(const struct remote_ask *ask)
{
	OWNED_FD int fd = memfd_create("settings", MFD_CLOEXEC), copy = -1;
	OWNED_FILE FILE *file = NULL;
	int err;

	copy = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
	file = copy < 0 ? NULL : fdopen(copy, "we");
	if (!file)
		return -errno;
	copy = -1; /* the file's */
	err = write_settings(ask, file);
	if (!err && lseek(fd, 0, SEEK_SET))
		err = -errno;
	return err ? err : TAKE_FD(fd);
}

static int open_pipe(int *read_fd, int *write_fd)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	*read_fd = ends[0];
	*write_fd = ends[1];
	return 0;
}

static int start(struct remote *remote, const struct remote_ask *ask)
{
	OWNED_FD int settings = open_settings(ask), input = -1, output = -1, lines = -1;
	int err = settings < 0 ? settings : open_pipe(&input, &remote->input);

	if (!err)
		err = open_pipe(&lines, &output);
	if (!err)
		err = child_spawn(
			CHILD_FETCH,
			&(struct child_start){.fd = (const int[]){input, output, settings}},
			&remote->pid);
	if (err)
		return err;
	remote->lines = fdopen(lines, "re");
	if (!remote->lines)
		return -errno;
	(void)TAKE_FD(lines);
	return 0;
}

void remote_free(struct remote *remote)
{
	if (!remote)
		return;
	close_owned_fd(&remote->input);
	if (remote->lines)
		fclose(remote->lines);
	if (remote->pid)
		waitpid(remote->pid, NULL, 0);
	free(remote->path);
	free(remote);
}

/* ---- what it says ---- */

/* Returns what follows a word, or NULL. */
static const char *behind(const char *line, const char *word)
{
	const size_t size = strlen(word);

	return !strncmp(line, word, size) && line[size] == ' ' ? line + size + 1 : NULL;
}

static void pass_progress(const struct watcher *watcher, const char *numbers)
{
	struct watcher_progress progress = {.fetches = true};
	char *end;

	progress.done = strtoull(numbers, &end, 10);
	progress.wanted = strtoull(end, NULL, 10);
	if (watcher->progress)
		watcher->progress(watcher->context, &progress);
}

/* Takes a line.  Returns 1: there are more to come; 0: everything has come; -ENOENT, -EINVAL,
 * -ENOMEM. */
static int take_line(struct remote *remote, const struct remote_ask *ask, const char *line,
		     char why[WHY_BYTES])
{
	const struct watcher *watcher = ask->watcher;
	const char *path = behind(line, "directory") ?: behind(line, "file");
	const char *numbers = behind(line, "progress"), *note = behind(line, "note");
	const char *none = behind(line, "none");

	if (path) {
		remote->path = strdup(path);
		return remote->path ? 0 : -ENOMEM;
	}
	if (numbers)
		pass_progress(watcher, numbers);
	if (note && watcher->note)
		watcher->note(watcher->context, note);
	if (numbers || note)
		return 1;
	(void)say_why(why, "%s", none ?: behind(line, "error") ?: line);
	return none ? -ENOENT : -EINVAL;
}

static int wait_for_all(struct remote *remote, const struct remote_ask *ask, char why[WHY_BYTES])
{
	OWNED_MEM char *line = NULL;
	size_t room = 0;
	int result = 1;

	while (result > 0) {
		ssize_t size = getline(&line, &room, remote->lines);

		if (size < 0)
			return say_why(why, PROGRAM " has ended without an answer");
		if (size && line[size - 1] == '\n')
			line[size - 1] = '\0';
		result = take_line(remote, ask, line, why);
	}
	return result;
}

int remote_fetch(const struct remote_ask *ask, char why[WHY_BYTES], struct remote **ret_remote)
{
	OWNED(remote) struct remote *remote = calloc(1, sizeof(*remote));
	int err;

	if (!remote)
		return say_why(why, "%s", strerror(ENOMEM));
	remote->input = -1;
	err = start(remote, ask);
	if (err)
		return say_why(why, "cannot start " PROGRAM ", which should be beside pyprof: %s",
			       strerror(-err));
	err = wait_for_all(remote, ask, why);
	if (err == -ENOMEM)
		return say_why(why, "%s", strerror(ENOMEM));
	if (err)
		return err;
	*ret_remote = TAKE(remote);
	return 0;
}

const char *remote_path(const struct remote *remote)
{
	return remote->path;
}
