/* SPDX-License-Identifier: BSD-2-Clause */
#include "reader/live_windows.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/signalfd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/io.h"
#include "live/feed.h"
#include "live/record.h"
#include "reader/live_options.h"
#include "reader/verb.h"

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
	int signals;
	size_t seen[PP_PROFILE_COUNT]; /* number of windows of that kind, including the first */
	uint64_t last_ns, begun_ns;    /* arrival of the last window; end of the first */
	bool is_full, was_shown;
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
	if (watching->windows->bytes + size > SPOOL_MAX_BYTES) {
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

static void show_progress(struct watching *watching)
{
	uint64_t seconds = watching->begun_ns ? (mono_ns() - watching->begun_ns) / NS_PER_SEC : 0;

	if (watching->options->no_progress || !isatty(STDERR_FILENO))
		return;
	watching->was_shown = true;
	fprintf(stderr, "\rwatching: %" PRIu64 " of %lu s; Ctrl-C ends it\033[K", seconds,
		watching->options->seconds);
}

/* Receives windows.  Returns 0 when the time is over, or a signal ended it. */
static int follow(struct watching *watching, int fd)
{
	const struct live_feed_handler handler = {.on_window = on_window, .context = watching};
	struct pollfd source[] = {{.fd = fd, .events = POLLIN},
				  {.fd = watching->signals, .events = POLLIN}};
	int err = 0;

	watching->last_ns = mono_ns();
	while (!err && !is_over(watching)) {
		show_progress(watching);
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
				       .private_ledger = options->wants_ledger};

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

/* Prints, when some windows arrived and will be shown, why there are no more. */
static void explain_end(const struct watching *watching, int err)
{
	if (err == -EPIPE || err == -ECONNRESET)
		fprintf(stderr, "pyprof: pyprofd has ended: this is what came before\n");
	else if (err)
		fprintf(stderr, "pyprof: --live: %s: this is what came before\n", strerror(-err));
	else if (watching->is_full)
		fprintf(stderr,
			"pyprof: --live: more than %llu MiB of profiles: this is what came "
			"before\n",
			SPOOL_MAX_BYTES >> 20);
}

/* Prints why there is nothing to show. */
static int explain(const struct watching *watching, const struct live_client *client, int err)
{
	if (watching->windows->count) {
		explain_end(watching, err);
		return 0;
	}
	if (!err)
		fprintf(stderr, "pyprof: ended before the first window, which takes a second, was "
				"complete\n");
	else if (err == -EREMOTEIO && watching->feed.why_errno == EINVAL)
		fprintf(stderr,
			"pyprof: this pyprofd cannot send profiles, as it is older than this "
			"pyprof: restart it with the version of this pyprof\n");
	else if (err == -ENOENT)
		fprintf(stderr,
			"pyprof: the running pyprofd does not record kind %s: choose another "
			"one with --kind\n",
			kind_get(watching->options->kind)->name);
	else
		return live_explain(client, err, watching->feed.why);
	return READER_BAD_INPUT;
}

static int watch(struct watching *watching)
{
	CLEANUP(live_client_free_owned) struct live_client *client = NULL;
	struct live_request request;
	int err = make_request(watching->options, &request);

	if (err) {
		fprintf(stderr, "pyprof: --live: --pid has a number that no process has\n");
		return READER_BAD_INPUT;
	}
	if (live_client_open(watching->options->socket, &request, stderr, &client))
		return READER_BAD_INPUT;
	err = follow(watching, live_client_fd(client));
	if (watching->was_shown)
		fprintf(stderr, "\r\033[K");
	return explain(watching, client, err);
}

/* SIGINT ends only the receiving. */
static int watch_until_signal(struct watching *watching)
{
	struct signalfd_siginfo info;
	sigset_t wanted, before;
	int status;

	sigemptyset(&wanted);
	sigaddset(&wanted, SIGINT);
	(void)sigprocmask(SIG_BLOCK, &wanted, &before);
	OWNED_FD int signals = signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);

	watching->signals = signals;
	status = watch(watching);
	(void)!read(signals, &info, sizeof(info));
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	return status;
}

int live_windows_take(const struct live_windows_options *options, struct live_windows **ret_windows)
{
	OWNED(live_windows) struct live_windows *windows = calloc(1, sizeof(*windows));
	struct watching watching = {.options = options, .windows = windows};
	int status;

	if (windows)
		windows->spool = open_spool();
	if (!windows || windows->spool < 0) {
		fprintf(stderr, "pyprof: cannot create a temporary file: %s\n", strerror(errno));
		return READER_BAD_INPUT;
	}
	status = watch_until_signal(&watching);
	live_feed_release(&watching.feed);
	if (!status)
		*ret_windows = TAKE(windows);
	return status;
}
