/* SPDX-License-Identifier: BSD-2-Clause */
#include "windows/label.h"

#include "base/intern.h"
#include "profile/profile.h"

int label_string(struct intern *strings, struct profile_sample *sample, const char *key,
		 const char *value)
{
	struct profile_label *label = &sample->label[sample->label_count];

	if (!value || !value[0] || sample->label_count == PROFILE_MAX_LABELS)
		return 0;
	*label = (struct profile_label){.key = key};
	sample->label_count++;
	return intern_string(strings, value, &label->string);
}

void label_number(struct profile_sample *sample, const char *key, int64_t value)
{
	if (sample->label_count < PROFILE_MAX_LABELS)
		sample->label[sample->label_count++] =
			(struct profile_label){.key = key, .number = value, .is_number = 1};
}
