/* SPDX-License-Identifier: BSD-2-Clause */
#include "push/service_name.h"

#include "profile/profile_data.h"

uint32_t push_service_name(const struct profile *profile, uint32_t label_set)
{
	static const char *const keys[] = {PUSH_SERVICE_LABELS};

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		const struct stored_label *label = profile_find_label(profile, label_set, keys[i]);

		if (label && !label->is_number && label->value)
			return (uint32_t)label->value;
	}
	return 0;
}
