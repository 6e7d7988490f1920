/* SPDX-License-Identifier: BSD-2-Clause */
/* struct _Py_DebugOffsets: 64-bit words in an order that is fixed for each minor version; the head
 * (cookie, version, free_threaded) is the same in all. */
#include "python/python_offsets.h"

#include <errno.h>
#include <string.h>

#include "base/bytes.h"

#define COOKIE "xdebugpy"
#define INTERPRETER_MAX_BYTES (1U << 22) /* PyInterpreterState and _PyRuntime: 250-450 KiB */

/* Numbers of the words that we use; 0: this version has no such word. */
struct debug_words {
	uint8_t minor;
	uint8_t count; /* words of the whole struct */
	uint8_t runtime_interpreters_head;
	uint8_t interp_next, interp_threads_head, interp_gc, interp_modules, interp_ceval_gil;
	uint8_t interp_gil, interp_gil_locked, interp_gil_holder;
	uint8_t ts_next, ts_interp, ts_frame, ts_thread_id, ts_native_id, ts_status, ts_holds_gil;
	uint8_t frame_previous, frame_code, frame_instr, frame_owner, frame_tlbc_index;
	uint8_t code_filename, code_name, code_qualname, code_line_table, code_first_line;
	uint8_t code_adaptive, code_tlbc;
	uint8_t ob_type, bytes_size, bytes_data;
	uint8_t str_state, str_length, str_ascii_data, str_compact_data;
	uint8_t gc_collecting;
};

/* clang-format off */
static const struct debug_words words_of[] = {
	{.minor = 13, .count = 73, .runtime_interpreters_head = 5, .interp_next = 8,
	 .interp_threads_head = 9, .interp_gc = 10, .interp_modules = 11, .interp_ceval_gil = 14,
	 .interp_gil = 15, .interp_gil_locked = 17, .interp_gil_holder = 18, .ts_next = 21,
	 .ts_interp = 22, .ts_frame = 23, .ts_thread_id = 24, .ts_native_id = 25, .ts_status = 27,
	 .frame_previous = 29, .frame_code = 30, .frame_instr = 31, .frame_owner = 33,
	 .code_filename = 35, .code_name = 36, .code_qualname = 37, .code_line_table = 38,
	 .code_first_line = 39, .code_adaptive = 43, .ob_type = 45, .bytes_size = 65,
	 .bytes_data = 66, .str_state = 68, .str_length = 69, .str_ascii_data = 70,
	 .gc_collecting = 72},
	{.minor = 14, .count = 95, .runtime_interpreters_head = 5, .interp_next = 8,
	 .interp_threads_head = 9, .interp_gc = 11, .interp_modules = 12, .interp_ceval_gil = 15,
	 .interp_gil = 16, .interp_gil_locked = 18, .interp_gil_holder = 19, .ts_next = 24,
	 .ts_interp = 25, .ts_frame = 26, .ts_thread_id = 27, .ts_native_id = 28, .ts_status = 30,
	 .frame_previous = 32, .frame_code = 33, .frame_instr = 34, .frame_owner = 36,
	 .frame_tlbc_index = 38, .code_filename = 40, .code_name = 41, .code_qualname = 42,
	 .code_line_table = 43, .code_first_line = 44, .code_adaptive = 48, .code_tlbc = 49,
	 .ob_type = 51, .bytes_size = 75, .bytes_data = 76, .str_state = 78, .str_length = 79,
	 .str_ascii_data = 80, .gc_collecting = 82},
	{.minor = 15, .count = 111, .runtime_interpreters_head = 5, .interp_next = 8,
	 .interp_threads_head = 9, .interp_gc = 11, .interp_modules = 12, .interp_ceval_gil = 15,
	 .interp_gil = 16, .interp_gil_locked = 18, .interp_gil_holder = 19, .ts_next = 24,
	 .ts_interp = 25, .ts_frame = 26, .ts_thread_id = 30, .ts_native_id = 31, .ts_status = 33,
	 .ts_holds_gil = 34, .frame_previous = 40, .frame_code = 41, .frame_instr = 42,
	 .frame_owner = 44, .frame_tlbc_index = 46, .code_filename = 48, .code_name = 49,
	 .code_qualname = 50, .code_line_table = 51, .code_first_line = 52, .code_adaptive = 56,
	 .code_tlbc = 57, .ob_type = 59, .bytes_size = 87, .bytes_data = 88, .str_state = 90,
	 .str_length = 91, .str_ascii_data = 92, .str_compact_data = 93, .gc_collecting = 95},
};
/* clang-format on */

