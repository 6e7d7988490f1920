/* SPDX-License-Identifier: BSD-2-Clause */
/* Fetches the windows of some seconds from pyprofd into an unnamed file, from which they are read
 * like files. */
#ifndef QUERY_LIVE_WINDOWS_H
#define QUERY_LIVE_WINDOWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "live/client.h"
#include "live/request.h"
#include "query/watcher.h"

struct live_windows_options {
	const char *socket; /* NULL: the default */
	const int64_t *pid; /* borrowed; pid_count 0: all that the user may see */
	unsigned int pid_count;
	bool as_user; /* only what user `uid` may see; for who sees everything */
	uint32_t uid;
	enum pp_profile kind; /* required */
	uint32_t more;	      /* bits 1 << enum pp_profile: also wanted, where they are recorded */
	unsigned long seconds;
	size_t max_bytes;	       /* of all windows, 1 GiB at most; 0: that */
	const struct watcher *watcher; /* required */
};

struct live_windows;
/* Receives windows for that many seconds, or until the watcher's stop_fd is readable.  Returns 0,
 * also when only some of them came, which the watcher is told; -errno, and in why one line, or ""
 * where watcher.words has it. */
int live_windows_take(const struct live_windows_options *options, char why[WHY_BYTES],
		      struct live_windows **ret_windows);
void live_windows_free(struct live_windows *windows);
DEFINE_OWNED(struct live_windows, live_windows)

/* Access the windows of all kinds by number: how many there are; one's kind; one's bytes, as an fd
 * that the caller closes.  live_windows_open() returns 0; -errno. */
size_t live_windows_count(const struct live_windows *windows);
enum pp_profile live_windows_kind(const struct live_windows *windows, size_t number);
int live_windows_open(const struct live_windows *windows, size_t number, int *ret_fd);

/* Says why the answer is incomplete: the error of the module that read it, and for -EREMOTEIO what
 * the server said.  "": live_client_close() writes why.  Returns -errno. */
int live_why(const struct live_client *client, int err, const char *said, char text[WHY_BYTES]);

#endif
