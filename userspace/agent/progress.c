/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/progress.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "gpu/gpu_metrics.h"
#include "live/record.h"
#include "version.h"
#include "windows/source.h"

#define UPDATE_NS NS_PER_SEC
#define MIB (1ULL << 20)
#define COUNT_TEXT_BYTES 32U

/* ECMA-48: to the first column, then erase to the end of the line. */
#define ERASE_LINE "\r\033[K"

static const char *const stop_names[] = {
#define STOP_NAME(id, name, text) name,
	PP_STOPS(STOP_NAME)};
static const char *const py_stop_names[] = {PP_PY_STOPS(STOP_NAME)};
static const char *const loss_names[] = {PP_LOSSES(STOP_NAME)};

/* A line that never overflows; what does not fit is left out. */
struct line {
	char *text;
	size_t size, used;
};

__attribute__((format(printf, 2, 3))) static void line_add(struct line *line, const char *format,
							   ...)
{
	va_list args;
	int count;

	va_start(args, format);
	count = vsnprintf(line->text + line->used, line->size - line->used, format, args);
	va_end(args);
	if (count < 0)
		return;
	line->used += (size_t)count;
	if (line->used >= line->size)
		line->used = line->size - 1;
}

/* 1234567 -> "1,234,567", in the caller's buffer. */
static const char *with_commas(uint64_t number, char buffer[COUNT_TEXT_BYTES])
{
	char *at = buffer + COUNT_TEXT_BYTES - 1;

	*at = '\0';
	for (unsigned int digits = 0; number || !digits; digits++) {
		if (digits && digits % 3 == 0)
			*--at = ',';
		*--at = (char)('0' + number % 10);
		number /= 10;
	}
	return at;
}

uint64_t summary_complete(const struct summary *summary)
{
	return summary->stop[PP_STOP_ROOT] + summary->stop[PP_STOP_FINISHED] +
	       summary->stop[PP_STOP_NO_USER];
}

bool summary_is_sample_loss(unsigned int loss)
{
	return loss == PP_LOSS_NO_SCRATCH || loss == PP_LOSS_SAMPLES_SWALLOWED;
}

uint64_t summary_lost(const struct summary *summary)
{
	uint64_t lost = 0;

	for (unsigned int i = 0; i < PP_LOSS_COUNT; i++)
		lost += summary_is_sample_loss(i) ? summary->loss[i] : 0;
	return lost;
}

/* The share is rounded down, so that 100.0 means all of them. */
static void add_complete(struct line *line, const struct summary *summary)
{
	uint64_t complete = summary_complete(summary), all = summary->samples;

	if (complete > all)
		complete = all;
	if (all)
		line_add(line, "%.1f %% complete",
			 (double)(uint64_t)((double)complete / (double)all * 1000) / 10);
	else
		line_add(line, "nothing to complete");
}

static void add_plural(struct line *line, uint64_t count, const char *one, const char *many)
{
	char buffer[COUNT_TEXT_BYTES];

	line_add(line, "%s %s", with_commas(count, buffer), count == 1 ? one : many);
}

#define PPM_PER_PERCENT 10000.0
#define PPM_FULL 1000000U
#define PPM_TOLD 500U /* less is 0.0 % */

static void add_probes(struct line *line, const struct summary *summary, const char *before)
{
	const bool is_scaled = summary->probes_on_ppm && summary->probes_on_ppm < PPM_FULL;

	if (!is_scaled && summary->probes_cost_ppm < PPM_TOLD)
		return;
	line_add(line, "%sprobes slow down by %.1f %%", before,
		 summary->probes_cost_ppm / PPM_PER_PERCENT);
	if (is_scaled)
		line_add(line, ", on for %.1f %% of the time (sums are scaled)",
			 summary->probes_on_ppm / PPM_PER_PERCENT);
}

