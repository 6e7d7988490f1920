/* SPDX-License-Identifier: BSD-2-Clause */
#include "reader/why_processes.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/json_writer.h"
#include "reader/text.h"
#include "render/format.h"

/* ---- texts ---- */

/* By id. */
static const struct {
	const char *rests_on, *cannot_know;
	const char *next; /* what to try */
} texts[GPU_FINDING_COUNT] = {
	[GPU_FINDING_SYNC] =
		{"the exact time inside synchronisations on the host, divided among threads and "
		 "lines by sampled stacks",
		 "device time: a wait has the kernels in it that were queued before, and they may "
		 "have kept the GPU busy all the while",
		 "Read results back less often: keep losses and masks on the device, and copy them "
		 "every so many steps."},
	[GPU_FINDING_STARVED] =
		{"samples and waits of the launching thread with the label gpu=drained, which the "
		 "process's own calls prove",
		 "whether another process used the GPU meanwhile, and idle gaps between kernels "
		 "that were queued",
		 "Let what the thread did meanwhile run ahead of the GPU: prefetch batches, use "
		 "more loader workers, or do less between launches."},
	[GPU_FINDING_LAUNCH] =
		{"launches counted by probes, the median synchronisation, and samples of the "
		 "launching thread",
		 "device time: that the GPU is idle between launches is concluded from short "
		 "waits; "
		 "time in launch calls has the probe's own cost in it",
		 "Launch fewer and larger kernels: fuse operations (torch.compile), use a CUDA "
		 "graph, or larger batches."},
	[GPU_FINDING_COPY] =
		{"the exact time inside synchronous copies on the host, divided among threads and "
		 "lines by sampled stacks",
		 "device time: a copy's time has in it what was queued before; and whether memory "
		 "was pinned",
		 "Copy asynchronously from pinned memory, and synchronise once where the data is "
		 "needed."},
	[GPU_FINDING_TINY] =
		{"exact numbers of copies and bytes; the median is that of each line's mean size, "
		 "so that a few large copies of a line hide its small ones",
		 "device time: what an asynchronous copy takes there is not measured",
		 "Gather small values into one buffer, and copy that once."},
	[GPU_FINDING_ALLOC] =
		{"exact numbers of cuMemAlloc, cuMemFree and their kind without Async, and their "
		 "time on the host",
		 "device time: for how long a free made the device wait",
		 "Let a caching allocator keep memory: no empty_cache() in the loop, shapes that "
		 "repeat, or cudaMallocAsync."},
	[GPU_FINDING_GRAPH] =
		{"numbers of launches and synchronisations, by window; no graph was launched",
		 "device time, and whether kernels and their arguments are the same each time: "
		 "only how many there are",
		 "Capture what repeats as a CUDA graph: torch.cuda.graph(), or torch.compile() "
		 "with mode=\"reduce-overhead\"."},
	[GPU_FINDING_SMS] =
		{"NVML's gauges of the GPU, of all processes on it, one reading a second",
		 "which kernels they are, and whose: a GPU is the one that NVML counts so, which "
		 "need not be the program's number",
		 "Give each kernel more work: larger batches, fused operations, or several streams "
		 "at once; Nsight Compute tells what limits a kernel."},
};

/* By the number of the bit in enum gpu_doubt. */
static const char *const doubts[] = {
	"numbers of launches are estimates: they were probed for a part of the time "
	"(--max-slowdown)",
	"whether as many are launched each time: there is one window only",
	"what the thread did off the CPU: no waits of kind offcpu are beside it",
	"how long the program had run before: in its first minute allocations are normal",
};

#define WIDTH 100U /* of text that is not for a terminal */
#define HEAD_COLUMNS 13U
#define CANNOT "Cannot be judged:"

/* ---- figures ---- */

