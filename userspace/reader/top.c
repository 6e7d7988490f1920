/* SPDX-License-Identifier: BSD-2-Clause */
/* pyprof top: what runs and waits at this moment, from the running pyprofd, until the user ends
 * it. */
/* Control sequences: ECMA-48, and the private modes of xterm (ctlseqs): 1049 the alternate screen,
 * 25 the cursor, 7 line wrapping. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "live/record.h"
#include "live/reply.h"
#include "reader/select_options.h"
#include "reader/text.h"
#include "reader/top_view.h"
#include "reader/verb.h"

/* ---- the terminal ---- */

/* The terminal as a full screen with keys; it is restored at the end, however that comes.  Close
 * with screen_close(); a zeroed one is closed. */
struct screen {
	bool is_open;
	struct termios before;
	int signals; /* signalfd */
	unsigned int columns, rows;
};

#define SCREEN_LINE_END "\033[K\r\n"

/* Around a whole picture, whose lines end in SCREEN_LINE_END. */
#define HOME "\033[H"
#define CLEAR_BELOW "\033[J"
#define ENTER "\033[?1049h\033[?25l\033[?7l"
#define LEAVE "\033[?7h\033[?25h\033[?1049l"
#define COLUMNS_DEFAULT 80U
#define ROWS_DEFAULT 24U

/* Returns whether standard input and output are a terminal that can do this. */
static bool screen_is_there(void)
{
	const char *term = getenv("TERM");

	return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && term && term[0] &&
	       strcmp(term, "dumb");
}

static void read_size(struct screen *screen)
{
	struct winsize size;
	bool is_known = !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_col && size.ws_row;

	screen->columns = is_known ? size.ws_col : COLUMNS_DEFAULT;
	screen->rows = is_known ? size.ws_row : ROWS_DEFAULT;
}

static int open_signals(struct screen *screen)
{
	static const int wanted[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGWINCH};
	sigset_t signals;

	sigemptyset(&signals);
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
		sigaddset(&signals, wanted[i]);
	if (sigprocmask(SIG_BLOCK, &signals, NULL))
		return -errno;
	screen->signals = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	return screen->signals < 0 ? -errno : 0;
}

/* Opens the screen.  From now on SIGINT, SIGTERM, SIGHUP and SIGQUIT become events of
 * screen->signals: call screen_signal().  Returns 0; -errno. */
static int screen_open(struct screen *screen)
{
	struct termios raw;
	int err;

	if (tcgetattr(STDIN_FILENO, &screen->before))
		return -errno;
	err = open_signals(screen);
	if (err)
		return err;
	raw = screen->before;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	raw.c_cc[VMIN] = 1;
	raw.c_cc[VTIME] = 0;
	/* If it could be stopped, the terminal would stay as it is now. */
	raw.c_cc[VSUSP] = _POSIX_VDISABLE;
	if (tcsetattr(STDIN_FILENO, TCSADRAIN, &raw)) {
		close_owned_fd(&screen->signals);
		return -errno;
	}
	screen->is_open = true;
	read_size(screen);
	(void)write_full(STDOUT_FILENO, ENTER, strlen(ENTER));
	return 0;
}

static void screen_close(struct screen *screen)
{
	if (!screen->is_open)
		return;
	fflush(stdout);
	(void)write_full(STDOUT_FILENO, LEAVE, strlen(LEAVE));
	/* Keys that were not read must not go to the shell. */
	(void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &screen->before);
	close_owned_fd(&screen->signals);
	screen->is_open = false;
}

/* Takes a signal.  Returns whether it ends the program; otherwise the size has changed. */
static bool screen_signal(struct screen *screen)
{
	struct signalfd_siginfo info;
	bool ends = false;

	while (read(screen->signals, &info, sizeof(info)) == sizeof(info))
		ends |= info.ssi_signo != SIGWINCH;
	read_size(screen);
	return ends;
}

#define INTERVAL_MAX 3600UL
/* Windows take about a second: one that is slightly shorter also ends the interval. */
#define SLACK_NS (NS_PER_SEC / 4)
#define EARLY_NS (20 * NS_PER_MS)

struct top {
	struct live_options live;
	unsigned long interval_s, count; /* count 0: until the user ends it */
	bool by_leaf;
	struct top_view view;
	struct screen screen;
	struct top_model *filling, *shown; /* owned */
	unsigned long printed;
	uint64_t asked_wall_ns;
};

static void parse_interval(const struct given *given)
{
	*(unsigned long *)given->at = option_number_within(given, INTERVAL_MAX);
}

static void parse_focus(const struct given *given)
{
	if (top_view_set_filter(given->at, given->text))
		option_refuse(given, "not a regular expression");
}

static const struct verb_option options[] = {
	{"interval", 'i', "S", "Show a new picture every S seconds: 1 (default) to 3600", 1,
	 OPTION_CALL, .at = offsetof(struct top, interval_s), .parse = parse_interval},
	{"count", 0, "N", "End after N intervals", 1, OPTION_NUMBER,
	 .at = offsetof(struct top, count)},
	{"sort", 's', "COLUMN", "Sort by cpu (default), gil, wait or name", 2, OPTION_WORD,
	 .at = offsetof(struct top, view.sort), .words = top_sort_names},
	{"focus", 0, "REGEX", "Show only processes, pids, functions and files that match", 2,
	 OPTION_CALL, .at = offsetof(struct top, view), .parse = parse_focus},
	{"top", 'n', "N", "Show N functions of each process; default 5", 2, OPTION_NUMBER,
	 .at = offsetof(struct top, view.functions)},
	{"leaf", 0, NULL,
	 "Count time for the innermost frame, native and kernel frames included, not for the "
	 "innermost Python function",
	 2, OPTION_FLAG, .at = offsetof(struct top, by_leaf)},
	{"full-paths", 0, NULL,
	 "Show whole paths of source files, not only the part that tells them apart", 2,
	 OPTION_FLAG, .at = offsetof(struct top, view.full_paths)},
	{}};

