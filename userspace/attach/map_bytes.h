/* SPDX-License-Identifier: BSD-2-Clause */
/* Computes how much memory a BPF map will take, before it is created. */
#ifndef ATTACH_MAP_BYTES_H
#define ATTACH_MAP_BYTES_H

#include <stdint.h>

struct bpf_map;

/* Returns what the kernel will account for the map, or up to 12 KiB more; 0: the map will not be
 * created.  Entries that take memory only when they are made (BPF_F_NO_PREALLOC) are not in it.
 * `cpu_count`: possible CPUs, each of which has a part of a per-CPU map.
 * Sources: kernel/bpf/hashtab.c, arraymap.c and ringbuf.c (their map_mem_usage). */
uint64_t map_bytes(const struct bpf_map *map, uint32_t cpu_count);

#endif
