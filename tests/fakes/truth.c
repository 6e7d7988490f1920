/* SPDX-License-Identifier: BSD-2-Clause */
/* The fake libcuda.so.1's counters: kept, read by fake_cuda_*(), written as JSON. */
#include "driver.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct truth truth = {
	.drained.lock = PTHREAD_MUTEX_INITIALIZER,
	.proven.lock = PTHREAD_MUTEX_INITIALIZER,
	.kernel_lock = PTHREAD_MUTEX_INITIALIZER,
};

static const char *const api_name[API_COUNT] = {
#define FAKE_API(name) #name,
#include "driver_apis.h"
#undef FAKE_API
};
static const char *const direction_name[DIRECTION_COUNT] = {
	"htod", "dtoh", "dtod", "ptop", "htoh", "memset",
};

static struct api_row *find_api(const char *name)
{
	for (unsigned int i = 0; i < API_COUNT; i++)
		if (!strcmp(api_name[i], name))
			return &truth.api[i];
	return NULL;
}

/* ---------------------------------------------------------------- kernels by name */

static unsigned int bucket_of(const char *name)
{
	uint64_t sum = 1;

	for (; *name; name++)
		sum = fake_cuda_mix(sum, (unsigned char)*name);
	return sum % KERNEL_ROWS;
}

static struct kernel_row *find_kernel(const char *name, unsigned int bucket)
{
	for (struct kernel_row *row = truth.bucket[bucket]; row; row = row->next)
		if (!strncmp(row->name, name, sizeof(row->name) - 1))
			return row;
	return NULL;
}

struct kernel_row *truth_kernel(const char *name)
{
	unsigned int bucket = bucket_of(name);
	struct kernel_row *row;

	pthread_mutex_lock(&truth.kernel_lock);
	row = find_kernel(name, bucket);
	if (!row) {
		row = calloc(1, sizeof(*row));
		if (row) {
			snprintf(row->name, sizeof(row->name), "%s", name);
			row->duration_ns = get(&truth.default_kernel_ns);
			row->next = truth.bucket[bucket];
			truth.bucket[bucket] = row;
		}
	}
	pthread_mutex_unlock(&truth.kernel_lock);
	return row;
}

uint64_t truth_copy_ns(uint64_t bytes)
{
	uint64_t rate = get(&truth.copy_bytes_per_us);

	return get(&truth.copy_latency_ns) + (rate ? bytes * 1000 / rate : 0);
}

/* ---------------------------------------------------------------- intervals */

/* Called with the list's lock.  A row that finds no memory is lost. */
static void append(struct interval_list *list, uint64_t begin_ns, uint64_t end_ns)
{
	if (list->count == list->room) {
		size_t room = list->room ? list->room * 2 : 64;
		struct fake_cuda_interval *rows = realloc(list->row, room * sizeof(*rows));

		if (!rows)
			return;
		list->row = rows;
		list->room = room;
	}
	list->row[list->count++] = (struct fake_cuda_interval){begin_ns, end_ns};
}

void interval_close(struct interval_list *list)
{
	pthread_mutex_lock(&list->lock);
	if (list->since_ns)
		append(list, list->since_ns, now_ns());
	list->since_ns = 0;
	pthread_mutex_unlock(&list->lock);
}

/* A launch first raises *must_be_0 and then looks at since_ns; this goes the other way, so that
 * one of the two sees the other. */
void interval_open(struct interval_list *list, const counter *must_be_0)
{
	if (atomic_load(must_be_0) || atomic_load(&list->since_ns))
		return;
	pthread_mutex_lock(&list->lock);
	if (!list->since_ns) {
		atomic_store(&list->since_ns, now_ns());
		if (atomic_load(must_be_0))
			atomic_store(&list->since_ns, 0);
	}
	pthread_mutex_unlock(&list->lock);
}

size_t fake_cuda_drained(int proven, struct fake_cuda_interval *ret_rows, size_t room)
{
	struct interval_list *list = proven ? &truth.proven : &truth.drained;
	size_t count;

	pthread_mutex_lock(&list->lock);
	count = list->count;
	for (size_t i = 0; i < count && i < room; i++)
		ret_rows[i] = list->row[i];
	if (list->since_ns) {
		if (count < room)
			ret_rows[count] = (struct fake_cuda_interval){list->since_ns, 0};
		count++;
	}
	pthread_mutex_unlock(&list->lock);
	return count;
}

/* ---------------------------------------------------------------- settings */

