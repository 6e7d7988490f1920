/* SPDX-License-Identifier: BSD-2-Clause */
/* pyprofd --doctor: looks at all that pyprofd needs of this host, of its configuration and of the
 * programs that run, and says what to do about what is missing. */
#ifndef DOCTOR_DOCTOR_H
#define DOCTOR_DOCTOR_H

#include <stdio.h>

struct options;

/* Prints one line a check.  child_program: what children are, this program itself.  Returns the
 * exit status: 1 when a check has failed, else 0. */
int doctor_run(const struct options *options, const char *child_program, FILE *out);

#endif
