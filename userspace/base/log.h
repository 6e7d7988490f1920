/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes one line per message to stderr, with a <N> prefix under the journal. A message may hold
 * names that others chose: utf8_clean() takes out of it what would end the line or control a
 * terminal. Only agent/ logs above debug level; all other directories return errors and keep
 * counters. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdbool.h>
#include <stdint.h>

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

/* Sets the level above which lines are dropped. Default: info. Process-wide, set once at start. */
void log_set_level(enum log_level level);
/* Returns whether a line of level error was printed: what ends the program shall be told once. */
bool log_has_error(void);
void log_line(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Logs the message with ": strerror(-err)" appended, and returns err. */
int log_line_errno(enum log_level level, int err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Returns whether to tell of a count that grows: for the first one, and for each doubling.  *told:
 * 0 at first. */
static inline bool log_is_due(uint64_t count, uint64_t *told)
{
	if (count < 2 * *told)
		return false;
	*told = count;
	return true;
}

#define log_error(...) log_line(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warn(...) log_line(LOG_LEVEL_WARN, __VA_ARGS__)
#define log_info(...) log_line(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_line(LOG_LEVEL_DEBUG, __VA_ARGS__)
#define log_error_errno(err, ...) log_line_errno(LOG_LEVEL_ERROR, err, __VA_ARGS__)
#define log_warn_errno(err, ...) log_line_errno(LOG_LEVEL_WARN, err, __VA_ARGS__)

#endif
