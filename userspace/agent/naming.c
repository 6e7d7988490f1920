/* SPDX-License-Identifier: BSD-2-Clause */
/* Where symbolize/ gets names from: files, the kernel, JITs; and the window's modules. */
#include "agent/naming.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <uthash.h>

#include "agent/agent.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/log.h"
#include "discover/proc_scan.h"
#include "symbolize/kernel_symbols.h"
#include "symbolize/native_symbols.h"
#include "symbolize/perf_map.h"
#include "symbolize/symbolizer.h"

#define NATIVE_CACHE_BYTES (3U << 20)
#define PERF_MAPS_MAX 256U
#define PERF_MAPS_MAX_BYTES (64U << 20) /* of memory, all together */
/* Of their files: so much is read at once, and then in a second. */
#define PERF_MAPS_BURST_BYTES (32ULL << 20)
#define PERF_MAPS_BYTES_PER_S (4ULL << 20)
#define REFUSALS_TOLD_MAX 16U
#define CLONE_CODE_BYTES 64U
#define START_CODE_BYTES 64U

/* A JIT's names for one process. */
struct jit {
	struct pp_process_id id;
	struct perf_map *map;
	uint32_t window; /* in which it was refreshed */
	const char *refusal; /* why it is not read; static */
	UT_hash_handle hh;
};

/* A module of the window's profile. */
struct named_module {
	uint32_t file;	/* id of the file that had the slot when it was asked for */
	uint32_t index; /* + 1; 0: not asked yet */
};

struct naming {
	struct agent *agent;
	struct native_symbols *native;
	struct kernel_symbols *kernel;
	struct jit *jit;
	uint64_t refused_jits;
	const char *told[REFUSALS_TOLD_MAX]; /* refusals that were logged */
	uint64_t credit_bytes, credited_ns;  /* of reading perf maps */
	uint32_t window;
	bool has_warned_kernel;
	struct named_module *module; /* by slot of a file */
	size_t module_count;
	uint32_t profile_serial; /* that module[] is of */
};

int naming_new(struct agent *agent, struct naming **ret_naming)
{
	struct naming *naming = calloc(1, sizeof(*naming));
	int err;

	if (!naming)
		return -ENOMEM;
	naming->agent = agent;
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
	free(naming->module);
	free(naming);
}

/* ---- native ---- */

/* The vDSO has no file: a copy of it in memory stands for one. */
static int open_image_copy(struct file *file)
{
	OWNED_FD int fd = memfd_create("vdso", MFD_CLOEXEC);
	struct elf_image *image;
	int err = fd < 0 ? -errno : file_image(file, &image);

	if (!err)
		err = write_full(fd, image->data, image->size);
	return err ? err : TAKE_FD(fd);
}

static int open_file(void *context, const struct native_file *native, int *ret_fd)
{
	struct file *file = context;
	int fd;

	(void)native;
	if (file->fd < 0)
		fd = open_image_copy(file);
	else
		fd = fcntl(file->fd, F_DUPFD_CLOEXEC, 3);
	if (fd < 0)
		return file->fd < 0 ? fd : -errno;
	*ret_fd = fd;
	return 0;
}

/* Stripping hides where stacks begin: _start, and clone3 of every thread.  What has no caller by its
 * unwind rule is one of them: at the file's entry point, or behind that system call.
 * Source: the psABI's system call convention; arch/x86/entry/syscalls/syscall_64.tbl. */
static const char *thread_start_name(struct naming *naming, struct file *file, uint64_t vaddr)
{
	static const uint8_t load_clone3[] = {0xb8, 0xb3, 0x01, 0x00, 0x00}; /* mov $435,%eax */
	static const uint8_t load_clone[] = {0xb8, 0x38, 0x00, 0x00, 0x00};  /* mov $56,%eax */
	struct elf_image *image;
	struct pp_rule rule;
	const uint8_t *code;

	if (file_rule_at(naming->agent->files, file, vaddr, &rule) || rule.kind != PP_RULE_STOP ||
	    file_image(file, &image) || image->machine != EM_X86_64)
		return NULL;
	if (vaddr - image->entry < START_CODE_BYTES)
		return "_start";
	code = elf_image_at(image, vaddr - CLONE_CODE_BYTES, CLONE_CODE_BYTES);
	if (!code)
		return NULL;
	if (memmem(code, CLONE_CODE_BYTES, load_clone3, sizeof(load_clone3)))
		return "clone3";
	return memmem(code, CLONE_CODE_BYTES, load_clone, sizeof(load_clone)) ? "clone" : NULL;
}