void progress_format(const struct summary *summary, unsigned int columns, char *text, size_t size)
{
	struct line line = {.text = text, .size = size};
	uint64_t seconds = summary->elapsed_ns / NS_PER_SEC;
	char buffer[COUNT_TEXT_BYTES];

	if (seconds < 60)
		line_add(&line, "%llus", (unsigned long long)seconds);
	else if (seconds < 3600)
		line_add(&line, "%llum %02llus", (unsigned long long)seconds / 60,
			 (unsigned long long)seconds % 60);
	else
		line_add(&line, "%lluh %02llum", (unsigned long long)seconds / 3600,
			 (unsigned long long)seconds / 60 % 60);
	line_add(&line, "  ");
	add_plural(&line, summary->processes, "process", "processes");
	line_add(&line, "  ");
	add_plural(&line, summary->samples, "sample", "samples");
	line_add(&line, "  %s lost", with_commas(summary_lost(summary), buffer));
	if (summary->samples) {
		line_add(&line, "  ");
		add_complete(&line, summary);
	}
	add_probes(&line, summary, "  ");
	/* The text is ASCII, so bytes are columns. */
	if (columns && columns < line.used)
		text[columns] = '\0';
}

/* One reason of a list: ", 12 no_info", the first one after `*start`. */
static void add_reason(struct line *line, const char **start, uint64_t count, const char *prefix,
		       const char *name)
{
	char buffer[COUNT_TEXT_BYTES];

	if (!count)
		return;
	line_add(line, "%s%s %s%s", *start, with_commas(count, buffer), prefix, name);
	*start = ", ";
}

bool summary_is_whole(unsigned int stop)
{
	return stop == PP_STOP_ROOT || stop == PP_STOP_FINISHED || stop == PP_STOP_NO_USER;
}

static void add_truncated(struct line *line, const struct summary *summary)
{
	const char *start = " (truncated: ", *first = start;

	for (unsigned int i = 0; i < PP_STOP_COUNT; i++) {
		if (!summary_is_whole(i))
			add_reason(line, &start, summary->stop[i], "", stop_names[i]);
	}
	for (unsigned int i = 0; i < PP_PY_STOP_COUNT; i++) {
		if (!pp_py_stop_is_whole(i))
			add_reason(line, &start, summary->py_stop[i], "python_", py_stop_names[i]);
	}
	if (start != first)
		line_add(line, ")");
}

static void add_lost(struct line *line, const struct summary *summary)
{
	const char *start = " (", *first = start;
	char buffer[COUNT_TEXT_BYTES];

	line_add(line, ", %s lost", with_commas(summary_lost(summary), buffer));
	for (unsigned int i = 0; i < PP_LOSS_COUNT; i++) {
		if (summary_is_sample_loss(i))
			add_reason(line, &start, summary->loss[i], "", loss_names[i]);
	}
	if (start != first)
		line_add(line, ")");
	/* Losses that cost no sample, but a name or a second try. */
	start = ", also ";
	for (unsigned int i = 0; i < PP_LOSS_COUNT; i++) {
		if (!summary_is_sample_loss(i))
			add_reason(line, &start, summary->loss[i], "", loss_names[i]);
	}
}

/* A sample that was due while a hypervisor had the CPU comes late and still counts, but the
 * scheduler does not give that time to the program.  From half a percent of one CPU on the
 * difference shows. */
static void add_steal(struct line *line, const struct summary *summary)
{
	uint64_t now_ns = summary->host_steal_ns, start_ns = summary->host_steal_start_ns;

	/* It may go back when a guest is moved to another host. */
	if (now_ns > start_ns && now_ns - start_ns > summary->elapsed_ns / 200)
		line_add(line, "; the hypervisor took %.1f s of CPU time (steal)",
			 (double)(now_ns - start_ns) / (double)NS_PER_SEC);
}

/* This time is in the sums, but where it was spent is not known. */
static void add_coarse(struct line *line, const struct summary *summary)
{
	const double cpu_s = (double)summary->coarse_cpu_ns / (double)NS_PER_SEC;
	const double wait_s = (double)summary->coarse_wait_ns / (double)NS_PER_SEC;

	if (summary->coarse_cpu_ns && summary->coarse_wait_ns)
		line_add(line, "; %.1f s of CPU time and %.1f s of waits", cpu_s, wait_s);
	else if (summary->coarse_cpu_ns)
		line_add(line, "; %.1f s of CPU time", cpu_s);
	else if (summary->coarse_wait_ns)
		line_add(line, "; %.1f s of waits", wait_s);
	else
		return;
	line_add(line, " counted without their stacks: tables were full");
}

static void add_kept(struct line *line, const struct summary *summary)
{
	if (!summary->kept)
		return;
	line_add(line, "; the last minutes were kept ");
	add_plural(line, summary->kept, "time", "times");
}

