/* SPDX-License-Identifier: BSD-2-Clause */
#include "reader/machine_view.h"

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "reader/text.h"
#include "render/format.h"
#include "render/short_paths.h"

#define WAITS_SHOWN 3U
#define FIGURES_COLUMNS 42U

/* Returns a wait's name for people. */
static const char *shown_name(unsigned int wait)
{
	const char *name = machine_wait_name(wait);

	if (!strcmp(name, "fault"))
		return "page fault";
	if (!strcmp(name, "gpu"))
		return "GPU";
	return strcmp(name, "run_queue") ? name : "run queue";
}

/* Formats "  waits: sleep 60 %, lock 38 %", with at most `count` of them. */
static void name_waits(const struct machine_process *process, unsigned int count, char *text,
		       size_t size)
{
	double all = machine_wait_s(process), left[MACHINE_WAITS];
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
					 shown ? ", " : "  waits: ", shown_name(most),
					 100 * left[most] / all);
		left[most] = 0;
	}
}

static void print_process(const struct machine_process *process, double elapsed_s, const char *name,
			  unsigned int columns, bool color, FILE *out)
{
	double unit = 100 / elapsed_s, share = machine_cpu_s(process) / elapsed_s;
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
		text_color(color, text_color_of_share(share)), unit * machine_cpu_s(process),
		text_color(color, TEXT_PLAIN), unit * process->python_s, unit * process->native_s,
		unit * process->kernel_s, unit * machine_wait_s(process),
		text_color(color, TEXT_BOLD), name, text_color(color, TEXT_PLAIN),
		text_color(color, TEXT_DIM), reasons, text_color(color, TEXT_PLAIN));
}

static void print_head(const struct machine *machine, const struct machine_process *all,
		       double elapsed_s, unsigned int columns, FILE *out)
{
	double cpu_s = machine_cpu_s(all) > 0 ? machine_cpu_s(all) : 1;
	double unsampled = 100 * all->unsampled_s / cpu_s;
	char busy[96] = "", took[96], parts[96];

	if (machine->cpus)
		snprintf(busy, sizeof(busy), "machine: %.0f %% of %" PRIu64 " CPU%s busy; ",
			 100.0 * (double)machine->busy_ns /
				 ((double)machine->elapsed_ns * (double)machine->cpus),
			 machine->cpus, machine->cpus == 1 ? "" : "s");
	snprintf(took, sizeof(took), "%s%" PRIu32 " processes took %.1f %% of one%s:",
		 machine->has_others ? "more than " : "", machine->count,
		 100 * machine_cpu_s(all) / elapsed_s, machine->cpus ? "" : " CPU");
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
	machine_sort(machine);
	for (uint32_t i = 0; i < machine->count; i++) {
		machine_add_up(&all, &machine->process[i]);
		if (i >= rows)
			machine_add_up(&rest, &machine->process[i]);
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
