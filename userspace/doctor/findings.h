/* SPDX-License-Identifier: BSD-2-Clause */
/* The lines of pyprofd --doctor. */
#ifndef DOCTOR_FINDINGS_H
#define DOCTOR_FINDINGS_H

#include <stdbool.h>
#include <stdio.h>

enum finding { FINDING_OK, FINDING_WARN, FINDING_FAIL };

struct findings {
	FILE *out;	  /* borrowed */
	bool has_colours; /* the states are coloured */
	unsigned int count[FINDING_FAIL + 1];
};

/* Prints "fail  NAME  TEXT", and counts it.  "" as the text: the name says all. */
__attribute__((format(printf, 4, 5))) void findings_add(struct findings *findings,
							enum finding finding, const char *name,
							const char *format, ...);

#endif
