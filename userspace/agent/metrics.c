/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/metrics.h"

#include <errno.h>
#include <stdlib.h>

#include "agent/progress.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "gpu/gpu_metrics.h"
#include "live/record.h"
#include "version.h"

#define LABELS_BYTES 96U

/* One value: its label's text and where in the summary its number is. */
struct value {
	const char *label;
	size_t at;
};

#define NAME_AT(field, index) offsetof(struct summary, field) + (index) * sizeof(uint64_t)
#define STOP_VALUE(id, name, text) {name, NAME_AT(stop, PP_STOP_##id)},
#define PYTHON_STOP_VALUE(id, name, text) {name, NAME_AT(py_stop, PP_PY_STOP_##id)},
#define LOSS_VALUE(id, name, text) {name, NAME_AT(loss, PP_LOSS_##id)},

static const struct value stops[] = {PP_STOPS(STOP_VALUE)};
static const struct value python_stops[] = {PP_PY_STOPS(PYTHON_STOP_VALUE)};
static const struct value losses[] = {PP_LOSSES(LOSS_VALUE)};
static const struct value times[] = {{"cpu", offsetof(struct summary, cpu_ns)},
				     {"offcpu", offsetof(struct summary, wait_ns)}};

static const struct value memories[] = {{"anonymous",
					 offsetof(struct summary, memory_anonymous_bytes)},
					{"file", offsetof(struct summary, memory_file_bytes)},
					{"shared", offsetof(struct summary, memory_shared_bytes)}};

#define LARGEST_VALUE(place) {#place, NAME_AT(memory_largest_bytes, (place) - 1)}

static const struct value largest[] = {LARGEST_VALUE(1),  LARGEST_VALUE(2),  LARGEST_VALUE(3),
				       LARGEST_VALUE(4),  LARGEST_VALUE(5),  LARGEST_VALUE(6),
				       LARGEST_VALUE(7),  LARGEST_VALUE(8),  LARGEST_VALUE(9),
				       LARGEST_VALUE(10), LARGEST_VALUE(11), LARGEST_VALUE(12),
				       LARGEST_VALUE(13), LARGEST_VALUE(14), LARGEST_VALUE(15),
				       LARGEST_VALUE(16)};
_Static_assert(ARRAY_SIZE(largest) == SUMMARY_LARGEST, "one value each");

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
	const struct value *value; /* NULL: the one number at `at` */
	size_t count, at;
	bool (*has)(unsigned int index); /* NULL: all of value */
	const char *only;		 /* the label of the one number */
	bool is_one;			 /* the one number is 1 */
};

#define COUNTER LIVE_METRIC_COUNTER
#define GAUGE LIVE_METRIC_GAUGE
#define COUNTER_NS (LIVE_METRIC_COUNTER | LIVE_METRIC_NS)
#define GAUGE_NS (LIVE_METRIC_GAUGE | LIVE_METRIC_NS)
#define VERSION .is_one = true, .only = PYPROFD_VERSION
#define NUMBER(field) .at = offsetof(struct summary, field)
#define KIND_CPU(field) .only = "cpu", .at = offsetof(struct summary, field)
#define LIST(list) .value = (list), .count = ARRAY_SIZE(list)
#define KIND_TIMES LIST(times)
#define MEMORIES LIST(memories)
#define LARGEST LIST(largest)
#define STOPS LIST(stops), .has = is_cut
#define PYTHON_STOPS LIST(python_stops), .has = lacks_python
#define SAMPLE_LOSSES LIST(losses), .has = summary_is_sample_loss
#define OTHER_LOSSES LIST(losses), .has = is_other_loss
#define METRIC(metric_name, metric_kind, label_name, where, text)                                  \
	{.name = (metric_name),                                                                    \
	 .kind = (metric_kind),                                                                    \
	 .label = (label_name),                                                                    \
	 .help = (text),                                                                           \
	 where},

static const struct metric metrics[] = {AGENT_METRICS(METRIC)};

static uint64_t number_at(const struct summary *summary, size_t at)
{
	return *(const uint64_t *)((const char *)summary + at);
}

/* label_value: NULL: the metric has no label. */
static void put(FILE *out, const struct metric *metric, const char *label_value, uint64_t number)
{
	char labels[LABELS_BYTES] = "";

	if (label_value)
		snprintf(labels, sizeof(labels), "%s=\"%s\"", metric->label, label_value);
	live_record_write(out, &(struct live_record){
				       .kind = LIVE_VALUE, .number = {number}, .text = {labels}});
}

static void put_metric(FILE *out, const struct metric *metric, const struct summary *summary)
{
	const struct live_record head = {.kind = LIVE_METRIC,
					 .number = {metric->kind},
					 .text = {metric->name, metric->help}};

	live_record_write(out, &head);
	if (!metric->value)
		put(out, metric, metric->only, metric->is_one ? 1 : number_at(summary, metric->at));
	for (size_t i = 0; i < metric->count; i++)
		if (!metric->has || metric->has((unsigned int)i))
			put(out, metric, metric->value[i].label,
			    number_at(summary, metric->value[i].at));
}

int metrics_tell(const struct metrics_sources *sources, char **ret_text, size_t *ret_size)
{
	OWNED_MEM char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return -ENOMEM;
	for (size_t i = 0; i < ARRAY_SIZE(metrics); i++)
		put_metric(out, &metrics[i], sources->summary);
	gpu_metrics_write(sources->gauges, out);
	live_record_write(out, &(struct live_record){.kind = LIVE_END});
	if (close_memory_file(out, &text))
		return -ENOMEM;
	*ret_text = TAKE(text);
	*ret_size = size;
	return 0;
}
