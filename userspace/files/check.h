/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks what the child says of a file before anybody uses it: the child has read what others
 * wrote, and may be theirs by now. */
#ifndef FILES_CHECK_H
#define FILES_CHECK_H

#include "files/client.h"
#include "files/protocol.h"

/* Returns whether facts, the caller's copy, are such as a file can have.  Beside that python is
 * checked by python_told_check(). */
bool foreign_facts_are_sound(const struct foreign_facts *facts);
/* Returns whether rows, the caller's copy, begin at low, ascend, stay below high, and have rules
 * that a walk knows. */
bool foreign_rows_are_sound(const struct cfi_row *row, size_t count, uint64_t low, uint64_t high);

/* Returns whether answers, the caller's copy of `bytes`, are at least one and at most `count`, each
 * for a range with its address, with names inside the text. */
bool foreign_names_are_sound(const struct foreign_names *names, size_t bytes, const uint64_t *vaddr,
			     size_t count);

/* Returns whether lines, the caller's copy of `bytes`, are of [low, high): none is code that wraps,
 * and names can be shown. */
bool foreign_lines_are_sound(const struct foreign_lines *lines, size_t bytes, uint64_t low,
			     uint64_t high);

/* Returns whether answers, the caller's copy of `bytes`, are of the first of some code objects:
 * rows ascend from 0 on and are no more than the table can have, and names have no NUL and no more
 * bytes than theirs can become. */
bool foreign_codes_are_sound(const struct foreign_codes *codes, size_t bytes,
			     const struct python_code_raw *const *raw, size_t count);

/* Returns whether an answer, the caller's copy of `bytes`, is for these wanted probes: sites are of
 * one of them and counted with it, arguments lie where a probe can read them, and texts end. */
bool foreign_probes_are_sound(const struct foreign_probes *probes, size_t bytes,
			      const struct probe_wanted *wanted, uint32_t count);

/* ---- how the files of files/client.h put one question to the child ---- */

/* Sends a request about a file, which comes along if the child is not known to have it.  The
 * answer is in shared memory: the caller copies, and then checks it.  Returns as the questions of
 * files/client.h. */
int foreign_ask(struct foreign *foreign, const struct foreign_file *file,
		struct foreign_request *message, uint32_t *ret_size);
/* The same of a file that the child keeps nothing of.  is_alone: all is in the message, and no
 * file comes along. */
int foreign_ask_once(struct foreign *foreign, const struct foreign_file *file,
		     struct foreign_request *message, bool is_alone, uint32_t *ret_size);
/* Returns our own copy of an answer of `size` bytes, with room for its head in any case; NULL: no
 * memory. */
void *foreign_copy_reply(const struct foreign *foreign, uint32_t size, size_t head_bytes);
/* Notes that the child said what cannot be.  Returns -ETIME. */
int foreign_call_nonsense(struct foreign *foreign, const struct foreign_file *file);

#endif
