/* SPDX-License-Identifier: BSD-2-Clause */
/* Real interpreter files, and copies of them with a few bytes changed. */
#include "python/python_info.h"

#include <cmocka.h>

#include "../elf/symbol_name.h"
#include "elf/elf_symbol_table.h"
#include "interpreters.h"
#include "live_target.h"
#include "python/python_offsets.h"

#define MAX_FILE_BYTES (128U << 20)

/* A file with an interpreter, in memory that tests may write to. */
struct sample {
	char label[64];
	char *data;
	size_t size;
	struct elf_image *image;
	struct python_info *info;
};

static struct sample samples[MAX_INTERPRETERS];
static size_t sample_count;

static int load_samples(void **state)
{
	struct interpreter interpreters[MAX_INTERPRETERS];
	const size_t count = interpreters_find(interpreters);

	(void)state;
	for (size_t i = 0; i < count; i++) {
		CLEANUP(target_release) struct target target;
		struct sample *sample = &samples[sample_count];
		const char *reason;

		if (target_start(interpreters[i].command, "", &target))
			continue;
		snprintf(sample->label, sizeof(sample->label), "%.63s", interpreters[i].label);
		sample->size = target.image->size;
		sample->data = malloc(sample->size);
		if (!sample->data)
			return -1;
		memcpy(sample->data, target.image->data, sample->size);
		if (elf_image_from_memory(sample->data, sample->size, &sample->image) ||
		    python_info_read(sample->image, &sample->info, &reason)) {
			print_error("%s: no interpreter\n", sample->label);
			return -1;
		}
		sample_count++;
	}
	if (!sample_count)
		print_message("skipped: no Python at hand\n");
	return 0;
}

static int free_samples(void **state)
{
	(void)state;
	for (size_t i = 0; i < sample_count; i++) {
		python_info_free(samples[i].info);
		elf_image_free(samples[i].image);
		free(samples[i].data);
	}
	return 0;
}

/* The bytes at a virtual address, to be changed. */
static char *writable_at(const struct sample *sample, uint64_t vaddr, size_t size)
{
	const uint8_t *at = elf_image_at(sample->image, vaddr, size);

	assert_non_null(at);
	return sample->data + (at - sample->image->data);
}

/* Puts 8 bytes elsewhere for one python_info_read(). */
static int read_with_word(const struct sample *sample, uint64_t vaddr, uint64_t value,
			  const char **ret_reason)
{
	OWNED(python_info) struct python_info *info = NULL;
	char *at = writable_at(sample, vaddr, 8), before[8];
	int err;

	memcpy(before, at, 8);
	memcpy(at, &value, 8);
	err = python_info_read(sample->image, &info, ret_reason);
	memcpy(at, before, 8);
	return err;
}

static void python_info_read__files_without_an_interpreter_are_enoent(void **state)
{
	static const char *const paths[] = {"/proc/self/exe", "/bin/sh"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		OWNED(elf_image) struct elf_image *image = NULL;
		OWNED_FD int fd = open(paths[i], O_RDONLY | O_CLOEXEC);
		struct python_info *info = NULL;
		const char *reason = NULL;

		assert_int_equal(elf_image_open(fd, &image), 0);
		assert_int_equal(python_info_read(image, &info, &reason), -ENOENT);
		assert_null(info);
		assert_null(reason);
	}
}

