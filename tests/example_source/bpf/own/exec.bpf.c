/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Counts programs that begin, by the number of their arguments, at the kernel's stack. */
#include "lib/count.bpf.h"
#include "lib/identify.bpf.h"
#include "lib/walk.bpf.h"

/* From include/linux/binfmts.h. */
struct linux_binprm {
	int argc;
} __attribute__((preserve_access_index));

SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_program, struct task_struct *task, int old_tid, struct linux_binprm *program)
{
	struct pp_config *cfg = config_get();
	struct pp_count_key key = {};
	struct scratch taken;
	struct pp_walk *w;

	if (!cfg || cfg->flags & PP_CONFIG_PAUSED)
		return 0;
	scratch_enter(&taken);
	w = taken.walk;
	if (!w)
		return 0;
	if (identify(w, task, bpf_get_current_pid_tgid(), task->flags, true, cfg)) {
		walk_reset(w, 1, bpf_ktime_get_ns(), PP_SAMPLE_WALK_NS);
		w->kind = PP_KIND_EXEC;
		w->detail = program->argc;
		w->stop = PP_STOP_NO_USER; /* it has run nothing yet */
		take_kernel_stack(w, taken.slot, ctx);
		walk_emit_stacks(taken.slot);
		fill_count_key(w, &key);
		count_add(&key, 1, 1, table_number(cfg));
	}
	scratch_leave(&taken);
	return 0;
}
