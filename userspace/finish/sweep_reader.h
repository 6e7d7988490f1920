/* SPDX-License-Identifier: BSD-2-Clause */
/* The stream of a task iterator (include/pyprofd/sweep.h) -> checked records.  One thread. */
#ifndef FINISH_SWEEP_READER_H
#define FINISH_SWEEP_READER_H

#include <pyprofd/sweep.h>

#include "base/cleanup.h"

struct sweep_reader;
/* Takes the descriptor over, also on failure. */
int sweep_reader_new(int fd, struct sweep_reader **ret_reader);
void sweep_reader_free(struct sweep_reader *reader);
DEFINE_OWNED(struct sweep_reader, sweep_reader)

/* The next thread; *ret_record holds until the next call.  1; 0 at the end; -EBADMSG: this is no
 * record, or half of one; -errno. */
int sweep_reader_next(struct sweep_reader *reader, const struct pp_sweep_record **ret_record);

#endif