/* Two sources for the same facts: our table, and the file. */
static void python_debug_offsets_read__tells_what_the_table_tells(void **state)
{
	(void)state;
	for (size_t i = 0; i < sample_count; i++) {
		const struct python_info *info = samples[i].info;
		const struct python_layout *layout =
			python_layout_find(info->bpf.major, info->bpf.minor,
					   info->bpf.flags & PP_PYTHON_FREE_THREADED);
		struct pp_python expected = layout->info.bpf;

		assert_int_equal(info->offsets_from_file,
				 info->bpf.major == 3 && info->bpf.minor >= 13);
		expected.runtime = info->bpf.runtime;
		expected.code_type = info->bpf.code_type;
		if (expected.gc_mode == PP_GC_GLOBAL)
			expected.gc_offset = info->bpf.gc_offset;
		expected.gil_wait_low = info->bpf.gil_wait_low;
		expected.gil_wait_bytes = info->bpf.gil_wait_bytes;
		memcpy(expected.eval, info->bpf.eval, sizeof(expected.eval));
		expected.eval_range_count = info->bpf.eval_range_count;
		if (info->bpf.major == 2 || info->bpf.minor <= 11) {
			expected.interp_head =
				info->symbols.runtime
					? info->symbols.runtime +
						  layout->info.runtime_interpreters_head
					: info->symbols.interp_head;
			expected.interp_threads = (uint16_t)layout->info.interp_threads_head;
			expected.ts_next = layout->info.ts_next;
		}
		assert_memory_equal(&info->bpf, &expected, sizeof(expected));
		assert_int_equal(info->runtime_interpreters_head,
				 layout->info.runtime_interpreters_head);
		assert_int_equal(info->interp_next, layout->info.interp_next);
		assert_int_equal(info->interp_threads_head, layout->info.interp_threads_head);
		assert_int_equal(info->interp_modules, layout->info.interp_modules);
		assert_int_equal(info->ts_next, layout->info.ts_next);
	}
}

/* What another process has read is the same when it has been checked. */
static void python_told_check__gives_what_was_read(void **state)
{
	(void)state;
	for (size_t i = 0; i < sample_count; i++) {
		const struct python_info *info = samples[i].info;
		OWNED(python_info) struct python_info *checked = NULL;

		assert_int_equal(python_told_check(info, &checked), 0);
		assert_memory_equal(&checked->bpf, &info->bpf, sizeof(info->bpf));
		assert_memory_equal(&checked->symbols, &info->symbols, sizeof(info->symbols));
		assert_memory_equal(&checked->tls, &info->tls, sizeof(info->tls));
		assert_int_equal(checked->version_hex, info->version_hex);
		assert_int_equal(checked->offsets_from_file, info->offsets_from_file);
		assert_int_equal(checked->is_static_exe, info->is_static_exe);
		assert_int_equal(checked->runtime_interpreters_head,
				 info->runtime_interpreters_head);
		assert_int_equal(checked->interp_next, info->interp_next);
		assert_int_equal(checked->interp_threads_head, info->interp_threads_head);
		assert_int_equal(checked->interp_modules, info->interp_modules);
		assert_int_equal(checked->ts_next, info->ts_next);
	}
}

/* Each of these would lead the kernel side out of what it has read. */
static void python_told_check__what_no_file_says_is_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < sample_count; i++) {
		OWNED(python_info) struct python_info *checked = NULL;
		struct python_info told[9];

		for (size_t k = 0; k < ARRAY_SIZE(told); k++)
			told[k] = *samples[i].info;
		told[0].version_hex = 0x63000000;
		told[1].bpf.code_type = 0;
		told[2].offsets_from_file = !told[2].offsets_from_file;
		told[3].bpf.eval_range_count = PP_MAX_EVAL_RANGES + 1;
		told[4].tls.source[1].mode = PP_TLS_GLOBAL + 1;
		told[5].symbols.runtime = told[5].symbols.runtime ? 0 : 1;
		told[6].bpf.gil_wait_low = UINT64_MAX;
		told[6].bpf.gil_wait_bytes = 2;
		told[7].bpf.code_line_table = PP_CODE_READ_BYTES;
		told[8].bpf.ts_frame = PP_TSTATE_READ_BYTES;
		for (size_t k = 0; k < ARRAY_SIZE(told); k++)
			if (k < 7 || told[k].offsets_from_file)
				assert_int_equal(python_told_check(&told[k], &checked), -EBADMSG);
	}
}

static void python_info_read__newer_version_is_named_in_the_reason(void **state)
{
	(void)state;
	for (size_t i = 0; i < sample_count; i++) {
		const struct sample *sample = &samples[i];
		const char *reason = "";

		if (!sample->info->offsets_from_file)
			continue;
		assert_int_equal(read_with_word(sample, sample->info->bpf.runtime + 8, 0x031000f0,
						&reason),
				 -ENOTSUP);
		assert_string_equal(reason, "CPython 3.16 is newer than this version of pyprofd");
	}
}

