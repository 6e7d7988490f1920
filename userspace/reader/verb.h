/* SPDX-License-Identifier: BSD-2-Clause */
/* pyprof's verbs: one file each, and one table of them in main.c. */
#ifndef READER_VERB_H
#define READER_VERB_H

/* Exit codes of pyprof. */
enum {
	READER_OK = 0,
	READER_FAILED = 1,    /* diff --fail-if: the difference meets the condition */
	READER_BAD_INPUT = 2, /* a file, option or pyprofd: one line on stderr says which and why */
};

struct verb {
	const char *name;
	const char *summary; /* one line of `pyprof --help` */
	/* argv[0] is "pyprof VERB".  Returns the exit code. */
	int (*run)(int argc, char **argv);
};

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

#endif
