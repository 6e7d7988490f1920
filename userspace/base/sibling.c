/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/sibling.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

void sibling_find(const char *name, char ret_program[SIBLING_BYTES])
{
	ssize_t size = readlink("/proc/self/exe", ret_program, SIBLING_BYTES - 1);
	char *slash;

	ret_program[size > 0 ? size : 0] = '\0';
	slash = strrchr(ret_program, '/');
	if (slash) {
		const size_t room = (size_t)(ret_program + SIBLING_BYTES - (slash + 1));

		if (snprintf(slash + 1, room, "%s", name) < (int)room && !access(ret_program, X_OK))
			return;
	}
	snprintf(ret_program, SIBLING_BYTES, "%s", name);
}
