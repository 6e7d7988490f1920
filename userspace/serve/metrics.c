/* SPDX-License-Identifier: BSD-2-Clause */
#include "serve/metrics.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/task.h"
#include "live/client.h"
#include "live/record.h"

#define ANSWER_NS (5 * NS_PER_SEC)
#define ANSWER_MAX_BYTES (256U << 10)

/* ---- the text format ---- */

static void put_head(FILE *out, const char *name, bool is_gauge, const char *help)
{
	fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name,
		is_gauge ? "gauge" : "counter");
}

static void put_value(FILE *out, const char *name, const char *labels, uint64_t value, bool is_ns)
{
	fprintf(out, "%s%s%s%s ", name, labels[0] ? "{" : "", labels, labels[0] ? "}" : "");
	if (is_ns)
		fprintf(out, "%llu.%09llu\n", value / NS_PER_SEC, value % NS_PER_SEC);
	else
		fprintf(out, "%" PRIu64 "\n", value);
}

/* ---- the agent's ---- */

static bool is_name(const char *text)
{
	return text[0] && strlen(text) < METRICS_NAME_BYTES &&
	       !text[strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_")];
}

/* Returns whether a text cannot end its line, or begin an escape. */
static bool is_plain(const char *text)
{
	return !text[strcspn(text, "\n\r\\")];
}

/* Returns what follows a label, key="value"; NULL: it is none. */
static const char *after_label(const char *text)
{
	const size_t key = strspn(text, "abcdefghijklmnopqrstuvwxyz_");
	const char *end;

	if (!key || text[key] != '=' || text[key + 1] != '"')
		return NULL;
	end = strchr(text + key + 2, '"');
	return end ? end + 1 : NULL;
}

/* Returns whether these are no labels, or some: kind="cpu",gpu="0". */
static bool are_labels(const char *text)
{
	if (!text[0])
		return true;
	if (!is_plain(text))
		return false;
	while ((text = after_label(text)) && *text == ',')
		text++;
	return text && !*text;
}

int metrics_take_line(char *line, size_t size, struct metrics_head *head, FILE *out)
{
	struct live_record record;
	int err = live_record_parse(line, size, &record);

	if (err == -ENOENT)
		return 0; /* a record of a later agent */
	if (err)
		return err;
	if (record.kind == LIVE_END)
		return 1;
	if (record.kind == LIVE_METRIC) {
		if (!is_name(record.text[0]) || !is_plain(record.text[1]))
			return -EBADMSG;
		snprintf(head->name, sizeof(head->name), "%s", record.text[0]);
		head->kind = (unsigned int)record.number[0];
		put_head(out, head->name, head->kind & LIVE_METRIC_GAUGE, record.text[1]);
		return 0;
	}
	if (record.kind != LIVE_VALUE || !head->name[0] || !are_labels(record.text[0]))
		return -EBADMSG;
	put_value(out, head->name, record.text[0], record.number[0], head->kind & LIVE_METRIC_NS);
	return 0;
}

/* Reads the answer up to its end.  Returns its size; -errno. */
static ssize_t read_answer(int fd, char *answer)
{
	const uint64_t until_ns = mono_ns() + ANSWER_NS;
	size_t size = 0;

	while (size < ANSWER_MAX_BYTES) {
		struct pollfd source = {.fd = fd, .events = POLLIN};
		const uint64_t now_ns = mono_ns();
		ssize_t got;

		if (now_ns >= until_ns ||
		    poll(&source, 1, (int)((until_ns - now_ns) / NS_PER_MS) + 1) <= 0)
			return -ETIMEDOUT;
		got = recv(fd, answer + size, ANSWER_MAX_BYTES - size, MSG_DONTWAIT);
		if (got < 0)
			return -errno;
		if (!got)
			return (ssize_t)size;
		size += (size_t)got;
	}
	return -E2BIG;
}

/* Asks the agent.  Returns 0, and its metrics in out; -errno: what is in out is not whole. */
static int ask_agent(const char *live, FILE *out)
{
	static const struct live_request request = {.verb = LIVE_STATS};
	CLEANUP(live_client_free_owned) struct live_client *client = NULL;
	OWNED_MEM char *answer = malloc(ANSWER_MAX_BYTES + 1);
	OWNED_FILE FILE *words = fopen("/dev/null", "we");
	struct metrics_head head = {.name = ""};
	ssize_t size;
	int more = answer && words ? live_client_open(live, &request, words, &client) : -ENOMEM;

	if (more)
		return more;
	size = read_answer(live_client_fd(client), answer);
	if (size < 0)
		return (int)size;
	answer[size] = '\0';
	for (char *line = answer, *end; !more && (end = strchr(line, '\n')); line = end + 1) {
		*end = '\0';
		more = metrics_take_line(line, (size_t)(end - line), &head, out);
	}
	return more == 1 ? 0 : -EBADMSG;
}

static void put_agent(FILE *out, const char *live, bool *ret_is_up)
{
	OWNED_MEM char *text = NULL;
	size_t size;
	FILE *part = open_memstream(&text, &size);
	int err = part ? ask_agent(live, part) : -ENOMEM;

	if (part && close_memory_file(part, &text))
		err = -ENOMEM;
	*ret_is_up = !err;
	if (!err)
		fwrite(text, 1, size, out);
}

/* ---- this program's own ---- */

#define LABEL(id, label) label,
static const char *const codes[] = {COUNTS_CODES(LABEL)};
static const char *const refusals[] = {COUNTS_REFUSALS(LABEL)};

static void put_each(FILE *out, const char *name, const char *key, const char *const *label,
		     size_t count, const atomic_ullong *value)
{
	char labels[64];

	for (size_t i = 0; i < count; i++) {
		snprintf(labels, sizeof(labels), "%s=\"%s\"", key, label[i]);
		put_value(out, name, labels, atomic_load(&value[i]), false);
	}
}

#define METRIC_ID(name, kind, label, metric, help) metric,
enum own_metric { SERVE_METRICS(METRIC_ID) };

/* at_ms: 0: there is nothing whose age it could be. */
static uint64_t age_ns(uint64_t now_ms, uint64_t at_ms)
{
	return at_ms && at_ms < now_ms ? (now_ms - at_ms) * NS_PER_MS : 0;
}

/* Returns the number of a metric that has one. */
static uint64_t own_number(enum own_metric metric, const struct metrics_sources *sources)
{
	switch (metric) {
	case STORE_FILES:
		return sources->store->files;
	case STORE_BYTES:
		return sources->store->bytes;
	case STORE_OLDEST:
		return age_ns(sources->now_ms, sources->store->from_ms);
	case STORE_NEWEST:
		return age_ns(sources->now_ms, sources->store->until_ms);
	case SENT:
		return atomic_load(&sources->counts->sent_bytes);
	case CONNECTIONS:
		return atomic_load(&sources->counts->connections);
	case WORK:
		return sources->work;
	case CPU:
		return own_cost_cpu_ns();
	default:
		return own_cost_rss_bytes();
	}
}

static void put_own(FILE *out, enum own_metric metric, const char *name, const char *key,
		    const struct metrics_sources *sources, bool is_up)
{
	const bool is_ns = metric == CPU || metric == STORE_OLDEST || metric == STORE_NEWEST;

	switch (metric) {
	case UP:
		put_value(out, name, "", is_up, false);
		break;
	case CODES:
		put_each(out, name, key, codes, ARRAY_SIZE(codes), sources->counts->code);
		break;
	case REFUSALS:
		put_each(out, name, key, refusals, ARRAY_SIZE(refusals), sources->counts->refused);
		break;
	default:
		put_value(out, name, "", own_number(metric, sources), is_ns);
		break;
	}
}

int metrics_text(const struct metrics_sources *sources, char **ret_text, size_t *ret_size)
{
#define COUNTER false
#define GAUGE true
#define METRIC(name, is_gauge, label, metric, help) {name, is_gauge, label, metric, help},
	static const struct {
		const char *name;
		bool is_gauge;
		const char *label;
		enum own_metric metric;
		const char *help;
	} all[] = {SERVE_METRICS(METRIC)};
	bool is_up;
	OWNED_MEM char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return -ENOMEM;
	put_agent(out, sources->live, &is_up);
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		put_head(out, all[i].name, all[i].is_gauge, all[i].help);
		put_own(out, all[i].metric, all[i].name, all[i].label, sources, is_up);
	}
	if (sources->push)
		push_write_metrics(sources->push, out);
	if (close_memory_file(out, &text))
		return -ENOMEM;
	*ret_text = TAKE(text);
	*ret_size = size;
	return 0;
}
