/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: serve/peer.c */
/* A line of /proc/net/tcp or tcp6. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "serve/peer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct socket_row row, again;
	char *line = malloc(size ? size : 1); /* a read behind its end is seen */

	assert(line);
	if (size)
		memcpy(line, data, size);
	memset(&row, 0xa5, sizeof(row));
	if (!socket_table_parse(line, size, &row)) {
		const char *end = memchr(line, '\n', size);

		/* What is behind the line does not matter. */
		assert(row.state <= 0xff);
		assert(!socket_table_parse(line, end ? (size_t)(end - line) : size, &again));
		assert(row.uid == again.uid && row.inode == again.inode &&
		       row.own.port == again.own.port && row.peer.port == again.peer.port);
	}
	free(line);
	return 0;
}