static void take_names(struct naming *naming, struct file *file, const uint64_t *address, size_t n,
		       const struct native_symbol *symbol, struct symbol *ret)
{
	for (size_t i = 0; i < n; i++) {
		const char *start =
			symbol[i].found ? NULL : thread_start_name(naming, file, address[i]);

		ret[i].name = start ? start : symbol[i].name;
		ret[i].system_name = symbol[i].system_name;
	}
}

static void name_native(void *context, uint32_t slot, const uint64_t *address, size_t n,
			struct symbol *ret)
{
	struct naming *naming = context;
	struct file *file = file_table_in_slot(naming->agent->files, slot);
	struct native_file native = {
		.id = file ? file->id : 0, .root = "/", .path = file ? file->path : "", .open = open_file,
		.open_context = file};
	OWNED_MEM struct native_symbol *symbol = calloc(n, sizeof(*symbol));

	for (size_t i = 0; i < n; i++)
		ret[i] = (struct symbol){.name = "[unmapped file]", .system_name = ""};
	if (!file || !symbol ||
	    native_symbols_resolve(naming->native, &native, address, n, symbol))
		return;
	take_names(naming, file, address, n, symbol, ret);
}

/* ---- the kernel ---- */

static void name_kernel(void *context, uint64_t address, const char **ret_name,
			const char **ret_module)
{
	struct naming *naming = context;
	int err = kernel_symbols_find(naming->kernel, address, ret_name, ret_module);

	if (err && err != -ENOENT && !naming->has_warned_kernel) {
		log_warn_errno(err, "kernel frames have no names (/proc/kallsyms)");
		naming->has_warned_kernel = true;
	}
}

void naming_prepare(struct naming *naming)
{
	const char *name, *module;

	if (!naming->agent->options->no_kernel)
		name_kernel(naming, UINT64_MAX, &name, &module);
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
	jit->window = naming->window - 1;
	HASH_ADD(hh, naming->jit, id, sizeof(jit->id), jit);
	return jit;
}

