/* SPDX-License-Identifier: BSD-2-Clause */
#include "reader/gauge_view.h"

#include <inttypes.h>
#include <string.h>

#include "reader/text.h"
#include "render/format.h"
#include "render/short_paths.h"

#define UNKNOWN "-"
#define FIGURE_BYTES FORMAT_BYTES
#define REASONS_BYTES 512U
#define REASON_LEAST 0.005 /* of the time */
#define FIGURES_COLUMNS 83U

static int64_t as_int64(double value)
{
	return value < 9e18 ? (int64_t)value : INT64_MAX;
}

/* Formats a value in tenths. */
static const char *tenths(bool is_known, double value, const char *unit, char text[FIGURE_BYTES])
{
	if (is_known)
		snprintf(text, FIGURE_BYTES, "%.1f%s", value / 10, unit);
	else
		snprintf(text, FIGURE_BYTES, UNKNOWN);
	return text;
}

static const char *mean(const struct gpu_usage_sum *sum, const char *unit, char text[FIGURE_BYTES])
{
	return tenths(sum->seconds > 0, gpu_usage_mean(sum), unit, text);
}

static const char *most(const struct gpu_usage_sum *sum, char text[FIGURE_BYTES])
{
	return tenths(sum->seconds > 0, (double)sum->max, "", text);
}

static const char *bytes(const struct gpu_usage_sum *sum, char text[FIGURE_BYTES])
{
	if (sum->seconds > 0)
		return format_value(as_int64(gpu_usage_mean(sum)), "bytes", text);
	snprintf(text, FIGURE_BYTES, UNKNOWN);
	return text;
}

/* Formats "  clocks held down: sw_power_cap 40 %", in the order of NVML's bits. */
static void name_reasons(const struct gpu_usage_device *gpu, char *text, size_t size)
{
	size_t used = 0;

	text[0] = '\0';
	for (unsigned int i = 0; i < GPU_REASON_COUNT && used < size; i++) {
		const double share =
			gpu->reason_seconds > 0 ? gpu->reason[i] / gpu->reason_seconds : 0;

		if (share >= REASON_LEAST)
			used += (size_t)snprintf(text + used, size - used, "%s%s %.0f %%",
						 used ? ", " : "  clocks held down: ",
						 gpu_reason_name((enum gpu_reason)i), 100 * share);
	}
}

static void print_device(const struct gpu_usage_device *gpu, unsigned int columns, bool color,
			 FILE *out)
{
	const struct gpu_usage_sum *gauge = gpu->gauge;
	const double share = gpu_usage_mean(&gauge[GPU_UTILIZATION]) / GPU_SHARE_MAX;
	size_t room = columns > FIGURES_COLUMNS + 8 ? columns - FIGURES_COLUMNS : 8;
	char reasons[REASONS_BYTES], cut[GPU_NAME_BYTES], text[10][FIGURE_BYTES];

	name_reasons(gpu, reasons, sizeof(reasons));
	fprintf(out, "%5" PRIu64 " %s%6s%s %6s %6s %6s %7s %6s %10s %8s %6s %9s  %s%s%s%s%s%s\n",
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

static void print_processes(const struct gpu_usage *usage, uint32_t rows, FILE *out)
{
	char sm[FIGURE_BYTES], memory[FIGURE_BYTES];

	for (uint32_t i = 0; i < usage->process_count && i < rows; i++) {
		const struct gpu_usage_process *process = &usage->process[i];

		fprintf(out, "  %" PRIu64 " %s on GPU %" PRIu64 ": memory %s, SMs %s\n",
			process->pid, process->comm, process->device,
			bytes(&process->memory_bytes, memory), mean(&process->sm, " %", sm));
	}
	if (usage->process_count > rows)
		fprintf(out, "  %s%" PRIu32 " more processes\n", usage->has_others ? "over " : "",
			usage->process_count - rows);
	else if (usage->process_count && usage->has_others)
		fprintf(out, "  and others\n");
}

void gpu_usage_print(struct gpu_usage *usage, uint32_t rows, unsigned int columns, bool color,
		     FILE *out)
{
	if (!usage->device_count)
		return;
	gpu_usage_sort(usage);
	fprintf(out, "%s%5s %6s %6s %6s %6s %7s %6s %10s %8s %6s %9s  %s%s\n",
		text_color(color, TEXT_BOLD), "GPU", "%BUSY", "MOST", "%SM", "%OCC", "%TENSOR",
		"%DRAM", "MEMORY", "POWER", "DEG C", "SM MHZ", "NAME",
		text_color(color, TEXT_PLAIN));
	for (uint32_t i = 0; i < usage->device_count; i++)
		print_device(&usage->device[i], columns, color, out);
	print_processes(usage, rows, out);
	if (usage->left_out)
		fprintf(out, "%" PRIu64 " lines of further GPUs and processes are left out\n",
			usage->left_out);
	fprintf(out, "\n");
}
