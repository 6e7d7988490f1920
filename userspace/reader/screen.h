/* SPDX-License-Identifier: BSD-2-Clause */
/* Uses the terminal as a full screen with keys, and restores it at the end, however that comes. */
#ifndef READER_SCREEN_H
#define READER_SCREEN_H

#include <stdbool.h>
#include <stdio.h>
#include <termios.h>

/* Close with screen_close(); a zeroed one is closed. */
struct screen {
	bool is_open;
	struct termios before;
	int signals; /* signalfd */
	unsigned int columns, rows;
};

/* Returns whether standard input and output are a terminal that can do this. */
bool screen_is_there(void);
/* Opens the screen.  From now on SIGINT, SIGTERM, SIGHUP and SIGQUIT become events of screen_fd().
 * Returns 0; -errno. */
int screen_open(struct screen *screen);
void screen_close(struct screen *screen);
/* Returns a descriptor that is readable when a signal came: call screen_signal(). */
int screen_fd(const struct screen *screen);
/* Takes a signal.  Returns whether it ends the program; otherwise the size has changed. */
bool screen_signal(struct screen *screen);
#define SCREEN_LINE_END "\033[K\r\n"
/* Call these around a whole picture, whose lines end in SCREEN_LINE_END. */
void screen_begin(FILE *out);
void screen_end(FILE *out);

#endif
