/* SPDX-License-Identifier: BSD-2-Clause */
#include "serve/waits.h"

#include "base/clock.h"

static void put_ms(struct json_writer *json, const char *name, int64_t ns)
{
	json_put_int(json, name, (ns + (int64_t)NS_PER_MS / 2) / (int64_t)NS_PER_MS);
}

/* Writes "ms": the time on the CPU and each wait; and "running_ms": the parts of the first. */
static void put_times(struct json_writer *json, const struct machine_process *process)
{
	json_key(json, "ms");
	json_open(json, '{');
	put_ms(json, "running", machine_cpu_ns(process));
	for (unsigned int i = LEDGER_WAITS_BEGIN; i < LEDGER_STATE_COUNT; i++)
		put_ms(json, ledger_state_name(i), process->ns[i]);
	json_close(json, '}');
	json_key(json, "running_ms");
	json_open(json, '{');
	for (unsigned int i = 0; i < LEDGER_WAITS_BEGIN; i++)
		put_ms(json, ledger_state_name(i), process->ns[i]);
	json_close(json, '}');
}

static void put_process(struct json_writer *json, const struct machine_process *process)
{
	json_open(json, '{');
	json_put_int(json, "pid", process->pid);
	json_put_string(json, "comm", process->comm);
	put_times(json, process);
	json_close(json, '}');
}

void waits_put(const struct machine *machine, bool is_of_all, struct json_writer *json)
{
	struct machine_process others = machine->others;
	const uint32_t count = machine->count;

	json_key(json, "processes");
	json_open(json, '[');
	for (uint32_t i = 0; i < count; i++) {
		if (i < WAITS_PROCESSES_SHOWN)
			put_process(json, &machine->process[i]);
		else
			machine_add_up(&others, &machine->process[i]);
	}
	json_close(json, ']');
	json_put_int(json, "more",
		     count > WAITS_PROCESSES_SHOWN ? count - WAITS_PROCESSES_SHOWN : 0);
	if (!is_of_all)
		return;
	json_key(json, "others");
	json_open(json, '{');
	put_times(json, &others);
	json_close(json, '}');
}
