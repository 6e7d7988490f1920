/* SPDX-License-Identifier: BSD-2-Clause */
/* struct _Py_DebugOffsets in files written by hand: which word is which field, and the bounds of
 * each. Words are numbered as in Include/internal/pycore_runtime.h of 3.13 and
 * pycore_debug_offsets.h of 3.14 and 3.15. */
#include "made_python.h"

#include "python/python_offsets.h"

#define BAD_OFFSETS "_Py_DebugOffsets is missing or out of bounds"
#define NO_MINOR 3U
/* What the interpreter's struct itself holds; the sums and differences are ours to make. */
#define GC_COLLECTING 88U
#define GIL 22000U

/* A word, the field it fills, and the unit in which it counts. */
struct word {
	uint8_t index[NO_MINOR]; /* of 3.13, 3.14, 3.15; 0: none */
	uint8_t unit;
	uint8_t size; /* of the field */
	size_t field; /* offset in struct python_info */
	uint64_t largest;
};

#define OF(member) sizeof(((struct python_info *)0)->member), offsetof(struct python_info, member)
#define INTERPRETER_MOST ((1U << 22) - 8)

static const struct word words[] = {
	{{5, 5, 5}, 8, OF(runtime_interpreters_head), INTERPRETER_MOST},
	{{8, 8, 8}, 8, OF(interp_next), INTERPRETER_MOST},
	{{9, 9, 9}, 8, OF(interp_threads_head), INTERPRETER_MOST},
	{{11, 12, 12}, 8, OF(interp_modules), INTERPRETER_MOST},
	{{14, 15, 15}, 8, OF(bpf.interp_gil), 65520},
	{{21, 24, 24}, 8, OF(ts_next), 184},
	{{22, 25, 25}, 8, OF(bpf.ts_interp), 184},
	{{23, 26, 26}, 8, OF(bpf.ts_frame), 184},
	{{24, 27, 30}, 8, OF(bpf.ts_thread_id), 184},
	{{25, 28, 31}, 8, OF(bpf.ts_native_id), 184},
	/* A frame's page may end 88 bytes behind the frame's begin. */
	{{29, 32, 40}, 8, OF(bpf.frame_previous), 80},
	{{30, 33, 41}, 8, OF(bpf.frame_code), 80},
	{{31, 34, 42}, 8, OF(bpf.frame_instr), 80},
	{{33, 36, 44}, 1, OF(bpf.frame_owner), 87},
	/* No field of a code object lies behind the line table's pointer, at 136. */
	{{35, 40, 48}, 8, OF(bpf.code_filename), 136},
	{{36, 41, 49}, 8, OF(bpf.code_name), 136},
	{{37, 42, 50}, 8, OF(bpf.code_qualname), 136},
	{{39, 44, 52}, 4, OF(bpf.code_first_line), 136},
	{{38, 43, 51}, 8, OF(bpf.code_line_table), PP_CODE_READ_BYTES - 8},
	{{43, 48, 56}, 2, OF(bpf.code_adaptive), 4094},
	{{45, 51, 59}, 8, OF(bpf.ob_type), 56},
	{{65, 75, 87}, 8, OF(bpf.bytes_size), 56},
	{{66, 76, 88}, 1, OF(bpf.bytes_data), 255},
	{{68, 78, 90}, 4, OF(bpf.str_state), 60},
	{{69, 79, 91}, 8, OF(bpf.str_length), 56},
	{{70, 80, 92}, 8, OF(bpf.str_ascii_data), 248},
	{{0, 0, 93}, 8, OF(bpf.str_compact_data), 248},
};

/* The words that are added up or told apart, by minor version. */
static const uint8_t interp_gc[NO_MINOR] = {10, 11, 11}, gc_collecting[NO_MINOR] = {72, 82, 95},
		     gil_state[NO_MINOR] = {15, 16, 16}, gil_locked[NO_MINOR] = {17, 18, 18},
		     gil_holder[NO_MINOR] = {18, 19, 19}, ts_status[NO_MINOR] = {27, 30, 33},
		     word_count[NO_MINOR] = {73, 95, 111};
#define HOLDS_GIL_315 34U
#define FRAME_TLBC_INDEX_314 38U
#define CODE_TLBC_314 49U

static void put_offset(unsigned int index, uint64_t value)
{
	put_u64(RUNTIME + 8 * (uint64_t)index, value);
}

static uint64_t field_of(const struct python_info *info, const struct word *word)
{
	uint64_t value = 0;

	memcpy(&value, (const uint8_t *)info + word->field, word->size);
	return value;
}

