/* SPDX-License-Identifier: BSD-2-Clause */
#include "identity/identity.h"

#include <string.h>

/* The label of each value of an environment. */
static const enum identity_label of_environment[ENVIRONMENT_LABELS] = {
	[ENVIRONMENT_SERVICE] = IDENTITY_SERVICE,
	[ENVIRONMENT_SLURM_JOB] = IDENTITY_SLURM_JOB,
	[ENVIRONMENT_RANK] = IDENTITY_RANK,
	[ENVIRONMENT_LOCAL_RANK] = IDENTITY_LOCAL_RANK,
	[ENVIRONMENT_WORLD_SIZE] = IDENTITY_WORLD_SIZE,
};

void identity_release(struct value_table *values, struct identity *identity)
{
	for (size_t i = 0; i < IDENTITY_COUNT; i++)
		value_table_give(values, identity->value[i]);
	*identity = (struct identity){};
}

int identity_set(struct value_table *values, struct identity *identity, uint32_t uid,
		 enum identity_label label, const char *text)
{
	struct label_value_entry *value;
	int err = value_table_take(values, uid, text, &value);

	if (err)
		return err;
	value_table_give(values, identity->value[label]);
	identity->value[label] = value;
	return 0;
}

unsigned int identity_set_environment(struct value_table *values, struct identity *identity,
				      uint32_t uid, const struct environment *environment)
{
	unsigned int refused = 0;

	for (size_t i = 0; i < ENVIRONMENT_LABELS; i++)
		refused += identity_set(values, identity, uid, of_environment[i],
					environment->label[i]) != 0;
	return refused;
}

static void inherit_one(struct value_table *values, struct identity *identity,
			const struct identity *parent, enum identity_label label)
{
	struct label_value_entry *old = identity->value[label];

	identity->value[label] = value_table_share(parent->value[label]);
	value_table_give(values, old);
}

void identity_inherit_app(struct value_table *values, struct identity *identity,
			  const struct identity *parent)
{
	inherit_one(values, identity, parent, IDENTITY_APP);
}

void identity_inherit(struct value_table *values, struct identity *identity,
		      const struct identity *parent)
{
	identity_inherit_app(values, identity, parent);
	for (size_t i = 0; i < ENVIRONMENT_LABELS; i++)
		inherit_one(values, identity, parent, of_environment[i]);
}

int identity_name_service(struct value_table *values, struct identity *identity, uint32_t uid,
			  const char *comm)
{
	static const enum identity_label by[] = {IDENTITY_SERVICE, IDENTITY_APP,
						 IDENTITY_CONTAINER};
	char clean[LABEL_VALUE_BYTES];

	for (size_t i = 0; i < ARRAY_SIZE(by); i++) {
		if (!identity->value[by[i]])
			continue;
		value_table_give(values, identity->value[IDENTITY_SERVICE_NAME]);
		identity->value[IDENTITY_SERVICE_NAME] = value_table_share(identity->value[by[i]]);
		return 0;
	}
	label_value(comm, strlen(comm), clean);
	return identity_set(values, identity, uid, IDENTITY_SERVICE_NAME, clean);
}
