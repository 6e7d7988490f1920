/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: serve/peer.c */
/* A table as /proc/net/tcp. */
#include <assert.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "serve/peer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char path[64];
	static int fd = -1;
	struct socket_owner owner = {.uid = 7};

	if (fd < 0) {
		fd = memfd_create("table", MFD_CLOEXEC);
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	}
	assert(fd >= 0 && !ftruncate(fd, 0));
	assert(pwrite(fd, data, size, 0) == (ssize_t)size);
	if (socket_table_find(path, " 0100007F:1F90 0200007F:C001", &owner))
		assert(owner.uid == 7 && !owner.is_open);
	return 0;
}
