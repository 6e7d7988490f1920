/* SPDX-License-Identifier: BSD-2-Clause */
/* Caches of symbols, files, stacks and processes are stand-ins; the questions are asked as the
 * symbolizer asks them. */
#include "agent/naming.h"

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attach/context_table.h"
#include "attach/file_table.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/log.h"
#include "discover/proc_scan.h"
#include "discover/process_table.h"
#include "drain/dictionary.h"
#include "options/options.h"
#include "symbolize/kernel_symbols.h"
#include "symbolize/native_symbols.h"
#include "symbolize/perf_map.h"
#include "symbolize/symbolizer.h"
#include "windows/modules.h"
#include "windows/source.h"

#define MIB (1ULL << 20)
#define JITS_MAX 256U
#define KEPT_MAX 65536U

struct native_symbols {
	char dummy;
};
struct kernel_symbols {
	char dummy;
};
struct symbolizer {
	char dummy;
};
struct perf_map {
	size_t bytes;
	unsigned int refreshes;
	const char *refusal;
};

static const char *fails; /* the name of the call that fails */
static int error;	  /* what it returns */
static int open_parts;
static char calls[4096];
static char told[1024];
static uint64_t now_ns, wall_ahead_ns;

__attribute__((format(printf, 1, 2))) static void call(const char *format, ...)
{
	const size_t used = strlen(calls);
	va_list args;

	va_start(args, format);
	vsnprintf(calls + used, sizeof(calls) - used, format, args);
	va_end(args);
}

static int result(const char *name)
{
	return fails && !strcmp(fails, name) ? error : 0;
}

/* ---- stand-ins ---- */

int clock_gettime(clockid_t clock, struct timespec *time)
{
	const uint64_t ns = now_ns + (clock == CLOCK_REALTIME ? wall_ahead_ns : 0);

	*time = (struct timespec){.tv_sec = (time_t)(ns / NS_PER_SEC),
				  .tv_nsec = (long)(ns % NS_PER_SEC)};
	return 0;
}

void log_line(enum log_level level, const char *format, ...)
{
	const size_t used = strlen(told);
	va_list args;

	assert_int_equal(level, LOG_LEVEL_WARN);
	va_start(args, format);
	vsnprintf(told + used, sizeof(told) - used, format, args);
	va_end(args);
	strcat(told, "\n");
}

int log_line_errno(enum log_level level, int err, const char *format, ...)
{
	log_line(level, "%s", format);
	return err;
}

int native_symbols_new(size_t max_bytes, struct native_symbols **ret_symbols)
{
	static struct native_symbols symbols;

	assert_int_equal(max_bytes, 3 * MIB);
	if (result("native"))
		return error;
	*ret_symbols = &symbols;
	open_parts++;
	return 0;
}

void native_symbols_free(struct native_symbols *symbols)
{
	open_parts -= symbols != NULL;
}

static struct native_file asked; /* of the last resolve */

/* Odd addresses lie in no function. */
int native_symbols_resolve(struct native_symbols *symbols, const struct native_file *file,
			   const uint64_t *vaddr, size_t count, struct native_symbol *ret_symbol)
{
	assert_non_null(symbols);
	asked = *file;
	call("%s#%u:", file->path, file->id);
	for (size_t i = 0; i < count; i++)
		call(i < 4 ? " %llx" : "", (unsigned long long)vaddr[i]);
	call(" (%zu)\n", count);
	for (size_t i = 0; i < count; i++)
		ret_symbol[i] =
			(struct native_symbol){.name = vaddr[i] & 1 ? "[file]" : "function",
					       .system_name = vaddr[i] & 1 ? "" : "_Zfunction",
					       .found = !(vaddr[i] & 1)};
	return result("resolve");
}

struct native_symbols_counters native_symbols_counters(const struct native_symbols *symbols)
{
	assert_non_null(symbols);
	return (struct native_symbols_counters){.refused_files = 5};
}

int kernel_symbols_new(const char *proc, struct kernel_symbols **ret_symbols)
{
	static struct kernel_symbols symbols;

	assert_string_equal(proc, "/proc");
	if (result("kernel"))
		return error;
	*ret_symbols = &symbols;
	open_parts++;
	return 0;
}

