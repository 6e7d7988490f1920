/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/site_numbers.h"

#include <assert.h>

uint32_t site_numbers_take(struct site_numbers *numbers)
{
	uint32_t number;

	if (numbers->used < PP_SITES_MAX - 1)
		return ++numbers->used;
	if (!numbers->free_count)
		return 0;
	number = numbers->free[numbers->first];
	numbers->first = (numbers->first + 1) % PP_SITES_MAX;
	numbers->free_count--;
	return number;
}

void site_numbers_give(struct site_numbers *numbers, uint32_t number)
{
	assert(number && number <= numbers->used && numbers->free_count < PP_SITES_MAX);
	numbers->free[(numbers->first + numbers->free_count++) % PP_SITES_MAX] = number;
}
