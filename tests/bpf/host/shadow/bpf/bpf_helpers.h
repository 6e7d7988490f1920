/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Stands before libbpf's header of this name when bpf/lib is compiled for user space.  The
 * functions are in tests/bpf/host/host.h. */
#ifndef HOST_BPF_HELPERS_H
#define HOST_BPF_HELPERS_H

#include <linux/bpf.h>
#include <linux/types.h>

#define SEC(name)
#define __uint(name, value) int(*name)[value]
#define __type(name, value) __typeof__(value) *name
/* Not always: each copy of a function has its sanitizers' checks, and a program took 5 s to
 * compile. */
#undef __always_inline
#define __always_inline inline
#ifndef __noinline
#define __noinline __attribute__((noinline))
#endif

#define __ksym
#define __weak __attribute__((weak))

void *bpf_map_lookup_elem(void *map, const void *key);
long bpf_map_update_elem(void *map, const void *key, const void *value, __u64 flags);
long bpf_map_delete_elem(void *map, const void *key);
long bpf_map_pop_elem(void *map, void *value);
long bpf_map_push_elem(void *map, const void *value, __u64 flags);
long bpf_probe_read_user(void *to, __u32 size, const void *from);
long bpf_probe_read_kernel(void *to, __u32 size, const void *from);
long bpf_probe_read_kernel_str(void *to, __u32 size, const void *from);
__u64 bpf_ktime_get_ns(void);
long bpf_ringbuf_output(void *ring, void *data, __u64 size, __u64 flags);
__u64 bpf_ringbuf_query(void *ring, __u64 flags);
__u64 bpf_get_current_pid_tgid(void);
__u64 bpf_get_current_task(void);
void *bpf_get_current_task_btf(void);
long bpf_get_current_comm(void *to, __u32 size);
long bpf_task_pt_regs(void *task);
void *bpf_rdonly_cast(const void *address, __u32 btf_id);
#define bpf_rdonly_cast bpf_rdonly_cast
__u64 bpf_get_attach_cookie(void *context);
__u32 bpf_get_smp_processor_id(void);
__u32 bpf_get_prandom_u32(void);
long bpf_get_stack(void *context, void *to, __u32 size, __u64 flags);

#endif
