/* SPDX-License-Identifier: BSD-2-Clause */
#include "reader/machine_view.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "reader/read_input.h"
#include "reader/text.h"
#include "reader/verb.h"
#include "render/format.h"
#include "render/short_paths.h"

#define WAITS_SHOWN 3U
#define FIGURES_COLUMNS 42U

/* Returns a wait's name for people. */
static const char *shown_name(unsigned int state)
{
	if (state == LEDGER_WAIT(PP_LEDGER_FAULT))
		return "page fault";
	if (state == LEDGER_WAIT(PP_LEDGER_GPU))
		return "GPU";
	return state == LEDGER_WAIT(PP_LEDGER_RUN_QUEUE) ? "run queue" : ledger_state_name(state);
}

/* Formats "  waits: sleep 60 %, lock 38 %", with at most `count` of them. */
static void name_waits(const struct machine_process *process, unsigned int count, char *text,
		       size_t size)
{
	struct machine_process left = *process;
	const double all = (double)machine_wait_ns(process);
	size_t used = 0;

	text[0] = '\0';
	for (unsigned int shown = 0; all > 0 && shown < count && used < size; shown++) {
		unsigned int most = LEDGER_WAITS_BEGIN;

		for (unsigned int i = most + 1; i < LEDGER_STATE_COUNT; i++)
			if (left.ns[i] > left.ns[most])
				most = i;
		if ((double)left.ns[most] < 0.01 * all)
			break;
		used += (size_t)snprintf(text + used, size - used, "%s%s %.0f %%",
					 shown ? ", " : "  waits: ", shown_name(most),
					 100 * (double)left.ns[most] / all);
		left.ns[most] = 0;
	}
}

static double percent(int64_t ns, double of_ns)
{
	return 100 * (double)ns / of_ns;
}

static void print_process(const struct machine_process *process, double elapsed_ns,
			  const char *name, unsigned int columns, bool color, FILE *out)
{
	const double cpu = percent(machine_cpu_ns(process), elapsed_ns);
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
		text_color(color, text_color_of_share(cpu / 100)), cpu,
		text_color(color, TEXT_PLAIN), percent(process->ns[LEDGER_PYTHON], elapsed_ns),
		percent(process->ns[LEDGER_NATIVE], elapsed_ns),
		percent(process->ns[LEDGER_KERNEL], elapsed_ns),
		percent(machine_wait_ns(process), elapsed_ns), text_color(color, TEXT_BOLD), name,
		text_color(color, TEXT_PLAIN), text_color(color, TEXT_DIM), reasons,
		text_color(color, TEXT_PLAIN));
}