void kernel_symbols_free(struct kernel_symbols *symbols)
{
	open_parts -= symbols != NULL;
}

static const struct slice *read_until;
int kernel_symbols_read(struct kernel_symbols *symbols, const struct slice *slice)
{
	(void)symbols;
	read_until = slice;
	call("kernel read\n");
	return 1;
}

int kernel_symbols_find(struct kernel_symbols *symbols, uint64_t address, const char **ret_name,
			const char **ret_module)
{
	assert_non_null(symbols);
	call("kernel %llx\n", (unsigned long long)address);
	*ret_name = "do_idle";
	*ret_module = "";
	return result("find");
}

int kernel_symbols_refresh(struct kernel_symbols *symbols)
{
	assert_non_null(symbols);
	call("refresh\n");
	return 0;
}

static struct perf_map_source source; /* of the last refresh */
static size_t read_bytes;	      /* that each refresh reads */
static const char *map_refusal;
static size_t mapped_bytes;
static unsigned int refreshes;

int perf_map_new(struct perf_map **ret_map)
{
	if (result("map"))
		return error;
	*ret_map = calloc(1, sizeof(**ret_map));
	assert_non_null(*ret_map);
	open_parts++;
	return 0;
}

void perf_map_free(struct perf_map *map)
{
	open_parts -= map != NULL;
	free(map);
}

int perf_map_refresh(struct perf_map *map, const struct perf_map_source *of, size_t *ret_read_bytes)
{
	source = *of;
	refreshes++;
	map->refreshes++;
	map->refusal = map_refusal;
	map->bytes = mapped_bytes;
	*ret_read_bytes = read_bytes < of->max_bytes ? read_bytes : of->max_bytes;
	return 0;
}

const char *perf_map_refusal(const struct perf_map *map)
{
	return map->refusal;
}

/* Entries are known once the file was read. */
int perf_map_find(const struct perf_map *map, uint64_t address, const char **ret_name,
		  uint64_t *ret_start)
{
	if (!map->refreshes || address != 0x1000)
		return -ENOENT;
	*ret_name = "jitted";
	*ret_start = address;
	return 0;
}

size_t perf_map_bytes(const struct perf_map *map)
{
	return map->bytes;
}

static struct python_info interpreter;
static char path_a[] = "/lib/a.so", path_b[] = "/bin/b";
static struct file files[] = {
	{.id = 0x40000003, .path = path_a},
	{.id = 0x40000005, .path = path_b, .python = &interpreter},
};
static bool is_gone; /* file_table_find() has forgotten the file */

struct file *file_table_in_slot(const struct file_table *table, uint32_t slot)
{
	(void)table;
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		if (file_slot(files[i].id) == slot)
			return &files[i];
	return NULL;
}

struct file *file_table_find(const struct file_table *table, uint32_t id)
{
	struct file *file = file_table_in_slot(table, file_slot(id));

	return !is_gone && file && file->id == id ? file : NULL;
}

int file_table_functions(struct file_table *table, struct file *file, const uint64_t *vaddr,
			 size_t count, foreign_function_handler *found, void *context)
{
	const struct foreign_function function = {.name = file->path, .system_name = ""};

	(void)table, (void)vaddr;
	for (size_t i = 0; i < count; i++)
		found(context, &function);
	return result("functions");
}

void file_table_get_stats(const struct file_table *table, struct file_table_stats *ret_stats)
{
	(void)table;
	*ret_stats = (struct file_table_stats){.refused = 30, .files = 100};
}

packed_frame packed_native(enum pp_frame_kind kind, uint32_t file, uint64_t address)
{
	return (packed_frame)kind << 61 | (packed_frame)file << 40 | address;
}

static packed_frame frames[KEPT_MAX + 1];
static size_t frame_count;
static uint64_t wanted_files[1] = {0x28};

void dictionary_find_frames(const struct dictionary *dictionary, const uint64_t *of,
			    void (*found)(void *context, packed_frame frame), void *context)
{
	(void)dictionary;
	assert_ptr_equal(of, wanted_files);
	for (size_t i = 0; i < frame_count; i++)
		found(context, frames[i]);
}

static struct process processes[2];
static bool is_forgotten; /* the table knows no process any more */