void fake_cuda_set_kernel_ns(const char *name, uint64_t ns)
{
	struct kernel_row *row = truth_kernel(name);

	if (row)
		row->duration_ns = ns;
}

void fake_cuda_set_kernel_params(const char *name, unsigned int count)
{
	struct kernel_row *row = truth_kernel(name);

	if (row)
		row->param_count = count;
}

void fake_cuda_set_copy(uint64_t latency_ns, uint64_t bytes_per_us)
{
	truth.copy_latency_ns = latency_ns;
	truth.copy_bytes_per_us = bytes_per_us;
}

int fake_cuda_next_error(const char *api, int error, unsigned int times)
{
	struct api_row *row = find_api(api);

	if (!row)
		return -ENOENT;
	row->next_error = error;
	row->errors_left = times;
	row->is_special = times || row->delay_ns;
	return 0;
}

int fake_cuda_set_call_ns(const char *api, uint64_t ns)
{
	struct api_row *row = find_api(api);

	if (!row)
		return -ENOENT;
	row->delay_ns = ns;
	row->is_special = ns || row->errors_left;
	return 0;
}

/* ---------------------------------------------------------------- reading */

struct named {
	const char *name;
	const counter *value;
};

static uint64_t value_of(const struct named *row, size_t count, const char *what)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(row[i].name, what))
			return get(row[i].value);
	return UINT64_MAX;
}

#define API_NAMED(row)                                                                             \
	{                                                                                          \
		{"calls", &(row)->calls},	{"errors", &(row)->errors},                        \
		{"captured", &(row)->captured}, {"executed", &(row)->executed},                    \
		{"bytes", &(row)->bytes},	{"captured_bytes", &(row)->captured_bytes},        \
		{"wait_ns", &(row)->wait_ns},                                                      \
	}
#define KERNEL_NAMED(row)                                                                          \
	{                                                                                          \
		{"calls", &(row)->calls},	{"captured", &(row)->captured},                    \
		{"executed", &(row)->executed}, {"in_graphs", &(row)->in_graphs},                  \
		{"threads", &(row)->threads},	{"ns", &(row)->ns},                                \
	}
#define COPY_NAMED(row)                                                                            \
	{                                                                                          \
		{"count", &(row)->count},                                                          \
		{"bytes", &(row)->bytes},                                                          \
		{"captured_count", &(row)->captured_count},                                        \
		{"captured_bytes", &(row)->captured_bytes},                                        \
		{"in_graphs", &(row)->in_graphs},                                                  \
	}
static const struct named totals[] = {
	{"live_bytes", &truth.live_bytes},	     {"peak_bytes", &truth.peak_bytes},
	{"live_host_bytes", &truth.live_host_bytes}, {"outstanding", &truth.outstanding},
	{"dirty_streams", &truth.dirty_streams},     {"queue_full", &truth.queue_full},
	{"graph_launches", &truth.graph_launches},
};
#define COUNT_OF(rows) (sizeof(rows) / sizeof((rows)[0]))

uint64_t fake_cuda_count(const char *api, const char *what)
{
	struct api_row *row = find_api(api);

	if (!row)
		return UINT64_MAX;
	const struct named named[] = API_NAMED(row);

	return value_of(named, COUNT_OF(named), what);
}

uint64_t fake_cuda_kernel(const char *name, const char *what)
{
	struct kernel_row *row;

	pthread_mutex_lock(&truth.kernel_lock);
	row = find_kernel(name, bucket_of(name));
	pthread_mutex_unlock(&truth.kernel_lock);
	if (!row)
		return UINT64_MAX;
	const struct named named[] = KERNEL_NAMED(row);

	return value_of(named, COUNT_OF(named), what);
}

uint64_t fake_cuda_total(const char *what)
{
	for (unsigned int i = 0; i < DIRECTION_COUNT; i++) {
		size_t length = strlen(direction_name[i]);
		struct copy_row *row = &truth.copy[i];
		const struct named named[] = COPY_NAMED(row);

		if (!strncmp(what, direction_name[i], length) && what[length] == '_')
			return value_of(named, COUNT_OF(named), what + length + 1);
	}
	return value_of(totals, COUNT_OF(totals), what);
}

uint64_t fake_cuda_checksum(void)
{
	return get(&truth.checksum);
}

static void zero_intervals(struct interval_list *list)
{
	list->count = 0;
	list->since_ns = 0;
}

