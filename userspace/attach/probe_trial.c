/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/probe_trial.h"

#include <bpf/bpf.h>
#include <errno.h>

#include "attach/probe_links.h"
#include "base/cleanup.h"

#define GET_ATTACH_COOKIE 174 /* BPF_FUNC_get_attach_cookie, 5.15 */

/* Returns a descriptor or -errno. */
static int load(const struct bpf_insn *code, size_t count, bool is_shared)
{
	LIBBPF_OPTS(bpf_prog_load_opts, options,
		    .expected_attach_type =
			    is_shared ? (enum bpf_attach_type)PROBE_LINKS_ATTACH_TYPE : 0);
	int program = bpf_prog_load(BPF_PROG_TYPE_KPROBE, "pp_trial", "GPL", code, count, &options);

	return program < 0 ? -errno : program;
}

int probe_trial_load_empty(bool is_shared)
{
	const struct bpf_insn nothing[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K},
		{.code = BPF_JMP | BPF_EXIT},
	};

	return load(nothing, ARRAY_SIZE(nothing), is_shared);
}

bool probe_trial_has_cookies(void)
{
	/* r1 is the context already. */
	const struct bpf_insn ask[] = {
		{.code = BPF_JMP | BPF_CALL, .imm = GET_ATTACH_COOKIE},
		{.code = BPF_ALU64 | BPF_MOV | BPF_K},
		{.code = BPF_JMP | BPF_EXIT},
	};
	OWNED_FD int program = load(ask, ARRAY_SIZE(ask), false);

	return program >= 0;
}
