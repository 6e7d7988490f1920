/* SPDX-License-Identifier: BSD-2-Clause */
/* The profile that was written last: what somebody who types `pyprof` most likely wants to see. */
#ifndef READER_NEWEST_H
#define READER_NEWEST_H

#include <stdio.h>

/* Prints the command that reports the newest profile of kind cpu in the store at `store`, or *.pb.gz file in the
 * working directory; where there is none, the command that takes one. */
void newest_print(const char *store, FILE *out);

#endif
