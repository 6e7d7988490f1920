/* SPDX-License-Identifier: BSD-2-Clause */
#include "query/live_windows.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/io.h"
#include "live/record.h"
#include "live/reply.h"

/* Windows take about a second: one that is slightly shorter also ends the time. */
#define SLACK_NS (NS_PER_SEC / 4)
#define PATIENCE_NS (90 * NS_PER_SEC) /* the longest time without a window */
#define STEP_MS 200
#define SPOOL_MAX_BYTES (1ULL << 30)
#define COPY_BYTES 65536U

struct kept_window {
	enum pp_profile kind;
	off_t at;
	size_t size;
};

struct live_windows {
	int spool;
	uint64_t bytes;
	struct kept_window *window; /* owned */
	size_t count, capacity;
};

/* State while windows are received. */
struct watching {
	const struct live_windows_options *options;
	struct live_windows *windows;
	struct live_feed feed;
	char *why;		       /* borrowed: WHY_BYTES */
	size_t seen[PP_PROFILE_COUNT]; /* number of windows of that kind, including the first */
	uint64_t last_ns, begun_ns;    /* arrival of the last window; end of the first */
	bool is_full;
};

void live_windows_free(struct live_windows *windows)
{
	if (!windows)
		return;
	close_owned_fd(&windows->spool);
	free(windows->window);
	free(windows);
}

/* ---- storing ---- */

/* Opens the file on a disk where possible. */
static uint64_t most_bytes(const struct live_windows_options *options)
{
	return options->max_bytes && options->max_bytes < SPOOL_MAX_BYTES ? options->max_bytes
									  : SPOOL_MAX_BYTES;
}

