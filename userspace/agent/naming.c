/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/naming.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <uthash.h>

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

#define NATIVE_CACHE_BYTES (3U << 20)
#define PERF_MAPS_MAX 256U
#define PERF_MAPS_MAX_BYTES (64U << 20) /* of memory, all together */
/* How much of their files is read at once, and then in each second. */
#define PERF_MAPS_BURST_BYTES (32ULL << 20)
#define PERF_MAPS_BYTES_PER_S (4ULL << 20)
#define REFUSALS_TOLD_MAX 16U
#define KEPT_FRAMES_MAX 65536U /* of 8 bytes, once a second at most */

/* A JIT's names for one process. */
struct jit {
	struct pp_process_id id;
	struct perf_map *map;
	uint32_t serial;     /* of the naming_begin() for which it was refreshed */
	const char *refusal; /* why it is not read; static */
	UT_hash_handle hh;
};

struct naming {
	const struct services *services;
	struct native_symbols *native;
	struct kernel_symbols *kernel;
	struct code_decoder codes;
	struct jit *jit;
	uint64_t refused_jits;
	const char *told[REFUSALS_TOLD_MAX]; /* refusals that were logged */
	uint64_t credit_bytes, credited_ns;  /* for reading perf maps */
	uint32_t serial;		     /* of naming_begin() */
	uint32_t round;			     /* of that and of naming_keep() */
	bool has_warned_kernel;
	struct modules *modules; /* borrowed; of the last naming_begin() that gave some */
};

int naming_new(const struct services *services, struct naming **ret_naming)
{
	struct naming *naming = calloc(1, sizeof(*naming));
	int err;

	if (!naming)
		return -ENOMEM;
	naming->services = services;
	naming->codes = (struct code_decoder){.dictionary = services->dictionary,
					      .foreign = services->foreign};
	err = native_symbols_new(NATIVE_CACHE_BYTES, &naming->native);
	if (!err)
		err = kernel_symbols_new("/proc", &naming->kernel);
	if (err) {
		naming_free(naming);
		return err;
	}
	*ret_naming = naming;
	return 0;
}

static void jit_free(struct naming *naming, struct jit *jit)
{
	HASH_DEL(naming->jit, jit);
	perf_map_free(jit->map);
	free(jit);
}

void naming_free(struct naming *naming)
{
	struct jit *jit, *next;

	if (!naming)
		return;
	HASH_ITER (hh, naming->jit, jit, next)
		jit_free(naming, jit);
	native_symbols_free(naming->native);
	kernel_symbols_free(naming->kernel);
	free(naming);
}

/* ---- native ---- */

static int find_functions(void *context, const struct native_file *native, const uint64_t *vaddr,
			  size_t count, foreign_function_handler *found, void *found_context)
{
	struct file_table *files = context;
	struct file *file = file_table_find(files, native->id);

	return file ? file_table_functions(files, file, vaddr, count, found, found_context)
		    : -ESTALE;
}

static int find_names(struct naming *naming, const struct file *file, const uint64_t *address,
		      size_t n, struct native_symbol *ret)
{
	const struct native_file native = {.id = file->id,
					   .path = file->path,
					   .round = naming->round,
					   .find = find_functions,
					   .context = naming->services->files};

	return native_symbols_resolve(naming->native, &native, address, n, ret);
}

static void name_native(void *context, uint32_t slot, const uint64_t *address, size_t n,
			struct symbol *ret)
{
	struct naming *naming = context;
	struct file *file = file_table_in_slot(naming->services->files, slot);
	OWNED_MEM struct native_symbol *symbol = calloc(n, sizeof(*symbol));

	for (size_t i = 0; i < n; i++)
		ret[i] = (struct symbol){.name = "[unmapped file]", .system_name = ""};
	if (!file || !symbol || find_names(naming, file, address, n, symbol))
		return;
	for (size_t i = 0; i < n; i++) {
		ret[i].name = symbol[i].name;
		ret[i].system_name = symbol[i].system_name;
	}
}

/* Frames of files that are about to be closed. */
struct kept_frames {
	packed_frame *frame; /* owned */
	size_t count, capacity;
};

static void kept_frames_release(struct kept_frames *kept)
{
	free(kept->frame);
}

/* Without memory a frame is named when the window ends, if its file is there still. */
static void keep_frame(void *context, packed_frame frame)
{
	struct kept_frames *kept = context;

	if (kept->count == KEPT_FRAMES_MAX ||
	    ARRAY_RESERVE(kept->frame, kept->count, kept->capacity))
		return;
	/* without its kind */
	kept->frame[kept->count++] = packed_native(0, packed_file(frame), packed_address(frame));
}

static int compare_frames(const void *a, const void *b)
{
	return ORDER(*(const packed_frame *)a, *(const packed_frame *)b);
}

