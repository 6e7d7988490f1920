/* SPDX-License-Identifier: BSD-2-Clause */
/* Control sequences: ECMA-48, and the private modes of xterm (ctlseqs): 1049 the alternate screen,
 * 25 the cursor, 7 line wrapping. */
#include "reader/screen.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>

#include "base/cleanup.h"
#include "base/io.h"

#define ENTER "\033[?1049h\033[?25l\033[?7l"
#define LEAVE "\033[?7h\033[?25h\033[?1049l"
#define COLUMNS_DEFAULT 80U
#define ROWS_DEFAULT 24U

bool screen_is_there(void)
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

int screen_open(struct screen *screen)
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

void screen_close(struct screen *screen)
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

int screen_fd(const struct screen *screen)
{
	return screen->signals;
}

bool screen_signal(struct screen *screen)
{
	struct signalfd_siginfo info;
	bool ends = false;

	while (read(screen->signals, &info, sizeof(info)) == sizeof(info))
		ends |= info.ssi_signo != SIGWINCH;
	read_size(screen);
	return ends;
}

void screen_begin(FILE *out)
{
	fputs("\033[H", out);
}

void screen_end(FILE *out)
{
	fputs("\033[J", out);
	fflush(out);
}
