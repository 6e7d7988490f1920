/* SPDX-License-Identifier: BSD-2-Clause */
/* Empties a kernel hash whose values are struct pp_count. */
#ifndef DRAIN_TABLE_H
#define DRAIN_TABLE_H

#include <stddef.h>

#include <pyprofd/sample.h>

typedef int table_on_row(void *context, const void *key, const struct pp_count *count);

/* Empties the table by batch calls, or one by one where the kernel refuses them.  Nobody may write
 * to the table meanwhile.  Returns 0; the result of on_row when that is not 0; -ENOMEM; -errno. */
int table_drain(int map_fd, size_t key_bytes, table_on_row *on_row, void *context);

#endif
