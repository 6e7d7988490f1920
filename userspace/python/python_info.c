/* SPDX-License-Identifier: BSD-2-Clause */
#include "python/python_info.h"

#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include <pyprofd/python.h>

#include "base/array.h"
#include "base/bytes.h"
#include "elf/elf_image.h"
#include "python/python_offsets.h"
#include "python/python_tls.h"
#include "unwind/cfi.h"

/* Finds all parts of one function that the compiler has split (hot, cold, partitioned).
 * Private to python/. */

#define MAX_CANDIDATES 64U
#define MAX_FUNCTION_BYTES (1U << 20) /* the eval loop has 20-90 KiB */
#define MIN_JUMPS 2U
#define MAX_SCANNED_BYTES (64U << 20) /* FDEs of a hostile file may overlap */

struct candidate {
	struct pp_eval_range part;
	unsigned int jumps;
};

struct search {
	const struct elf_image *image;
	struct cfi *cfi; /* owned */
	struct candidate candidate[MAX_CANDIDATES];
	size_t candidate_count;
	uint64_t scanned_bytes;
};

static void search_release(struct search *search)
{
	cfi_free(search->cfi);
}

/* Returns a distance in code. */
static uint64_t offset_at(const uint8_t *at)
{
	return (uint64_t)(int32_t)load_u32(at);
}

static bool is_inside(const struct pp_eval_range *range, size_t count, uint64_t pc)
{
	for (size_t i = 0; i < count; i++)
		if (pc >= range[i].low && pc < range[i].high)
			return true;
	return false;
}

static void add_candidate(struct search *search, const struct pp_eval_range *part,
			  unsigned int jumps)
{
	for (size_t i = 0; i < search->candidate_count; i++) {
		if (search->candidate[i].part.low == part->low) {
			search->candidate[i].jumps += jumps;
			return;
		}
	}
	if (search->candidate_count < MAX_CANDIDATES)
		search->candidate[search->candidate_count++] =
			(struct candidate){.part = *part, .jumps = jumps};
}

/* Finds the next `jmp rel32` (E9) or `jcc rel32` (0F 80-8F) at or after offset *at; moves *at past
 * its first byte.  Every byte is tried as the start of an instruction: a wrong one hardly ever
 * points into a part of the function, let alone twice. */
static bool next_jump(const uint8_t *code, const struct pp_eval_range *range, uint64_t *at,
		      uint64_t *ret_target)
{
	const uint64_t size = range->high - range->low;

	for (uint64_t i = *at; i + 6 <= size; i++) {
		uint64_t length = 6;

		if (code[i] == 0xe9)
			length = 5;
		else if (code[i] != 0x0f || (code[i + 1] & 0xf0) != 0x80)
			continue;
		*ret_target = range->low + i + length + offset_at(code + i + length - 4);
		*at = i + 1;
		return true;
	}
	return false;
}

static const uint8_t *code_of(struct search *search, const struct pp_eval_range *part)
{
	const uint64_t size = part->high - part->low;

	if (size > MAX_FUNCTION_BYTES || search->scanned_bytes + size > MAX_SCANNED_BYTES ||
	    !elf_work_pay(search->image->work, size, 1))
		return NULL;
	search->scanned_bytes += size;
	return elf_image_at(search->image, part->low, size);
}

/* Counts jumps out of a known part. */
static void count_jumps_out(struct search *search, const struct pp_eval_range *known, size_t count,
			    size_t from)
{
	const uint8_t *code = code_of(search, &known[from]);
	uint64_t at = 0, target;
	struct cfi_range range;

	while (code && next_jump(code, &known[from], &at, &target))
		if (!is_inside(known, count, target) &&
		    elf_work_pay(search->image->work, 1, ELF_WORK_PER_FDE) &&
		    !cfi_fde_find(search->cfi, target, &range) && range.starts_inside)
			add_candidate(search, &(struct pp_eval_range){range.low, range.high}, 1);
}

/* Counts jumps back into a known part, after its start.  Unlikely code may be reached by jump
 * tables only, so that just its way back is a jump. */
