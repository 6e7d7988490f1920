/* SPDX-License-Identifier: BSD-2-Clause */
#include "gauges/record.h"

static const struct {
	const char *name, *text;
} failures[] = {
#define FAILURE(id, name, text) {name, text},
	GAUGES_FAILURES(FAILURE)};

const char *gauges_failure_name(enum gauges_failure failure)
{
	return failures[failure].name;
}

const char *gauges_failure_text(enum gauges_failure failure)
{
	return failures[failure].text;
}
