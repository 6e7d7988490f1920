/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads numbers in the machine's order from bytes that need not be aligned. */
#ifndef BASE_BYTES_H
#define BASE_BYTES_H

#include <stdint.h>
#include <string.h>

static inline uint32_t load_u32(const void *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static inline uint64_t load_u64(const void *at)
{
	uint64_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

#endif