static void keep_names(struct naming *naming, const packed_frame *frame, size_t count)
{
	const struct file *file =
		file_table_in_slot(naming->services->files, packed_file(frame[0]));
	OWNED_MEM struct native_symbol *symbol = calloc(count, sizeof(*symbol));
	OWNED_MEM uint64_t *address = calloc(count, sizeof(*address));

	if (!file || !symbol || !address)
		return;
	for (size_t i = 0; i < count; i++)
		address[i] = packed_address(frame[i]);
	(void)find_names(naming, file, address, count, symbol);
}

/* Clears the files of these frames. */
static void put_off(uint64_t *files, const packed_frame *frame, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const uint32_t slot = packed_file(frame[i]);

		files[slot / 64] &= ~(1ULL << slot % 64);
	}
}

bool naming_keep(struct naming *naming, uint64_t *files, const struct slice *slice)
{
	CLEANUP(kept_frames_release) struct kept_frames kept = {};

	naming->round++;
	dictionary_find_frames(naming->services->dictionary, files, keep_frame, &kept);
	if (kept.count)
		qsort(kept.frame, kept.count, sizeof(*kept.frame), compare_frames);
	for (size_t from = 0, to; from < kept.count; from = to) {
		for (to = from + 1; to < kept.count &&
				    packed_file(kept.frame[to]) == packed_file(kept.frame[from]);)
			to++;
		keep_names(naming, kept.frame + from, to - from);
		if (to < kept.count && slice_is_over(slice)) {
			put_off(files, kept.frame + to, kept.count - to);
			return true;
		}
	}
	return false;
}

/* ---- the kernel ---- */

static void tell_kernel(struct naming *naming, int err)
{
	if (err >= 0 || err == -ENOENT || naming->has_warned_kernel)
		return;
	log_warn_errno(err, "kernel frames have no names: cannot read /proc/kallsyms");
	naming->has_warned_kernel = true;
}

static void name_kernel(void *context, uint64_t address, const char **ret_name,
			const char **ret_module)
{
	struct naming *naming = context;

	tell_kernel(naming, kernel_symbols_find(naming->kernel, address, ret_name, ret_module));
}

void naming_prepare(struct naming *naming, const struct slice *slice)
{
	if (!naming->services->options->no_kernel)
		tell_kernel(naming, kernel_symbols_read(naming->kernel, slice));
}

/* ---- JITs ---- */

static struct jit *jit_get(struct naming *naming, struct pp_process_id id)
{
	struct jit *jit;

	HASH_FIND(hh, naming->jit, &id, sizeof(id), jit);
	if (jit || HASH_COUNT(naming->jit) >= PERF_MAPS_MAX)
		return jit;
	jit = calloc(1, sizeof(*jit));
	if (!jit || perf_map_new(&jit->map)) {
		free(jit);
		return NULL;
	}
	jit->id = id;
	jit->serial = naming->serial - 1;
	HASH_ADD(hh, naming->jit, id, sizeof(jit->id), jit);
	return jit;
}

/* Logs each reason once: a process that can be refused may be refused all the time. */
static void tell_refusal(struct naming *naming, const struct process *process, const char *why)
{
	for (size_t i = 0; i < REFUSALS_TOLD_MAX; i++) {
		if (naming->told[i] == why)
			return;
		if (naming->told[i])
			continue;
		naming->told[i] = why;
		log_warn("process %u: its /tmp/perf-PID.map is not read: %s; its JIT code has no "
			 "names",
			 process->id.tgid, why);
		return;
	}
}

static void note_refusal(struct naming *naming, struct jit *jit, const struct process *process,
			 const char *why)
{
	if (why && why != jit->refusal) {
		naming->refused_jits++;
		tell_refusal(naming, process, why);
	}
	jit->refusal = why;
}

void naming_count(const struct naming *naming, uint64_t loss[PP_LOSS_COUNT])
{
	struct native_symbols_counters native = {0};
	struct file_table_stats files = {0};

	if (naming->services->files)
		file_table_get_stats(naming->services->files, &files);
	if (naming->native)
		native = native_symbols_counters(naming->native);
	loss[PP_LOSS_PERF_MAPS_REFUSED] = naming->refused_jits;
	loss[PP_LOSS_CODES_REFUSED] = naming->codes.given_up + naming->codes.without_names;
	loss[PP_LOSS_FILES_REFUSED] = files.refused + native.refused_files;
	loss[PP_LOSS_FILES_UNOPENED] = files.open_failures + native.open_failures;
	loss[PP_LOSS_SYMBOLS_REFUSED] = native.dropped_symbols;
}