static const char doc[] =
	"Shows live what runs and waits: processes, their hottest functions and lines, who holds "
	"the GIL, what is waited for.  It asks the running pyprofd; root needs none.  Other users "
	"see their own processes.  Keys: ? lists them.  Not on a terminal: plain text, a block for "
	"each interval."
	"\vExamples:\n"
	"  sudo pyprof top\n"
	"  sudo pyprof top --pid 1234 --sort gil\n"
	"  sudo pyprof top --interval 5 --count 1 | head -40\n";

/* ---- showing ---- */

static int show(struct top *top)
{
	int err;

	if (!top->screen.is_open) {
		top->view.columns = text_columns();
		err = top_view_print(&top->view, top->shown, "\n", stdout);
		fputs("\n", stdout);
		return fflush(stdout) ? -errno : err;
	}
	top->view.columns = top->screen.columns;
	/* The last line stays free, because its end would scroll the screen. */
	top->view.rows = top->screen.rows - 1;
	fputs(HOME, stdout);
	err = top_view_print(&top->view, top->shown, SCREEN_LINE_END, stdout);
	fputs(CLEAR_BELOW, stdout);
	fflush(stdout);
	return err;
}

static int take_interval(struct top *top)
{
	OWNED(top_model) struct top_model *full = TAKE(top->filling);

	if (top->view.is_frozen)
		return 0;
	top_model_free(top->shown);
	top->shown = TAKE(full);
	top->printed++;
	top->view.wants_end |= top->printed == top->count;
	return show(top);
}

/* Returns whether a window began before the request: it is shown at once, but is not part of an
 * interval. */
static bool is_too_early(const struct top *top, uint64_t started_wall_ns)
{
	return !top->screen.is_open && started_wall_ns + EARLY_NS < top->asked_wall_ns;
}

static int on_window(void *context, const char *file, size_t size, uint64_t flags)
{
	struct top *top = context;
	struct profile_read_totals totals;
	int err = 0;

	if (top->view.wants_end)
		return 0;
	if (!top->filling)
		err = top_model_new(top->by_leaf, &top->filling);
	if (!err)
		err = top_model_add(top->filling, file, size, flags & LIVE_WINDOW_WAITS);
	if (err)
		return err;
	totals = top_model_totals(top->filling);
	if (is_too_early(top, totals.end_wall_ns - totals.duration_ns)) {
		top_model_free(TAKE(top->filling));
		return 0;
	}
	return totals.duration_ns + SLACK_NS < top->interval_s * NS_PER_SEC ? 0
									    : take_interval(top);
}

/* ---- the loop ---- */

static int read_keys(struct top *top)
{
	char keys[256];
	ssize_t got = read(STDIN_FILENO, keys, sizeof(keys));

	/* The terminal is gone. */
	if (got <= 0)
		top->view.wants_end = true;
	else if (top_view_keys(&top->view, keys, (size_t)got))
		return show(top);
	return 0;
}

static int follow(struct top *top, int fd, struct live_feed *feed)
{
	const struct live_feed_handler handler = {.on_window = on_window, .context = top};
	struct pollfd source[] = {
		{.fd = fd, .events = POLLIN},
		{.fd = top->screen.is_open ? STDIN_FILENO : -1, .events = POLLIN},
		{.fd = top->screen.is_open ? top->screen.signals : -1, .events = POLLIN},
	};
	int err = top->screen.is_open ? show(top) : 0;

	while (!err && !top->view.wants_end) {
		if (poll(source, ARRAY_SIZE(source), -1) < 0) {
			err = errno == EINTR ? 0 : -errno;
			continue;
		}
		if (source[2].revents) {
			top->view.wants_end |= screen_signal(&top->screen);
			err = top->view.wants_end ? 0 : show(top);
		}
		if (!err && source[1].revents)
			err = read_keys(top);
		if (!err && source[0].revents)
			err = live_feed_read(feed, fd, &handler);
	}
	return top->view.wants_end ? 0 : err;
}

static int run(struct top *top)
{
	CLEANUP(live_client_free_owned) struct live_client *client = NULL;
	CLEANUP(live_feed_release) struct live_feed feed = {};
	int err;

	if (live_client_open(top->live.socket, &top->live.request, stderr, &client))
		return READER_BAD_INPUT;
	top->asked_wall_ns = wall_ns();
	err = screen_is_there() ? screen_open(&top->screen) : 0;
	if (err)
		return complain_of("cannot use the terminal", err);
	err = follow(top, live_client_fd(client), &feed);
	screen_close(&top->screen);
	return err ? live_explain(client, err, feed.why) : READER_OK;
}

int verb_top(int argc, char **argv)
{
	static const struct verb_args args = {options, NULL, .doc = doc,
					      .refused = "top reads no profile; report does"};
	struct top top = {.live.request.verb = LIVE_TOP,
			  .interval_s = 1,
			  .view = {.depth = 3, .functions = 5, .lines = 2}};
	int status = live_options_parse(&args, argc, argv, &top.live);

	top.view.color = text_wants_color();
	top.view.shows_idle = top.live.request.pid_count;
	if (!status)
		status = run(&top);
	top_model_free(top.filling);
	top_model_free(top.shown);
	top_view_release(&top.view);
	return status;
}
