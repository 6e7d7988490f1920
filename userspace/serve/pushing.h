/* SPDX-License-Identifier: BSD-2-Clause */
/* Pushing (push/) as a part of pyprofd-serve. */
#ifndef SERVE_PUSHING_H
#define SERVE_PUSHING_H

#include "child/sandbox.h"
#include "collectors/push.h"

/* Where cursors are, unless the command line or systemd's StateDirectory= say otherwise. */
#define PUSHING_STATE_DEFAULT "/var/lib/pyprofd-serve"

/* Returns the folder of cursors.  given: --state, or NULL. */
const char *pushing_state(const char *given);
/* Adds the paths that sinks need later: their certificates, the folders of their tokens, the folder
 * of cursors, which is made, and what names of hosts and the system's authorities are found by.
 * Nothing without a [push NAME].  folders: owns texts of `paths`.  Returns 0; -E2BIG; -EINVAL,
 * -errno with one line in `why`; -ENOMEM. */
struct pushing_folders {
	char *token[CONFIG_SECTIONS_MAX]; /* owned */
	size_t count;
};
int pushing_paths(const struct config *config, const char *state, struct sandbox_paths *paths,
		  struct pushing_folders *folders, char why[CONFIG_WHY_BYTES]);
void pushing_folders_release(struct pushing_folders *folders);

#endif
