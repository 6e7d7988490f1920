/* SPDX-License-Identifier: BSD-2-Clause */
/* The way to a running pyprofd; with privilege and none there, to a private one. */
#ifndef LIVE_CLIENT_H
#define LIVE_CLIENT_H

#include <stdbool.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "live/request.h"

struct live_client;
/* Connects to `path`; NULL: the default one, or else a private capture.  Sends the request.  Why it failed
 * is written to `words`, which is borrowed until the client is closed.  0; -errno. */
int live_client_open(const char *path, const struct live_request *request, FILE *words,
		     struct live_client **ret_client);
/* Ends the private capture, if that is what it was, and writes what it had to say. */
void live_client_close(struct live_client *client);
static inline void live_client_free_owned(struct live_client **client)
{
	live_client_close(*client);
}

/* Borrowed.  Reading from it waits 90 s at most. */
int live_client_fd(const struct live_client *client);
/* The private capture has ended by itself and in failure: live_client_close() says why. */
bool live_client_has_failed(const struct live_client *client);

#endif
