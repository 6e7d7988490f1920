/* SPDX-License-Identifier: BSD-2-Clause */
/* Releases what a server of requests holds: the child itself ends with all of it. */
#ifndef TESTS_FOREIGN_SERVER_RELEASE_H
#define TESTS_FOREIGN_SERVER_RELEASE_H

#include <stdlib.h>

#include "elf/kernel_stubs.h"
#include "files/serve.h"
#include "unwind/cfi.h"

static inline void server_release(struct foreign_server *server)
{
	for (size_t i = 0; i < FOREIGN_SLOTS; i++) {
		kernel_stubs_free(server->slot[i].stubs);
		cfi_free(server->slot[i].cfi);
		elf_image_free(server->slot[i].image);
	}
	free(server->rows.row);
}

#endif
