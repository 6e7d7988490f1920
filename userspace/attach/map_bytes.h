/* SPDX-License-Identifier: BSD-2-Clause */
/* What a BPF map will take, before it is made. */
#ifndef ATTACH_MAP_BYTES_H
#define ATTACH_MAP_BYTES_H

#include <stdint.h>

struct bpf_map;

/* What the kernel will account for the map, or up to 12 KiB more; 0: it will not be made.  `cpu_count`: possible
 * CPUs, all of which have a part of a per-CPU map.
 * Sources: kernel/bpf/hashtab.c, arraymap.c and ringbuf.c (their map_mem_usage). */
uint64_t map_bytes(const struct bpf_map *map, uint32_t cpu_count);

#endif
