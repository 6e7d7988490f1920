/* SPDX-License-Identifier: BSD-2-Clause */
/* What the options mean together, once all of them are read: what was left open gets its value here, and
 * nowhere else. */
#ifndef AGENT_OPTION_RULES_H
#define AGENT_OPTION_RULES_H

#include <stddef.h>

#include "agent/options.h"

/* Sets options->output_kind.  Does not fail. */
void option_rules_apply(struct options *options);

#endif