void truth_zero(void)
{
	for (unsigned int i = 0; i < API_COUNT; i++) {
		struct api_row *row = &truth.api[i];

		row->calls = row->errors = row->captured = row->executed = row->bytes = 0;
		row->captured_bytes = row->wait_ns = 0;
	}
	for (unsigned int i = 0; i < KERNEL_ROWS; i++)
		for (struct kernel_row *row = truth.bucket[i]; row; row = row->next)
			row->calls = row->captured = row->executed = row->in_graphs = row->threads =
				row->ns = 0;
	memset(truth.copy, 0, sizeof(truth.copy));
	truth.checksum = truth.queue_full = truth.graph_launches = 0;
	truth.peak_bytes = get(&truth.live_bytes);
	zero_intervals(&truth.drained);
	zero_intervals(&truth.proven);
}

void fake_cuda_reset(void)
{
	truth_zero();
}

/* ---------------------------------------------------------------- JSON */

static void print_named(FILE *file, const struct named *row, size_t count)
{
	for (size_t i = 0; i < count; i++)
		fprintf(file, "%s\"%s\": %llu", i ? ", " : "", row[i].name,
			(unsigned long long)get(row[i].value));
}

static void print_apis(FILE *file)
{
	const char *comma = "";

	fputs("\"api\": {", file);
	for (unsigned int i = 0; i < API_COUNT; i++) {
		const struct named named[] = API_NAMED(&truth.api[i]);

		if (!get(&truth.api[i].calls))
			continue;
		fprintf(file, "%s\n  \"%s\": {", comma, api_name[i]);
		print_named(file, named, COUNT_OF(named));
		fputc('}', file);
		comma = ",";
	}
	fputs("},\n", file);
}

static void print_kernels(FILE *file)
{
	const char *comma = "";

	fputs("\"kernels\": {", file);
	for (unsigned int i = 0; i < KERNEL_ROWS; i++)
		for (struct kernel_row *row = truth.bucket[i]; row; row = row->next) {
			const struct named named[] = KERNEL_NAMED(row);

			/* Names are identifiers: nothing in them to escape. */
			fprintf(file, "%s\n  \"%s\": {", comma, row->name);
			print_named(file, named, COUNT_OF(named));
			fputc('}', file);
			comma = ",";
		}
	fputs("},\n\"copies\": {", file);
	for (unsigned int i = 0; i < DIRECTION_COUNT; i++) {
		const struct named named[] = COPY_NAMED(&truth.copy[i]);

		fprintf(file, "%s\n  \"%s\": {", i ? "," : "", direction_name[i]);
		print_named(file, named, COUNT_OF(named));
		fputc('}', file);
	}
	fputs("},\n", file);
}

static void print_intervals(FILE *file, const char *name, const struct interval_list *list)
{
	fprintf(file, "\"%s\": [", name);
	for (size_t i = 0; i < list->count; i++)
		fprintf(file, "%s[%llu, %llu]", i ? ", " : "",
			(unsigned long long)list->row[i].begin_ns,
			(unsigned long long)list->row[i].end_ns);
	if (list->since_ns)
		fprintf(file, "%s[%llu, null]", list->count ? ", " : "",
			(unsigned long long)list->since_ns);
	fputs("],\n", file);
}

int fake_cuda_write_truth(const char *path)
{
	FILE *file = fopen(path, "we");

	if (!file)
		return -errno;
	fprintf(file, "{\"pid\": %d, \"is_forked\": %s, \"now_ns\": %llu,\n", (int)getpid(),
		driver.state == DRIVER_FORKED ? "true" : "false", (unsigned long long)now_ns());
	print_apis(file);
	print_kernels(file);
	print_intervals(file, "drained", &truth.drained);
	print_intervals(file, "proven", &truth.proven);
	handles_print(file);
	memory_print(file);
	fputs("\"totals\": {", file);
	print_named(file, totals, COUNT_OF(totals));
	fprintf(file, ", \"checksum\": %llu}}\n", (unsigned long long)fake_cuda_checksum());
	return fclose(file) ? -errno : 0;
}

/* A forked child has no right to its parent's file. */
__attribute__((destructor)) void truth_at_exit(void)
{
	const char *wanted = getenv("FAKE_CUDA_TRUTH");
	const char *pid = wanted ? strstr(wanted, "%p") : NULL;
	char path[4096];

	if (!wanted || (!pid && driver.state == DRIVER_FORKED))
		return;
	if (pid)
		snprintf(path, sizeof(path), "%.*s%d%s", (int)(pid - wanted), wanted, (int)getpid(),
			 pid + 2);
	else
		snprintf(path, sizeof(path), "%s", wanted);
	if (fake_cuda_write_truth(path))
		perror(path);
}