static void count_jumps_back(struct search *search, const struct pp_eval_range *known, size_t count,
			     size_t to)
{
	for (size_t i = 0; i < cfi_fde_count(search->cfi) &&
			   elf_work_pay(search->image->work, 1, ELF_WORK_PER_HEADER);
	     i++) {
		uint64_t at = 0, target;
		unsigned int jumps = 0;
		const uint8_t *code;
		struct cfi_range range;
		struct pp_eval_range part;

		if (cfi_fde_at(search->cfi, i, &range) || !range.starts_inside ||
		    is_inside(known, count, range.low))
			continue;
		part = (struct pp_eval_range){range.low, range.high};
		code = code_of(search, &part);
		while (code && next_jump(code, &part, &at, &target))
			jumps += target > known[to].low && target < known[to].high;
		if (jumps)
			add_candidate(search, &part, jumps);
	}
}

size_t python_eval_ranges(const struct elf_image *image, const char *name,
			  struct pp_eval_range ret_range[PP_MAX_EVAL_RANGES])
{
	CLEANUP(search_release) struct search search = {.image = image};
	struct elf_symbol symbol;
	struct cfi_range found;
	size_t count = 0;

	if (elf_image_symbol(image, name, &symbol))
		return 0;
	ret_range[count++] = (struct pp_eval_range){symbol.value, symbol.value + symbol.size};
	if (cfi_open(image, &search.cfi))
		return ret_range[0].low < ret_range[0].high ? count : 0;
	if (!cfi_fde_find(search.cfi, symbol.value, &found))
		ret_range[0] = (struct pp_eval_range){found.low, found.high};
	if (ret_range[0].low >= ret_range[0].high)
		return 0;
	if (image->machine != EM_X86_64)
		return count;
	for (size_t i = 0; i < count; i++) {
		search.candidate_count = 0;
		count_jumps_out(&search, ret_range, count, i);
		count_jumps_back(&search, ret_range, count, i);
		for (size_t c = 0; c < search.candidate_count && count < PP_MAX_EVAL_RANGES; c++)
			if (search.candidate[c].jumps >= MIN_JUMPS)
				ret_range[count++] = search.candidate[c].part;
	}
	return count;
}

#define TP_BASICSIZE 32U /* PyTypeObject.tp_basicsize, <= 3.12 */
#define VERSION_SCAN_BYTES 160U
#define VERSION_MAX_BYTES 24U
#define GIL_WORDS_MAX_BYTES 4096U /* 3.6.15: 240 */

static uint64_t symbol_address(const struct elf_image *image, const char *name)
{
	struct elf_symbol symbol;

	if (elf_image_symbol(image, name, &symbol) || symbol.type == STT_TLS)
		return 0;
	return symbol.value;
}

static bool has_symbol(const struct elf_image *image, const char *name)
{
	return symbol_address(image, name);
}

/* Finds the symbols.  An executable that copies libpython's data (R_X86_64_COPY) defines the same
 * names in .bss; there PyCode_Type has no bytes in the file. */
static int find_symbols(const struct elf_image *image, struct python_symbols *ret_symbols)
{
	struct python_symbols found = {
		.runtime = symbol_address(image, "_PyRuntime"),
	};

	if (!found.runtime)
		found.thread_state_current = symbol_address(image, "_PyThreadState_Current");
	if (!found.runtime && !found.thread_state_current)
		return -ENOENT;
	found.code_type = symbol_address(image, "PyCode_Type");
	if (!found.code_type || !elf_image_at(image, found.code_type, TP_BASICSIZE + 8))
		return -ENOENT;
	found.none = symbol_address(image, "_Py_NoneStruct");
	if (!found.runtime) {
		found.interp_head = symbol_address(image, "interp_head");
		if (!found.interp_head)
			found.interp_head =
				python_accessor_variable(image, "PyInterpreterState_Head");
		found.auto_tls_key = symbol_address(image, "autoTLSkey");
		found.gil_locked = symbol_address(image, "gil_locked");
		found.gil_last_holder = symbol_address(image, "gil_last_holder");
		found.gc_collecting = symbol_address(image, "collecting");
	}
	*ret_symbols = found;
	return 0;
}