struct process *process_table_find(const struct process_table *table, struct pp_process_id id)
{
	(void)table;
	if (is_forgotten)
		return NULL;
	if (id.tgid == 8)
		return &processes[1];
	processes[0].id = id;
	return &processes[0];
}

int process_live_task(pid_t pid, pid_t *ret_tid)
{
	*ret_tid = pid + 1; /* the main thread has ended */
	return result("task");
}

int proc_status_read(uint32_t pid, struct proc_status *ret_status)
{
	*ret_status = (struct proc_status){.uid = pid + 1000};
	return result("status");
}

int write_full(int fd, const void *data, size_t size)
{
	const ssize_t written = write(fd, data, size);

	return written < 0 || (size_t)written != size ? -EIO : result("write");
}

const struct python_info *context_table_python_info(const struct context_table *table,
						    uint32_t index)
{
	(void)table;
	return index == 4 ? &interpreter : NULL;
}

static char numbered, renumbered; /* stand for modules */

uint32_t modules_get(struct modules *modules, uint32_t slot)
{
	return slot + ((void *)modules == &numbered ? 100 : 200);
}

static struct symbolizer_sources ask;
static struct symbolizer_options how;

void code_decoder_begin(struct code_decoder *decoder)
{
	call("begin decoding\n");
	decoder->without_names += 10;
}

/* Each call gives one up. */
bool code_decoder_run(struct code_decoder *decoder, const struct slice *slice)
{
	call("decode %d %d\n", decoder->dictionary != NULL, decoder->foreign != NULL);
	decoder->given_up++;
	return slice_is_over(slice);
}

int symbolizer_new(struct intern *strings, const struct dictionary *dictionary,
		   const struct symbolizer_sources *sources,
		   const struct symbolizer_options *options, struct symbolizer **ret_symbolizer)
{
	static struct symbolizer symbolizer;

	(void)strings, (void)dictionary;
	ask = *sources;
	how = *options;
	*ret_symbolizer = &symbolizer;
	return result("symbolizer");
}

/* ---- */

static struct naming *naming;
static struct options run;
static struct services services;
static char table; /* stands for the file table */

static void begin(void)
{
	struct symbolizer *symbolizer;

	assert_int_equal(naming_begin(naming, &(struct naming_options){}, &symbolizer), 0);
}

static uint64_t loss_of(const struct naming *of, enum pp_loss which)
{
	uint64_t loss[PP_LOSS_COUNT] = {0};

	naming_count(of, loss);
	return loss[which];
}

static int setup(void **state)
{
	(void)state;
	fails = NULL;
	error = -ENOMEM;
	open_parts = 0;
	calls[0] = told[0] = '\0';
	now_ns = 100 * NS_PER_SEC;
	wall_ahead_ns = 5000 * NS_PER_SEC;
	is_gone = is_forgotten = false;
	read_bytes = mapped_bytes = 0;
	map_refusal = NULL;
	refreshes = 0;
	frame_count = 0;
	interpreter.bpf.chain = PP_CHAIN_FRAME_OBJECT;
	processes[0] = (struct process){.inner_pid = 3, .start_ns = 90 * NS_PER_SEC};
	processes[1] = (struct process){.id = {.tgid = 8}, .start_ns = 100 * NS_PER_SEC};
	run = (struct options){};
	services = (struct services){.options = &run, .files = (struct file_table *)&table};
	assert_int_equal(naming_new(&services, &naming), 0);
	begin();
	calls[0] = '\0';
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	naming_free(naming);
	return open_parts;
}

static void new__releases_what_it_had_when_memory_ends(void **state)
{
	static const char *const part[] = {"native", "kernel"};

	(void)state;
	naming_free(naming);
	naming = NULL;
	for (size_t i = 0; i < ARRAY_SIZE(part); i++) {
		fails = part[i];
		assert_int_equal(naming_new(&services, &naming), -ENOMEM);
		assert_null(naming);
		assert_int_equal(open_parts, 0);
	}
}

/* ---- native ---- */

static struct symbol name_of(uint64_t address)
{
	struct symbol symbol = {};

	ask.native(ask.context, 3, &address, 1, &symbol);
	return symbol;
}

