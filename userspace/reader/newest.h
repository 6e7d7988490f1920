/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the profile that was written last, which a user who types `pyprof` most likely wants to
 * see. */
#ifndef READER_NEWEST_H
#define READER_NEWEST_H

#include <stdio.h>

/* Prints the command that reports the newest profile of kind cpu in the store at `store`, or the
 * newest *.pb.gz file in the working directory; when there is none, the command that records
 * one. */
void newest_print(const char *store, FILE *out);

#endif