static void python_info_read__debug_offset_out_of_bounds_is_enotsup(void **state)
{
	static const unsigned int interp_next = 8,
				  thread_id[] = {24, 27, 30}; /* 3.13, 3.14, 3.15 */

	(void)state;
	for (size_t i = 0; i < sample_count; i++) {
		const struct sample *sample = &samples[i];
		const struct pp_python *bpf = &sample->info->bpf;
		const char *reason = "";
		uint64_t at;

		if (!sample->info->offsets_from_file)
			continue;
		at = bpf->runtime + 8 * thread_id[bpf->minor - 13];
		assert_int_equal(read_with_word(sample, at, 192, &reason), -ENOTSUP);
		assert_int_equal(read_with_word(sample, at, 7, &reason), -ENOTSUP);
		at = bpf->runtime + 8 * interp_next;
		assert_int_equal(read_with_word(sample, at, 1ULL << 40, &reason), -ENOTSUP);
		assert_string_equal(reason, "_Py_DebugOffsets is missing or out of bounds");
	}
}

static void python_info_read__other_size_of_code_objects_is_enotsup(void **state)
{
	(void)state;
	for (size_t i = 0; i < sample_count; i++) {
		const struct sample *sample = &samples[i];
		const char *reason = "";

		if (sample->info->offsets_from_file)
			continue;
		assert_int_equal(read_with_word(sample, sample->info->bpf.code_type + 32, 216,
						&reason),
				 -ENOTSUP);
		assert_non_null(strstr(reason, "the size of code objects"));
	}
}

static uint64_t gil_wait_high(const struct pp_python *bpf)
{
	return bpf->gil_wait_low + bpf->gil_wait_bytes;
}

/* What the wanted version is, when .symtab is there no more. */
static void python_info_read__needs_no_symtab(void **state)
{
	(void)state;
	for (size_t i = 0; i < sample_count; i++) {
		const struct sample *sample = &samples[i];
		OWNED(elf_image) struct elf_image *image = NULL;
		OWNED(python_info) struct python_info *info = NULL;
		OWNED_MEM char *copy = malloc(sample->size);
		struct pp_python expected = sample->info->bpf;
		const char *reason;
		Elf64_Ehdr header;

		assert_non_null(copy);
		memcpy(copy, sample->data, sample->size);
		memcpy(&header, copy, sizeof(header));
		header.e_shnum = 0;
		header.e_shoff = 0;
		memcpy(copy, &header, sizeof(header));
		assert_int_equal(elf_image_from_memory(copy, sample->size, &image), 0);
		assert_int_equal(python_info_read(image, &info, &reason), 0);
		if (expected.gc_mode == PP_GC_GLOBAL) {
			expected.gc_mode = PP_GC_NONE; /* a static variable */
			expected.gc_offset = 0;
		}
		if (expected.gil_wait_bytes) { /* all of .bss */
			assert_true(info->bpf.gil_wait_low <= expected.gil_wait_low);
			assert_true(gil_wait_high(&info->bpf) >= gil_wait_high(&expected));
			expected.gil_wait_low = info->bpf.gil_wait_low;
			expected.gil_wait_bytes = info->bpf.gil_wait_bytes;
		}
		assert_memory_equal(&info->bpf, &expected, sizeof(expected));
		assert_memory_equal(&info->tls, &sample->info->tls, sizeof(info->tls));
		assert_int_equal(info->version_hex, sample->info->version_hex);
		assert_int_equal(info->symbols.interp_head, sample->info->symbols.interp_head);
		assert_int_equal(info->is_static_exe, sample->info->is_static_exe);
	}
}