static const char *value_text(double value, enum gpu_unit unit, char buffer[FORMAT_BYTES])
{
	if (isnan(value))
		return "-";
	switch (unit) {
	case GPU_UNIT_SHARE:
		return format_share(value, buffer);
	case GPU_UNIT_NS:
		return format_value((int64_t)value, "nanoseconds", buffer);
	case GPU_UNIT_BYTES:
		return format_value((int64_t)value, "bytes", buffer);
	default:
		snprintf(buffer, FORMAT_BYTES,
			 value < 100 && value > floor(value) ? "%.1f" : "%.0f", value);
		return buffer;
	}
}

/* Writes "63.7 % of the time in ... (needs at least 20.0 %)". */
static void put_figure(const struct gpu_figure *figure, FILE *out)
{
	static const char *const limits[] = {[GPU_AT_LEAST] = "at least",
					     [GPU_ABOVE] = "more than",
					     [GPU_AT_MOST] = "at most",
					     [GPU_BELOW] = "less than"};
	char value[FORMAT_BYTES], limit[FORMAT_BYTES];

	fprintf(out, "%s %s", value_text(figure->value, figure->unit, value), figure->text);
	if (figure->limit_is != GPU_NO_LIMIT)
		fprintf(out, " (needs %s %s)", limits[figure->limit_is],
			value_text(figure->limit, figure->unit, limit));
}

static void put_figures(const struct gpu_finding *finding, FILE *out)
{
	for (unsigned int i = 0; i < finding->figure_count; i++) {
		fprintf(out, "%s", i ? "; " : "");
		put_figure(&finding->figure[i], out);
	}
}

/* ---- text ---- */

static void print_wrapped(FILE *file, char **text, unsigned int indent)
{
	const unsigned int columns = text_columns();

	if (!close_memory_file(file, text))
		text_wrap(stdout, *text, indent, columns ? columns : WIDTH);
}

/* Prints "     rests on: TEXT", what goes on below its text. */
static void print_about(const char *head, const char *text)
{
	OWNED_MEM char *line = NULL;
	size_t size;
	FILE *out = open_memstream(&line, &size);

	if (!out)
		return;
	fprintf(out, "     %-*s%s", (int)HEAD_COLUMNS, head, text);
	print_wrapped(out, &line, HEAD_COLUMNS + 5);
}

static void print_evidence(const struct gpu_finding *finding)
{
	OWNED_MEM char *line = NULL;
	size_t size;
	FILE *out = open_memstream(&line, &size);

	if (!out)
		return;
	put_figures(finding, out);
	if (!close_memory_file(out, &line))
		print_about("evidence", line);
}

static void print_lines(const struct why_shown *shown, const struct why_lines *lines)
{
	char share[FORMAT_BYTES];

	for (unsigned int i = 0; i < lines->count; i++) {
		const struct why_line *line = &lines->line[i];

		printf("     %-*s%7s  ", (int)HEAD_COLUMNS, i ? "" : "where",
		       format_share(line->share, share));
		printf("%s%s%s  %s\n", text_color(shown->color, TEXT_BOLD), line->name,
		       text_color(shown->color, TEXT_PLAIN), line->place);
	}
}

static void print_finding(const struct why_shown *shown, const struct why_lines *lines,
			  const struct gpu_finding *finding, unsigned int number)
{
	char lost[FORMAT_BYTES];

	printf("\n  %u. %s%s%s", number, text_color(shown->color, TEXT_RED),
	       gpu_finding_name(finding->id), text_color(shown->color, TEXT_PLAIN));
	if (!isnan(finding->lost_ns))
		printf(": up to %s lost",
		       format_value((int64_t)finding->lost_ns, "nanoseconds", lost));
	printf("\n");
	print_evidence(finding);
	if (lines)
		print_lines(shown, lines);
	print_about("rests on", texts[finding->id].rests_on);
	print_about("cannot know", texts[finding->id].cannot_know);
	for (unsigned int i = 0; i < ARRAY_SIZE(doubts); i++)
		if (finding->doubts & 1U << i)
			print_about("", doubts[i]);
	print_about("try", texts[finding->id].next);
}

