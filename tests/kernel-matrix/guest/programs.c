/* SPDX-License-Identifier: BSD-2-Clause */
/* programs   Prints a line for each BPF program that is loaded: its name, its type (enum
 * bpf_prog_type), how often its machine code takes the address of a private stack, and how many
 * events it has missed because it was running on their CPU already. */
#include <linux/bpf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* What x86-64's JIT makes of it: add %gs:OFFSET,%r9, a program's own offset and the CPU's. */
static const unsigned char private_stack[] = {0x65, 0x4c, 0x03, 0x0c, 0x25};

static int call_bpf(int command, union bpf_attr *attributes)
{
	return (int)syscall(SYS_bpf, command, attributes, sizeof(*attributes));
}

static int read_info(int fd, struct bpf_prog_info *info)
{
	union bpf_attr attributes = {};

	attributes.info.bpf_fd = (uint32_t)fd;
	attributes.info.info_len = sizeof(*info);
	attributes.info.info = (uintptr_t)info;
	return call_bpf(BPF_OBJ_GET_INFO_BY_FD, &attributes);
}

static unsigned int count_private(const unsigned char *code, size_t size)
{
	unsigned int count = 0;

	for (size_t i = 0; i + sizeof(private_stack) <= size; i++)
		count += !memcmp(code + i, private_stack, sizeof(private_stack));
	return count;
}

static int print(int fd)
{
	struct bpf_prog_info info = {}, code = {};

	if (read_info(fd, &info))
		return 1;
	code.jited_prog_len = info.jited_prog_len;
	code.jited_prog_insns = (uintptr_t)calloc(1, info.jited_prog_len + 1);
	if (!code.jited_prog_insns || read_info(fd, &code))
		return 1;
	/* Not to be seen is not to be without. */
	if (!code.jited_prog_insns || !info.jited_prog_len)
		return 1;
	printf("%s %u %u %llu\n", info.name, info.type,
	       count_private((const unsigned char *)(uintptr_t)code.jited_prog_insns,
			     code.jited_prog_len),
	       (unsigned long long)info.recursion_misses);
	free((void *)(uintptr_t)code.jited_prog_insns);
	return 0;
}

int main(void)
{
	union bpf_attr next = {};

	while (!call_bpf(BPF_PROG_GET_NEXT_ID, &next)) {
		union bpf_attr by_id = {};
		int fd, failed;

		by_id.prog_id = next.next_id;
		fd = call_bpf(BPF_PROG_GET_FD_BY_ID, &by_id);
		next.start_id = next.next_id;
		if (fd < 0)
			continue; /* it has just ended */
		failed = print(fd);
		close(fd);
		if (failed) {
			perror("programs");
			return 1;
		}
	}
	return 0;
}