static size_t read_credit(struct naming *naming)
{
	const uint64_t now_ns = mono_ns(), passed_ns = now_ns - naming->credited_ns;

	if (!naming->credited_ns || passed_ns > 60 * NS_PER_SEC)
		naming->credit_bytes = PERF_MAPS_BURST_BYTES;
	else
		naming->credit_bytes += passed_ns * PERF_MAPS_BYTES_PER_S / NS_PER_SEC;
	if (naming->credit_bytes > PERF_MAPS_BURST_BYTES)
		naming->credit_bytes = PERF_MAPS_BURST_BYTES;
	naming->credited_ns = now_ns;
	return (size_t)naming->credit_bytes;
}

static bool has_room(const struct naming *naming)
{
	size_t bytes = 0;

	for (const struct jit *jit = naming->jit; jit; jit = jit->hh.next)
		bytes += perf_map_bytes(jit->map);
	return bytes < PERF_MAPS_MAX_BYTES;
}

static void jit_refresh(struct naming *naming, struct jit *jit)
{
	const struct process *process = process_table_find(naming->services->processes, jit->id);
	struct perf_map_source source = {0};
	struct proc_status status;
	const uint64_t now_ns = mono_ns();
	size_t used;
	pid_t tid;

	if (!process || process->exit_ns || jit->serial == naming->serial ||
	    process_live_task((pid_t)process->id.tgid, &tid))
		return;
	jit->serial = naming->serial;
	/* The user that the process acts as now: it may have been root before. */
	if (proc_status_read((uint32_t)tid, &status))
		return;
	if (!has_room(naming)) {
		note_refusal(naming, jit, process, "all such files took too much memory");
		return;
	}
	source.tid = tid;
	source.inner_pid = process->inner_pid ? process->inner_pid : process->id.tgid;
	source.uid = status.uid;
	source.started_s = (int64_t)((wall_ns() - (now_ns - process->start_ns)) / NS_PER_SEC);
	source.max_bytes = read_credit(naming);
	source.foreign = naming->services->foreign;
	/* Ids of files come that far only when slots have been reused 2,046 times. */
	source.number = -process->id.tgid;
	(void)perf_map_refresh(jit->map, &source, &used);
	naming->credit_bytes -= used;
	note_refusal(naming, jit, process, perf_map_refusal(jit->map));
}

static bool name_anonymous(void *context, struct pp_process_id id, uint64_t address,
			   const char **ret_name)
{
	struct naming *naming = context;
	struct jit *jit = jit_get(naming, id);
	uint64_t start;

	if (!jit)
		return false;
	jit_refresh(naming, jit);
	return !perf_map_find(jit->map, address, ret_name, &start);
}

/* Forgets processes that no longer exist. */
static void forget_jits(struct naming *naming)
{
	struct jit *jit, *next;

	HASH_ITER (hh, naming->jit, jit, next)
		if (!process_table_find(naming->services->processes, jit->id))
			jit_free(naming, jit);
}

/* ---- Python ---- */

static bool decode_codes(void *context, const struct slice *slice)
{
	struct naming *naming = context;

	return code_decoder_run(&naming->codes, slice);
}

/* ---- the symbolizer's questions ---- */

static uint32_t module_of(void *context, uint32_t slot)
{
	const struct naming *naming = context;

	return modules_get(naming->modules, slot);
}

static uint32_t slot_itself(void *context, uint32_t slot)
{
	(void)context;
	return slot;
}

static bool is_interpreter(void *context, uint32_t slot)
{
	struct naming *naming = context;
	const struct file *file = file_table_in_slot(naming->services->files, slot);

	return file && file->python;
}

static bool has_one_frame_segments(void *context, uint8_t python)
{
	struct naming *naming = context;
	const struct python_info *info =
		context_table_python_info(naming->services->contexts, python);

	return info && info->bpf.chain == PP_CHAIN_FRAME_OBJECT;
}

int naming_begin(struct naming *naming, const struct naming_options *options,
		 struct symbolizer **ret_symbolizer)
{
	const struct symbolizer_options how = {
		.raw = naming->services->options->raw,
		.no_native = naming->services->options->no_native || options->no_native,
	};
	const struct symbolizer_sources sources = {
		.context = naming,
		.native = name_native,
		.kernel = name_kernel,
		.anonymous = name_anonymous,
		.codes = decode_codes,
		.module = options->modules ? module_of : slot_itself,
		.is_interpreter = is_interpreter,
		.has_one_frame_segments = has_one_frame_segments,
	};

	naming->serial++;
	naming->round++;
	code_decoder_begin(&naming->codes);
	(void)kernel_symbols_refresh(naming->kernel);
	forget_jits(naming);
	if (options->modules)
		naming->modules = options->modules;
	return symbolizer_new(options->strings, naming->services->dictionary, &sources, &how,
			      ret_symbolizer);
}
