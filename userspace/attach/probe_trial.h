/* SPDX-License-Identifier: BSD-2-Clause */
/* What the kernel has for programs of user probes.  No state; any thread. */
#ifndef ATTACH_PROBE_TRIAL_H
#define ATTACH_PROBE_TRIAL_H

#include <stdbool.h>

/* Returns whether a program is told which site was hit. */
bool probe_trial_has_cookies(void);
/* Loads a program that does nothing.  is_shared: for links of many sites (attach/probe_links.h).
 * Returns a descriptor, which the caller closes, or -errno. */
int probe_trial_load_empty(bool is_shared);

#endif