/* Prints the rules with one verdict, a line each. */
static void print_others(const struct gpu_finding *all, unsigned int count,
			 enum gpu_verdict verdict, const char *head)
{
	bool has_head = false;

	for (unsigned int i = 0; i < count; i++) {
		const struct gpu_finding *finding = &all[i];
		OWNED_MEM char *line = NULL;
		size_t size;
		FILE *out;

		if (finding->verdict != verdict)
			continue;
		if (!has_head)
			printf("\n  %s\n", head);
		has_head = true;
		out = open_memstream(&line, &size);
		if (!out)
			return;
		fprintf(out, "     %-17s", gpu_finding_name(finding->id));
		if (finding->missing)
			fprintf(out, "%s%s", finding->missing, finding->figure_count ? ": " : "");
		put_figures(finding, out);
		print_wrapped(out, &line, 22);
	}
}

static void print_process(const struct why_shown *shown, const struct why_process *process)
{
	const struct gpu_sums *sums = &process->sums;
	char wall[FORMAT_BYTES];
	unsigned int count = 0;

	printf("\n%s%s %" PRId64 "%s", text_color(shown->color, TEXT_BLUE),
	       process->comm ? process->comm : "", process->pid,
	       text_color(shown->color, TEXT_PLAIN));
	printf(", %s", format_value((int64_t)sums->wall_ns, "nanoseconds", wall));
	if (process->lead != UINT32_MAX && shown->processes->thread[process->lead].tid)
		printf("; thread %" PRId64, shown->processes->thread[process->lead].tid);
	printf(": %.0f launches, %.0f synchronisations; copies %.0f, allocations and frees %.0f\n",
	       sums->launches + sums->graph_launches, sums->syncs, sums->copies, sums->allocs);
	while (count < GPU_PROCESS_FINDINGS && process->finding[count].verdict == GPU_FOUND) {
		print_finding(shown, &process->lines[process->finding[count].id],
			      &process->finding[count], count + 1);
		count++;
	}
	print_others(process->finding, GPU_PROCESS_FINDINGS, GPU_NOT_FOUND,
		     count ? "Looked at, and nothing stood out:"
			   : "No finding.  Looked at, and nothing stood out:");
	print_others(process->finding, GPU_PROCESS_FINDINGS, GPU_NOT_KNOWN, CANNOT);
}

/* Returns the mean of a gauge as a share from 0 to 1; NAN: it is not known. */
static double gauge_share(const struct gpu_usage_device *device, enum gpu_gauge gauge)
{
	const struct gpu_usage_sum *sum = &device->gauge[gauge];

	return sum->readings > 0 ? gpu_usage_mean(sum) / GPU_SHARE_MAX : NAN;
}

static void judge_device(const struct gpu_usage_device *device, struct gpu_finding *ret_finding)
{
	gpu_findings_judge_sms(gauge_share(device, GPU_UTILIZATION),
			       gauge_share(device, GPU_SM_ACTIVE),
			       gauge_share(device, GPU_SM_OCCUPANCY), ret_finding);
}

static void print_device(const struct why_shown *shown, const struct gpu_usage_device *device)
{
	struct gpu_finding finding;

	judge_device(device, &finding);
	printf("\n%sGPU %" PRId64 "%s, as NVML counts them\n", text_color(shown->color, TEXT_BLUE),
	       device->device, text_color(shown->color, TEXT_PLAIN));
	if (finding.verdict == GPU_FOUND)
		print_finding(shown, NULL, &finding, 1);
	print_others(&finding, 1, GPU_NOT_FOUND, "Looked at, and it did not stand out:");
	print_others(&finding, 1, GPU_NOT_KNOWN, CANNOT);
}