/* A file whose words say what our table of this version says. */
static void begin_3(unsigned int minor, bool is_free_threaded)
{
	const struct python_layout *layout = python_layout_find(3, minor, is_free_threaded);
	const struct pp_python *bpf = &layout->info.bpf;
	const unsigned int v = minor - 13;

	begin(true, 0);
	MADE_PUT(&elf, RUNTIME, "xdebugpy");
	put_offset(1, 0x030000f0 | minor << 16);
	put_offset(2, is_free_threaded);
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (words[i].index[v])
			put_offset(words[i].index[v], field_of(&layout->info, &words[i]));
	put_offset(interp_gc[v], bpf->gc_offset - GC_COLLECTING);
	put_offset(gc_collecting[v], GC_COLLECTING);
	put_offset(gil_state[v], GIL);
	put_offset(gil_locked[v], GIL + bpf->gil_locked);
	put_offset(gil_holder[v], GIL + bpf->gil_holder);
	put_offset(ts_status[v], 32);
	if (minor == 15)
		put_offset(HOLDS_GIL_315, 36);
	if (minor == 14) {
		put_offset(FRAME_TLBC_INDEX_314, is_free_threaded ? bpf->frame_tlbc_index : 1);
		put_offset(CODE_TLBC_314, is_free_threaded ? bpf->code_tlbc : 1);
	}
}

static struct python_info *read_good(void)
{
	const char *reason;
	int err;
	struct python_info *info = read_info(&err, &reason);

	assert_string_equal(reason, "");
	assert_int_equal(err, 0);
	assert_true(info->offsets_from_file);
	return info;
}

static void debug_offsets__of_each_version_are_its_layout(void **state)
{
	static const struct {
		unsigned int minor;
		bool is_free_threaded;
	} cases[] = {{13, false}, {13, true}, {14, false}, {14, true}, {15, false}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct pp_python expected =
			python_layout_find(3, cases[i].minor, cases[i].is_free_threaded)->info.bpf;

		begin_3(cases[i].minor, cases[i].is_free_threaded);
		OWNED(python_info) struct python_info *info = read_good();

		expected.runtime = RUNTIME;
		expected.code_type = CODE_TYPE;
		/* Without a GIL nobody reads where it is held. */
		assert_memory_equal(&info->bpf, &expected, sizeof(expected));
		assert_int_equal(info->version_hex, 0x030000f0 | cases[i].minor << 16);
	}
}

/* The file's word counts, not our table's; it may be as large as what is read of the object
 * allows. */
static void debug_offsets__each_word_fills_its_field_up_to_a_bound(void **state)
{
	(void)state;
	for (unsigned int minor = 13; minor <= 15; minor++)
		for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
			const struct word *word = &words[i];

			if (!word->index[minor - 13])
				continue;
			begin_3(minor, false);
			put_offset(word->index[minor - 13], word->largest);
			OWNED(python_info) struct python_info *info = read_good();

			if (field_of(info, word) != word->largest)
				fail_msg("3.%u, word %u", minor, word->index[minor - 13]);
			put_offset(word->index[minor - 13], word->largest + word->unit);
			expect_refused(BAD_OFFSETS);
			put_offset(word->index[minor - 13], word->largest - word->unit + 1);
			if (word->unit > 1)
				expect_refused(BAD_OFFSETS);
		}
}

static void debug_offsets__compact_strings_follow_ascii_ones_before_3_15(void **state)
{
	(void)state;
	begin_3(13, false);
	put_offset(70, 48);
	OWNED(python_info) struct python_info *info = read_good();

	assert_int_equal(info->bpf.str_compact_data, 48 + 16); /* utf8_length, utf8 */
}

/* An int before the first line, as far from it as in our table: 20 bytes. */
static void debug_offsets__flags_of_a_code_object_lie_before_its_first_line(void **state)
{
	(void)state;
	begin_3(13, false);
	put_offset(39, 20);
	OWNED(python_info) struct python_info *info = read_good();

	assert_int_equal(info->bpf.code_flags, 0);
	put_offset(39, 16);
	expect_refused(BAD_OFFSETS);
}

static void debug_offsets__collecting_is_a_field_of_the_collector_s(void **state)
{
	(void)state;
	begin_3(13, false);
	put_offset(10, INTERPRETER_MOST);
	put_offset(72, 4092);
	OWNED(python_info) struct python_info *info = read_good();

	assert_int_equal(info->bpf.gc_offset, INTERPRETER_MOST + 4092);
	put_offset(72, 4096);
	expect_refused(BAD_OFFSETS);
	put_offset(72, 4090);
	expect_refused(BAD_OFFSETS);
	put_offset(72, 4);
	put_offset(10, INTERPRETER_MOST + 8);
	expect_refused(BAD_OFFSETS);
}