/* X(member, bytes, limit): the members of struct python_info that are words of the file. */
#define LIST_FIELDS(X)                                                                             \
	X(runtime_interpreters_head, 8, INTERPRETER_MAX_BYTES)                                     \
	X(interp_next, 8, INTERPRETER_MAX_BYTES)                                                   \
	X(interp_threads_head, 8, INTERPRETER_MAX_BYTES)                                           \
	X(interp_modules, 8, INTERPRETER_MAX_BYTES)                                                \
	X(ts_next, 8, PP_TSTATE_READ_BYTES)
/* Those of struct pp_python.  `code`: the kernel side reads a code object up to there, the end of
 * the line table's pointer. */
#define OBJECT_FIELDS(X)                                                                           \
	X(ts_interp, 8, PP_TSTATE_READ_BYTES)                                                      \
	X(ts_frame, 8, PP_TSTATE_READ_BYTES)                                                       \
	X(ts_thread_id, 8, PP_TSTATE_READ_BYTES)                                                   \
	X(ts_native_id, 8, PP_TSTATE_READ_BYTES)                                                   \
	X(frame_previous, 8, PYTHON_FRAME_BYTES)                                                   \
	X(frame_code, 8, PYTHON_FRAME_BYTES)                                                       \
	X(frame_instr, 8, PYTHON_FRAME_BYTES)                                                      \
	X(frame_owner, 1, PYTHON_FRAME_BYTES)                                                      \
	X(code_line_table, 8, PP_CODE_READ_BYTES)                                                  \
	X(ob_type, 8, code < 64 ? code : 64)                                                       \
	X(code_filename, 8, code)                                                                  \
	X(code_name, 8, code)                                                                      \
	X(code_qualname, 8, code)                                                                  \
	X(code_first_line, 4, code)                                                                \
	X(code_adaptive, 2, 4096)                                                                  \
	X(str_length, 8, 64)                                                                       \
	X(str_state, 4, 64)                                                                        \
	X(str_ascii_data, 8, 256)                                                                  \
	X(bytes_size, 8, 64)                                                                       \
	X(bytes_data, 1, 256)

/* Reads offsets from the file, and remembers whether one was out of bounds. */
struct debug_reader {
	const uint8_t *data;
	bool is_bad;
};

/* Returns word `index`, at most `limit` - `size` and a multiple of the field's size; 0 for index
 * 0. */
static uint32_t word(struct debug_reader *reader, uint8_t index, uint32_t size, uint32_t limit)
{
	uint64_t value;

	if (!index)
		return 0;
	value = load_u64(reader->data + 8 * (size_t)index);
	if (value > limit - size || value % size) {
		reader->is_bad = true;
		return 0;
	}
	return value;
}

static void read_interpreter(struct debug_reader *reader, const struct debug_words *words,
			     struct python_info *info)
{
	const uint32_t limit = INTERPRETER_MAX_BYTES;
	const uint32_t gil = word(reader, words->interp_gil, 8, limit);
	const uint32_t holder = word(reader, words->interp_gil_holder, 8, limit);
	const uint32_t locked = word(reader, words->interp_gil_locked, 4, limit);
	struct pp_python *bpf = &info->bpf;

#define READ_LIST(member, bytes, limit) info->member = word(reader, words->member, bytes, limit);
	LIST_FIELDS(READ_LIST)
	bpf->gc_offset = word(reader, words->interp_gc, 8, limit) +
			 word(reader, words->gc_collecting, 4, 4096);
	/* The GIL's struct is inside the interpreter's; ceval.gil points to it. */
	if (holder <= gil || locked <= gil || holder - gil > 256 || locked - gil > 256)
		reader->is_bad = true;
	bpf->gil_holder = holder - gil;
	bpf->gil_locked = locked - gil;
	bpf->interp_gil = word(reader, words->interp_ceval_gil, 8, PP_NO_OFFSET);
	/* The kernel side expects the words of a wait at offsets from last_holder. */
	if (locked != holder + 8)
		bpf->interp_gil = PP_NO_OFFSET;
}

static void read_gil_offset(struct debug_reader *reader, const struct debug_words *words,
			    struct pp_python *bpf)
{
	const uint32_t limit = PP_TSTATE_READ_BYTES;
	const uint32_t status = word(reader, words->ts_status, 4, limit);

	if (bpf->gil_mode == PP_GIL_TSTATE_BIT)
		bpf->gil_offset = status;
	else if (bpf->gil_mode == PP_GIL_TSTATE_INT && words->ts_holds_gil)
		bpf->gil_offset = word(reader, words->ts_holds_gil, 4, limit);
	else if (bpf->gil_mode == PP_GIL_TSTATE_INT)
		bpf->gil_offset = status + 4; /* 3.14: `int holds_gil` follows the status word */
	/* The kernel side reads 8 bytes there. */
	if (bpf->gil_offset > limit - 8)
		reader->is_bad = true;
}

