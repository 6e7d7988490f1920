/* SPDX-License-Identifier: BSD-2-Clause */
#include "reader/read_input.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "reader/complain.h"
#include "reader/verb.h"

#define PROGRESS_AFTER_NS NS_PER_SEC
#define PROGRESS_EVERY_NS (100 * NS_PER_MS)

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

static void show_seconds(struct reading *reading, const struct watcher_progress *progress)
{
	if (!isatty(STDERR_FILENO))
		return;
	reading->shown_ns = mono_ns();
	fprintf(stderr, "\rwatching: %" PRIu64 " of %" PRIu64 " s; Ctrl-C ends it\033[K",
		progress->done, progress->wanted);
}

static void on_progress(void *context, const struct watcher_progress *progress)
{
	struct reading *reading = context;

	if (!progress->live && reading->signals >= 0) {
		/* The windows have come. */
		clear_progress(reading);
		release_interrupt(reading);
	}
	if (progress->live)
		show_seconds(reading, progress);
	else
		show_files(reading, progress);
}

static void on_note(void *context, const char *line)
{
	clear_progress(context);
	complain("%s", line);
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
	if (!err)
		return 0;
	return text[0] ? complain("%s", text) : READER_BAD_INPUT;
}