/* Each reason is told once: who can be refused may be so all the time. */
static void tell_refusal(struct naming *naming, const struct process *process, const char *why)
{
	for (size_t i = 0; i < REFUSALS_TOLD_MAX; i++) {
		if (naming->told[i] == why)
			return;
		if (naming->told[i])
			continue;
		naming->told[i] = why;
		log_warn("process %u: its /tmp/perf-PID.map is not read: %s; its JIT code has no names",
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

uint64_t naming_refused_jits(const struct naming *naming)
{
	return naming->refused_jits;
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
	const struct process *process = process_table_find(naming->agent->processes, jit->id);
	struct perf_map_source source = {0};
	struct proc_status status;
	const uint64_t now_ns = mono_ns();
	char root[32];
	size_t used;
	pid_t tid;

	if (!process || process->exit_ns || jit->window == naming->window ||
	    process_live_task((pid_t)process->id.tgid, &tid))
		return;
	jit->window = naming->window;
	/* Who it acts as now: it may have been root before. */
	if (proc_status_read((uint32_t)tid, &status))
		return;
	if (!has_room(naming)) {
		note_refusal(naming, jit, process, "all such files took too much memory");
		return;
	}
	snprintf(root, sizeof(root), "/proc/%d/root", tid);
	source.root = root;
	source.inner_pid = process->inner_pid ? process->inner_pid : process->id.tgid;
	source.uid = status.uid;
	source.started_s = (int64_t)((wall_ns() - (now_ns - process->start_ns)) / NS_PER_SEC);
	source.max_bytes = read_credit(naming);
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

/* Those of processes that are gone. */
static void forget_jits(struct naming *naming)
{
	struct jit *jit, *next;

	HASH_ITER (hh, naming->jit, jit, next)
		if (!process_table_find(naming->agent->processes, jit->id))
			jit_free(naming, jit);
}

/* ---- modules ---- */

static void hex(const uint8_t *bytes, size_t size, char *text)
{
	for (size_t i = 0; i < size; i++)
		snprintf(text + 2 * i, 3, "%02x", bytes[i]);
	text[2 * size] = '\0';
}

static int describe_file(struct naming *naming, const struct file *file, struct module *module)
{
	struct intern *strings = naming->agent->strings;
	char build_id[2 * BUILD_ID_MAX_BYTES + 1];
	int err = intern_string(strings, file->path, &module->path);

	hex(file->build_id, file->build_id_size, build_id);
	if (!err)
		err = intern_string(strings, build_id, &module->build_id);
	if (file->segment_count) {
		module->start = file->segment[0].vaddr;
		module->limit = file->max_vaddr;
		module->offset = file->segment[0].offset;
	}
	return err;
}

static int describe(struct naming *naming, uint32_t slot, const struct file *file,
		    struct module *module)
{
	struct intern *strings = naming->agent->strings;

	if (slot == PP_FILE_NONE)
		return intern_string(strings, "[kernel.kallsyms]", &module->path);
	if (slot == PP_FILE_ANONYMOUS)
		return intern_string(strings, "[anon]", &module->path);
	if (!file)
		return intern_string(strings, "[unmapped file]", &module->path);
	return describe_file(naming, file, module);
}

static int reserve_modules(struct naming *naming, uint32_t slot)
{
	const size_t count = (size_t)slot + 256;
	struct named_module *grown;

	if (slot < naming->module_count)
		return 0;
	grown = realloc(naming->module, count * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	memset(grown + naming->module_count, 0, (count - naming->module_count) * sizeof(*grown));
	naming->module = grown;
	naming->module_count = count;
	return 0;
}

static uint32_t get_module(void *context, uint32_t slot)
{
	struct naming *naming = context;
	const struct file *file = file_table_in_slot(naming->agent->files, slot);
	const uint32_t id = file ? file->id : slot;
	struct module module = {};
	uint32_t index = 0;

	if (reserve_modules(naming, slot))
		return 0;
	if (naming->module[slot].index && naming->module[slot].file == id)
		return naming->module[slot].index - 1;
	if (describe(naming, slot, file, &module) ||
	    profiles_add_module(&naming->agent->profiles, &module, &index))
		return 0;
	naming->module[slot] = (struct named_module){.file = id, .index = index + 1};
	return index;
}

static bool is_interpreter(void *context, uint32_t slot)
{
	struct naming *naming = context;
	const struct file *file = file_table_in_slot(naming->agent->files, slot);

	return file && file->python;
}

static bool has_one_frame_runs(void *context, uint8_t python)
{
	struct naming *naming = context;
	const struct python_info *info = image_table_python_info(naming->agent->images, python);

	return info && info->bpf.chain == PP_CHAIN_FRAME_OBJECT;
}

int naming_begin(struct naming *naming, const struct naming_options *options,
		 struct symbolizer **ret_symbolizer)
{
	const struct agent *agent = naming->agent;
	const struct symbolizer_options how = {
		.raw = agent->options->raw,
		.no_native = agent->options->no_native || options->no_native,
	};
	const struct symbolizer_sources sources = {
		.context = naming,
		.native = name_native,
		.kernel = name_kernel,
		.anonymous = name_anonymous,
		.module = options->module ? options->module : get_module,
		.is_interpreter = is_interpreter,
		.has_one_frame_runs = has_one_frame_runs,
	};

	naming->window++;
	(void)kernel_symbols_refresh(naming->kernel);
	forget_jits(naming);
	if (naming->profile_serial != agent->profile_serial && naming->module)
		memset(naming->module, 0, naming->module_count * sizeof(*naming->module));
	naming->profile_serial = agent->profile_serial;
	return symbolizer_new(options->strings, agent->dictionary, &sources, &how, ret_symbolizer);
}
