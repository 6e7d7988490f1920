/* SPDX-License-Identifier: BSD-2-Clause */
/* What a user sees on the terminal while pyprofd runs, and the line at its end. */
#ifndef AGENT_PROGRESS_H
#define AGENT_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "windows/summary.h"

#define PROGRESS_LINE_BYTES 2048U
/* Complete: reached the root, in the kernel or by the agent, or had no user part at all. */
uint64_t summary_complete(const struct summary *summary);
/* Samples that are in no profile: the kernel could not count them. */
uint64_t summary_lost(const struct summary *summary);

/* Return whether an enum pp_loss is of samples; whether an enum pp_stop is the end of a whole
 * stack. */
bool summary_is_sample_loss(unsigned int loss);
bool summary_is_whole(unsigned int stop);

/* One line without a newline, cut to `columns` (0: as long as it gets).
 * "12s  34 processes  1,188 samples  0 lost  99.8 % complete" */
void progress_format(const struct summary *summary, unsigned int columns, char *line, size_t size);
/* "60.0 s: 11,880 samples of 34 processes, 99.8 % complete (truncated: 12 no_info), 3 lost (3
 * counts_full), also 1 ring_full; own CPU 0.21 % of one core, memory 31.4 MiB + 12.0 MiB of maps"
 * and "; the hypervisor took 1.9 s of CPU time (steal)" where that can be seen in the samples. */
void summary_format(const struct summary *summary, char *line, size_t size);

struct progress {
	FILE *stream;
	bool is_shown;	   /* the stream is a terminal and nobody asked for quiet */
	bool is_on_screen; /* a line stands there now */
	uint64_t next_ns;  /* when the next update is due */
};
void progress_init(struct progress *progress, FILE *stream, bool quiet);
/* Rewrites the line about once a second; call it as often as you like. */
void progress_update(struct progress *progress, const struct summary *summary, uint64_t now_ns);
/* Takes the line off the screen.  Call it before any other line is printed there, and at the
 * end. */
void progress_clear(struct progress *progress);
/* Clears, then prints the closing line (not when quiet was asked for). */
void progress_finish(struct progress *progress, const struct summary *summary, bool quiet);

#endif
