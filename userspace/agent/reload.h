/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the configuration again after SIGHUP, on a thread beside the loop, and puts into force what
 * can change while the agent runs.  A file that is wrong changes nothing. */
#ifndef AGENT_RELOAD_H
#define AGENT_RELOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"

struct config;
struct options;
struct output;
struct rate;

struct reload;
/* Those that get new values.  All are borrowed. */
struct reload_targets {
	struct output *output;
	struct rate *rate;
	/* Called when [http] or a [push NAME] has changed, with the new ones; NULL: nobody here
	 * serves. */
	void (*serve_again)(void *context, const struct config *config);
	void *context;
};

/* options: borrowed, those in force; their fields change.  Returns 0, -ENOMEM or -errno. */
int reload_new(struct options *options, struct reload **ret_reload);
void reload_free(struct reload *reload);
DEFINE_OWNED(struct reload, reload)
/* Becomes readable when the file has been read. */
int reload_fd(const struct reload *reload);
/* Begins to read the file.  While it is being read, the last call is remembered.  Returns whether
 * it is being read. */
bool reload_begin(struct reload *reload);
/* Puts what was read into force, and says in one line what has changed and what needs a restart,
 * or what is wrong.  Returns whether nothing is being read any more. */
bool reload_finish(struct reload *reload, const struct reload_targets *targets);

#endif
