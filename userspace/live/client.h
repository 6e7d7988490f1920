/* SPDX-License-Identifier: BSD-2-Clause */
/* Connects to a running pyprofd; when none runs and the user may, starts a private one. */
#ifndef LIVE_CLIENT_H
#define LIVE_CLIENT_H

#include <stdbool.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "live/request.h"

struct live_client;
/* Connects to `path` and sends the request.  NULL: tries the default path, then a private capture.
 * Errors are written to `words`, which is borrowed until the client is closed.  Returns 0;
 * -errno. */
int live_client_open(const char *path, const struct live_request *request, FILE *words,
		     struct live_client **ret_client);
/* Ends the private capture, if there is one, and writes its messages. */
void live_client_close(struct live_client *client);
static inline void live_client_free_owned(struct live_client **client)
{
	live_client_close(*client);
}

/* Returns the socket, borrowed.  Reading from it waits for 90 s at most. */
int live_client_fd(const struct live_client *client);
/* Returns whether the private capture has failed; live_client_close() prints why. */
bool live_client_has_failed(const struct live_client *client);

#endif
