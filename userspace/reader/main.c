/* SPDX-License-Identifier: BSD-2-Clause */
/* pyprof VERB ...: the reader. */
#include <argp.h>
#include <stdio.h>
#include <string.h>

#include "reader/complain.h"
#include "reader/newest.h"
#include "reader/verb.h"
#include "version.h"

#define STORE_DEFAULT "/var/lib/pyprofd" /* where pyprofd writes without -o */

static void help(FILE *out)
{
	const struct verb *verb;

	fprintf(out, "Usage: pyprof VERB [OPTION...] [PROFILE|DIR...|--live]\n"
		     "Shows profiles: what pyprofd wrote, and pprof files of other tools.\n\n");
	for (unsigned int i = 0; (verb = verb_at(i)); i++)
		fprintf(out, "  %-8s %s\n", verb->name, verb->summary);
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