static void native__names_are_those_of_the_file_in_the_slot(void **state)
{
	const uint64_t address[] = {0x10, 0x20, 0x31};
	struct symbol symbol[3] = {};

	(void)state;
	ask.native(ask.context, 3, address, 3, symbol);
	assert_string_equal(calls, "/lib/a.so#1073741827: 10 20 31 (3)\n");
	assert_string_equal(symbol[0].name, "function");
	assert_string_equal(symbol[1].system_name, "_Zfunction");
	assert_string_equal(symbol[2].name, "[file]");
	assert_string_equal(symbol[2].system_name, "");
}

static void native__names_are_missing_without_the_file_or_memory(void **state)
{
	uint64_t address = 0x10;
	struct symbol symbol = {};

	(void)state;
	ask.native(ask.context, 4, &address, 1, &symbol);
	assert_string_equal(symbol.name, "[unmapped file]");
	assert_string_equal(symbol.system_name, "");
	assert_string_equal(calls, "");
	fails = "resolve";
	assert_string_equal(name_of(0x10).name, "[unmapped file]");
	assert_string_equal(name_of(0x10).system_name, "");
}

static void count_function(void *context, const struct foreign_function *function)
{
	assert_string_equal(function->name, path_a);
	++*(size_t *)context;
}

static void native__functions_are_those_of_the_file(void **state)
{
	static const uint64_t vaddr[] = {1, 2, 3};
	size_t count = 0;

	(void)state;
	(void)name_of(0x10);
	assert_int_equal(asked.find(asked.context, &asked, vaddr, 3, count_function, &count), 0);
	assert_int_equal(count, 3);
	fails = "functions";
	error = -EBADF;
	assert_int_equal(asked.find(asked.context, &asked, vaddr, 3, count_function, &count),
			 -EBADF);
	fails = NULL;
	is_gone = true;
	assert_int_equal(asked.find(asked.context, &asked, vaddr, 3, count_function, &count),
			 -ESTALE);
}

/* ---- files about to be closed ---- */

static void keep__names_the_frames_of_each_file_at_once(void **state)
{
	(void)state;
	frames[0] = packed_native(PP_FRAME_NATIVE, 5, 0x70);
	frames[1] = packed_native(PP_FRAME_NATIVE, 3, 0x30);
	frames[2] = packed_native(PP_FRAME_NATIVE, 5, 0x10);
	frames[3] = packed_native(PP_FRAME_NATIVE, 4, 0x10); /* no file any more */
	frames[4] = packed_native(PP_FRAME_NATIVE + 1, 3, 0x20);
	frames[5] = packed_native(PP_FRAME_NATIVE, 3, 0xffffffffff);
	frame_count = 6;
	assert_false(naming_keep(naming, wanted_files, NULL));
	assert_string_equal(calls, "/lib/a.so#1073741827: 20 30 ffffffffff (3)\n"
				   "/bin/b#1073741829: 10 70 (2)\n");
	/* It goes on with the next file. */
	calls[0] = '\0';
	fails = "resolve";
	assert_false(naming_keep(naming, wanted_files, NULL));
	assert_non_null(strstr(calls, "/bin/b"));
}

/* A file may take the child that parses it a quarter of a second. */
static void keep__goes_on_with_what_it_had_no_time_for(void **state)
{
	const struct slice over = {};

	(void)state;
	frames[0] = packed_native(PP_FRAME_NATIVE, 5, 0x10);
	frames[1] = packed_native(PP_FRAME_NATIVE, 3, 0x20);
	frame_count = 2;
	wanted_files[0] = 1ULL << 3 | 1ULL << 5 | 1ULL << 6;
	assert_true(naming_keep(naming, wanted_files, &over));
	assert_string_equal(calls, "/lib/a.so#1073741827: 20 (1)\n");
	assert_int_equal(wanted_files[0], 1ULL << 3 | 1ULL << 6); /* 6 has no frames */
	calls[0] = '\0';
	frame_count = 1;
	wanted_files[0] = 1ULL << 5;
	assert_false(naming_keep(naming, wanted_files, &over));
	assert_string_equal(calls, "/bin/b#1073741829: 10 (1)\n");
	assert_int_equal(wanted_files[0], 1ULL << 5);
}

static void keep__does_nothing_without_frames(void **state)
{
	(void)state;
	assert_false(naming_keep(naming, wanted_files, NULL));
	assert_string_equal(calls, "");
}

