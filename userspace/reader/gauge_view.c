/* SPDX-License-Identifier: BSD-2-Clause */
#include "reader/gauge_view.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/collectors.h"
#include "reader/complain.h"
#include "reader/read_input.h"
#include "reader/text.h"
#include "render/format.h"
#include "render/short_paths.h"

#define UNKNOWN "-"
#define FIGURE_BYTES FORMAT_BYTES
#define REASONS_BYTES 512U
#define REASON_LEAST 0.005 /* of the time */
#define FIGURES_COLUMNS 83U

/* ---- reading ---- */

/* Standard input can be read once, and collectors of others have no such kind. */
static bool may_have(const struct select *select)
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
	if (!may_have(select))
		return 0;
	input_options.live_from = select->live ? from : NULL;
	err = read_input(input_options, ret_input);
	if (!err && *ret_input && gpu_usage_fill(usage, input_profile(*ret_input), select))
		return complain_of(input_title(*ret_input), -ENOMEM);
	return err;
}

/* ---- the table ---- */

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
	return tenths(sum->readings > 0, gpu_usage_mean(sum), unit, text);
}

static const char *most(const struct gpu_usage_sum *sum, char text[FIGURE_BYTES])
{
	return tenths(sum->readings > 0, (double)sum->max, "", text);
}

static const char *bytes(const struct gpu_usage_sum *sum, char text[FIGURE_BYTES])
{
	if (sum->readings > 0)
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
		const double share = gpu->reason_readings > 0
					     ? gpu->reason[i] / (double)gpu->reason_readings
					     : 0;

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

static void print_processes(const struct gpu_usage *usage, uint32_t rows, FILE *out)
{
	char sm[FIGURE_BYTES], memory[FIGURE_BYTES];

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
		print_device(&usage->device[i], columns, color, out);
	print_processes(usage, rows, out);
	if (usage->left_out)
		fprintf(out, "%" PRIu64 " further GPUs are left out\n", usage->left_out);
	fprintf(out, "\n");
}