/* ---- version ---- */

/* Converts "3.8.18", "2.7.18+", ... to PY_VERSION_HEX of a final release; 0: not a version. */
static uint32_t parse_version(const char *text, size_t size)
{
	unsigned int part[3] = {0};
	size_t at = 0;

	for (int i = 0; i < 3; i++) {
		const size_t first = at;

		for (; at < size && part[i] <= 255 && isdigit((unsigned char)text[at]); at++)
			part[i] = part[i] * 10 + (unsigned int)(text[at] - '0');
		if (at == first || at == size || part[i] > 255 || (i < 2 && text[at++] != '.'))
			return 0;
	}
	if (!memchr(text + at, '\0', size - at))
		return 0;
	return part[0] << 24 | part[1] << 16 | part[2] << 8 | 0xf0;
}

static uint32_t version_at(const struct elf_image *image, uint64_t vaddr)
{
	const uint8_t *at = elf_image_at(image, vaddr, VERSION_MAX_BYTES);

	return at ? parse_version((const char *)at, VERSION_MAX_BYTES) : 0;
}

/* Py_GetVersion() passes the literal PY_VERSION to a formatter: one of its `lea x(%rip), reg` or
 * `mov $x, reg` points to it.  Other bytes do not point to a version.  Returns 0 when it is
 * unknown. */
static uint32_t version_from_code(const struct elf_image *image)
{
	const uint64_t start = symbol_address(image, "Py_GetVersion");
	const uint8_t *code = NULL;
	size_t size = VERSION_SCAN_BYTES;
	uint32_t found;

	if (image->machine != EM_X86_64 || !start)
		return 0;
	for (; size > 16 && !code; size -= code ? 0 : 16)
		code = elf_image_at(image, start, size);
	for (size_t i = 0; code && i + 7 <= size; i++) {
		if ((code[i] & 0xfb) == 0x48 && code[i + 1] == 0x8d && (code[i + 2] & 0xc7) == 5) {
			found = version_at(image, start + i + 7 + offset_at(code + i + 3));
		} else if ((code[i] & 0xf8) == 0xb8) {
			found = version_at(image, load_u32(code + i + 1));
		} else {
			continue;
		}
		if (found)
			return found;
	}
	return 0;
}

/* Before 3.11 no variable has the version.  The stable ABI grew in each minor version: these
 * functions are exported by that one and all later ones. */
static uint32_t version_from_exports(const struct elf_image *image,
				     const struct python_symbols *symbols)
{
	if (!symbols->runtime) {
		if (has_symbol(image, "PyString_Type"))
			return has_symbol(image, "PyCapsule_New") ? 0x02070000 : 0x02000000;
		return has_symbol(image, "_PyEval_EvalFrameDefault") ? 0x03060000 : 0x03000000;
	}
	if (has_symbol(image, "PyIter_Send"))
		return 0x030a0000;
	if (has_symbol(image, "PyObject_CallNoArgs"))
		return 0x03090000;
	if (has_symbol(image, "PyCode_NewWithPosOnlyArgs"))
		return 0x03080000;
	return 0x03070000;
}

static int find_version(const struct elf_image *image, const struct python_symbols *symbols,
			uint32_t *ret_version_hex, bool *ret_is_free_threaded,
			const char **ret_reason)
{
	const uint64_t variable = symbol_address(image, "Py_Version");
	const uint8_t *at = variable ? elf_image_at(image, variable, 8) : NULL;
	uint32_t by_exports, by_text;

	*ret_is_free_threaded = false;
	if (symbols->runtime &&
	    !python_debug_offsets_version(image, symbols->runtime, ret_version_hex,
					  ret_is_free_threaded))
		return 0;
	if (at) { /* 3.11 and later */
		*ret_version_hex = (uint32_t)load_u64(at);
		return 0;
	}
	by_exports = version_from_exports(image, symbols);
	by_text = version_from_code(image);
	if (by_text && by_text >> 16 != by_exports >> 16 && by_exports & 0xff0000) {
		*ret_reason = "the version text contradicts the exported functions";
		return -ENOTSUP;
	}
	*ret_version_hex = by_text ? by_text : by_exports;
	return 0;
}