static void read_objects(struct debug_reader *reader, const struct debug_words *words,
			 struct pp_python *bpf)
{
	const uint32_t code = word(reader, words->code_line_table, 8, PP_CODE_READ_BYTES) + 8;
	const uint16_t flags_before_line = bpf->code_first_line - bpf->code_flags;

#define READ_OBJECT(member, bytes, limit) bpf->member = word(reader, words->member, bytes, limit);
	OBJECT_FIELDS(READ_OBJECT)
	if (bpf->code_first_line > bpf->code_line_table || bpf->code_first_line < flags_before_line)
		reader->is_bad = true;
	bpf->code_flags = bpf->code_first_line - flags_before_line;
	if (bpf->flags & PP_PYTHON_FREE_THREADED && words->code_tlbc) {
		bpf->frame_tlbc_index =
			word(reader, words->frame_tlbc_index, 4, PYTHON_FRAME_BYTES - 4);
		bpf->code_tlbc = word(reader, words->code_tlbc, 8, 4096);
	}
	/* PyCompactUnicodeObject adds utf8_length and utf8. */
	bpf->str_compact_data = bpf->str_ascii_data + 16;
	if (words->str_compact_data)
		bpf->str_compact_data = word(reader, words->str_compact_data, 8, 256);
}

int python_debug_offsets_version(const struct elf_image *image, uint64_t runtime,
				 uint32_t *ret_version_hex, bool *ret_is_free_threaded)
{
	const uint8_t *at = elf_image_at(image, runtime, 24);

	if (!at || memcmp(at, COOKIE, 8))
		return -ENOENT;
	*ret_version_hex = (uint32_t)load_u64(at + 8);
	*ret_is_free_threaded = load_u64(at + 16);
	return 0;
}

int python_debug_offsets_read(const struct elf_image *image, uint64_t runtime,
			      struct python_info *info)
{
	const struct debug_words *words = NULL;
	struct debug_reader reader = {0};
	struct python_info filled = *info;

	for (size_t i = 0; i < ARRAY_SIZE(words_of); i++)
		if (words_of[i].minor == info->bpf.minor)
			words = &words_of[i];
	if (!words)
		return -EBADMSG;
	reader.data = elf_image_at(image, runtime, 8 * (size_t)words->count);
	if (!reader.data || memcmp(reader.data, COOKIE, 8))
		return -EBADMSG;
	read_interpreter(&reader, words, &filled);
	read_gil_offset(&reader, words, &filled.bpf);
	read_objects(&reader, words, &filled.bpf);
	if (reader.is_bad)
		return -EBADMSG;
	filled.offsets_from_file = true;
	*info = filled;
	return 0;
}

/* ---- what another process has read ---- */

/* What another process found out about an interpreter file, and the check of it: the layout is
 * taken from our own table, and of what was told only what a file decides, within the bounds that
 * the kernel side relies on. */
#define LAST_TLS_MODE PP_TLS_GLOBAL

static bool fits(uint32_t offset, uint32_t size, uint32_t limit)
{
	return offset <= limit - size && !(offset % size);
}

static bool do_lists_fit(const struct python_info *told)
{
	const struct pp_python *bpf = &told->bpf;
	bool fit = fits(bpf->gc_offset, 4, INTERPRETER_MAX_BYTES + 4096) &&
		   bpf->gil_offset <= PP_TSTATE_READ_BYTES - 8 && bpf->gil_holder &&
		   bpf->gil_locked && bpf->gil_holder <= 256 && bpf->gil_locked <= 256;

	if (bpf->interp_gil != PP_NO_OFFSET)
		fit = fit && fits(bpf->interp_gil, 8, PP_NO_OFFSET) &&
		      bpf->gil_locked == bpf->gil_holder + 8;
#define LIST_FITS(member, bytes, limit) fit = fit && fits(told->member, bytes, limit);
	LIST_FIELDS(LIST_FITS)
	return fit;
}

static bool do_objects_fit(const struct pp_python *bpf)
{
	const uint32_t code = bpf->code_line_table + 8U;
	bool fit = bpf->code_first_line <= bpf->code_line_table &&
		   fits(bpf->str_compact_data, 8, 256 + 16);

	if (bpf->frame_tlbc_index != PP_NO_OFFSET)
		fit = fit && fits(bpf->frame_tlbc_index, 4, PYTHON_FRAME_BYTES - 4);
	if (bpf->code_tlbc != PP_NO_OFFSET)
		fit = fit && fits(bpf->code_tlbc, 8, 4096);
#define OBJECT_FITS(member, bytes, limit) fit = fit && fits(bpf->member, bytes, limit);
	OBJECT_FIELDS(OBJECT_FITS)
	return fit;
}

