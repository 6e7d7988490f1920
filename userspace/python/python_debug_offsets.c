/* SPDX-License-Identifier: BSD-2-Clause */
/* struct _Py_DebugOffsets: 64-bit words in an order that is fixed for each minor version; the head
 * (cookie, version, free_threaded) is the same in all. */
#include "python/python_offsets.h"

#include <errno.h>
#include <string.h>

#include "python/python_told.h"

#define COOKIE "xdebugpy"
/* The kernel side reads no more of a frame, because its page may end there. */
#define INTERPRETER_FRAME_BYTES 88U
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
	memcpy(&value, reader->data + 8 * (size_t)index, sizeof(value));
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

	info->runtime_interpreters_head = word(reader, words->runtime_interpreters_head, 8, limit);
	info->interp_next = word(reader, words->interp_next, 8, limit);
	info->interp_threads_head = word(reader, words->interp_threads_head, 8, limit);
	info->interp_modules = word(reader, words->interp_modules, 8, limit);
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

static void read_thread(struct debug_reader *reader, const struct debug_words *words,
			struct python_info *info)
{
	const uint32_t limit = PP_TSTATE_READ_BYTES;
	const uint32_t status = word(reader, words->ts_status, 4, limit);
	struct pp_python *bpf = &info->bpf;

	info->ts_next = word(reader, words->ts_next, 8, limit);
	bpf->ts_interp = word(reader, words->ts_interp, 8, limit);
	bpf->ts_frame = word(reader, words->ts_frame, 8, limit);
	bpf->ts_thread_id = word(reader, words->ts_thread_id, 8, limit);
	bpf->ts_native_id = word(reader, words->ts_native_id, 8, limit);
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

static void read_frame_and_code(struct debug_reader *reader, const struct debug_words *words,
				struct pp_python *bpf)
{
	const uint32_t frame = INTERPRETER_FRAME_BYTES;
	/* The kernel side reads a code object up to the line table's pointer. */
	const uint32_t table = word(reader, words->code_line_table, 8, PP_CODE_READ_BYTES);
	const uint32_t code = table + 8;
	const uint16_t flags_before_line = bpf->code_first_line - bpf->code_flags;

