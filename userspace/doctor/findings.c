/* SPDX-License-Identifier: BSD-2-Clause */
#include "doctor/findings.h"

#include <stdarg.h>

#define NAME_COLUMNS 16
#define TEXT_BYTES 1024U

void findings_add(struct findings *findings, enum finding finding, const char *name,
		  const char *format, ...)
{
	static const char *const words[] = {"ok", "warn", "fail"};
	static const char *const colours[] = {"\x1b[32m", "\x1b[33m", "\x1b[31m"};
	char text[TEXT_BYTES];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	findings->count[finding]++;
	fprintf(findings->out, "%s%-4s%s  ", findings->has_colours ? colours[finding] : "",
		words[finding], findings->has_colours ? "\x1b[0m" : "");
	if (text[0])
		fprintf(findings->out, "%-*s %s\n", NAME_COLUMNS, name, text);
	else
		fprintf(findings->out, "%s\n", name);
}
