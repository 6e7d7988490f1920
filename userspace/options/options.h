/* SPDX-License-Identifier: BSD-2-Clause */
/* The command line and the configuration file, checked as far as possible without the host
 * (host_check.h does the rest).  The strings point into argv or belong to the object, which
 * options_release() frees. */
#ifndef OPTIONS_OPTIONS_H
#define OPTIONS_OPTIONS_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/kinds.h"
#include "base/log.h"
#include "config/config.h"
#include "options/values.h"

#define OPTIONS_HZ_MAX 10000U
#define OPTIONS_HZ_DEFAULT 99U
#define OPTIONS_INTERVAL_MIN_NS 100000000ULL	   /* 0.1 s */
#define OPTIONS_INTERVAL_MAX_NS 600000000000ULL	   /* 10 minutes */
#define OPTIONS_INTERVAL_DEFAULT_NS 10000000000ULL /* 10 s */
#define OPTIONS_STORE_MIN_BYTES (1ULL << 20)
#define OPTIONS_STORE_DEFAULT_BYTES (200ULL << 20)
#define OPTIONS_STORE_AGE_MIN_NS 60000000000ULL
#define OPTIONS_BUDGET_MIN_BYTES (16ULL << 20)
#define OPTIONS_MAX_CPU_MIN_PPM 1000U /* 0.1 % */
#define OPTIONS_TIMELINE_MIN_BYTES (1ULL << 20)
#define OPTIONS_TIMELINE_DEFAULT_BYTES (256ULL << 20)
#define OPTIONS_OFFCPU_MIN_MAX_US 1000000U
#define OPTIONS_MAX_PIDS 1024U
#define OPTIONS_MAX_UIDS 64U
#define OPTIONS_MAX_PROBES 32U
/* --max-slowdown by default, in ppm. */
#define OPTIONS_SLOWDOWN_PPM 100000U	    /* of --probe and alloc: of the programs' time */
#define OPTIONS_SLOWDOWN_EXACT_PPM 4000000U /* of calls and lines: five times as long */
#define OPTIONS_SLOWDOWN_LAUNCH_PPM 10000U  /* of CUDA's launches: of a CPU, of each process */
#define OPTIONS_OUTPUT_DEFAULT "/var/lib/pyprofd"
#define OPTIONS_CONFIG_DEFAULT "/etc/pyprofd/pyprofd.conf" /* of the service; it may be missing */

/* Exit codes. */
#define OPTIONS_EXIT_FAILURE 1 /* the host or the run failed */
#define OPTIONS_EXIT_USAGE 2   /* the command line is wrong */

enum options_clock { OPTIONS_CLOCK_CPU, OPTIONS_CLOCK_CYCLES };

enum options_output_kind {
	/* an existing directory, or a name that ends in '/': one file per window */
	OPTIONS_OUTPUT_DIRECTORY,
	OPTIONS_OUTPUT_PPROF,  /* one file, or "-": standard output; gzip pprof */
	OPTIONS_OUTPUT_FOLDED, /* one file whose name ends in .folded or .txt */
	OPTIONS_OUTPUT_NONE,   /* "no": windows go only to clients of the live socket */
};

struct options {
	uint32_t hz; /* samples a second and CPU: 1 .. OPTIONS_HZ_MAX */
	enum options_clock clock;
	/* bits of enum pp_capture: one or more into a directory, one into a file */
	uint32_t events;
	bool events_are_default;  /* nobody asked for these by name */
	struct probe_spec *probe; /* owned: --probe */
	size_t probe_count;
	struct pp_line_target lines; /* --lines; no bytes of a file: it was not given */
	bool leaks;		     /* free's probe stays on, whatever it costs; needs ALLOC */
	bool no_probes;		     /* --probes=no: nothing is attached to other programs' code */
	/* How much longer probed programs may take, of their time; 0: by what is captured. */
	uint32_t slowdown_ppm;
	uint64_t offcpu_min_ns; /* shorter waits are in no profile; 0 without OFFCPU and GIL */

	/* Which processes are profiled: those that meet all conditions.  No condition: all. */
	pid_t *pid; /* owned; in this program's pid namespace; descendants are included */
	size_t pid_count;
	uid_t *uid; /* owned */
	size_t uid_count;
	const char *comm; /* NULL, or the extended regular expression in comm_regex */
	regex_t comm_regex;
	const char *cgroup;   /* NULL, or a path; host_find_cgroup() finds its directory */
	char *const *command; /* NULL, or the argv to run, NULL at its end */
	bool as_root;	      /* the command runs as root even when a user called sudo */

	/* Time. */
	uint64_t duration_ns; /* 0: until a signal or the end of the command */
	uint64_t delay_ns;    /* before the first sample */
	uint64_t interval_ns; /* one window */

	/* Output. */
	const char *output; /* never NULL; "-" is standard output */
	enum options_output_kind output_kind;
	bool output_is_default;
	uint64_t store_max_bytes;
	uint64_t store_max_age_ns; /* 0: no bound */
	const char *timeline;	   /* NULL: no timeline */
	enum options_timeline timeline_kind;
	uint64_t timeline_max_bytes; /* of the file, before compression */
	const char *live;	     /* path of the live socket; NULL: no socket */
	bool live_is_default;
	bool no_serve;	       /* [http] is somebody else's: a pyprofd-serve that runs already */
	const char *live_user; /* who sees on it what root sees, a name or number; NULL: nobody */

	/* Details. */
	bool no_kernel, no_native;
	bool raw; /* keep the interpreter's own frames */
	/* kernel maps and agent together; 0: depends on the number of CPUs */
	uint64_t budget_bytes;
	uint32_t max_cpu_ppm; /* of one core, agent and walks together; 0: by rate.c */
	bool doctor;	      /* look at all that is needed, and end */
	bool verbose, quiet;  /* never both: the last one given counts */

	/* What was parsed, for options_parse_again(); borrowed. */
	int argc;
	char **argv;
	/* Where each value comes from, and the sections of pyprofd-serve; owned. */
	struct config *config;
	bool config_is_missing; /* --config names OPTIONS_CONFIG_DEFAULT, which does not exist */
};

/* Where texts are printed: --help and --version to `out`, the line about an error to `err`. */
struct options_streams {
	FILE *out, *err;
};

/* Parses argv and the configuration that it names.  Returns 0: go on; 1: --help or --version
 * was printed (exit 0); -EINVAL: one line was printed (exit OPTIONS_EXIT_USAGE);
 * -ENOMEM.  *ret_options is set only with 0.  argv must live
 * as long as the options; argp may reorder it. */
int options_parse(int argc, char **argv, struct options *ret_options);
/* options_parse() with other streams than stdout and stderr. */
int options_parse_to(const struct options_streams *streams, int argc, char **argv,
		     struct options *ret_options);
/* Parses the command line of `options` again, with the file as it is now.  Of `options` it reads
 * only argc, argv and config_is_missing.  Returns 0; -EINVAL with one line on the heap; -ENOMEM. */
int options_parse_again(const struct options *options, struct options *ret_options, char **ret_why);
/* Returns how much is logged. */
enum log_level options_log_level(const struct options *options);
/* Frees what the options own; a zeroed object is allowed. */
void options_release(struct options *options);

#endif
