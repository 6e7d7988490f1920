/* SPDX-License-Identifier: BSD-2-Clause */
/* A small program for one site of a user probe, where the kernel has no attach cookies (before
 * 5.15): it notes the site's number for its CPU and jumps to the program of all probes.  There
 * programs of user probes run with preemption off, so nothing comes in between.  No state. */
#ifndef ATTACH_PROBE_STUB_H
#define ATTACH_PROBE_STUB_H

#include <stdint.h>

/* Loads the program of one site.  site_now and programs are the maps of these names, `program` is
 * that of all probes; all are descriptors, borrowed.  Returns 0 or -errno. */
int probe_stub_load(uint32_t site, int site_now, int programs, int program, int *ret_stub);

#endif