/* A library from C source, stripped or not.  -ENOTSUP: no gcc that can. */
static int build_library(const char *source, const char *flags, struct elf_image **ret_image)
{
	char directory[] = "/tmp/test_python_info.XXXXXX", command[2048], path[64];
	OWNED_FD int fd = -1;
	int status;

	assert_non_null(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/f.so", directory);
	snprintf(command, sizeof(command),
		 "gcc -O2 -fPIC -shared %s -x c -o %s - >%s/log 2>&1 <<'EOF'\n%s\nEOF\n", flags,
		 path, directory, source);
	status = system(command);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	snprintf(command, sizeof(command), "rm -rf %s", directory);
	if (system(command))
		print_error("cannot remove %s\n", directory);
	return status || fd < 0 ? -ENOTSUP : elf_image_open(fd, ret_image);
}

/* ---- the GIL ---- */

/* PyInterpreterState.ceval.gil and, in the struct it points to, last_holder, by each version's own
 * headers. */
static void python_info_read__place_of_the_gil_is_that_of_the_version(void **state)
{
	(void)state;
	for (size_t i = 0; i < sample_count; i++) {
		const struct pp_python *bpf = &samples[i].info->bpf;
		const bool is_free_threaded = bpf->flags & PP_PYTHON_FREE_THREADED;

		if (bpf->major == 2 || bpf->minor <= 11) {
			assert_int_equal(bpf->interp_gil, PP_NO_OFFSET);
			continue;
		}
		assert_int_equal(bpf->interp_gil, bpf->minor == 12 ? 384 : 16);
		assert_int_equal(bpf->gil_holder, is_free_threaded ? 16 : 8);
		assert_int_equal(bpf->gil_locked, bpf->gil_holder + 8);
		if (bpf->gil_mode == PP_GIL_INTERPRETER)
			assert_int_equal(bpf->gil_offset, bpf->interp_gil);
	}
}

/* Word `index` of _Py_DebugOffsets moved by `by`, for one python_info_read(). */
static int read_with_offset_moved(const struct sample *sample, unsigned int index, uint64_t by,
				  struct python_info **ret_info)
{
	char *at = writable_at(sample, sample->info->bpf.runtime + 8 * (uint64_t)index, 8);
	const char *reason;
	uint64_t before, after;
	int err;

	memcpy(&before, at, 8);
	after = before + by;
	memcpy(at, &after, 8);
	err = python_info_read(sample->image, ret_info, &reason);
	memcpy(at, &before, 8);
	return err;
}

/* The offsets table (>= 3.13) in the file counts, not ours; words behind each other or none. */
static void python_info_read__place_of_the_gil_is_the_file_s(void **state)
{
	static const unsigned int ceval_gil[] = {14, 15, 15}, locked[] = {17, 18, 18};

	(void)state;
	for (size_t i = 0; i < sample_count; i++) {
		OWNED(python_info) struct python_info *moved = NULL, *apart = NULL, *bad = NULL;
		const struct sample *sample = &samples[i];
		const unsigned int minor = sample->info->bpf.minor;

		if (!sample->info->offsets_from_file)
			continue;
		assert_int_equal(read_with_offset_moved(sample, ceval_gil[minor - 13], 64, &moved),
				 0);
		assert_int_equal(moved->bpf.interp_gil, 16 + 64);
		assert_int_equal(read_with_offset_moved(sample, locked[minor - 13], 8, &apart), 0);
		assert_int_equal(apart->bpf.interp_gil, PP_NO_OFFSET);
		assert_int_equal(read_with_offset_moved(sample, ceval_gil[minor - 13], PP_NO_OFFSET,
							&bad),
				 -ENOTSUP);
		assert_int_equal(read_with_offset_moved(sample, ceval_gil[minor - 13], 65536 - 16,
							&bad),
				 -ENOTSUP);
	}
}

static void python_info_read__words_of_a_wait_are_ranges_in_3_6_only(void **state)
{
	static const char *const names[] = {"gil_cond", "gil_mutex", "switch_cond", "switch_mutex"};

	(void)state;
	for (size_t i = 0; i < sample_count; i++) {
		const struct pp_python *bpf = &samples[i].info->bpf;
		struct elf_symbol symbol;

		if (bpf->major != 3 || bpf->minor != 6) {
			assert_int_equal(bpf->gil_wait_low, 0);
			assert_int_equal(bpf->gil_wait_bytes, 0);
			continue;
		}
		assert_int_not_equal(bpf->gil_wait_bytes, 0);
		for (size_t n = 0; n < ARRAY_SIZE(names); n++) {
			if (elf_image_symbol(samples[i].image, names[n], &symbol))
				continue; /* stripped */
			assert_in_range(symbol.value, bpf->gil_wait_low, gil_wait_high(bpf) - 1);
			assert_in_range(symbol.value + symbol.size, bpf->gil_wait_low + 1,
					gil_wait_high(bpf));
			assert_true(bpf->gil_wait_bytes < 4096);
		}
	}
}

/* The symbols of a 3.6 and nothing behind them.  GIL_COND: bytes of gil_cond. */
static const char bare_36[] =
	"#define STATIC static __attribute__((used)) char\n"
	"STATIC gil_mutex[40], switch_cond[48], switch_mutex[40], gil_cond[GIL_COND];\n"
	"STATIC others[100000];\n"
	"void *_PyThreadState_Current;\n"
	"unsigned long PyCode_Type[16] = {1, 0, 0, 0, 144};\n"
	"int _PyEval_EvalFrameDefault(int n) { return n + 1; }\n";

static struct python_info *read_bare_36(const char *flags, struct elf_image **ret_image)
{
	struct python_info *info = NULL;
	const char *reason;

	if (build_library(bare_36, flags, ret_image)) {
		print_message("skipped: no gcc\n");
		skip();
	}
	assert_int_equal(python_info_read(*ret_image, &info, &reason), 0);
	assert_int_equal(info->version_hex, 0x03060000);
	return info;
}

static void python_info_read__named_words_of_a_3_6_are_covered_closely(void **state)
{
	OWNED(elf_image) struct elf_image *image = NULL;
	OWNED(python_info) struct python_info *info = read_bare_36("-DGIL_COND=48", &image);
	struct elf_symbol symbol;

	(void)state;
	/* 176 bytes, and what aligns them. */
	assert_in_range(info->bpf.gil_wait_bytes, 176, 176 + 3 * 64);
	assert_int_equal(elf_image_symbol(image, "gil_mutex", &symbol), 0);
	assert_in_range(symbol.value, info->bpf.gil_wait_low, gil_wait_high(&info->bpf) - 40);
	assert_int_equal(elf_image_symbol(image, "others", &symbol), 0);
	assert_true(symbol.value + symbol.size <= info->bpf.gil_wait_low ||
		    symbol.value >= gil_wait_high(&info->bpf));
}

/* Stripped, or with names that cannot be the GIL's. */
static void python_info_read__else_all_of_bss_is_taken(void **state)
{
	static const char *const flags[] = {"-DGIL_COND=48 -s", "-DGIL_COND=5000"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		OWNED(elf_image) struct elf_image *image = NULL;
		OWNED(python_info) struct python_info *info = read_bare_36(flags[i], &image);
		const struct pp_python *bpf = &info->bpf;
		struct elf_section bss;

		assert_int_equal(elf_image_section(image, ".bss", &bss), 0);
		assert_true(bpf->gil_wait_low <= bss.vaddr && bpf->gil_wait_low + 64 > bss.vaddr);
		assert_int_equal(gil_wait_high(bpf), bss.vaddr + bss.size);
	}
}

/* ---- the eval function ---- */

static bool ranges_cover(const struct pp_eval_range *range, size_t count, uint64_t pc)
{
	for (size_t i = 0; i < count; i++)
		if (pc >= range[i].low && pc < range[i].high)
			return true;
	return false;
}

/* A function of which gcc moves the unlikely half away. */
static const char split_function[] =
	"int puts(const char *); void unlikely_a(int *) __attribute__((cold));\n"
	"int _PyEval_EvalFrameDefault(int *p) { int n = 0;\n"
	"for (int i = 0; i < 1000; i++) { n += p[i]; switch (p[i]) {\n"
	"case 3: unlikely_a(p); puts(\"x\"); break; case 5: n *= p[n]; break;\n"
	"case 7: unlikely_a(p + 1); puts(\"y\"); break; case 8: n ^= p[n + 1]; break;\n"
	"case 11: unlikely_a(p + 2); puts(\"z\"); break; } }\n"
	"return n; }\n"
	"int other(int *p) { if (p[0]) { unlikely_a(p); unlikely_a(p + 3); } return p[1]; }\n";

/* The truth is in .symtab: NAME and NAME.cold, each with its size. */
static void python_eval_ranges__are_the_parts_that_symbols_name(void **state)
{
	OWNED(elf_image) struct elf_image *image = NULL, *stripped = NULL;
	struct pp_eval_range range[PP_MAX_EVAL_RANGES], again[PP_MAX_EVAL_RANGES];
	struct elf_symbol hot, cold;

	(void)state;
	if (build_library(split_function, "", &image) ||
	    build_library(split_function, "-s", &stripped) ||
	    elf_image_symbol(image, "_PyEval_EvalFrameDefault.cold", &cold)) {
		print_message("skipped: no gcc that splits functions\n");
		skip();
	}
	assert_int_equal(elf_image_symbol(image, "_PyEval_EvalFrameDefault", &hot), 0);
	assert_int_equal(python_eval_ranges(image, "_PyEval_EvalFrameDefault", range), 2);
	assert_int_equal(range[0].low, hot.value);
	assert_int_equal(range[0].high, hot.value + hot.size);
	assert_int_equal(range[1].low, cold.value);
	assert_int_equal(range[1].high, cold.value + cold.size);
	assert_int_equal(elf_image_symbol(stripped, "_PyEval_EvalFrameDefault.cold", &cold),
			 -ENOENT);
	assert_int_equal(python_eval_ranges(stripped, "_PyEval_EvalFrameDefault", again), 2);
	assert_int_equal(again[1].high - again[1].low, range[1].high - range[1].low);
	assert_int_equal(python_eval_ranges(image, "no_such_function", range), 0);
}

/* Smaller ones are traps (ud2) that nothing jumps to. */
#define LEAST_PART_BYTES 64U

static void python_eval_ranges__of_interpreters_cover_their_named_parts(void **state)
{
	static const char name[] = "_PyEval_EvalFrameDefault";

	(void)state;
	for (size_t i = 0; i < sample_count; i++) {
		struct pp_eval_range range[PP_MAX_EVAL_RANGES];
		struct elf_symbol_table table;
		size_t count;

		if (elf_image_symbol_table(samples[i].image, SHT_SYMTAB, &table))
			continue;
		count = python_eval_ranges(samples[i].image, name, range);
		for (size_t s = 0; s < table.count; s++) {
			const Elf64_Sym symbol = elf_symbol_table_entry(&table, s);
			const char *found = symbol_name(&table, &symbol);

			if (!found || strncmp(found, name, sizeof(name) - 1) ||
			    (found[sizeof(name) - 1] && found[sizeof(name) - 1] != '.') ||
			    symbol.st_size < LEAST_PART_BYTES)
				continue;
			assert_true(ranges_cover(range, count, symbol.st_value));
			assert_true(
				ranges_cover(range, count, symbol.st_value + symbol.st_size - 1));
		}
	}
}

static void python_info_read__eval_ranges_are_there_where_frames_need_them(void **state)
{
	(void)state;
	for (size_t i = 0; i < sample_count; i++) {
		const struct pp_python *bpf = &samples[i].info->bpf;

		if (bpf->chain == PP_CHAIN_FRAME_OBJECT)
			assert_in_range(bpf->eval_range_count, 1, PP_MAX_EVAL_RANGES);
		else
			assert_int_equal(bpf->eval_range_count, 0);
		for (unsigned int r = 0; r < bpf->eval_range_count; r++)
			assert_in_range(bpf->eval[r].high - bpf->eval[r].low, 100, 1 << 20);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(python_info_read__files_without_an_interpreter_are_enoent),
		cmocka_unit_test(python_debug_offsets_read__tells_what_the_table_tells),
		cmocka_unit_test(python_told_check__gives_what_was_read),
		cmocka_unit_test(python_told_check__what_no_file_says_is_refused),
		cmocka_unit_test(python_info_read__newer_version_is_named_in_the_reason),
		cmocka_unit_test(python_info_read__debug_offset_out_of_bounds_is_enotsup),
		cmocka_unit_test(python_info_read__other_size_of_code_objects_is_enotsup),
		cmocka_unit_test(python_info_read__needs_no_symtab),
		cmocka_unit_test(python_info_read__place_of_the_gil_is_that_of_the_version),
		cmocka_unit_test(python_info_read__place_of_the_gil_is_the_file_s),
		cmocka_unit_test(python_info_read__words_of_a_wait_are_ranges_in_3_6_only),
		cmocka_unit_test(python_info_read__named_words_of_a_3_6_are_covered_closely),
		cmocka_unit_test(python_info_read__else_all_of_bss_is_taken),
		cmocka_unit_test(python_eval_ranges__are_the_parts_that_symbols_name),
		cmocka_unit_test(python_eval_ranges__of_interpreters_cover_their_named_parts),
		cmocka_unit_test(python_info_read__eval_ranges_are_there_where_frames_need_them),
	};

	return cmocka_run_group_tests_name("python/python_info", tests, load_samples, free_samples);
}
