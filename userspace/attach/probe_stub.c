/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/probe_stub.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/bpf.h>

#include "base/cleanup.h"

#define CONTEXT BPF_REG_6 /* survives calls */
#define KEY_OFFSET (-4)	  /* on the stack: a __u32 */

#define MOVE(to, from) {.code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = (to), .src_reg = (from)}
#define MOVE_VALUE(to, value) {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = (to), .imm = (value)}
#define CALL(helper) {.code = BPF_JMP | BPF_CALL, .imm = (helper)}
#define STORE(to, at, value)                                                                       \
	{.code = BPF_ST | BPF_MEM | BPF_W, .dst_reg = (to), .off = (at), .imm = (value)}
/* Two instructions: the second one has the upper half. */
#define MOVE_MAP(to, map)                                                                          \
	{.code = BPF_LD | BPF_IMM | BPF_DW,                                                        \
	 .dst_reg = (to),                                                                          \
	 .src_reg = BPF_PSEUDO_MAP_FD,                                                             \
	 .imm = (map)},                                                                            \
	{}
#define SKIP_IF_NULL(what, count)                                                                  \
	{.code = BPF_JMP | BPF_JEQ | BPF_K, .dst_reg = (what), .off = (count)}

int probe_stub_load(uint32_t site, int site_now, int programs, int program, int *ret_stub)
{
	const struct bpf_insn code[] = {
		MOVE(CONTEXT, BPF_REG_1),
		/* *site_now = site */
		STORE(BPF_REG_10, KEY_OFFSET, 0),
		MOVE(BPF_REG_2, BPF_REG_10),
		{.code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = BPF_REG_2, .imm = KEY_OFFSET},
		MOVE_MAP(BPF_REG_1, site_now),
		CALL(BPF_FUNC_map_lookup_elem),
		SKIP_IF_NULL(BPF_REG_0, 6),
		STORE(BPF_REG_0, 0, (int32_t)site),
		/* programs[0](ctx) */
		MOVE(BPF_REG_1, CONTEXT),
		MOVE_MAP(BPF_REG_2, programs),
		MOVE_VALUE(BPF_REG_3, 0),
		CALL(BPF_FUNC_tail_call),
		MOVE_VALUE(BPF_REG_0, 0),
		{.code = BPF_JMP | BPF_EXIT},
	};
	const uint32_t first = 0;
	int err = bpf_map_update_elem(programs, &first, &program, BPF_ANY);
	int fd;

	if (err)
		return err;
	fd = bpf_prog_load(BPF_PROG_TYPE_KPROBE, "pp_stub", "GPL", code, ARRAY_SIZE(code), NULL);
	if (fd < 0)
		return fd;
	*ret_stub = fd;
	return 0;
}
