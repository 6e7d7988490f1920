/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads and checks the records of a task iterator (include/pyprofd/scan.h).  Not thread-safe. */
#ifndef FINISH_SCAN_READER_H
#define FINISH_SCAN_READER_H

#include <pyprofd/scan.h>

#include "base/cleanup.h"

struct scan_reader;
/* Opens a reader, which owns fd from here on, also when this fails.  Returns 0; -ENOMEM. */
int scan_reader_new(int fd, struct scan_reader **ret_reader);
void scan_reader_free(struct scan_reader *reader);
DEFINE_OWNED(struct scan_reader, scan_reader)

/* Reads the next thread's record, valid until the next call.  Returns 1; 0 at the end; -EBADMSG:
 * the bytes are no record, or half of one; -errno. */
int scan_reader_next(struct scan_reader *reader, const struct pp_scan_record **ret_record);

#endif
