/* SPDX-License-Identifier: BSD-2-Clause */
#include "serve/waits.h"

#include <math.h>
#include <string.h>

#include "base/utf8.h"

#define MS_PER_S 1e3

static void put_ms(struct json_writer *json, const char *name, double seconds)
{
	json_put_int(json, name, llround(seconds * MS_PER_S));
}

/* Writes "ms": the time on the CPU and each wait; and "running_ms": the parts of the first. */
static void put_times(struct json_writer *json, const struct machine_process *process)
{
	json_key(json, "ms");
	json_open(json, '{');
	put_ms(json, "running", machine_cpu_s(process));
	for (unsigned int i = 0; i < MACHINE_WAITS; i++)
		put_ms(json, machine_wait_name(i), process->wait_s[i]);
	json_close(json, '}');
	json_key(json, "running_ms");
	json_open(json, '{');
	put_ms(json, "python", process->python_s);
	put_ms(json, "native", process->native_s);
	put_ms(json, "kernel", process->kernel_s);
	put_ms(json, "unsampled", process->unsampled_s);
	json_close(json, '}');
}

static void put_process(struct json_writer *json, const struct machine_process *process)
{
	/* A name that was cut may end within a character. */
	char clean[MACHINE_COMM_BYTES * UTF8_CLEAN_MAX_GROWTH + 1];

	clean[utf8_clean(process->comm, strlen(process->comm), clean)] = '\0';
	json_open(json, '{');
	json_put_int(json, "pid", (int64_t)process->pid);
	json_put_string(json, "comm", clean);
	put_times(json, process);
	json_close(json, '}');
}

void waits_put(const struct machine *machine, uint32_t pid, struct json_writer *json)
{
	struct machine_process others = machine->others;
	uint32_t count = 0;

	json_key(json, "processes");
	json_open(json, '[');
	for (uint32_t i = 0; i < machine->count; i++) {
		const struct machine_process *process = &machine->process[i];

		if (pid && process->pid != pid)
			continue;
		if (count++ < WAITS_PROCESSES_SHOWN)
			put_process(json, process);
		else
			machine_add_up(&others, process);
	}
	json_close(json, ']');
	json_put_int(json, "more",
		     count > WAITS_PROCESSES_SHOWN ? count - WAITS_PROCESSES_SHOWN : 0);
	if (pid)
		return;
	json_key(json, "others");
	json_open(json, '{');
	put_times(json, &others);
	json_close(json, '}');
}
