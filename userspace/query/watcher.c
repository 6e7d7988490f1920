/* SPDX-License-Identifier: BSD-2-Clause */
#include "query/watcher.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

int say_why(char text[WHY_BYTES], const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(text, WHY_BYTES, format, args);
	va_end(args);
	return -EINVAL;
}
