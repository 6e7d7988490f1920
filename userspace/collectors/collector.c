/* SPDX-License-Identifier: BSD-2-Clause */
#include "collectors/collector.h"

const struct collector *collector_get(enum collector_id id)
{
#define COLLECTOR_POINTER(id, name, ...) [COLLECTOR_##id] = &collector_##name,
	static const struct collector *const all[] = {COLLECTORS(COLLECTOR_POINTER)};

	return all[id];
}
