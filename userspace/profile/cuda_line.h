/* SPDX-License-Identifier: BSD-2-Clause */
/* A comment of a profile of kind cuda with what one process has had the GPU do by one function:
 * exact sums, and a histogram of the calls' times on the host.  Such comments are written and read
 * here only; profile/cuda_lines.h bounds and adds them up. */
#ifndef PROFILE_CUDA_LINE_H
#define PROFILE_CUDA_LINE_H

#include <stdbool.h>
#include <stdint.h>

#include <pyprofd/cuda.h>

#define CUDA_LINE_PREFIX "cuda "
#define CUDA_LINE_CHARS 2560U
#define CUDA_LINE_WORD_BYTES 64U
#define CUDA_LINE_KERNEL_BYTES 1024U
/* The kernel of a line that sums up kernels. */
#define CUDA_LINE_OTHER_KERNELS "[other kernels]"

/* All saturate at UINT64_MAX. */
struct cuda_line_sums {
	uint64_t calls;
	uint64_t captured; /* calls that a graph recorded and that did not run: none of `calls` */
	uint64_t nodes;	   /* kernels of the graphs that were launched, as far as they are known */
	uint64_t bytes;
	uint64_t host_ns; /* from call to return, of calls whose end is a site */
	uint64_t wait_ns; /* of these, such that wait for the device */
	/* How unevenly the calls were walked: the sum of w (w - 1) over the walks, where each
	 * stands for w calls.  The number of calls of a line with a share p of them has the
	 * variance p (1 - p) spread.  0: every call was walked. */
	uint64_t spread;
	uint64_t histogram[PP_CUDA_HISTOGRAM]; /* calls by host_ns */
};

struct cuda_line {
	uint64_t pid;	 /* 0: the line sums up what has none of its own */
	uint64_t others; /* then: how many processes' functions and kernels */
	/* Without blanks and control characters; "": not known, or none. */
	char comm[CUDA_LINE_WORD_BYTES], device[CUDA_LINE_WORD_BYTES];
	char api[CUDA_LINE_WORD_BYTES], direction[CUDA_LINE_WORD_BYTES];
	char kernel[CUDA_LINE_KERNEL_BYTES]; /* without control characters; "": none */
	/* The sums are of more windows than were asked for: those of a merged file (docs/design/
	 * 0034), of which the reader wants a part.  Their proportions are all that they tell. */
	bool is_around;
	struct cuda_line_sums sums;
};

/* Copy a text into a field of struct cuda_line, cut where it is too long: a blank would end a word
 * of the line, and control characters move the cursor of whoever prints it. */
void cuda_line_set_word(char word[CUDA_LINE_WORD_BYTES], const char *text);
void cuda_line_set_kernel(struct cuda_line *line, const char *text);
void cuda_line_sums_add(struct cuda_line_sums *sums, const struct cuda_line_sums *more);

/* Writes "cuda pid=12 comm=python3 device=0 api=cuStreamSynchronize direction=- calls=40 captured=0
 * nodes=0 bytes=0 host_ns=1200 wait_ns=1200 spread=0 hist=0:38,5:2 kernel=", of "cuda around pid=12
 * ..." or of "cuda others=44 calls=... hist=...".  The kernel is all that follows its word. */
void cuda_line_format(const struct cuda_line *line, char text[CUDA_LINE_CHARS]);
/* Returns false for any other comment.  Words that are not known are passed over: a later version
 * may write more. */
bool cuda_line_parse(const char *comment, struct cuda_line *ret_line);
bool cuda_line_is(const char *comment); /* by its first word alone */

/* Returns a quantile, from 0 to 1, of the times in a histogram, in ns; NAN: it is empty.  Within a
 * bucket, which ends at twice where it begins, times are taken as even on a scale of logarithms;
 * below 512 ns, as even.  The last bucket is taken as if it ended at twice where it begins, too.
 * None exceeds host_ns, the sum of all times. */
double cuda_line_quantile(const struct cuda_line_sums *sums, double quantile);
/* Returns where a bucket begins, in ns. */
uint64_t cuda_line_bucket_ns(unsigned int bucket);
/* Returns the mean square of the times over the square of their mean, from the histogram: 1 for
 * times that are alike. */
double cuda_line_unevenness(const struct cuda_line_sums *sums);

#endif
