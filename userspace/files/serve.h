/* SPDX-License-Identifier: BSD-2-Clause */
/* The child's side of a request: maps a file, parses it, writes what it found.  Whatever the bytes
 * of a file do, they do to a process that may do nothing. */
#ifndef FILES_SERVE_H
#define FILES_SERVE_H

#include "child/worker.h"
#include "files/protocol.h"

/* One file that stays mapped. */
struct foreign_slot {
	uint32_t number; /* 0: free */
	struct elf_image *image;
	struct cfi *cfi;	    /* NULL: not opened, or it has none */
	int cfi_error;		    /* of opening it; 1: not tried */
	struct kernel_stubs *stubs; /* NULL: not asked about */
};

struct foreign_server {
	uint8_t *memory; /* FOREIGN_MEMORY_BYTES */
	struct foreign_slot slot[FOREIGN_SLOTS];
	struct cfi_rows rows; /* scratch */
};

/* The descriptors that came with a request, borrowed; -1: none. */
struct foreign_files {
	int file;
	struct debug_files debug;
};
/* Sorts the descriptors that came.  Returns false when they are not those of the request. */
bool foreign_files_sort(const struct foreign_request *request, const int *fd, size_t count,
			struct foreign_files *ret_files);
/* Carries out a sound request.  Sets *ret_reply; its error is -ESTALE when the file is not in its
 * slot and did not come. */
void foreign_serve(struct foreign_server *server, const struct foreign_request *request,
		   const struct foreign_files *files, struct child_reply *ret_reply);

/* Answers requests from CHILD_SOCKET_FD until the agent closes it, and ends the process. */
_Noreturn void foreign_child_main(void);

#endif
