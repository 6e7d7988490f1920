/* SPDX-License-Identifier: BSD-2-Clause */
/* A file that was looked into for probes, its sites, and their numbers. */
#ifndef PROBES_PROBED_FILE_H
#define PROBES_PROBED_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uthash.h>

#include <pyprofd/probe.h>

#include "base/cleanup.h"
#include "base/user_quota.h"
#include "discover/process.h"

struct file_identity;
struct opened_file;
struct opener;
struct opener_file;
struct probe_bounds;
struct probe_plan;
struct probe_sites;
struct probe_wants;
struct probe_worker_site;
struct site_numbers;

/* A file that was looked into. */
struct probed_file {
	uint32_t id;  /* of struct file */
	uint32_t uid; /* whose process mapped it when it was looked into: for shares */
	uint32_t job; /* of all processes; 0: none */
	/* CLOCK_MONOTONIC: since when it is attached; 0: not yet */
	uint64_t attached_ns;
	bool is_refused; /* the user's share was used up, or breakpoints must not go there */
	struct probe_worker_site *site; /* owned; NULL: it has none of the probes */
	size_t site_count;
	bool has_allocator;
	bool has_driver, has_runtime; /* functions of CUDA's libraries */
	/* What breakpoints are put into.  One inode may be several files (docs/design/files.md): a
	 * process with another root shows another path. */
	struct file_key key;
	bool is_roots;
	bool is_layered; /* on overlayfs, where several inodes may be one that lies below */
	char path[256];	 /* for messages */
	UT_hash_handle hh;
};
void probed_file_free(struct probed_file *file); /* its sites have no numbers any more */
DEFINE_OWNED(struct probed_file, probed_file)

/* All is borrowed. */
struct probed_file_sources {
	const struct probe_plan *plan;
	struct probe_bounds *bounds;
	struct site_numbers *numbers;
};
/* Turns what was found in the file into sites with numbers.  Returns 0; -ENOSPC: there are not
 * enough numbers for its user, and some are taken; -ENOMEM. */
int probed_file_number_sites(struct probed_file *file, const struct probed_file_sources *sources,
			     const struct probe_sites *sites, struct probe_wants *list);
/* Gives all numbers back. */
void probed_file_drop_sites(struct probed_file *file, struct site_numbers *numbers);
/* Notes into what the links of a file will go. */
void probed_file_note_inode(struct probed_file *file, const struct file_identity *identity);
/* Returns the probes that have sites in the file, a bit each by their rows; those of launches begin
 * at launch_row. */
uint64_t probed_file_rows(const struct probed_file *file, uint32_t launch_row);
/* Returns whether links of one are hit where those of the other are: each hit would count twice. */
bool probed_file_is_same_code(const struct probed_file *a, const struct probed_file *b);
/* Tells which functions of a library of CUDA's are not probed before Linux 6.6: once for the driver
 * and once for the runtime. */
void probed_file_tell_left_out(const struct probed_file *file, bool is_told[2]);

/* Finds the file that a command executes, as execvp(3) does, and opens it: *ret_file is to be
 * closed. Returns 0 or -errno. */
int command_file_open(struct opener *opener, const char *command, struct opened_file *ret_found,
		      struct opener_file *ret_file);

/* ---- numbers of the places at which probes are attached ----
 * sites[] of the kernel side has PP_SITES_MAX. The numbers of a file that is gone are used again,
 * the longest free first: its links are taken off beside the loop, and a late hit must not count
 * for another file. */
struct site_numbers {
	struct user_quota quota;    /* numbers in use, by whose files have them */
	uint32_t used;		    /* 1 .. used have been given out at least once */
	uint32_t first, free_count; /* of `free`, a ring */
	uint32_t free[PP_SITES_MAX];
};

/* A zeroed one is none. */
void site_numbers_init(struct site_numbers *numbers);
void site_numbers_release(struct site_numbers *numbers);

/* Returns a number from 1 to PP_SITES_MAX - 1; 0: all are in use, or the user has as many as are
 * left for all others, which is counted. */
uint32_t site_numbers_take(struct site_numbers *numbers, uint32_t uid);
/* Gives back one that was taken for the user. */
void site_numbers_give(struct site_numbers *numbers, uint32_t uid, uint32_t number);

#endif
