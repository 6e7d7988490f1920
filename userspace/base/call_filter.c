/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/call_filter.h"

#include <errno.h>
#include <sys/prctl.h>

int call_filter_enter(const struct sock_filter *filter, size_t count)
{
	const struct sock_fprog program = {.len = (unsigned short)count,
					   .filter = (struct sock_filter *)filter};

	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) ? -errno : 0;
}