void why_print_text(const struct why_shown *shown)
{
	const struct why_processes *processes = shown->processes;
	const uint32_t count =
		shown->rows && shown->rows < processes->count ? shown->rows : processes->count;

	printf("All times are the host's, and those of findings overlap: they do not add up.\n");
	for (uint32_t i = 0; i < count; i++)
		print_process(shown, &processes->process[i]);
	if (count < processes->count)
		printf("\n... %" PRIu32 " more processes; --top 0 shows all\n",
		       processes->count - count);
	for (uint32_t i = 0; i < shown->gauges->device_count; i++)
		print_device(shown, &shown->gauges->device[i]);
	if (processes->left_out)
		printf("\n%" PRIu64 " samples of further processes or threads are left out.\n",
		       processes->left_out);
}

/* ---- JSON ---- */

static void json_figure(struct json_writer *json, const struct gpu_figure *figure)
{
	static const char *const units[] = {[GPU_UNIT_SHARE] = "share",
					    [GPU_UNIT_NUMBER] = "count",
					    [GPU_UNIT_RATE] = "per_s",
					    [GPU_UNIT_NS] = "ns",
					    [GPU_UNIT_BYTES] = "bytes"};
	static const char *const limits[] = {
		[GPU_AT_LEAST] = ">=", [GPU_ABOVE] = ">", [GPU_AT_MOST] = "<=", [GPU_BELOW] = "<"};

	json_open(json, '{');
	json_put_string(json, "name", figure->key);
	json_put_string(json, "text", figure->text);
	json_put_double(json, "value", figure->value);
	json_put_string(json, "unit", units[figure->unit]);
	if (figure->limit_is != GPU_NO_LIMIT) {
		json_put_string(json, "needs", limits[figure->limit_is]);
		json_put_double(json, "limit", figure->limit);
	}
	json_close(json, '}');
}

static void json_lines(struct json_writer *json, const struct why_lines *lines)
{
	json_put_open(json, "lines", '[');
	for (unsigned int i = 0; i < lines->count; i++) {
		json_open(json, '{');
		json_put_string(json, "name", lines->line[i].name);
		json_put_string(json, "file", lines->line[i].file);
		json_put_int(json, "line", lines->line[i].line);
		json_put_double(json, "share", lines->line[i].share);
		json_close(json, '}');
	}
	json_close(json, ']');
}

static const char *const verdicts[] = {
	[GPU_NOT_FOUND] = "not found", [GPU_FOUND] = "found", [GPU_NOT_KNOWN] = "not known"};

static void json_finding(struct json_writer *json, const struct why_lines *lines,
			 const struct gpu_finding *finding)
{
	json_newline(json);
	json_open(json, '{');
	json_put_string(json, "finding", gpu_finding_key(finding->id));
	json_put_string(json, "verdict", verdicts[finding->verdict]);
	if (finding->missing)
		json_put_string(json, "missing", finding->missing);
	json_put_double(json, "lost_ns", finding->lost_ns);
	json_put_open(json, "evidence", '[');
	for (unsigned int i = 0; i < finding->figure_count; i++)
		json_figure(json, &finding->figure[i]);
	json_close(json, ']');
	if (lines)
		json_lines(json, lines);
	json_put_string(json, "rests_on", texts[finding->id].rests_on);
	json_put_open(json, "cannot_know", '[');
	json_string(json, texts[finding->id].cannot_know);
	for (unsigned int i = 0; i < ARRAY_SIZE(doubts); i++)
		if (finding->doubts & 1U << i)
			json_string(json, doubts[i]);
	json_close(json, ']');
	json_put_string(json, "next", texts[finding->id].next);
	json_close(json, '}');
}

static void json_process(struct json_writer *json, const struct why_shown *shown,
			 const struct why_process *process)
{
	json_newline(json);
	json_open(json, '{');
	json_put_int(json, "pid", process->pid);
	json_put_string(json, "comm", process->comm ? process->comm : "");
	json_put_int(json, "thread",
		     process->lead == UINT32_MAX ? 0 : shown->processes->thread[process->lead].tid);
	json_put_double(json, "seconds", process->sums.wall_ns / 1e9);
	json_put_double(json, "launches", process->sums.launches + process->sums.graph_launches);
	json_put_double(json, "syncs", process->sums.syncs);
	json_put_open(json, "findings", '[');
	for (unsigned int i = 0; i < GPU_PROCESS_FINDINGS; i++)
		json_finding(json, &process->lines[process->finding[i].id], &process->finding[i]);
	json_close(json, ']');
	json_close(json, '}');
}

