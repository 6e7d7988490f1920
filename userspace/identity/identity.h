/* SPDX-License-Identifier: BSD-2-Clause */
/* Who a process is: the labels that every sample of it gets besides pid, command and container.
 * docs/design/configuration.md.  No state. */
#ifndef IDENTITY_IDENTITY_H
#define IDENTITY_IDENTITY_H

#include <stdint.h>

#include "base/label_keys.h"
#include "identity/app_name.h"
#include "identity/environment.h"
#include "identity/pods.h"
#include "identity/value_table.h"

enum identity_label {
#define IDENTITY_LABEL(id, key) IDENTITY_##id,
	IDENTITY_LABELS(IDENTITY_LABEL)
#undef IDENTITY_LABEL
	IDENTITY_LABEL_COUNT,
	/* What the environment says the service is called: no label, but service_name and the
	 * service_name of children come from it. */
	IDENTITY_SERVICE = IDENTITY_LABEL_COUNT,
	IDENTITY_COUNT
};

struct identity {
	struct label_value_entry *value[IDENTITY_COUNT]; /* owned; NULL: there is none */
};
void identity_release(struct value_table *values, struct identity *identity);

/* Sets a value, for a process of that user.  Returns 0; -EDQUOT, -ENOSPC, -ENOMEM: it stays as it
 * was. */
int identity_set(struct value_table *values, struct identity *identity, uint32_t uid,
		 enum identity_label label, const char *text);
/* Takes what an environment says.  Returns how many values did not fit. */
unsigned int identity_set_environment(struct value_table *values, struct identity *identity,
				      uint32_t uid, const struct environment *environment);
/* Takes what comes from the program that runs (app and environment) from another process. */
void identity_inherit(struct value_table *values, struct identity *identity,
		      const struct identity *parent);
void identity_inherit_app(struct value_table *values, struct identity *identity,
			  const struct identity *parent);
/* Names the service: what the environment says, else the application, else the container, else the
 * command.  Returns as identity_set(). */
int identity_name_service(struct value_table *values, struct identity *identity, uint32_t uid,
			  const char *comm);

#endif
