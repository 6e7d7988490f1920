/* SPDX-License-Identifier: BSD-2-Clause */
#include "reader/machine.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/array.h"
#include "base/clock.h"
#include "profile/facts.h"
#include "reader/text.h"
#include "render/format.h"
#include "render/short_paths.h"

#define LEDGER "ledger pid="
#define WAITS_SHOWN 3U
#define FIGURES_COLUMNS 42U
#define MAX_SECONDS 1e12 /* in one field, so that sums of it stay finite */

/* The ledger's names, and the names that are shown. */
static const struct {
	const char *field, *shown;
} waits[] = {
	{.field = "gil", .shown = "gil"},
	{.field = "lock", .shown = "lock"},
	{.field = "disk", .shown = "disk"},
	{.field = "net", .shown = "net"},
	{.field = "sleep", .shown = "sleep"},
	{.field = "child", .shown = "child"},
	{.field = "fault", .shown = "page fault"},
	{.field = "stopped", .shown = "stopped"},
	{.field = "run_queue", .shown = "run queue"},
	{.field = "unknown", .shown = "unknown"},
};

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

	return a->pid == b->pid && !strcmp(a->comm, b->comm);
}

static int find_process(struct machine *machine, const struct machine_process *key,
			struct machine_process **ret_process)
{
	uint32_t hash = (uint32_t)(XXH3_64bits(key->comm, strlen(key->comm)) ^
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
		if (strlen(waits[i].field) == size && !strncmp(waits[i].field, name, size))
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

/* ---- showing ---- */

static double cpu_of(const struct machine_process *process)
{
	return process->python_s + process->native_s + process->kernel_s + process->unsampled_s;
}

static double wait_of(const struct machine_process *process)
{
	double sum = 0;

	for (unsigned int i = 0; i < MACHINE_WAITS; i++)
		sum += process->wait_s[i];
	return sum;
}

static int compare_processes(const void *a, const void *b)
{
	const struct machine_process *left = a, *right = b;

	if (cpu_of(left) > cpu_of(right) || cpu_of(left) < cpu_of(right))
		return cpu_of(left) > cpu_of(right) ? -1 : 1;
	if (wait_of(left) > wait_of(right) || wait_of(left) < wait_of(right))
		return wait_of(left) > wait_of(right) ? -1 : 1;
	return left->pid < right->pid ? -1 : left->pid > right->pid;
}

static void add_up(struct machine_process *sum, const struct machine_process *process)
{
	sum->python_s += process->python_s;
	sum->native_s += process->native_s;
	sum->kernel_s += process->kernel_s;
	sum->unsampled_s += process->unsampled_s;
	for (unsigned int i = 0; i < MACHINE_WAITS; i++)
		sum->wait_s[i] += process->wait_s[i];
}

/* Formats "  waits: sleep 60 %, lock 38 %", with at most `count` of them. */
static void name_waits(const struct machine_process *process, unsigned int count, char *text,
		       size_t size)
{
	double all = wait_of(process), left[MACHINE_WAITS];
	size_t used = 0;

	memcpy(left, process->wait_s, sizeof(left));
	text[0] = '\0';
	for (unsigned int shown = 0; all > 0 && shown < count && used < size; shown++) {
		unsigned int most = 0;

		for (unsigned int i = 1; i < MACHINE_WAITS; i++)
			if (left[i] > left[most])
				most = i;
		if (left[most] < 0.01 * all)
			break;
		used += (size_t)snprintf(text + used, size - used, "%s%s %.0f %%",
					 shown ? ", " : "  waits: ", waits[most].shown,
					 100 * left[most] / all);
		left[most] = 0;
	}
}

static void print_process(const struct machine_process *process, double elapsed_s, const char *name,
			  unsigned int columns, bool color, FILE *out)
{
	double unit = 100 / elapsed_s, share = cpu_of(process) / elapsed_s;
	char reasons[128], cut_name[256];
	size_t room = columns > FIGURES_COLUMNS + 8 ? columns - FIGURES_COLUMNS : 8;

	if (!columns)
		room = SIZE_MAX / 2;
	name = name_fit(name, room, cut_name, sizeof(cut_name));
	room -= text_columns_of(name);
	for (unsigned int count = WAITS_SHOWN + 1; count--;) {
		name_waits(process, count, reasons, sizeof(reasons));
		if (text_columns_of(reasons) <= room)
			break;
	}
	fprintf(out, "%s%8.1f%s%8.1f%8.1f%8.1f%8.1f  %s%s%s%s%s%s\n",
		text_color(color, text_color_of_share(share)), unit * cpu_of(process),
		text_color(color, TEXT_PLAIN), unit * process->python_s, unit * process->native_s,
		unit * process->kernel_s, unit * wait_of(process), text_color(color, TEXT_BOLD),
		name, text_color(color, TEXT_PLAIN), text_color(color, TEXT_DIM), reasons,
		text_color(color, TEXT_PLAIN));
}

static void print_head(const struct machine *machine, const struct machine_process *all,
		       double elapsed_s, unsigned int columns, FILE *out)
{
	double cpu_s = cpu_of(all) > 0 ? cpu_of(all) : 1;
	double unsampled = 100 * all->unsampled_s / cpu_s;
	char busy[96] = "", took[96], parts[96];

	if (machine->cpus)
		snprintf(busy, sizeof(busy), "machine: %.0f %% of %" PRIu64 " CPU%s busy; ",
			 100.0 * (double)machine->busy_ns /
				 ((double)machine->elapsed_ns * (double)machine->cpus),
			 machine->cpus, machine->cpus == 1 ? "" : "s");
	snprintf(took, sizeof(took), "%s%" PRIu32 " processes took %.1f %% of one%s:",
		 machine->has_others ? "more than " : "", machine->count,
		 100 * cpu_of(all) / elapsed_s, machine->cpus ? "" : " CPU");
	snprintf(parts, sizeof(parts), "Python %.0f %%, native %.0f %%, kernel %.0f %%",
		 100 * all->python_s / cpu_s, 100 * all->native_s / cpu_s,
		 100 * all->kernel_s / cpu_s);
	if (unsampled >= 0.5)
		snprintf(parts + strlen(parts), sizeof(parts) - strlen(parts),
			 ", without a sample %.0f %%", unsampled);
	fprintf(out, "%s%s%s%s\n", busy, took,
		columns && strlen(busy) + strlen(took) + strlen(parts) >= columns ? "\n  " : " ",
		parts);
}

/* Formats the name of the row of all processes that have none of their own.  Returns whether there
 * is such a row. */
static bool name_rest(const struct machine *machine, uint32_t rows, char *name, size_t size)
{
	if (machine->count > rows)
		snprintf(name, size, "%s%" PRIu32 " more", machine->has_others ? "over " : "",
			 machine->count - rows);
	else
		snprintf(name, size, "others");
	return machine->count > rows || machine->has_others;
}

void machine_print(struct machine *machine, uint32_t rows, unsigned int columns, bool color,
		   FILE *out)
{
	double elapsed_s = (double)machine->elapsed_ns / NS_PER_SEC;
	struct machine_process all = machine->others, rest = machine->others;
	char name[MACHINE_COMM_BYTES + 32];

	if (machine->count < 2 || !machine->elapsed_ns)
		return;
	qsort(machine->process, machine->count, sizeof(machine->process[0]), compare_processes);
	/* The order has changed. */
	index_table_release(&machine->index);
	for (uint32_t i = 0; i < machine->count; i++) {
		add_up(&all, &machine->process[i]);
		if (i >= rows)
			add_up(&rest, &machine->process[i]);
	}
	print_head(machine, &all, elapsed_s, columns, out);
	fprintf(out, "%s%8s%8s%8s%8s%8s  %s%s\n", text_color(color, TEXT_BOLD), "%CPU", "PYTHON",
		"NATIVE", "KERNEL", "%WAIT", "PROCESS", text_color(color, TEXT_PLAIN));
	for (uint32_t i = 0; i < machine->count && i < rows; i++) {
		snprintf(name, sizeof(name), "%" PRIu64 " %s", machine->process[i].pid,
			 machine->process[i].comm);
		print_process(&machine->process[i], elapsed_s, name, columns, color, out);
	}
	if (name_rest(machine, rows, name, sizeof(name)))
		print_process(&rest, elapsed_s, name, columns, color, out);
	if (machine->left_out)
		fprintf(out, "%" PRIu64 " lines of further processes are left out\n",
			machine->left_out);
	fprintf(out, "\n");
}