static void keep__is_bounded(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(frames); i++)
		frames[i] = packed_native(PP_FRAME_NATIVE, 3, 0x10000000 - i);
	frame_count = KEPT_MAX;
	assert_false(naming_keep(naming, wanted_files, NULL));
	assert_string_equal(calls, "/lib/a.so#1073741827: fff0001 fff0002 fff0003 fff0004 "
				   "(65536)\n");
	calls[0] = '\0';
	frame_count = KEPT_MAX + 1;
	assert_false(naming_keep(naming, wanted_files, NULL));
	assert_string_equal(calls, "/lib/a.so#1073741827: fff0001 fff0002 fff0003 fff0004 "
				   "(65536)\n");
}

/* ---- the kernel ---- */

static void kernel__names_that_cannot_be_read_are_told_once(void **state)
{
	const char *name = NULL, *module = NULL;

	(void)state;
	ask.kernel(ask.context, 0x55, &name, &module);
	assert_string_equal(name, "do_idle");
	assert_string_equal(calls, "kernel 55\n");
	fails = "find";
	error = -ENOENT; /* there is no such function */
	ask.kernel(ask.context, 0x55, &name, &module);
	assert_string_equal(told, "");
	error = -EACCES;
	ask.kernel(ask.context, 0x55, &name, &module);
	ask.kernel(ask.context, 0x56, &name, &module);
	assert_string_equal(told, "kernel frames have no names: cannot read /proc/kallsyms\n");
}

static void prepare__reads_the_kernels_names_unless_none_are_wanted(void **state)
{
	const struct slice slice = {.ends_ns = 1};
	struct naming *other;

	(void)state;
	naming_prepare(naming, &slice);
	assert_string_equal(calls, "kernel read\n");
	assert_ptr_equal(read_until, &slice);
	run.no_kernel = true;
	assert_int_equal(naming_new(&services, &other), 0);
	naming_prepare(other, &slice);
	assert_string_equal(calls, "kernel read\n");
	naming_free(other);
}

/* ---- JITs ---- */

static bool jit(uint32_t tgid)
{
	const struct pp_process_id id = {.tgid = tgid, .generation = 1};
	const char *name = NULL;

	if (!ask.anonymous(ask.context, id, 0x1000, &name))
		return false;
	assert_string_equal(name, "jitted");
	return true;
}

static void jit__file_is_read_once_a_window(void **state)
{
	const char *name;

	(void)state;
	assert_true(jit(7));
	assert_true(jit(7));
	assert_false(ask.anonymous(ask.context, (struct pp_process_id){7, 1}, 0x2000, &name));
	assert_int_equal(refreshes, 1);
	begin();
	assert_true(jit(7));
	assert_int_equal(refreshes, 2);
	assert_true(jit(9)); /* one file for each process */
	assert_int_equal(refreshes, 3);
}

static void jit__file_is_looked_for_as_its_process_sees_it(void **state)
{
	(void)state;
	assert_true(jit(7));
	assert_int_equal(source.tid, 8);
	assert_int_equal(source.inner_pid, 3);
	assert_int_equal(source.uid, 1008);
	assert_int_equal(source.started_s, 5090);
	assert_true(jit(8));
	assert_int_equal(source.inner_pid, 8); /* not known: it is in no namespace */
	assert_int_equal(source.started_s, 5100);
}

static void jit__of_a_process_that_cannot_be_asked_is_not_read(void **state)
{
	(void)state;
	fails = "map";
	assert_false(jit(7));
	fails = "task";
	assert_false(jit(7));
	fails = NULL;
	processes[0].exit_ns = 1;
	assert_false(jit(7));
	is_forgotten = true;
	assert_false(jit(7));
	is_forgotten = false;
	processes[0].exit_ns = 0;
	assert_int_equal(refreshes, 0);
	assert_true(jit(7));
	begin();
	fails = "status"; /* the names that were read stay */
	assert_true(jit(7));
	assert_int_equal(refreshes, 1);
}

