/* SPDX-License-Identifier: BSD-2-Clause */
/* page TITLE < DATA.json > PAGE.html    The page around JSON that a test made. */
#include <errno.h>
#include <stdio.h>

#include "render/flame_html.h"

static int copy_input(FILE *data, void *arg)
{
	char buffer[1 << 16];
	size_t size;

	(void)arg;
	while ((size = fread(buffer, 1, sizeof(buffer), stdin)) > 0) {
		if (fwrite(buffer, 1, size, data) != size)
			return -EIO;
	}
	return 0;
}

int main(int argc, char **argv)
{
	int err = flame_html_write(stdout, argc > 1 ? argv[1] : "", copy_input, NULL);

	return err || fflush(stdout) ? 1 : 0;
}