/* ---- layout ---- */

static const char *reason_unknown_version(uint32_t version_hex)
{
	static const char *const newer[] = {
		"CPython 3.16 is newer than this version of pyprofd",
		"CPython 3.17 is newer than this version of pyprofd",
		"CPython 3.18 is newer than this version of pyprofd",
		"CPython 3.19 is newer than this version of pyprofd",
		"CPython 3.20 is newer than this version of pyprofd",
	};
	const unsigned int major = version_hex >> 24, minor = version_hex >> 16 & 0xff;

	if (major == 3 && minor >= 16 && minor - 16 < ARRAY_SIZE(newer))
		return newer[minor - 16];
	if (major > 3 || (major == 3 && minor >= 16))
		return "a CPython newer than this version of pyprofd";
	return major == 2 ? "CPython 2.6 and older are not supported"
			  : "CPython 3.0 to 3.5 are not supported";
}

/* Returns whether sizeof(PyCodeObject) in the file is as expected: it differs in a build with
 * Py_TRACE_REFS, and mostly in a patched interpreter or a pre-release. */
static bool code_size_agrees(const struct elf_image *image, const struct python_info *info,
			     const struct python_layout *layout)
{
	const uint8_t *at = elf_image_at(image, info->symbols.code_type + TP_BASICSIZE, 8);

	return at && load_u64(at) == layout->code_bytes;
}

static int choose_layout(const struct elf_image *image, bool is_free_threaded,
			 struct python_info *info, const struct python_layout **ret_layout,
			 const char **ret_reason)
{
	const uint32_t version_hex = info->version_hex;
	const struct python_symbols symbols = info->symbols;
	const struct python_layout *layout;

	if (!symbols.runtime != (version_hex < 0x03070000)) {
		*ret_reason = "the version contradicts the exported variables";
		return -ENOTSUP;
	}
	layout = python_layout_find(version_hex >> 24, version_hex >> 16 & 0xff, is_free_threaded);
	if (!layout) {
		*ret_reason = reason_unknown_version(version_hex);
		return -ENOTSUP;
	}
	*info = layout->info;
	info->version_hex = version_hex;
	info->symbols = symbols;
	*ret_layout = layout;
	if (info->bpf.major == 3 && info->bpf.minor >= 13) {
		if (!python_debug_offsets_read(image, symbols.runtime, info))
			return 0;
		*ret_reason = "_Py_DebugOffsets is missing or out of bounds";
		return -ENOTSUP;
	}
	if (code_size_agrees(image, info, layout))
		return 0;
	*ret_reason = "the size of code objects is not that of a release build "
		      "(Py_TRACE_REFS, a pre-release or a patched interpreter)";
	return -ENOTSUP;
}

/* Returns whether this is an executable: DF_1_PIE, or the path of an interpreter (ld.so), which
 * libraries lack. */
static bool is_executable(const struct elf_image *image)
{
	struct elf_section section;
	Elf64_Dyn entry;

	if (image->type == ET_EXEC || !elf_image_section(image, ".interp", &section))
		return true;
	for (uint32_t i = 0; elf_image_dynamic(image, i, &entry); i++)
		if (entry.d_tag == DT_FLAGS_1)
			return entry.d_un.d_val & DF_1_PIE;
	return false;
}

/* Computes the smallest range that covers these variables of one source file.  Returns false when
 * one is missing, or they are too far apart. */
static bool cover_symbols(const struct elf_image *image, const char *const *names, size_t count,
			  struct pp_python *bpf)
{
	uint64_t low = UINT64_MAX, high = 0;

