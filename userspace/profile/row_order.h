/* SPDX-License-Identifier: BSD-2-Clause */
/* Sorts the rows of a profile that is complete, so that what is alike lies together in its file. */
#ifndef PROFILE_ROW_ORDER_H
#define PROFILE_ROW_ORDER_H

struct profile;

/* Orders the rows by stack, then by their labels other than the numbers with the key `last`, and
 * then by these.  No row can be added afterwards.  Returns 0 or -ENOMEM. */
int profile_order_rows(struct profile *profile, const char *last);

#endif