/* Copies into *info, a copy of the layout of the same version, the offsets that another process has
 * read from _Py_DebugOffsets.  Returns 0; -EBADMSG: one is out of its bounds. */
static int take_offsets(const struct python_info *told, struct python_info *info)
{
	const struct pp_python *from = &told->bpf;
	struct pp_python *to = &info->bpf;
	const uint16_t flags_before_line = to->code_first_line - to->code_flags;

	if (!do_lists_fit(told) || !do_objects_fit(from) ||
	    from->code_first_line < flags_before_line)
		return -EBADMSG;
#define COPY_LIST(member, bytes, limit) info->member = told->member;
#define COPY_OBJECT(member, bytes, limit) to->member = from->member;
	LIST_FIELDS(COPY_LIST)
	OBJECT_FIELDS(COPY_OBJECT)
	to->gc_offset = from->gc_offset;
	to->gil_holder = from->gil_holder;
	to->gil_locked = from->gil_locked;
	to->gil_offset = from->gil_offset;
	to->interp_gil = from->interp_gil;
	to->code_flags = from->code_first_line - flags_before_line;
	if (to->flags & PP_PYTHON_FREE_THREADED) {
		to->frame_tlbc_index = from->frame_tlbc_index;
		to->code_tlbc = from->code_tlbc;
	}
	to->str_compact_data = from->str_compact_data;
	info->offsets_from_file = true;
	return 0;
}

/* The addresses are of the process' memory: whatever they are, a read there finds it or fails. */
static void take_addresses(const struct python_info *told, struct python_info *info)
{
	struct pp_python *bpf = &info->bpf;

	info->symbols = told->symbols;
	info->tls = told->tls;
	bpf->runtime = told->bpf.runtime;
	bpf->code_type = told->bpf.code_type;
	if (bpf->major != 3 || bpf->minor < 12) {
		bpf->interp_head = told->bpf.interp_head;
		bpf->interp_threads = (uint16_t)info->interp_threads_head;
		bpf->ts_next = info->ts_next;
	}
	if (bpf->gc_mode != PP_GC_GLOBAL)
		return;
	if (told->bpf.gc_mode == PP_GC_GLOBAL)
		bpf->gc_offset = told->bpf.gc_offset;
	else
		bpf->gc_mode = PP_GC_NONE;
}

static int take_ranges(const struct python_info *told, struct pp_python *bpf)
{
	const uint8_t count = told->bpf.eval_range_count;

	if (count > PP_MAX_EVAL_RANGES || (count && bpf->chain != PP_CHAIN_FRAME_OBJECT))
		return -EBADMSG;
	for (uint8_t i = 0; i < count; i++) {
		if (told->bpf.eval[i].low >= told->bpf.eval[i].high)
			return -EBADMSG;
		bpf->eval[i] = told->bpf.eval[i];
	}
	bpf->eval_range_count = count;
	if (!told->bpf.gil_wait_bytes)
		return 0;
	if (bpf->gil_mode != PP_GIL_CURRENT || bpf->major != 3 ||
	    told->bpf.gil_wait_low + told->bpf.gil_wait_bytes < told->bpf.gil_wait_low)
		return -EBADMSG;
	bpf->gil_wait_low = told->bpf.gil_wait_low;
	bpf->gil_wait_bytes = told->bpf.gil_wait_bytes;
	return 0;
}

int python_told_check(const struct python_info *told, struct python_info **ret_info)
{
	OWNED_MEM struct python_info *info = NULL;
	const uint32_t major = told->version_hex >> 24, minor = told->version_hex >> 16 & 0xff;
	const struct python_layout *layout =
		python_layout_find(major, minor, told->bpf.flags & PP_PYTHON_FREE_THREADED);
	const bool needs_offsets = major == 3 && minor >= 13;

	if (!layout || needs_offsets != (told->offsets_from_file != 0) || !told->bpf.code_type ||
	    !told->symbols.runtime != (told->version_hex < 0x03070000) ||
	    (!told->symbols.runtime && !told->symbols.thread_state_current))
		return -EBADMSG;
	for (size_t i = 0; i < ARRAY_SIZE(told->tls.source); i++)
		if (told->tls.source[i].mode > LAST_TLS_MODE)
			return -EBADMSG;
	info = malloc(sizeof(*info));
	if (!info)
		return -ENOMEM;
	*info = layout->info;
	info->version_hex = told->version_hex;
	info->is_static_exe = told->is_static_exe != 0;
	if (needs_offsets && take_offsets(told, info))
		return -EBADMSG;
	take_addresses(told, info);
	if (take_ranges(told, &info->bpf))
		return -EBADMSG;
	*ret_info = TAKE(info);
	return 0;
}