	for (size_t i = 0; i < count; i++) {
		struct elf_symbol symbol;

		if (elf_image_symbol(image, names[i], &symbol) || symbol.type != STT_OBJECT ||
		    symbol.value < image->min_vaddr || symbol.value >= image->max_vaddr ||
		    symbol.size > image->max_vaddr - symbol.value)
			return false;
		low = symbol.value < low ? symbol.value : low;
		high = symbol.value + symbol.size > high ? symbol.value + symbol.size : high;
	}
	if (high <= low || high - low > GIL_WORDS_MAX_BYTES)
		return false;
	bpf->gil_wait_low = low;
	bpf->gil_wait_bytes = (uint32_t)(high - low);
	return true;
}

/* In 3.6 the GIL's words are static variables.  Without their symbols we use all of .bss: an
 * interpreter has no other futex words there (Python/ceval_gil.h, Python/thread_pthread.h). */
static void find_gil_words(const struct elf_image *image, struct python_info *info)
{
	static const char *const names[] = {"gil_cond", "gil_mutex", "switch_cond", "switch_mutex"};
	const uint64_t current = info->symbols.thread_state_current;

	if (cover_symbols(image, names, ARRAY_SIZE(names), &info->bpf))
		return;
	for (size_t i = 0; i < image->segment_count; i++) {
		const struct elf_segment *segment = &image->segment[i];
		const uint64_t low = segment->vaddr + segment->file_size;
		const uint64_t bytes = segment->memory_size - segment->file_size;

		/* _PyThreadState_Current is in there too. */
		if (current < low || current - low >= bytes || bytes > UINT32_MAX)
			continue;
		info->bpf.gil_wait_low = low;
		info->bpf.gil_wait_bytes = (uint32_t)bytes;
	}
}

/* From 3.12 on the GILState slot follows a thread from one interpreter to another. */
static void find_lists(struct python_info *info)
{
	if (info->bpf.major == 3 && info->bpf.minor >= 12)
		return;
	info->bpf.interp_head = info->symbols.runtime
					? info->symbols.runtime + info->runtime_interpreters_head
					: info->symbols.interp_head;
	info->bpf.interp_threads = (uint16_t)info->interp_threads_head;
	info->bpf.ts_next = info->ts_next;
}

static void find_globals(const struct elf_image *image, struct python_info *info)
{
	struct pp_python *bpf = &info->bpf;

	if (bpf->gil_mode == PP_GIL_CURRENT && bpf->major == 3)
		find_gil_words(image, info);
	bpf->runtime = info->symbols.runtime;
	bpf->code_type = info->symbols.code_type;
	if (bpf->gc_mode != PP_GC_GLOBAL)
		return;
	if (info->symbols.gc_collecting && info->symbols.gc_collecting <= UINT32_MAX)
		bpf->gc_offset = info->symbols.gc_collecting;
	else
		bpf->gc_mode = PP_GC_NONE;
}

int python_info_read(const struct elf_image *image, struct python_info **ret_info,
		     const char **ret_reason)
{
	OWNED(python_info) struct python_info *info = NULL;
	const struct python_layout *layout;
	struct python_symbols symbols;
	bool is_free_threaded;
	int err;

	err = find_symbols(image, &symbols);
	if (err)
		return err;
	info = calloc(1, sizeof(*info));
	if (!info)
		return -ENOMEM;
	info->symbols = symbols;
	err = find_version(image, &symbols, &info->version_hex, &is_free_threaded, ret_reason);
	if (err)
		return err;
	err = choose_layout(image, is_free_threaded, info, &layout, ret_reason);
	if (err)
		return err;
	info->is_static_exe = is_executable(image);
	find_globals(image, info);
	find_lists(info);
	if (info->bpf.chain == PP_CHAIN_FRAME_OBJECT)
		info->bpf.eval_range_count = python_eval_ranges(
			image,
			info->bpf.major == 2 ? "PyEval_EvalFrameEx" : "_PyEval_EvalFrameDefault",
			info->bpf.eval);
	python_tls_plan(image, layout, info);
	*ret_info = TAKE(info);
	return 0;
}

void python_info_free(struct python_info *info)
{
	free(info);
}
