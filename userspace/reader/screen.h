/* SPDX-License-Identifier: BSD-2-Clause */
/* The terminal as a screen with keys; it is as it was before when this ends, however that comes. */
#ifndef READER_SCREEN_H
#define READER_SCREEN_H

#include <stdbool.h>
#include <stdio.h>
#include <termios.h>

/* Close with screen_close(); all zero is closed. */
struct screen {
	bool is_open;
	struct termios before;
	int signals; /* signalfd */
	unsigned int columns, rows;
};

/* Standard input and output are a terminal that can do it. */
bool screen_is_there(void);
/* SIGINT, SIGTERM, SIGHUP and SIGQUIT become events of screen_fd() from now on.  0; -errno. */
int screen_open(struct screen *screen);
void screen_close(struct screen *screen);
/* Readable when a signal came: screen_signal(). */
int screen_fd(const struct screen *screen);
/* Whether it was one that ends us; else the size has changed. */
bool screen_signal(struct screen *screen);
#define SCREEN_LINE_END "\033[K\r\n"
/* Around a whole picture, whose lines end in SCREEN_LINE_END. */
void screen_begin(FILE *out);
void screen_end(FILE *out);

#endif
