/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The least that anybody pays who looks at page faults and at the pages that they get. */
#define SEC(name) __attribute__((section(name), used))

char LICENSE[] SEC("license") = "GPL";

SEC("tp_btf/page_fault_user")
int on_fault(void *context)
{
	(void)context;
	return 0;
}

SEC("tp_btf/mm_page_alloc")
int on_page(void *context)
{
	(void)context;
	return 0;
}
