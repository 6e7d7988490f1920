/* SPDX-License-Identifier: BSD-2-Clause */
/* --live of the verbs that read files: the windows of some seconds from pyprofd, kept in a file without a
 * name until they are read as others are. */
#ifndef READER_LIVE_WINDOWS_H
#define READER_LIVE_WINDOWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "live/request.h"

struct live_windows_options {
	const char *socket; /* NULL: the default */
	const int64_t *pid; /* borrowed; pid_count 0: all that may be seen */
	unsigned int pid_count;
	enum pp_profile kind; /* has to be there */
	uint32_t more;		/* bits 1 << enum pp_profile: these as well, where they are recorded */
	unsigned long seconds;
	bool no_progress;
};

struct live_windows;
/* Watches for so long, or until SIGINT.  Errors are printed.  0, or what the verb shall exit with. */
int live_windows_take(const struct live_windows_options *options,
		      struct live_windows **ret_windows);
void live_windows_free(struct live_windows *windows);
DEFINE_OWNED(struct live_windows, live_windows)

/* How many of all kinds; one by its number: its kind, and its bytes in an fd of its own, which the caller
 * closes.  0; -errno. */
size_t live_windows_count(const struct live_windows *windows);
enum pp_profile live_windows_kind(const struct live_windows *windows, size_t number);
int live_windows_open(const struct live_windows *windows, size_t number, int *ret_fd);

#endif
