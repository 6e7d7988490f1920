/* SPDX-License-Identifier: BSD-2-Clause */
#include "probes/site_numbers.h"

#include <assert.h>

void site_numbers_init(struct site_numbers *numbers)
{
	*numbers = (struct site_numbers){.quota.total = PP_SITES_MAX - 1};
}

void site_numbers_release(struct site_numbers *numbers)
{
	user_quota_release(&numbers->quota);
}

uint32_t site_numbers_take(struct site_numbers *numbers, uint32_t uid)
{
	uint32_t number;

	if (user_quota_take(&numbers->quota, uid, 1))
		return 0;
	if (numbers->used < PP_SITES_MAX - 1)
		return ++numbers->used;
	assert(numbers->free_count);
	number = numbers->free[numbers->first];
	numbers->first = (numbers->first + 1) % PP_SITES_MAX;
	numbers->free_count--;
	return number;
}

void site_numbers_give(struct site_numbers *numbers, uint32_t uid, uint32_t number)
{
	user_quota_give(&numbers->quota, uid, 1);
	assert(number && number <= numbers->used && numbers->free_count < PP_SITES_MAX);
	numbers->free[(numbers->first + numbers->free_count++) % PP_SITES_MAX] = number;
}