/* last_holder and locked lie in the GIL's struct; a wait is known by words next to them. */
static void debug_offsets__gil_s_words_lie_together(void **state)
{
	static const struct {
		uint64_t gil, holder, locked;
		bool is_good, is_adjacent;
	} cases[] = {
		{GIL, GIL + 8, GIL + 16, true, true},	 {GIL, GIL + 16, GIL + 24, true, true},
		{GIL, GIL + 256, GIL + 8, true, false},	 {GIL, GIL + 8, GIL + 256, true, false},
		{GIL, GIL + 8, GIL + 20, true, false},	 {GIL, GIL + 264, GIL + 8, false, false},
		{GIL, GIL + 8, GIL + 260, false, false}, {GIL, GIL, GIL + 8, false, false},
		{GIL, GIL + 8, GIL, false, false},	 {GIL, GIL - 8, GIL + 8, false, false},
		{1U << 22, GIL, GIL + 8, false, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		begin_3(13, false);
		put_offset(15, cases[i].gil);
		put_offset(18, cases[i].holder);
		put_offset(17, cases[i].locked);
		if (!cases[i].is_good) {
			expect_refused(BAD_OFFSETS);
			continue;
		}
		OWNED(python_info) struct python_info *info = read_good();

		assert_int_equal(info->bpf.gil_holder, cases[i].holder - GIL);
		assert_int_equal(info->bpf.gil_locked, cases[i].locked - GIL);
		assert_int_equal(info->bpf.interp_gil, cases[i].is_adjacent ? 16 : PP_NO_OFFSET);
	}
}

/* 3.13: a bit of the status word; 3.14: the int behind it; 3.15: a word of its own.  8 bytes are
 * read. */
static void debug_offsets__whether_a_thread_holds_the_gil_is_in_its_state(void **state)
{
	static const struct {
		unsigned int minor, index;
		uint64_t value, expected;
	} cases[] = {{13, 27, 184, 184}, {13, 27, 188, 0},   {13, 27, 30, 0},  {14, 30, 180, 184},
		     {14, 30, 184, 0},	 {15, 34, 184, 184}, {15, 34, 188, 0}, {15, 33, 188, 36}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		begin_3(cases[i].minor, false);
		put_offset(cases[i].index, cases[i].value);
		if (!cases[i].expected) {
			expect_refused(BAD_OFFSETS);
			continue;
		}
		OWNED(python_info) struct python_info *info = read_good();

		assert_int_equal(info->bpf.gil_offset, cases[i].expected);
	}
}

/* Free-threaded 3.14: a thread's own copy of the bytecode. */
static void debug_offsets__copies_of_bytecode_are_bounded(void **state)
{
	static const struct {
		unsigned int index;
		uint64_t value;
		bool is_good;
	} cases[] = {{FRAME_TLBC_INDEX_314, 80, true},	{FRAME_TLBC_INDEX_314, 84, false},
		     {FRAME_TLBC_INDEX_314, 78, false}, {CODE_TLBC_314, 4088, true},
		     {CODE_TLBC_314, 4096, false},	{CODE_TLBC_314, 4084, false}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		begin_3(14, true);
		put_offset(cases[i].index, cases[i].value);
		if (!cases[i].is_good) {
			expect_refused(BAD_OFFSETS);
			continue;
		}
		OWNED(python_info) struct python_info *info = read_good();

		assert_int_equal(cases[i].index == CODE_TLBC_314 ? info->bpf.code_tlbc
								 : info->bpf.frame_tlbc_index,
				 cases[i].value);
	}
}

/* All of its words are in the file's last bytes, or not all. */
static void debug_offsets__end_where_the_file_does(void **state)
{
	uint8_t all[8 * 111];

	(void)state;
	for (unsigned int minor = 13; minor <= 15; minor++)
		for (unsigned int less = 0; less < 2; less++) {
			const size_t bytes = 8 * (size_t)word_count[minor - 13];
			const uint64_t runtime = MADE_END - bytes + less;
			Elf64_Sym *symbol;

			begin_3(minor, false);
			memcpy(all, elf.data + (RUNTIME - MADE_BASE), bytes);
			symbol = (Elf64_Sym *)(elf.data + MADE_SYMBOLS) + 1;
			symbol->st_value = runtime;
			made_put(&elf, runtime, all, bytes - less);
			if (less) {
				expect_refused(BAD_OFFSETS);
				continue;
			}
			OWNED(python_info) struct python_info *info = read_good();

			assert_int_equal(info->bpf.runtime, runtime);
		}
}

static void debug_offsets__without_its_cookie_are_not_believed(void **state)
{
	(void)state;
	for (unsigned int at = 0; at < 8; at++) {
		begin_3(13, false);
		object("Py_Version", VERSION);
		put_u64(VERSION, 0x030d00f0);
		elf.data[RUNTIME - MADE_BASE + at] ^= 1;
		expect_refused(BAD_OFFSETS);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(debug_offsets__of_each_version_are_its_layout),
		cmocka_unit_test(debug_offsets__each_word_fills_its_field_up_to_a_bound),
		cmocka_unit_test(debug_offsets__compact_strings_follow_ascii_ones_before_3_15),
		cmocka_unit_test(debug_offsets__flags_of_a_code_object_lie_before_its_first_line),
		cmocka_unit_test(debug_offsets__collecting_is_a_field_of_the_collector_s),
		cmocka_unit_test(debug_offsets__gil_s_words_lie_together),
		cmocka_unit_test(debug_offsets__whether_a_thread_holds_the_gil_is_in_its_state),
		cmocka_unit_test(debug_offsets__copies_of_bytecode_are_bounded),
		cmocka_unit_test(debug_offsets__end_where_the_file_does),
		cmocka_unit_test(debug_offsets__without_its_cookie_are_not_believed),
	};

	return cmocka_run_group_tests_name("python/python_debug_offsets", tests, NULL, NULL);
}
