/* SPDX-License-Identifier: BSD-2-Clause */
/* Whether what [http] and [push NAME] name is there: files with secrets and certificates, and
 * collectors that answer. */
#ifndef DOCTOR_DOCTOR_SINKS_H
#define DOCTOR_DOCTOR_SINKS_H

#include "config/config.h"
#include "doctor/findings.h"

/* Adds a line for each file, and one for each collector: its name is looked up and a connection is
 * made, within some seconds; nothing is sent.  What needs TLS (dates and names in certificates)
 * pyprofd-serve finds out. */
void doctor_sinks(struct findings *findings, const struct config *config);

#endif
