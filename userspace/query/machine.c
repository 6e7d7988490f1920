/* SPDX-License-Identifier: BSD-2-Clause */
#include "query/machine.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "profile/comments.h"

#define LEDGER "ledger pid="
#define MAX_SECONDS 1e12 /* in one field, so that sums of it stay finite */

/* As the ledger writes them. */
static const char *const waits[] = {"gil",   "lock",  "disk",    "net",       "gpu",    "sleep",
				    "child", "fault", "stopped", "run_queue", "unknown"};

_Static_assert(ARRAY_SIZE(waits) == MACHINE_WAITS, "one sum a reason");

void machine_release(struct machine *machine)
{
	free(machine->process);
	index_table_release(&machine->index);
	*machine = (struct machine){0};
}

/* ---- reading ---- */

static void add_fact(void *context, const char *name, size_t size, uint64_t value)
{
	struct machine *machine = context;

	if (size == strlen("elapsed_ns") && !strncmp(name, "elapsed_ns", size))
		machine->elapsed_ns += value;
	else if (size == strlen("host_busy_ns") && !strncmp(name, "host_busy_ns", size))
		machine->busy_ns += value;
	else if (size == strlen("host_cpus") && !strncmp(name, "host_cpus", size) &&
		 value > machine->cpus)
		machine->cpus = value;
}

static bool process_equal(const void *context, uint32_t index, const void *key)
{
	const struct machine *machine = context;
	const struct machine_process *a = &machine->process[index], *b = key;

	return a->pid == b->pid && (machine->by_pid || !strcmp(a->comm, b->comm));
}

static int find_process(struct machine *machine, const struct machine_process *key,
			struct machine_process **ret_process)
{
	const size_t name_bytes = machine->by_pid ? 0 : strlen(key->comm);
	uint32_t hash = (uint32_t)(XXH3_64bits(key->comm, name_bytes) ^
				   XXH3_64bits(&key->pid, sizeof(key->pid)));
	uint32_t at;
	int err;

	*ret_process = NULL;
	if (!key->pid && !key->comm[0]) {
		machine->has_others = true;
		*ret_process = &machine->others;
		return 0;
	}
	if (!index_table_find(&machine->index, hash, process_equal, machine, key, &at)) {
		if (machine->count == MACHINE_MAX_PROCESSES) {
			machine->left_out++;
			return 0;
		}
		err = ARRAY_RESERVE(machine->process, machine->count, machine->capacity);
		if (!err)
			err = index_table_add(&machine->index, hash, machine->count);
		if (err)
			return err;
		at = machine->count++;
		machine->process[at] = *key;
	}
	*ret_process = &machine->process[at];
	if (machine->by_pid)
		memcpy((*ret_process)->comm, key->comm, sizeof(key->comm));
	return 0;
}

static double *sum_of(struct machine_process *process, const char *name, size_t size)
{
	const struct {
		const char *name;
		double *sum;
	} cpu[] = {{"python", &process->python_s},
		   {"native", &process->native_s},
		   {"kernel", &process->kernel_s},
		   {"unsampled", &process->unsampled_s}};

	for (size_t i = 0; i < ARRAY_SIZE(cpu); i++)
		if (strlen(cpu[i].name) == size && !strncmp(cpu[i].name, name, size))
			return cpu[i].sum;
	for (size_t i = 0; i < ARRAY_SIZE(waits); i++)
		if (strlen(waits[i]) == size && !strncmp(waits[i], name, size))
			return &process->wait_s[i];
	return NULL;
}

/* " python=0.033 native=0.208 ..." */
static void add_fields(struct machine_process *process, const char *text)
{
	while (*text == ' ') {
		const char *name = ++text, *equals = name + strcspn(name, "= ");
		double seconds, *sum;
		char *end;

		if (*equals != '=')
			return;
		seconds = strtod(equals + 1, &end);
		sum = sum_of(process, name, (size_t)(equals - name));
		if (sum && seconds > 0 && seconds < MAX_SECONDS)
			*sum += seconds;
		text = end + strcspn(end, " ");
	}
}

int machine_add(struct machine *machine, const char *comment)
{
	struct machine_process key = {0}, *process;
	const char *comm, *fields = NULL;
	char *end;
	int err;

	facts_read(comment, add_fact, machine);
	if (strncmp(comment, LEDGER, strlen(LEDGER)))
		return 0;
	key.pid = strtoull(comment + strlen(LEDGER), &end, 10);
	if (strncmp(end, " comm=", strlen(" comm=")))
		return 0;
	comm = end + strlen(" comm=");
	/* A name may contain " threads=" itself: the last one is the ledger's. */
	for (const char *at = comm; (at = strstr(at, " threads=")); at++)
		fields = at;
	if (!fields)
		return 0;
	snprintf(key.comm, sizeof(key.comm), "%.*s", (int)(fields - comm < 63 ? fields - comm : 63),
		 comm);
	err = find_process(machine, &key, &process);
	if (!err && process)
		add_fields(process, fields);
	return err;
}

/* ---- sums ---- */

double machine_cpu_s(const struct machine_process *process)
{
	return process->python_s + process->native_s + process->kernel_s + process->unsampled_s;
}

double machine_wait_s(const struct machine_process *process)
{
	double sum = 0;

	for (unsigned int i = 0; i < MACHINE_WAITS; i++)
		sum += process->wait_s[i];
	return sum;
}

static int compare_processes(const void *a, const void *b)
{
	const struct machine_process *left = a, *right = b;
	const double cpu_s = machine_cpu_s(left) - machine_cpu_s(right);
	const double wait_s = machine_wait_s(left) - machine_wait_s(right);

	if (cpu_s > 0 || cpu_s < 0)
		return cpu_s > 0 ? -1 : 1;
	if (wait_s > 0 || wait_s < 0)
		return wait_s > 0 ? -1 : 1;
	return left->pid < right->pid ? -1 : left->pid > right->pid;
}

void machine_add_up(struct machine_process *sum, const struct machine_process *process)
{
	sum->python_s += process->python_s;
	sum->native_s += process->native_s;
	sum->kernel_s += process->kernel_s;
	sum->unsampled_s += process->unsampled_s;
	for (unsigned int i = 0; i < MACHINE_WAITS; i++)
		sum->wait_s[i] += process->wait_s[i];
}

void machine_sort(struct machine *machine)
{
	if (machine->count)
		qsort(machine->process, machine->count, sizeof(machine->process[0]),
		      compare_processes);
	/* The order has changed. */
	index_table_release(&machine->index);
}

const char *machine_wait_name(unsigned int wait)
{
	return waits[wait];
}
