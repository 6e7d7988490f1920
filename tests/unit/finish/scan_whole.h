/* SPDX-License-Identifier: BSD-2-Clause */
/* A whole scan of all threads. */
#ifndef TESTS_FINISH_SCAN_WHOLE_H
#define TESTS_FINISH_SCAN_WHOLE_H

#include "finish/scan.h"

/* Returns as scan_new(). */
static inline int scan_whole(const struct finisher *finisher, struct scan **ret_scan)
{
	OWNED(scan) struct scan *scan = NULL;
	int more = scan_new(finisher, &(struct scan_scope){}, &scan);

	if (more)
		return more;
	do
		more = scan_step(scan, 1000000000);
	while (more > 0);
	if (more)
		return more;
	*ret_scan = TAKE(scan);
	return 0;
}

#endif