static void json_device(struct json_writer *json, const struct gpu_usage_device *device)
{
	struct gpu_finding finding;

	judge_device(device, &finding);
	json_newline(json);
	json_open(json, '{');
	json_put_int(json, "device", device->device);
	json_put_open(json, "findings", '[');
	json_finding(json, NULL, &finding);
	json_close(json, ']');
	json_close(json, '}');
}

int why_print_json(const struct why_shown *shown, FILE *out)
{
	struct json_writer json = json_writer_to(out);

	json_open(&json, '{');
	json_put_string(&json, "profile", shown->title);
	json_put_double(&json, "seconds", (double)shown->duration_ns / 1e9);
	json_key(&json, "launches_are_scaled");
	json_bool(&json, shown->is_scaled);
	json_put_string(&json, "times", "host");
	json_put_open(&json, "processes", '[');
	for (uint32_t i = 0; i < shown->processes->count; i++)
		json_process(&json, shown, &shown->processes->process[i]);
	json_close(&json, ']');
	json_put_open(&json, "gpus", '[');
	for (uint32_t i = 0; i < shown->gauges->device_count; i++)
		json_device(&json, &shown->gauges->device[i]);
	json_close(&json, ']');
	json_put_int(&json, "left_out", (int64_t)shown->processes->left_out);
	json_close(&json, '}');
	fputc('\n', out);
	return json_finish(&json);
}

/* ---- tables ---- */

static int put_finding(const struct gpu_finding *finding, struct table *table)
{
	OWNED_MEM char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return -ENOMEM;
	if (finding->missing)
		fprintf(out, "%s%s", finding->missing, finding->figure_count ? ": " : "");
	put_figures(finding, out);
	if (close_memory_file(out, &text))
		return -ENOMEM;
	table_string(table, gpu_finding_key(finding->id), gpu_finding_name(finding->id));
	table_string(table, verdicts[finding->verdict], NULL);
	table_measure(table, finding->lost_ns, 0, "nanoseconds");
	table_string(table, text, NULL);
	table_string(table, finding->verdict == GPU_FOUND ? texts[finding->id].next : "", NULL);
	return 0;
}

static int put_process(const struct why_process *process, struct table *table)
{
	int err = 0;

	for (unsigned int i = 0; !err && i < GPU_PROCESS_FINDINGS; i++) {
		table_int(table, process->pid, NULL);
		table_string(table, process->comm ? process->comm : "", NULL);
		table_real(table, NAN, 0, NULL);
		err = put_finding(&process->finding[i], table);
	}
	return err;
}

int why_put_table(const struct why_shown *shown, struct table *table)
{
	static const struct table_column columns[] = {
		{"pid", "PID", 8},	     {"comm", "PROCESS", 0},	{"gpu", "GPU", 4},
		{"finding", "FINDING", 0},   {"verdict", "VERDICT", 0}, {"lost_ns", "LOST", 10},
		{"evidence", "EVIDENCE", 0}, {"next", "TRY", 0}};
	int err = 0;

	table_begin(table, "findings", columns, ARRAY_SIZE(columns));
	for (uint32_t i = 0; !err && i < shown->processes->count; i++)
		err = put_process(&shown->processes->process[i], table);
	for (uint32_t i = 0; !err && i < shown->gauges->device_count; i++) {
		struct gpu_finding finding;

		judge_device(&shown->gauges->device[i], &finding);
		table_real(table, NAN, 0, NULL);
		table_string(table, "", NULL);
		table_int(table, shown->gauges->device[i].device, NULL);
		err = put_finding(&finding, table);
	}
	table_end(table);
	return err;
}
