/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The least that anybody pays who looks at context switches. */
#define SEC(name) __attribute__((section(name), used))

char LICENSE[] SEC("license") = "GPL";

SEC("tp_btf/sched_switch")
int on_switch(void *context)
{
	(void)context;
	return 0;
}