	bpf->frame_previous = word(reader, words->frame_previous, 8, frame);
	bpf->frame_code = word(reader, words->frame_code, 8, frame);
	bpf->frame_instr = word(reader, words->frame_instr, 8, frame);
	bpf->frame_owner = word(reader, words->frame_owner, 1, frame);
	bpf->ob_type = word(reader, words->ob_type, 8, code < 64 ? code : 64);
	bpf->code_filename = word(reader, words->code_filename, 8, code);
	bpf->code_name = word(reader, words->code_name, 8, code);
	bpf->code_qualname = word(reader, words->code_qualname, 8, code);
	bpf->code_line_table = table;
	bpf->code_first_line = word(reader, words->code_first_line, 4, code);
	if (bpf->code_first_line > table || bpf->code_first_line < flags_before_line)
		reader->is_bad = true;
	bpf->code_flags = bpf->code_first_line - flags_before_line;
	bpf->code_adaptive = word(reader, words->code_adaptive, 2, 4096);
	if (bpf->flags & PP_PYTHON_FREE_THREADED && words->code_tlbc) {
		bpf->frame_tlbc_index = word(reader, words->frame_tlbc_index, 4, frame - 4);
		bpf->code_tlbc = word(reader, words->code_tlbc, 8, 4096);
	}
}

static void read_strings(struct debug_reader *reader, const struct debug_words *words,
			 struct pp_python *bpf)
{
	bpf->str_length = word(reader, words->str_length, 8, 64);
	bpf->str_state = word(reader, words->str_state, 4, 64);
	bpf->str_ascii_data = word(reader, words->str_ascii_data, 8, 256);
	/* PyCompactUnicodeObject adds utf8_length and utf8. */
	bpf->str_compact_data = bpf->str_ascii_data + 16;
	if (words->str_compact_data)
		bpf->str_compact_data = word(reader, words->str_compact_data, 8, 256);
	bpf->bytes_size = word(reader, words->bytes_size, 8, 64);
	bpf->bytes_data = word(reader, words->bytes_data, 1, 256);
}

int python_debug_offsets_version(const struct elf_image *image, uint64_t runtime,
				 uint32_t *ret_version_hex, bool *ret_is_free_threaded)
{
	const uint8_t *at = elf_image_at(image, runtime, 24);
	uint64_t version, free_threaded;

	if (!at || memcmp(at, COOKIE, 8))
		return -ENOENT;
	memcpy(&version, at + 8, sizeof(version));
	memcpy(&free_threaded, at + 16, sizeof(free_threaded));
	*ret_version_hex = version;
	*ret_is_free_threaded = free_threaded;
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
	read_thread(&reader, words, &filled);
	read_frame_and_code(&reader, words, &filled.bpf);
	read_strings(&reader, words, &filled.bpf);
	if (reader.is_bad)
		return -EBADMSG;
	filled.offsets_from_file = true;
	*info = filled;
	return 0;
}

/* ---- what another process has read ---- */

static bool fits(uint32_t offset, uint32_t size, uint32_t limit)
{
	return offset <= limit - size && !(offset % size);
}

static bool do_lists_fit(const struct python_told *told)
{
	const struct pp_python *bpf = &told->bpf;
	const uint32_t limit = INTERPRETER_MAX_BYTES;

	return fits(told->runtime_interpreters_head, 8, limit) &&
	       fits(told->interp_next, 8, limit) && fits(told->interp_threads_head, 8, limit) &&
	       fits(told->interp_modules, 8, limit) &&
	       fits(told->ts_next, 8, PP_TSTATE_READ_BYTES) &&
	       fits(bpf->gc_offset, 4, limit + 4096) && bpf->gil_holder && bpf->gil_locked &&
	       bpf->gil_holder <= 256 && bpf->gil_locked <= 256 &&
	       (bpf->interp_gil == PP_NO_OFFSET ||
		(fits(bpf->interp_gil, 8, PP_NO_OFFSET) &&
		 bpf->gil_locked == bpf->gil_holder + 8));
}

static bool does_thread_fit(const struct pp_python *bpf)
{
	const uint32_t limit = PP_TSTATE_READ_BYTES;

	return fits(bpf->ts_interp, 8, limit) && fits(bpf->ts_frame, 8, limit) &&
	       fits(bpf->ts_thread_id, 8, limit) && fits(bpf->ts_native_id, 8, limit) &&
	       bpf->gil_offset <= limit - 8;
}

static bool does_frame_fit(const struct pp_python *bpf)
{
	const uint32_t limit = INTERPRETER_FRAME_BYTES;

	return fits(bpf->frame_previous, 8, limit) && fits(bpf->frame_code, 8, limit) &&
	       fits(bpf->frame_instr, 8, limit) && fits(bpf->frame_owner, 1, limit) &&
	       (bpf->frame_tlbc_index == PP_NO_OFFSET ||
		fits(bpf->frame_tlbc_index, 4, limit - 4));
}

static bool does_code_fit(const struct pp_python *bpf)
{
	const uint32_t limit = bpf->code_line_table + 8U;

	return fits(bpf->code_line_table, 8, PP_CODE_READ_BYTES) && fits(bpf->ob_type, 8, 64) &&
	       bpf->ob_type <= bpf->code_line_table && fits(bpf->code_filename, 8, limit) &&
	       fits(bpf->code_name, 8, limit) && fits(bpf->code_qualname, 8, limit) &&
	       fits(bpf->code_first_line, 4, limit) &&
	       bpf->code_first_line <= bpf->code_line_table &&
	       fits(bpf->code_adaptive, 2, 4096) &&
	       (bpf->code_tlbc == PP_NO_OFFSET || fits(bpf->code_tlbc, 8, 4096));
}

static bool do_strings_fit(const struct pp_python *bpf)
{
	return fits(bpf->str_length, 8, 64) && fits(bpf->str_state, 4, 64) &&
	       fits(bpf->str_ascii_data, 8, 256) && fits(bpf->str_compact_data, 8, 256 + 16) &&
	       fits(bpf->bytes_size, 8, 64) && fits(bpf->bytes_data, 1, 256);
}

static void copy_interpreter(const struct python_told *told, struct python_info *info)
{
	const struct pp_python *from = &told->bpf;
	struct pp_python *to = &info->bpf;

	info->runtime_interpreters_head = told->runtime_interpreters_head;
	info->interp_next = told->interp_next;
	info->interp_threads_head = told->interp_threads_head;
	info->interp_modules = told->interp_modules;
	info->ts_next = (uint16_t)told->ts_next;
	to->gc_offset = from->gc_offset;
	to->gil_holder = from->gil_holder;
	to->gil_locked = from->gil_locked;
	to->gil_offset = from->gil_offset;
	to->interp_gil = from->interp_gil;
	to->ts_interp = from->ts_interp;
	to->ts_frame = from->ts_frame;
	to->ts_thread_id = from->ts_thread_id;
	to->ts_native_id = from->ts_native_id;
}

static void copy_objects(const struct pp_python *from, struct pp_python *to)
{
	const uint16_t flags_before_line = to->code_first_line - to->code_flags;

	to->frame_previous = from->frame_previous;
	to->frame_code = from->frame_code;
	to->frame_instr = from->frame_instr;
	to->frame_owner = from->frame_owner;
	to->ob_type = from->ob_type;
	to->code_filename = from->code_filename;
	to->code_name = from->code_name;
	to->code_qualname = from->code_qualname;
	to->code_line_table = from->code_line_table;
	to->code_first_line = from->code_first_line;
	to->code_flags = from->code_first_line - flags_before_line;
	to->code_adaptive = from->code_adaptive;
	if (to->flags & PP_PYTHON_FREE_THREADED) {
		to->frame_tlbc_index = from->frame_tlbc_index;
		to->code_tlbc = from->code_tlbc;
	}
	to->str_length = from->str_length;
	to->str_state = from->str_state;
	to->str_ascii_data = from->str_ascii_data;
	to->str_compact_data = from->str_compact_data;
	to->bytes_size = from->bytes_size;
	to->bytes_data = from->bytes_data;
}

int python_debug_offsets_take(const struct python_told *told, struct python_info *info)
{
	const struct pp_python *bpf = &told->bpf;
	const uint16_t flags_before_line = info->bpf.code_first_line - info->bpf.code_flags;

	if (!do_lists_fit(told) || !does_thread_fit(bpf) || !does_frame_fit(bpf) ||
	    !does_code_fit(bpf) || !do_strings_fit(bpf) || bpf->code_first_line < flags_before_line)
		return -EBADMSG;
	copy_interpreter(told, info);
	copy_objects(bpf, &info->bpf);
	info->offsets_from_file = true;
	return 0;
}
