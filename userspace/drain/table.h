/* SPDX-License-Identifier: BSD-2-Clause */
/* Empties a hash of the kernel's whose values are struct pp_count. */
#ifndef DRAIN_TABLE_H
#define DRAIN_TABLE_H

#include <stddef.h>

#include <pyprofd/sample.h>

typedef int table_on_row(void *context, const void *key, const struct pp_count *count);

/* Batch calls; one by one where the kernel refuses them.  Nobody writes to the table meanwhile.  0; what
 * on_row returned; -ENOMEM; -errno. */
int table_drain(int map_fd, size_t key_bytes, table_on_row *on_row, void *context);

#endif