static void jit__refusals_are_counted_and_each_reason_told_once(void **state)
{
	static const char link[] = "it is a link", other[] = "it is of another user";

	(void)state;
	map_refusal = link;
	(void)jit(7);
	(void)jit(9);
	assert_int_equal(loss_of(naming, PP_LOSS_PERF_MAPS_REFUSED), 2);
	assert_string_equal(told, "process 7: its /tmp/perf-PID.map is not read: it is a link; its "
				  "JIT code has no names\n");
	begin();
	(void)jit(7); /* still the same */
	assert_int_equal(loss_of(naming, PP_LOSS_PERF_MAPS_REFUSED), 2);
	begin();
	map_refusal = other;
	(void)jit(7);
	assert_int_equal(loss_of(naming, PP_LOSS_PERF_MAPS_REFUSED), 3);
	assert_non_null(strstr(told, "process 7: its /tmp/perf-PID.map is not read: it is of"));
	begin();
	map_refusal = NULL;
	(void)jit(7);
	begin();
	map_refusal = link;
	told[0] = '\0';
	(void)jit(7);
	assert_int_equal(loss_of(naming, PP_LOSS_PERF_MAPS_REFUSED), 4);
	assert_string_equal(told, "");
}

static void jit__number_of_files_is_bounded_to_living_processes(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < JITS_MAX; i++)
		assert_true(jit(1000 + i));
	assert_false(jit(999));
	assert_true(jit(1000));
	begin();
	assert_false(jit(999));
	is_forgotten = true;
	begin();
	assert_int_equal(open_parts, 2);
	is_forgotten = false;
	assert_true(jit(999));
}

static void jit__memory_of_all_files_is_bounded(void **state)
{
	(void)state;
	mapped_bytes = 64 * MIB - 1;
	assert_true(jit(7));
	mapped_bytes = 1;
	assert_true(jit(9));
	assert_int_equal(refreshes, 2);
	assert_string_equal(told, "");
	(void)jit(10);
	assert_int_equal(refreshes, 2);
	assert_non_null(strstr(told, "process 10: its /tmp/perf-PID.map is not read: all such "
				     "files took too much memory"));
	assert_int_equal(loss_of(naming, PP_LOSS_PERF_MAPS_REFUSED), 1);
}

static void jit__files_are_read_within_a_bound_a_second(void **state)
{
	(void)state;
	read_bytes = 10 * MIB;
	(void)jit(7);
	assert_int_equal(source.max_bytes, 32 * MIB);
	(void)jit(9);
	assert_int_equal(source.max_bytes, 22 * MIB);
	read_bytes = 0;
	now_ns += 2 * NS_PER_SEC;
	(void)jit(10);
	assert_int_equal(source.max_bytes, 20 * MIB); /* 12 and what 2 s add */
	now_ns += 59 * NS_PER_SEC;
	(void)jit(11);
	assert_int_equal(source.max_bytes, 32 * MIB); /* no more is saved */
	read_bytes = 32 * MIB;
	(void)jit(12);
	(void)jit(13);
	assert_int_equal(source.max_bytes, 0);
	now_ns += 61 * NS_PER_SEC;
	(void)jit(14);
	assert_int_equal(source.max_bytes, 32 * MIB);
}

/* ---- the symbolizer ---- */

static void begin__takes_the_options_of_the_run_and_of_the_call(void **state)
{
	struct symbolizer *symbolizer = NULL;
	struct naming_options options = {};
	struct naming *other;

	(void)state;
	assert_false(how.raw);
	assert_false(how.no_native);
	options.no_native = true;
	assert_int_equal(naming_begin(naming, &options, &symbolizer), 0);
	assert_non_null(symbolizer);
	assert_true(how.no_native);
	assert_false(how.raw);
	run.raw = run.no_native = true;
	options.no_native = false;
	assert_int_equal(naming_new(&services, &other), 0);
	assert_int_equal(naming_begin(other, &options, &symbolizer), 0);
	assert_true(how.no_native);
	assert_true(how.raw);
	naming_free(other);
	/* Modules that came or went in the kernel. */
	assert_string_equal(calls, "begin decoding\nrefresh\nbegin decoding\nrefresh\n");
	fails = "symbolizer";
	assert_int_equal(naming_begin(naming, &options, &symbolizer), -ENOMEM);
}

