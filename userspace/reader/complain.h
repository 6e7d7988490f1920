/* SPDX-License-Identifier: BSD-2-Clause */
/* Says what is wrong, in one line on stderr. */
#ifndef READER_COMPLAIN_H
#define READER_COMPLAIN_H

/* Prints "pyprof: MESSAGE". The message may hold names that others chose: utf8_clean() takes out of
 * it what would end the line or control a terminal. Returns READER_BAD_INPUT. */
int complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Prints "pyprof: NAME: what the error means"; name: the profile's, or what could not be written.
 * err: -errno; -ENOMEM names the bound of memory_limit(). Returns READER_BAD_INPUT. */
int complain_of(const char *name, int err);

/* The most memory that the program takes. Views of a hostile profile take many times what reading
 * it takes: a flame graph has a node for each frame of each stack. */
#define MEMORY_MAX_BYTES (1ULL << 30)
/* Sets that bound (RLIMIT_DATA): further allocations fail with ENOMEM. */
void memory_limit(void);

#endif
