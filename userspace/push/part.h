/* SPDX-License-Identifier: BSD-2-Clause */
/* A profile of some rows of another one: what one series sends, in parts that a collector takes. */
#ifndef PUSH_PART_H
#define PUSH_PART_H

#include "profile/profile.h"
#include "push/series.h"

/* Pyroscope's bounds are 16,000 samples of one profile, and 2 MB, unpacked, for a moment; the
 * OpenTelemetry collector's is 20 MiB, unpacked. */
#define PUSH_PART_ROWS_MAX 15000U
#define PUSH_PART_RAW_MAX_BYTES (1900U * 1000U)

struct push_part_facts {
	uint64_t start_wall_ns, duration_ns; /* of the window */
	/* keys of the series' values as labels of each sample, first that of the service; NULL: no
	 * labels, as the collector has them from the series */
	const char *const *label_key;
	size_t label_count;
};

/* Adds rows of `from` to a part; a zeroed pointer begins one, which borrows the strings of `from`.
 * Comments stay behind, as they name processes, and values that only our reader uses.  Returns 0,
 * -ENOMEM; -EBADMSG: there are no other values. */
int push_part_add(const struct profile *from, const struct push_series *series, uint32_t first,
		  uint32_t count, const struct push_part_facts *facts, struct profile **part);

#endif