static void module__is_numbered_as_last_told_or_the_slot(void **state)
{
	struct naming_options options = {.modules = (struct modules *)&numbered};
	struct symbolizer_sources first;
	struct symbolizer *symbolizer;

	(void)state;
	assert_int_equal(ask.module(ask.context, 3), 3);
	assert_int_equal(naming_begin(naming, &options, &symbolizer), 0);
	assert_int_equal(ask.module(ask.context, 3), 103);
	first = ask;
	begin(); /* for a timeline, in between */
	assert_int_equal(ask.module(ask.context, 3), 3);
	assert_int_equal(first.module(first.context, 3), 103);
	options.modules = (struct modules *)&renumbered;
	assert_int_equal(naming_begin(naming, &options, &symbolizer), 0);
	assert_int_equal(ask.module(ask.context, 3), 203);
}

static void interpreter__is_known_by_its_file(void **state)
{
	(void)state;
	assert_false(ask.is_interpreter(ask.context, 3));
	assert_true(ask.is_interpreter(ask.context, 5));
	assert_false(ask.is_interpreter(ask.context, 4));
	assert_true(ask.has_one_frame_segments(ask.context, 4));
	assert_false(ask.has_one_frame_segments(ask.context, 0));
	interpreter.bpf.chain = PP_CHAIN_FRAME_OBJECT + 1;
	assert_false(ask.has_one_frame_segments(ask.context, 4));
}

static void codes__are_those_of_the_dictionary(void **state)
{
	const struct slice over = {.ends_ns = 0};
	struct services with = services;
	struct symbolizer *symbolizer;
	struct naming *other = NULL;

	(void)state;
	with.dictionary = (struct dictionary *)&table;
	with.foreign = (struct foreign *)&table;
	assert_int_equal(naming_new(&with, &other), 0);
	assert_int_equal(naming_begin(other, &(struct naming_options){}, &symbolizer), 0);
	calls[0] = '\0';
	assert_false(ask.codes(ask.context, NULL));
	assert_true(ask.codes(ask.context, &over));
	assert_string_equal(calls, "decode 1 1\ndecode 1 1\n");
	assert_int_equal(loss_of(other, PP_LOSS_CODES_REFUSED), 12);
	/* What was put off is asked about again by the next naming. */
	calls[0] = '\0';
	assert_int_equal(naming_begin(other, &(struct naming_options){}, &symbolizer), 0);
	assert_non_null(strstr(calls, "begin decoding\n"));
	assert_int_equal(loss_of(other, PP_LOSS_CODES_REFUSED), 22);
	naming_free(other);
}

static void refused_files__are_those_without_rows_and_those_without_names(void **state)
{
	struct naming *other;

	(void)state;
	assert_int_equal(loss_of(naming, PP_LOSS_FILES_REFUSED), 35);
	services.files = NULL;
	assert_int_equal(naming_new(&services, &other), 0);
	assert_int_equal(loss_of(other, PP_LOSS_FILES_REFUSED), 5);
	naming_free(other);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(new__releases_what_it_had_when_memory_ends),
		TEST(native__names_are_those_of_the_file_in_the_slot),
		TEST(native__names_are_missing_without_the_file_or_memory),
		TEST(native__functions_are_those_of_the_file),
		TEST(keep__names_the_frames_of_each_file_at_once),
		TEST(keep__goes_on_with_what_it_had_no_time_for),
		TEST(keep__does_nothing_without_frames),
		TEST(keep__is_bounded),
		TEST(kernel__names_that_cannot_be_read_are_told_once),
		TEST(prepare__reads_the_kernels_names_unless_none_are_wanted),
		TEST(jit__file_is_read_once_a_window),
		TEST(jit__file_is_looked_for_as_its_process_sees_it),
		TEST(jit__of_a_process_that_cannot_be_asked_is_not_read),
		TEST(jit__refusals_are_counted_and_each_reason_told_once),
		TEST(jit__number_of_files_is_bounded_to_living_processes),
		TEST(jit__memory_of_all_files_is_bounded),
		TEST(jit__files_are_read_within_a_bound_a_second),
		TEST(begin__takes_the_options_of_the_run_and_of_the_call),
		TEST(module__is_numbered_as_last_told_or_the_slot),
		TEST(interpreter__is_known_by_its_file),
		TEST(codes__are_those_of_the_dictionary),
		TEST(refused_files__are_those_without_rows_and_those_without_names),
	};

	return cmocka_run_group_tests_name("agent/naming", tests, NULL, NULL);
}
