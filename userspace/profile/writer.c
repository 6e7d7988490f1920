/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/writer.h"

#include <stdio.h>

void profile_writer_format(const struct profile_writer *writer, char text[WRITER_TEXT_BYTES])
{
	snprintf(text, WRITER_TEXT_BYTES, "pyprofd %s %s %uHz host=%s", writer->version,
		 writer->kind, writer->hz, writer->host);
}

bool profile_writer_parse(const char *comment, struct profile_writer *ret_writer)
{
	struct profile_writer writer = {};

	if (sscanf(comment, "pyprofd %31s %32s %uHz host=%63s", writer.version, writer.kind,
		   &writer.hz, writer.host) < 1)
		return false;
	*ret_writer = writer;
	return true;
}
