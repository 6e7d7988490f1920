/* SPDX-License-Identifier: BSD-2-Clause */
#include "reader/machine_view.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/collectors.h"
#include "reader/read_input.h"
#include "reader/text.h"
#include "reader/verb.h"
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

/* ---- GPUs ---- */

#define UNKNOWN "-"
#define REASONS_BYTES 512U
#define REASON_LEAST 0.005 /* of the time */
#define GPU_FIGURES_COLUMNS 83U

/* Standard input can be read once, and collectors of others have no such kind. */
static bool may_have_gpus(const struct select *select)
{
	enum collector_id collector;
	const char *plain;

	for (int i = 0; i < select->path_count; i++)
		if (!strcmp(select->path[i], "-") ||
		    (remote_url_parse(select->path[i], &collector, &plain) &&
		     collector != COLLECTOR_NODE))
			return false;
	return true;
}

int gpu_usage_read(struct gpu_usage *usage, const struct select *select, const struct input *from,
		   struct input **ret_input)
{
	struct select own = *select; /* a copy, whose parts are borrowed */
	struct input_options input_options = gpu_usage_input(&own);
	int err;

	*ret_input = NULL;
	if (!may_have_gpus(select))
		return 0;
	input_options.live_from = select->live ? from : NULL;
	err = read_input(input_options, ret_input);
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
						 gpu_reason_name((enum gpu_reason)i), 100 * share);
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