/* More than all of it is counting error, or time that the scheduler does not give to programs. */
static double percent_of(uint64_t part, uint64_t all)
{
	return part < all ? 100.0 * (double)part / (double)all : 100.0;
}

static void add_coverage(struct line *line, const struct summary *summary)
{
	const char *before = "; ";

	if (summary->scheduler_ns && !summary->is_cycles) {
		line_add(line, "%s%.1f %% of the scheduler's %.1f s of CPU time", before,
			 percent_of(summary->cpu_ns, summary->scheduler_ns),
			 (double)summary->scheduler_ns / (double)NS_PER_SEC);
		before = " and ";
	}
	if (summary->ledger_wait_ns) {
		line_add(line, "%s%.1f %% of the ledger's %.1f s of waits", before,
			 percent_of(summary->wait_ns, summary->ledger_wait_ns),
			 (double)summary->ledger_wait_ns / (double)NS_PER_SEC);
		before = "";
	}
	if (before[0] != ';')
		line_add(line, " are in the profile");
}

void summary_format(const struct summary *summary, char *text, size_t size)
{
	struct line line = {.text = text, .size = size};

	line_add(&line, "%.1f s: ", (double)summary->elapsed_ns / (double)NS_PER_SEC);
	add_plural(&line, summary->samples, "sample", "samples");
	line_add(&line, " of ");
	add_plural(&line, summary->processes, "process", "processes");
	if (summary->samples) {
		line_add(&line, ", ");
		add_complete(&line, summary);
		add_truncated(&line, summary);
	}
	add_lost(&line, summary);
	line_add(&line, "; own CPU %.2f %% of one core, memory %.1f MiB + %.1f MiB of maps",
		 summary->elapsed_ns
			 ? 100.0 * (double)summary->own_cpu_ns / (double)summary->elapsed_ns
			 : 0.0,
		 (double)summary->own_rss_bytes / (double)MIB,
		 (double)summary->own_map_bytes / (double)MIB);
	add_steal(&line, summary);
	add_coverage(&line, summary);
	add_coarse(&line, summary);
	add_kept(&line, summary);
	add_probes(&line, summary, "; ");
}

void progress_init(struct progress *progress, FILE *stream, bool quiet)
{
	const char *terminal = getenv("TERM");

	*progress = (struct progress){.stream = stream};
	progress->is_shown =
		!quiet && isatty(fileno(stream)) && terminal && strcmp(terminal, "dumb") != 0;
}

void progress_update(struct progress *progress, const struct summary *summary, uint64_t now_ns)
{
	char text[PROGRESS_LINE_BYTES];
	struct winsize size = {0};

	if (!progress->is_shown || now_ns < progress->next_ns)
		return;
	progress->next_ns = now_ns + UPDATE_NS;
	/* One column less: a full line would wrap. */
	if (ioctl(fileno(progress->stream), TIOCGWINSZ, &size) || size.ws_col < 2)
		size.ws_col = 80;
	progress_format(summary, size.ws_col - 1U, text, sizeof(text));
	fprintf(progress->stream, ERASE_LINE "%s", text);
	fflush(progress->stream);
	progress->is_on_screen = true;
}

void progress_clear(struct progress *progress)
{
	if (!progress->is_on_screen)
		return;
	fputs(ERASE_LINE, progress->stream);
	fflush(progress->stream);
	progress->is_on_screen = false;
	/* The line comes back at the next update. */
	progress->next_ns = 0;
}

void progress_finish(struct progress *progress, const struct summary *summary, bool quiet)
{
	char text[PROGRESS_LINE_BYTES];

	progress_clear(progress);
	progress->is_shown = false;
	if (quiet)
		return;
	summary_format(summary, text, sizeof(text));
	fprintf(progress->stream, "pyprofd: %s\n", text);
	fflush(progress->stream);
}

/* ---- metrics ---- */

#define LABELS_BYTES 96U

static const char *const time_names[] = {"cpu", "offcpu"};
static const char *const memory_names[] = {"anonymous", "file", "shared"};
_Static_assert(offsetof(struct summary, wait_ns) == offsetof(struct summary, cpu_ns) + 8 &&
		       offsetof(struct summary, memory_shared_bytes) ==
			       offsetof(struct summary, memory_anonymous_bytes) + 16,
	       "they lie side by side, as those of arrays");