static void print_head(const struct machine *machine, const struct machine_process *all,
		       unsigned int columns, FILE *out)
{
	const int64_t all_ns = machine_cpu_ns(all);
	const double elapsed_ns = (double)machine->elapsed_ns, cpu_ns = all_ns ? (double)all_ns : 1;
	const double unsampled = percent(all->ns[LEDGER_UNSAMPLED], cpu_ns);
	char busy[96] = "", took[96], parts[96];

	if (machine->cpus)
		snprintf(busy, sizeof(busy), "machine: %.0f %% of %" PRIu64 " CPU%s busy; ",
			 100.0 * (double)machine->busy_ns / (elapsed_ns * (double)machine->cpus),
			 machine->cpus, machine->cpus == 1 ? "" : "s");
	snprintf(took, sizeof(took), "%s%" PRIu32 " processes took %.1f %% of one%s:",
		 machine->has_others ? "more than " : "", machine->count,
		 percent(all_ns, elapsed_ns), machine->cpus ? "" : " CPU");
	snprintf(parts, sizeof(parts), "Python %.0f %%, native %.0f %%, kernel %.0f %%",
		 percent(all->ns[LEDGER_PYTHON], cpu_ns), percent(all->ns[LEDGER_NATIVE], cpu_ns),
		 percent(all->ns[LEDGER_KERNEL], cpu_ns));
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

void machine_print(const struct machine *machine, uint32_t rows, unsigned int columns, bool color,
		   FILE *out)
{
	const double elapsed_ns = (double)machine->elapsed_ns;
	struct machine_process all = machine->others, rest = machine->others;
	char name[256];

	if (machine->count < 2 || !machine->elapsed_ns)
		return;
	for (uint32_t i = 0; i < machine->count; i++) {
		machine_add_up(&all, &machine->process[i]);
		if (i >= rows)
			machine_add_up(&rest, &machine->process[i]);
	}
	print_head(machine, &all, columns, out);
	fprintf(out, "%s%8s%8s%8s%8s%8s  %s%s\n", text_color(color, TEXT_BOLD), "%CPU", "PYTHON",
		"NATIVE", "KERNEL", "%WAIT", "PROCESS", text_color(color, TEXT_PLAIN));
	for (uint32_t i = 0; i < machine->count && i < rows; i++) {
		snprintf(name, sizeof(name), "%" PRId64 " %s", machine->process[i].pid,
			 machine->process[i].comm);
		print_process(&machine->process[i], elapsed_ns, name, columns, color, out);
	}
	if (name_rest(machine, rows, name, sizeof(name)))
		print_process(&rest, elapsed_ns, name, columns, color, out);
	fprintf(out, "\n");
}

/* ---- GPUs ---- */

#define UNKNOWN "-"
#define REASONS_BYTES 512U
#define REASON_LEAST 0.005 /* of the time */
#define GPU_FIGURES_COLUMNS 83U

int gpu_usage_read(struct gpu_usage *usage, const struct select *select, const struct input *from,
		   struct input **ret_input)
{
	struct select own = *select; /* a copy, whose parts are borrowed */
	int err = read_records(gpu_usage_input(&own), from, ret_input);

	if (!err && *ret_input && gpu_usage_fill(usage, input_profile(*ret_input), select))
		return complain_of(input_title(*ret_input), -ENOMEM);
	return err;
}

static int64_t as_int64(double value)
{
	return value < 9e18 ? (int64_t)value : INT64_MAX;
}

/* Formats a value in tenths. */
static const char *tenths(bool is_known, double value, const char *unit, char text[FORMAT_BYTES])
{
	if (is_known)
		snprintf(text, FORMAT_BYTES, "%.1f%s", value / 10, unit);
	else
		snprintf(text, FORMAT_BYTES, UNKNOWN);
	return text;
}

static const char *mean(const struct gpu_usage_sum *sum, const char *unit, char text[FORMAT_BYTES])
{
	return tenths(sum->readings > 0, gpu_usage_mean(sum), unit, text);
}

static const char *most(const struct gpu_usage_sum *sum, char text[FORMAT_BYTES])
{
	return tenths(sum->readings > 0, (double)sum->max, "", text);
}

static const char *bytes(const struct gpu_usage_sum *sum, char text[FORMAT_BYTES])
{
	if (sum->readings > 0)
		return format_value(as_int64(gpu_usage_mean(sum)), "bytes", text);
	snprintf(text, FORMAT_BYTES, UNKNOWN);
	return text;
}

/* Formats "  clocks held down: sw_power_cap 40 %", in the order of NVML's bits. */
static void name_reasons(const struct gpu_usage_device *gpu, char *text, size_t size)
{
	size_t used = 0;

	text[0] = '\0';
	for (unsigned int i = 0; i < GPU_REASON_COUNT && used < size; i++) {
		const double share = gpu->reason_readings > 0
					     ? gpu->reason[i] / (double)gpu->reason_readings
					     : 0;

		if (share >= REASON_LEAST)
			used += (size_t)snprintf(text + used, size - used, "%s%s %.0f %%",
						 used ? ", " : "  clocks held down: ",
						 gpu_reasons[i].name, 100 * share);
	}
}

static void print_gpu(const struct gpu_usage_device *gpu, unsigned int columns, bool color,
		      FILE *out)
{
	const struct gpu_usage_sum *gauge = gpu->gauge;
	const double share = gpu_usage_mean(&gauge[GPU_UTILIZATION]) / GPU_SHARE_MAX;
	size_t room = columns > GPU_FIGURES_COLUMNS + 8 ? columns - GPU_FIGURES_COLUMNS : 8;
	char reasons[REASONS_BYTES], cut[GPU_NAME_BYTES], text[10][FORMAT_BYTES];

	name_reasons(gpu, reasons, sizeof(reasons));
	fprintf(out, "%5" PRId64 " %s%6s%s %6s %6s %6s %7s %6s %10s %8s %6s %9s  %s%s%s%s%s%s\n",
		gpu->device, text_color(color, text_color_of_share(share)),
		mean(&gauge[GPU_UTILIZATION], "", text[0]), text_color(color, TEXT_PLAIN),
		most(&gauge[GPU_UTILIZATION], text[1]), mean(&gauge[GPU_SM_ACTIVE], "", text[2]),
		mean(&gauge[GPU_SM_OCCUPANCY], "", text[3]),
		mean(&gauge[GPU_TENSOR_ACTIVE], "", text[4]),
		mean(&gauge[GPU_DRAM_ACTIVE], "", text[5]), bytes(&gauge[GPU_MEMORY_USED], text[6]),
		mean(&gauge[GPU_POWER], " W", text[7]), mean(&gauge[GPU_TEMPERATURE], "", text[8]),
		mean(&gauge[GPU_SM_CLOCK], "", text[9]), text_color(color, TEXT_BOLD),
		columns ? name_fit(gpu->name, room, cut, sizeof(cut)) : gpu->name,
		text_color(color, TEXT_PLAIN), text_color(color, TEXT_DIM), reasons,
		text_color(color, TEXT_PLAIN));
}

static void print_gpu_processes(const struct gpu_usage *usage, uint32_t rows, FILE *out)
{
	char sm[FORMAT_BYTES], memory[FORMAT_BYTES];

	for (uint32_t i = 0; i < usage->process_count && i < rows; i++) {
		const struct gpu_usage_process *process = &usage->process[i];

		fprintf(out, "  %" PRId64 " %.64s on GPU %" PRId64 ": memory %s, SMs %s\n",
			process->pid, process->comm, process->device,
			bytes(&process->memory_bytes, memory), mean(&process->sm, " %", sm));
	}
	if (usage->process_count > rows)
		fprintf(out, "  %s%" PRIu32 " more processes\n", usage->has_others ? "over " : "",
			usage->process_count - rows);
	else if (usage->process_count && usage->has_others)
		fprintf(out, "  and others\n");
}

void gpu_usage_print(const struct gpu_usage *usage, uint32_t rows, unsigned int columns, bool color,
		     FILE *out)
{
	if (!usage->device_count)
		return;
	fprintf(out, "%s%5s %6s %6s %6s %6s %7s %6s %10s %8s %6s %9s  %s%s\n",
		text_color(color, TEXT_BOLD), "GPU", "%BUSY", "MOST", "%SM", "%OCC", "%TENSOR",
		"%DRAM", "MEMORY", "POWER", "DEG C", "SM MHZ", "NAME",
		text_color(color, TEXT_PLAIN));
	for (uint32_t i = 0; i < usage->device_count; i++)
		print_gpu(&usage->device[i], columns, color, out);
	print_gpu_processes(usage, rows, out);
	if (usage->left_out)
		fprintf(out, "%" PRIu64 " further GPUs are left out\n", usage->left_out);
	fprintf(out, "\n");
}
