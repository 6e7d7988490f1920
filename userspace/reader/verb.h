/* SPDX-License-Identifier: BSD-2-Clause */
/* pyprof's verbs: one file each, and one table of them in main.c; and what they have in common:
 * exit codes, lines on stderr, the file that -o names. */
#ifndef READER_VERB_H
#define READER_VERB_H

#include <regex.h>
#include <stdbool.h>
#include <stdio.h>

struct input;
struct select_options;

/* Exit codes of pyprof. */
enum {
	READER_OK = 0,
	READER_FAILED = 1,    /* diff --fail-if: the difference meets the condition */
	READER_BAD_INPUT = 2, /* a file, option or pyprofd: one line on stderr says which and why */
};

/* argv[0] is "pyprof VERB".  Return the exit code. */
int verb_report(int argc, char **argv);
int verb_flame(int argc, char **argv);
int verb_tree(int argc, char **argv);
int verb_lines(int argc, char **argv);
int verb_calls(int argc, char **argv);
int verb_mem(int argc, char **argv);
int verb_gpu(int argc, char **argv);
int verb_why(int argc, char **argv);
int verb_diff(int argc, char **argv);
int verb_export(int argc, char **argv);
int verb_dump(int argc, char **argv);
int verb_top(int argc, char **argv);
int verb_info(int argc, char **argv);

/* Of calls.c, for report: prints callers and callees; either regex may be NULL.  Returns 0 or
 * -ENOMEM. */
int callers_print(const struct input *input, const regex_t *callers, const regex_t *callees,
		  bool color, FILE *out);
/* Of report.c, for export: reads what the options select (borrowed) and writes its functions as
 * CSV.  path: "-" for standard output.  Returns the exit code. */
int report_write_csv(const struct select_options *shared, const char *path);

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

/* Opens and empties it: a regular file, a device, or a name of an open descriptor (-, /dev/stdout).
 * A FIFO, or what another user has put into a directory like /tmp, is refused.  Returns 0, or
 * READER_BAD_INPUT after one line on stderr. */
int output_file_open(const char *path, FILE **ret_file);
/* Closes it; err: of what was written to it, 0 or -errno.  Returns READER_OK, or READER_BAD_INPUT
 * after one line on stderr. */
int output_file_close(const char *path, FILE *file, int err);

#endif
