/* SPDX-License-Identifier: BSD-2-Clause */
/* What the errors of an answer from pyprofd mean. */
#ifndef QUERY_LIVE_WHY_H
#define QUERY_LIVE_WHY_H

#include "live/client.h"
#include "query/why.h"

/* Says why the answer is incomplete: the error of the module that read it, and for -EREMOTEIO what
 * the server said.  "": live_client_close() writes why.  Returns -errno. */
int live_why(const struct live_client *client, int err, const char *said, char text[WHY_BYTES]);

#endif
