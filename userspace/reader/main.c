/* SPDX-License-Identifier: BSD-2-Clause */
/* pyprof VERB ...: the reader. */
#include <argp.h>
#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/kinds.h"
#include "reader/verb.h"
#include "store/store_query.h"
#include "version.h"

/* In the order of `pyprof --help`. */
static const struct verb {
	const char *name;
	const char *summary; /* one line of `pyprof --help` */
	int (*run)(int argc, char **argv);
} verbs[] = {
	{"report", "a table: self and total time of functions, lines, files, threads ...",
	 verb_report},
	{"flame", "a page with the flame graph, or a picture", verb_flame},
	{"tree", "the call tree, hottest first", verb_tree},
	{"lines", "the source with the time of each line", verb_lines},
	{"calls", "the call graph, for Graphviz, snakeviz and gprof2dot; exact calls", verb_calls},
	{"mem", "memory by line: touched, copied, allocated, still held; resident by process",
	 verb_mem},
	{"gpu", "GPU by kernel and line: launches, copies, time lost in synchronisations",
	 verb_gpu},
	{"why", "why a GPU is slow, as far as the host is to blame: findings with evidence",
	 verb_why},
	{"diff", "what changed between two profiles or directories, and is it more than chance",
	 verb_diff},
	{"export", "speedscope, folded, Perfetto, Chrome, callgrind, CSV, JSON, OTLP, pprof",
	 verb_export},
	{"dump", "the stacks of every thread now, what each waits for, who holds the GIL",
	 verb_dump},
	{"top", "live: processes, functions and lines; %CPU, %GIL, what is waited for", verb_top},
	{"info", "what is in a profile, how whole it is, what it cost", verb_info},
};

/* Returns NULL when no verb has that name. */
static const struct verb *verb_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		if (!strcmp(verbs[i].name, name))
			return &verbs[i];
	return NULL;
}

/* ---- the newest profile ---- */

/* Finds the profile that was written last, which a user who types `pyprof` most likely wants to
 * see. */
#define SUFFIX ".pb.gz"

struct newest {
	char *path; /* owned; NULL: none found yet */
	struct timespec modified;
};

static void newest_release(struct newest *newest)
{
	free(newest->path);
}

static bool is_later(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec != b->tv_sec ? a->tv_sec > b->tv_sec : a->tv_nsec > b->tv_nsec;
}

/* Returns whether a path is one word to a shell, and harmless to a terminal; other names are
 * skipped. */
static bool is_plain(const char *path)
{
	return path[0] != '-' &&
	       !path[strspn(path, "abcdefghijklmnopqrstuvwxyz"
				  "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-+,@%:/")];
}

static void consider(struct newest *newest, const char *path)
{
	struct stat status;
	char *copy;

	if (!is_plain(path) || lstat(path, &status) || !S_ISREG(status.st_mode) ||
	    (newest->path && !is_later(&status.st_mtim, &newest->modified)))
		return;
	copy = strdup(path);
	if (!copy)
		return;
	free(newest->path);
	*newest = (struct newest){.path = copy, .modified = status.st_mtim};
}

static void consider_here(struct newest *newest)
{
	DIR *directory = opendir(".");
	const struct dirent *entry;

	while (directory && (entry = readdir(directory))) {
		size_t size = strlen(entry->d_name);

		if (size > strlen(SUFFIX) && !strcmp(entry->d_name + size - strlen(SUFFIX), SUFFIX))
			consider(newest, entry->d_name);
	}
	if (directory)
		closedir(directory);
}

/* Prints the command that reports the newest profile of kind cpu in the store at `store`, or the
 * newest *.pb.gz file in the working directory; when there is none, the command that records
 * one. */
static void newest_print(const char *store, FILE *out)
{
	const struct store_range range = {.until_ms = UINT64_MAX,
					  .kind = kind_get(PP_PROFILE_CPU)->name};
	CLEANUP(newest_release) struct newest newest = {0};
	CLEANUP(store_listing_release) struct store_listing listing = {0};
	int err = store_list(store, &range, &listing);

	if (!err && listing.count)
		consider(&newest, listing.entry[listing.count - 1].path);
	consider_here(&newest);
	if (newest.path)
		fprintf(out, "The newest profile here:\n  pyprof report %s\n\n", newest.path);
	else if (err == -EACCES)
		fprintf(out, "The last minutes, as root:\n  sudo pyprof report %s --since 10m\n\n",
			store);
	else
		fprintf(out, "There is no profile here yet; this takes one of ten seconds:\n"
			     "  sudo pyprofd -d 10 -o cpu.pb.gz\n\n");
}

#define STORE_DEFAULT "/var/lib/pyprofd" /* where pyprofd writes without -o */

static void help(FILE *out)
{
	fprintf(out, "Usage: pyprof VERB [OPTION...] [PROFILE|DIR...|--live]\n"
		     "Shows profiles: what pyprofd wrote, and pprof files of other tools.\n\n");
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		fprintf(out, "  %-8s %s\n", verbs[i].name, verbs[i].summary);
	fprintf(out, "\n`pyprof VERB --help` tells its options; pyprof(1) the rest.\n");
}

static int run(const struct verb *verb, int argc, char **argv)
{
	char name[64];

	snprintf(name, sizeof(name), "pyprof %s", verb->name);
	argv[0] = name;
	return verb->run(argc, argv);
}

int main(int argc, char **argv)
{
	const struct verb *verb;

	argp_err_exit_status = READER_BAD_INPUT;
	if (argc < 2) {
		newest_print(STORE_DEFAULT, stderr);
		help(stderr);
		return READER_BAD_INPUT;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
		help(stdout);
		return READER_OK;
	}
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V")) {
		printf("pyprof %s\n", PYPROFD_VERSION);
		return READER_OK;
	}
	verb = verb_find(argv[1]);
	if (!verb) {
		fprintf(stderr, "pyprof: there is no command '%s'; `pyprof --help` lists all\n",
			argv[1]);
		return READER_BAD_INPUT;
	}
	memory_limit();
	return run(verb, argc - 1, argv + 1);
}
