/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Every map, defined once.  First input of the BPF link: see the Makefile. */
#define PP_MAP
#define PP_CONST const volatile
#include "lib/maps.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";