static bool is_cut(unsigned int stop)
{
	return stop != PP_STOP_NONE && !summary_is_whole(stop);
}

static bool lacks_python(unsigned int stop)
{
	return !pp_py_stop_is_whole(stop);
}

static bool is_other_loss(unsigned int loss)
{
	return !summary_is_sample_loss(loss);
}

struct metric {
	const char *name;
	unsigned int kind; /* enum live_metric */
	const char *label, *help;
	size_t at;		     /* in the summary: of its number, or of the first of a list */
	size_t count;		     /* of the list; 0: it is one number */
	const char *const *value;    /* the label's values in a list; NULL: 1, 2, ... */
	bool (*has)(unsigned int i); /* which of the list are told; NULL: all */
	const char *only;	     /* the label's value of the one number; NULL: no label */
	bool is_one;		     /* the one number is 1 */
};

#define COUNTER LIVE_METRIC_COUNTER
#define GAUGE LIVE_METRIC_GAUGE
#define COUNTER_NS (LIVE_METRIC_COUNTER | LIVE_METRIC_NS)
#define GAUGE_NS (LIVE_METRIC_GAUGE | LIVE_METRIC_NS)
#define VERSION .is_one = true, .only = PYPROFD_VERSION
#define NUMBER(field) .at = offsetof(struct summary, field)
#define KIND_CPU(field) .only = "cpu", .at = offsetof(struct summary, field)
#define LIST(first, names) NUMBER(first), .value = (names), .count = ARRAY_SIZE(names)
#define KIND_TIMES LIST(cpu_ns, time_names)
#define MEMORIES LIST(memory_anonymous_bytes, memory_names)
#define LARGEST NUMBER(memory_largest_bytes), .count = SUMMARY_LARGEST
#define STOPS LIST(stop, stop_names), .has = is_cut
#define PYTHON_STOPS LIST(py_stop, py_stop_names), .has = lacks_python
#define SAMPLE_LOSSES LIST(loss, loss_names), .has = summary_is_sample_loss
#define OTHER_LOSSES LIST(loss, loss_names), .has = is_other_loss
#define METRIC(metric_name, metric_kind, label_name, where, text)                                  \
	{.name = (metric_name),                                                                    \
	 .kind = (metric_kind),                                                                    \
	 .label = (label_name),                                                                    \
	 .help = (text),                                                                           \
	 where},

static const struct metric metrics[] = {AGENT_METRICS(METRIC)};

/* value: NULL: the metric has no label. */
static void put(FILE *out, const struct metric *metric, const char *value, uint64_t number)
{
	char labels[LABELS_BYTES] = "";

	if (value)
		snprintf(labels, sizeof(labels), "%s=\"%s\"", metric->label, value);
	live_record_write(out, &(struct live_record){
				       .kind = LIVE_VALUE, .number = {number}, .text = {labels}});
}

static void put_metric(FILE *out, const struct metric *metric, const struct summary *summary)
{
	const struct live_record head = {.kind = LIVE_METRIC,
					 .number = {metric->kind},
					 .text = {metric->name, metric->help}};
	const uint64_t *number = (const uint64_t *)((const char *)summary + metric->at);
	char place[16];

	live_record_write(out, &head);
	if (!metric->count)
		put(out, metric, metric->only, metric->is_one ? 1 : *number);
	for (unsigned int i = 0; i < metric->count; i++) {
		snprintf(place, sizeof(place), "%u", i + 1);
		if (!metric->has || metric->has(i))
			put(out, metric, metric->value ? metric->value[i] : place, number[i]);
	}
}

int metrics_tell(const struct services *services, char **ret_text, size_t *ret_size)
{
	OWNED_MEM char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return -ENOMEM;
	for (size_t i = 0; i < ARRAY_SIZE(metrics); i++)
		put_metric(out, &metrics[i], services->summary);
	gpu_metrics_write(services->sources->state[PP_SOURCE_GAUGES], out);
	live_record_write(out, &(struct live_record){.kind = LIVE_END});
	if (close_memory_file(out, &text))
		return -ENOMEM;
	*ret_text = TAKE(text);
	*ret_size = size;
	return 0;
}
