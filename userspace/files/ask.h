/* SPDX-License-Identifier: BSD-2-Clause */
/* How the files of files/client.h put one question to the child. */
#ifndef FILES_ASK_H
#define FILES_ASK_H

#include "files/client.h"
#include "files/protocol.h"

/* Sends a request about a file, with its descriptor if the child is not known to have it.  The
 * answer is in foreign_memory(): the caller copies, and then checks it.  Returns as the questions
 * of files/client.h. */
int foreign_ask(struct foreign *foreign, const struct foreign_file *file,
		struct foreign_request *message, uint32_t *ret_size);
/* The same, of what is all in the message: `whose` has no descriptor. */
int foreign_ask_alone(struct foreign *foreign, const struct foreign_file *whose,
		      struct foreign_request *message, uint32_t *ret_size);
const uint8_t *foreign_memory(const struct foreign *foreign);
/* Notes that the child said what cannot be.  Returns -ETIME. */
int foreign_call_nonsense(struct foreign *foreign, const struct foreign_file *file);

#endif
