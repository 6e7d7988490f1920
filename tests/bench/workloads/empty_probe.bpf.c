/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The least that anybody pays who probes a function: PROGRAM is the file that has FUNCTION. */
#define SEC(name) __attribute__((section(name), used))

char LICENSE[] SEC("license") = "GPL";

SEC("uprobe/" PROGRAM ":" FUNCTION)
int on_probe(void *context)
{
	(void)context;
	return 0;
}
