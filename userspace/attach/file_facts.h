/* SPDX-License-Identifier: BSD-2-Clause */
/* What a file is, as the child that parses files tells it.  Private to file_table.c. */
#ifndef ATTACH_FILE_FACTS_H
#define ATTACH_FILE_FACTS_H

#include <stdbool.h>

struct file;
struct foreign;
struct foreign_file;

/* Asks what a file is, and notes the answer in *file; its error tells why there is none. */
void file_facts_ask(struct foreign *foreign, const struct foreign_file *asked, struct file *file);
/* Makes of a child that was late or ended at a file (-ETIME) one that was not there (-ETIMEDOUT),
 * the first times: a machine that stood still, or had no memory for the child, is no fault of the
 * file.  Returns that, or err. */
int file_facts_soften(struct file *file, int err);
/* Returns whether an answer says that the file is not to be asked about again. */
bool file_facts_are_refused(int err);
/* Copies our own vDSO into a file in memory, which the caller closes.  Returns 0 or -errno. */
int file_facts_vdso(int *ret_fd);

#endif