static int open_spool(void)
{
	const char *directory = getenv("TMPDIR");
	int fd = open(directory && directory[0] ? directory : "/tmp",
		      O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	return fd >= 0 ? fd : memfd_create("windows", MFD_CLOEXEC);
}

static int keep(struct live_windows *windows, enum pp_profile kind, const char *file, size_t size)
{
	int err = ARRAY_RESERVE(windows->window, windows->count, windows->capacity);

	if (!err)
		err = write_full(windows->spool, file, size);
	if (err)
		return err;
	windows->window[windows->count++] =
		(struct kept_window){.kind = kind, .at = (off_t)windows->bytes, .size = size};
	windows->bytes += size;
	return 0;
}

/* Copies one window from the spool to the fd.  Returns 0; -errno. */
static int copy(int spool, const struct kept_window *window, int fd)
{
	OWNED_MEM char *piece = malloc(COPY_BYTES);
	int err = piece ? 0 : -ENOMEM;

	for (size_t done = 0, size; !err && done < window->size; done += size) {
		size = window->size - done < COPY_BYTES ? window->size - done : COPY_BYTES;
		err = pread_full(spool, piece, size, window->at + (off_t)done);
		if (!err)
			err = write_full(fd, piece, size);
	}
	return err;
}

int live_windows_open(const struct live_windows *windows, size_t number, int *ret_fd)
{
	OWNED_FD int fd = memfd_create("window", MFD_CLOEXEC);
	int err;

	if (fd < 0)
		return -errno;
	err = copy(windows->spool, &windows->window[number], fd);
	if (err)
		return err;
	if (lseek(fd, 0, SEEK_SET))
		return -errno;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

size_t live_windows_count(const struct live_windows *windows)
{
	return windows->count;
}

enum pp_profile live_windows_kind(const struct live_windows *windows, size_t number)
{
	return windows->window[number].kind;
}

/* ---- watching ---- */

static int on_window(void *context, const char *file, size_t size, uint64_t flags)
{
	struct watching *watching = context;
	const enum pp_profile wanted = watching->options->kind;
	uint64_t kind = (flags >> LIVE_WINDOW_KIND_SHIFT) - 1; /* 0 wraps: no kind */

	if (kind >= PP_PROFILE_COUNT || !((1U << wanted | watching->options->more) & 1U << kind))
		return -EBADMSG;
	/* Windows come in the order of their kinds, and the requested kind is the first. */
	if (kind != wanted && !watching->seen[wanted])
		return -ENOENT;
	watching->last_ns = mono_ns();
	if (!watching->seen[kind]++) {
		/* It began before the request; the next window begins where it ends. */
		watching->begun_ns = watching->last_ns;
		return 0;
	}
	if (watching->windows->bytes + size > most_bytes(watching->options)) {
		watching->is_full = true;
		return 0;
	}
	return keep(watching->windows, (enum pp_profile)kind, file, size);
}

/* Returns whether all kinds of the last window have arrived. */
static bool is_whole(const struct watching *watching)
{
	const size_t wanted = watching->seen[watching->options->kind];

	for (unsigned int i = 0; i < PP_PROFILE_COUNT; i++)
		if (watching->seen[i] && watching->seen[i] != wanted)
			return false;
	return wanted > 1;
}

static bool is_over(const struct watching *watching)
{
	return watching->is_full ||
	       (is_whole(watching) && watching->last_ns - watching->begun_ns + SLACK_NS >=
					      watching->options->seconds * NS_PER_SEC);
}

static void tell_progress(const struct watching *watching)
{
	const struct watcher *watcher = watching->options->watcher;
	const struct watcher_progress progress = {
		.live = true,
		.done = watching->begun_ns ? (mono_ns() - watching->begun_ns) / NS_PER_SEC : 0,
		.wanted = watching->options->seconds};

	if (watcher->progress)
		watcher->progress(watcher->context, &progress);
}

/* Receives windows.  Returns 0 when the time is over, or the caller ended it. */
static int follow(struct watching *watching, int fd)
{
	const struct live_feed_handler handler = {.on_window = on_window, .context = watching};
	struct pollfd source[] = {{.fd = fd, .events = POLLIN},
				  {.fd = watching->options->watcher->stop_fd, .events = POLLIN}};
	int err = 0;

	watching->last_ns = mono_ns();
	while (!err && !is_over(watching)) {
		tell_progress(watching);
		if (poll(source, ARRAY_SIZE(source), STEP_MS) < 0 && errno != EINTR)
			return -errno;
		if (source[1].revents)
			return 0;
		if (source[0].revents)
			err = live_feed_read(&watching->feed, fd, &handler);
		else if (mono_ns() - watching->last_ns > PATIENCE_NS)
			err = -EBADMSG;
	}
	return is_over(watching) ? 0 : err;
}

/* Makes the request.  Returns 0; -EINVAL: a number that cannot be a pid. */
static int make_request(const struct live_windows_options *options,
			struct live_request *ret_request)
{
	struct live_request request = {.verb = LIVE_TOP,
				       .kinds = 1U << options->kind | options->more,
				       .has_uid = options->as_user,
				       .uid = options->uid};

	if (options->pid_count > LIVE_PIDS_MAX)
		return -EINVAL;
	for (unsigned int i = 0; i < options->pid_count; i++) {
		if (options->pid[i] <= 0 || options->pid[i] > INT32_MAX)
			return -EINVAL;
		request.pid[request.pid_count++] = (uint32_t)options->pid[i];
	}
	*ret_request = request;
	return 0;
}

/* Tells, when some windows arrived and will be shown, why there are no more. */
static void note_end(const struct watching *watching, int err)
{
	const struct watcher *watcher = watching->options->watcher;
	char line[WHY_BYTES] = "";

	if (err == -EPIPE || err == -ECONNRESET)
		say_why(line, "pyprofd has ended: this is what came before");
	else if (err)
		say_why(line, "--live: %s: this is what came before", strerror(-err));
	else if (watching->is_full)
		say_why(line, "--live: more than %llu MiB of profiles: this is what came before",
			(unsigned long long)most_bytes(watching->options) >> 20);
	if (line[0] && watcher->note)
		watcher->note(watcher->context, line);
}

/* Says why there is nothing to show.  Returns -errno. */
static int explain(const struct watching *watching, const struct live_client *client, int err)
{
	char *text = watching->why;

	if (!err)
		return say_why(text, "ended before the first window, which takes a second, was "
				     "complete");
	if (err == -EREMOTEIO && watching->feed.why_errno == EINVAL)
		return say_why(text, "this pyprofd cannot send profiles, as it is older than this "
				     "pyprof: restart it with the version of this pyprof");
	if (err == -ENOENT)
		return say_why(text,
			       "the running pyprofd does not record kind %s: choose another one "
			       "with --kind",
			       kind_get(watching->options->kind)->name);
	return live_why(client, err, watching->feed.why, text);
}

static int watch(struct watching *watching)
{
	CLEANUP(live_client_free_owned) struct live_client *client = NULL;
	const struct live_windows_options *options = watching->options;
	struct live_request request;
	int err = make_request(options, &request);

	if (err)
		return say_why(watching->why, "--live: --pid has a number that no process has");
	err = live_client_open(options->socket, &request, options->watcher->words, &client);
	if (err)
		return err;
	err = follow(watching, live_client_fd(client));
	if (!watching->windows->count)
		return explain(watching, client, err);
	note_end(watching, err);
	return 0;
}

int live_windows_take(const struct live_windows_options *options, char why[WHY_BYTES],
		      struct live_windows **ret_windows)
{
	OWNED(live_windows) struct live_windows *windows = calloc(1, sizeof(*windows));
	struct watching watching = {.options = options, .windows = windows, .why = why};
	int err;

	why[0] = '\0';
	if (windows)
		windows->spool = open_spool();
	if (!windows || windows->spool < 0)
		return say_why(why, "cannot create a temporary file: %s", strerror(errno));
	err = watch(&watching);
	live_feed_release(&watching.feed);
	if (!err)
		*ret_windows = TAKE(windows);
	return err;
}

int live_why(const struct live_client *client, int err, const char *said, char text[WHY_BYTES])
{
	text[0] = '\0';
	if (live_client_has_failed(client))
		return err;
	switch (err) {
	case -EREMOTEIO:
		say_why(text, "pyprofd refused: %s", said);
		break;
	case -EPIPE:
		say_why(text, "pyprofd has ended");
		break;
	case -EBADMSG:
		say_why(text, "the answer of pyprofd is damaged or did not come in time");
		break;
	case -E2BIG:
		say_why(text, "the answer of pyprofd is too large");
		break;
	default:
		say_why(text, "%s", strerror(-err));
	}
	return err;
}
