/* SPDX-License-Identifier: BSD-2-Clause */
/* Interpreters' files written by hand: versions, reasons, static variables.  Sizes of code objects
 * are PyCode_Type.tp_basicsize of the release builds. */
#include "made_python.h"

static void expect_version(uint32_t version_hex)
{
	const char *reason;
	int err;
	OWNED(python_info) struct python_info *info = read_info(&err, &reason);

	assert_string_equal(reason, "");
	assert_int_equal(err, 0);
	assert_int_equal(info->version_hex, version_hex);
	assert_int_equal(info->bpf.major, version_hex >> 24);
	assert_int_equal(info->bpf.minor, version_hex >> 16 & 0xff);
	assert_int_equal(info->bpf.code_type, CODE_TYPE);
	assert_int_equal(info->symbols.code_type, CODE_TYPE);
	assert_int_equal(info->bpf.runtime, info->symbols.runtime);
}

/* ---- the version ---- */

static void python_info_read__exports_tell_the_minor_version(void **state)
{
	static const char contradicts[] = "the version contradicts the exported variables";

	(void)state;
	begin(true, 144);
	expect_version(0x03070000);
	begin(true, 176);
	object("PyCode_NewWithPosOnlyArgs", 1);
	expect_version(0x03080000);
	object("PyObject_CallNoArgs", 1);
	expect_version(0x03090000);
	object("PyIter_Send", 1);
	expect_version(0x030a0000);
	begin(false, 144);
	expect_refused("CPython 3.0 to 3.5 are not supported");
	object("_PyEval_EvalFrameDefault", CODE);
	expect_version(0x03060000);
	begin(false, 128);
	object("PyString_Type", 1);
	expect_refused("CPython 2.6 and older are not supported");
	object("PyCapsule_New", 1);
	expect_version(0x02070000);
	/* 3.7 moved everything into _PyRuntime. */
	begin(false, 144);
	object("Py_Version", VERSION);
	put_u64(VERSION, 0x03070000);
	expect_refused(contradicts);
	begin(true, 144);
	object("Py_Version", VERSION);
	put_u64(VERSION, 0x0306fff0);
	expect_refused(contradicts);
}

static void python_info_read__variable_of_3_11_has_the_version(void **state)
{
	static const struct {
		uint32_t version_hex;
		const char *reason;
	} cases[] = {
		{0x030c04f0, ""},
		{0x030d00f0, "_Py_DebugOffsets is missing or out of bounds"},
		{0x030f00f0, "_Py_DebugOffsets is missing or out of bounds"},
		{0x031000f0, "CPython 3.16 is newer than this version of pyprofd"},
		{0x031100f0, "CPython 3.17 is newer than this version of pyprofd"},
		{0x031400f0, "CPython 3.20 is newer than this version of pyprofd"},
		{0x031500f0, "a CPython newer than this version of pyprofd"},
		{0x040000f0, "a CPython newer than this version of pyprofd"},
		{0x041000f0, "a CPython newer than this version of pyprofd"},
		{0x050000f0, "a CPython newer than this version of pyprofd"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		begin(true, 192);
		object("Py_Version", MADE_END - 8);
		put_u64(MADE_END - 8, cases[i].version_hex);
		if (cases[i].reason[0])
			expect_refused(cases[i].reason);
		else
			expect_version(cases[i].version_hex);
	}
	begin(false, 128);
	object("Py_Version", VERSION);
	put_u64(VERSION, 0x020600f0);
	expect_refused("CPython 2.6 and older are not supported");
	put_u64(VERSION, 0x030500f0);
	expect_refused("CPython 3.0 to 3.5 are not supported");
	put_u64(VERSION, 0x021000f0);
	expect_refused("CPython 2.6 and older are not supported");
	/* no variable with all its bytes */
	begin(true, 144);
	object("Py_Version", MADE_END - 7);
	expect_version(0x03070000);
}

/* A 3.9 with `opcode` and the text's distance or address at the begin of Py_GetVersion(). */
static void begin_39(uint64_t code)
{
	begin(true, 176);
	object("PyObject_CallNoArgs", 1);
	made_symbol(&elf, "Py_GetVersion", code, 16, STT_FUNC);
}

static void python_info_read__text_has_the_micro_version(void **state)
{
	static const struct {
		char text[25];
		uint32_t version_hex;
	} cases[] = {
		{"3.9.18", 0x030912f0},
		{"3.9.0", 0x030900f0},
		{"3.9.7+", 0x030907f0},
		{"3.9.255", 0x0309fff0},
		{"3.9.256", 0x03090000},
		{"3.9.2551", 0x03090000},
		{"3.9.1234", 0x03090000},
		{"3.9", 0x03090000},
		{"3.9.", 0x03090000},
		{"3.9.x", 0x03090000},
		{".9.1", 0x03090000},
		{"3:9.1", 0x03090000},
		{"3.9:1", 0x03090000},
		{"", 0x03090000},
		{"3.9.18+aaaaaaaaaaaaaaaa", 0x030912f0},
		{"3.9.18+aaaaaaaaaaaaaaaaa", 0x03090000}, /* no NUL in its 24 bytes */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		begin_39(CODE);
		MADE_RELATIVE(&elf, CODE, "\x48\x8d\x15", TEXT); /* lea TEXT(%rip), %rdx */
		made_put(&elf, TEXT, cases[i].text, sizeof(cases[i].text));
		expect_version(cases[i].version_hex);
	}
}

static void python_info_read__text_is_found_where_the_code_points(void **state)
{
	const uint32_t address = TEXT;
	uint64_t at;

	(void)state;
	/* the second, by another register */
	begin_39(CODE);
	at = MADE_RELATIVE(&elf, CODE, "\x48\x8d\x3d", TEXT + 0x100);
	MADE_RELATIVE(&elf, at + 3, "\x4c\x8d\x05", TEXT);
	MADE_PUT(&elf, TEXT, "3.9.18");
	expect_version(0x030912f0);
	/* mov $TEXT, %edx */
	begin_39(CODE);
	made_put(&elf, MADE_PUT(&elf, CODE + 2, "\xba"), &address, 4);
	MADE_PUT(&elf, TEXT, "3.9.18");
	expect_version(0x030912f0);
	/* a load, and a lea by a register */
	begin_39(CODE);
	at = MADE_RELATIVE(&elf, CODE, "\x48\x8b\x15", TEXT);
	MADE_RELATIVE(&elf, at, "\x48\x8d\x97", TEXT);
	MADE_PUT(&elf, TEXT, "3.9.18");
	expect_version(0x03090000);
	/* the text in the file's last bytes, and beyond them */
	for (uint64_t i = 0; i < 2; i++) {
		begin_39(CODE);
		MADE_RELATIVE(&elf, CODE, "\x48\x8d\x15", MADE_END - 24 + i);
		MADE_PUT(&elf, MADE_END - 24 + i, "3.9.18");
		expect_version(i ? 0x03090000 : 0x030912f0);
	}
}

/* 160 bytes are looked at, fewer at a segment's end. */
static void python_info_read__version_is_searched_in_whole_instructions(void **state)
{
	static const struct {
		uint64_t from_end, at;
		bool is_found;
	} cases[] = {{0x1000, 153, true}, {0x1000, 154, false}, {32, 25, true},
		     {48, 41, true},	  {160, 153, true},	{16, 3, false}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const uint64_t code = MADE_END - cases[i].from_end;

		begin_39(code);
		MADE_RELATIVE(&elf, code + cases[i].at, "\x48\x8d\x15", TEXT);
		MADE_PUT(&elf, TEXT, "3.9.18");
		expect_version(cases[i].is_found ? 0x030912f0 : 0x03090000);
	}
	begin_39(CODE);
	MADE_RELATIVE(&elf, CODE, "\x48\x8d\x15", TEXT);
	MADE_PUT(&elf, TEXT, "3.9.18");
	elf.header.e_machine = EM_AARCH64;
	expect_version(0x03090000);
}

static void python_info_read__text_and_exports_must_agree(void **state)
{
	(void)state;
	begin_39(CODE);
	MADE_RELATIVE(&elf, CODE, "\x48\x8d\x15", TEXT);
	MADE_PUT(&elf, TEXT, "3.8.18");
	expect_refused("the version text contradicts the exported functions");
	/* 3.0 to 3.5 have no export that we know. */
	begin(false, 144);
	made_symbol(&elf, "Py_GetVersion", CODE, 16, STT_FUNC);
	MADE_RELATIVE(&elf, CODE, "\x48\x8d\x15", TEXT);
	MADE_PUT(&elf, TEXT, "3.5.2");
	expect_refused("CPython 3.0 to 3.5 are not supported");
}

/* ---- symbols ---- */

static void python_info_read__needs_the_state_and_the_type_of_code(void **state)
{
	const char *reason;
	int err;

	(void)state;
	begin(true, 144);
	elf.section[2].sh_size -= sizeof(Elf64_Sym); /* no PyCode_Type */
	assert_null(read_info(&err, &reason));
	assert_int_equal(err, -ENOENT);
	made_begin(&elf, EM_X86_64);
	object("PyCode_Type", CODE_TYPE);
	assert_null(read_info(&err, &reason));
	assert_int_equal(err, -ENOENT);
	made_symbol(&elf, "_PyRuntime", RUNTIME, 8, STT_TLS);
	assert_null(read_info(&err, &reason));
	assert_int_equal(err, -ENOENT);
	/* the type's last bytes are the file's, or not there */
	for (uint64_t i = 0; i < 2; i++) {
		OWNED(python_info) struct python_info *info = NULL;

		made_begin(&elf, EM_X86_64);
		object("_PyRuntime", RUNTIME);
		object("PyCode_Type", MADE_END - 40 + i);
		if (!i)
			put_u64(MADE_END - 8, 144);
		info = read_info(&err, &reason);
		assert_int_equal(err, i ? -ENOENT : 0);
	}
}

static void python_info_read__other_size_of_code_objects_is_refused(void **state)
{
	(void)state;
	begin(true, 152);
	expect_refused("the size of code objects is not that of a release build "
		       "(Py_TRACE_REFS, a pre-release or a patched interpreter)");
}

static void begin_36(void)
{
	begin(false, 144);
	made_symbol(&elf, "_PyEval_EvalFrameDefault", CODE, 64, STT_FUNC);
}

static void python_info_read__static_variables_of_3_6_are_found_by_name(void **state)
{
	const char *reason;
	int err;

	(void)state;
	begin_36();
	object("interp_head", 0x10);
	object("autoTLSkey", 0x20);
	object("gil_locked", 0x30);
	object("gil_last_holder", 0x40);
	object("collecting", UINT32_MAX);
	object("_Py_NoneStruct", 0x60);
	OWNED(python_info) struct python_info *info = read_info(&err, &reason);

	assert_int_equal(err, 0);
	assert_int_equal(info->symbols.thread_state_current, CURRENT);
	assert_int_equal(info->symbols.interp_head, 0x10);
	assert_int_equal(info->symbols.auto_tls_key, 0x20);
	assert_int_equal(info->symbols.gil_locked, 0x30);
	assert_int_equal(info->symbols.gil_last_holder, 0x40);
	assert_int_equal(info->symbols.gc_collecting, UINT32_MAX);
	assert_int_equal(info->symbols.none, 0x60);
	assert_int_equal(info->bpf.gc_mode, PP_GC_GLOBAL);
	assert_int_equal(info->bpf.gc_offset, UINT32_MAX);
	assert_int_equal(info->bpf.interp_head, 0x10);
	assert_int_equal(info->tls.source[1].address, 0x20);
	assert_int_equal(info->bpf.eval_range_count, 1);
	assert_int_equal(info->bpf.eval[0].low, CODE);
}

static void python_info_read__collecting_may_be_unknown(void **state)
{
	(void)state;
	for (int is_far = 0; is_far < 2; is_far++) {
		const char *reason;
		int err;

		begin_36();
		if (is_far)
			object("collecting", 1ULL << 32);
		OWNED(python_info) struct python_info *info = read_info(&err, &reason);

		assert_int_equal(err, 0);
		assert_int_equal(info->bpf.gc_mode, PP_GC_NONE);
		assert_int_equal(info->bpf.gc_offset, 0);
	}
}

/* The list's head in _PyRuntime, until 3.11. */
static void python_info_read__list_of_interpreters_is_for_3_11_and_before(void **state)
{
	static const struct {
		uint32_t version_hex;
		uint64_t code_bytes;
	} cases[] = {{0x030b04f0, 184}, {0x030c04f0, 192}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const char *reason;
		int err;

		begin(true, cases[i].code_bytes);
		object("Py_Version", VERSION);
		put_u64(VERSION, cases[i].version_hex);
		OWNED(python_info) struct python_info *info = read_info(&err, &reason);

		assert_int_equal(err, 0);
		assert_int_equal(info->bpf.interp_head,
				 i ? 0 : RUNTIME + info->runtime_interpreters_head);
		assert_int_equal(info->bpf.interp_threads, i ? 0 : info->interp_threads_head);
		assert_int_equal(info->bpf.ts_next, i ? 0 : info->ts_next);
		assert_true(info->runtime_interpreters_head && info->interp_threads_head &&
			    info->ts_next);
		assert_int_equal(info->bpf.gil_wait_bytes, 0);
		assert_int_equal(info->bpf.eval_range_count, 0);
	}
}

/* ---- the GIL's words of 3.6 ---- */

static void expect_words(uint64_t low, uint64_t bytes)
{
	const char *reason;
	int err;
	OWNED(python_info) struct python_info *info = read_info(&err, &reason);

	assert_int_equal(err, 0);
	assert_int_equal(info->bpf.gil_wait_low, low);
	assert_int_equal(info->bpf.gil_wait_bytes, bytes);
}

/* Four variables from `low` on, the last of which ends `bytes` later. */
static void begin_words(uint64_t low, uint64_t bytes, uint8_t type)
{
	begin_36();
	made_symbol(&elf, "gil_mutex", low + 48, 40, STT_OBJECT);
	made_symbol(&elf, "gil_cond", low, 48, STT_OBJECT);
	made_symbol(&elf, "switch_mutex", low + bytes - 40, 40, STT_OBJECT);
	made_symbol(&elf, "switch_cond", low + 96, 48, type);
}

static void python_info_read__gil_s_words_are_covered_from_first_to_last(void **state)
{
	(void)state;
	begin_words(RUNTIME, 200, STT_OBJECT);
	expect_words(RUNTIME, 200);
	begin_words(MADE_BASE, 4096, STT_OBJECT);
	expect_words(MADE_BASE, 4096);
	begin_words(MADE_END - 200, 200, STT_OBJECT);
	expect_words(MADE_END - 200, 200);
	/* too far apart; outside; no variable */
	begin_words(RUNTIME, 4097, STT_OBJECT);
	expect_words(0, 0);
	begin_words(MADE_END - 199, 200, STT_OBJECT);
	expect_words(0, 0);
	begin_words(MADE_BASE - 1, 200, STT_OBJECT);
	expect_words(0, 0);
	begin_words(RUNTIME, 200, STT_FUNC);
	expect_words(0, 0);
	begin_36();
	expect_words(0, 0);
}

/* The segment of _PyThreadState_Current, behind what the file has of it. */
static void python_info_read__all_of_bss_stands_in_for_unnamed_words(void **state)
{
	static const struct {
		uint64_t current;
		bool is_bss;
	} cases[] = {{MADE_END - 1, false},
		     {MADE_END, true},
		     {MADE_END + 0x1fff, true},
		     {MADE_END + 0x2000, false}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		Elf64_Sym *symbol;

		begin_36();
		symbol = (Elf64_Sym *)(elf.data + MADE_SYMBOLS) + 1;
		symbol->st_value = cases[i].current;
		elf.program[0].p_memsz += 0x2000;
		expect_words(cases[i].is_bss ? MADE_END : 0, cases[i].is_bss ? 0x2000 : 0);
	}
	/* No range is of 4 GiB. */
	for (uint64_t more = 0; more < 2; more++) {
		begin_36();
		((Elf64_Sym *)(elf.data + MADE_SYMBOLS) + 1)->st_value = MADE_END;
		elf.program[0].p_memsz += UINT32_MAX + more;
		expect_words(more ? 0 : MADE_END, more ? 0 : UINT32_MAX);
	}
}

/* An assembler's symbols need not have a size. */
static void python_info_read__words_without_a_size_are_no_range(void **state)
{
	static const char *const names[] = {"gil_cond", "gil_mutex", "switch_cond", "switch_mutex"};
	Elf64_Sym *symbol;

	(void)state;
	begin_36();
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		made_symbol(&elf, names[i], RUNTIME, 0, STT_OBJECT);
	symbol = (Elf64_Sym *)(elf.data + MADE_SYMBOLS) + 1;
	symbol->st_value = MADE_END;
	elf.program[0].p_memsz += 0x2000;
	expect_words(MADE_END, 0x2000);
}

/* 2.7 has no words of a wait: its GIL is a semaphore of its own. */
static void python_info_read__words_are_not_searched_in_2_7(void **state)
{
	Elf64_Sym *symbol;

	(void)state;
	begin(false, 128);
	object("PyString_Type", 1);
	object("PyCapsule_New", 1);
	symbol = (Elf64_Sym *)(elf.data + MADE_SYMBOLS) + 1;
	symbol->st_value = MADE_END;
	elf.program[0].p_memsz += 0x2000;
	expect_words(0, 0);
}

/* ---- executables ---- */

static bool is_executable(void)
{
	const char *reason;
	int err;
	OWNED(python_info) struct python_info *info = read_info(&err, &reason);

	assert_int_equal(err, 0);
	return info->is_static_exe;
}

static void python_info_read__executable_says_so(void **state)
{
	(void)state;
	begin(true, 144);
	assert_false(is_executable());
	for (size_t i = 0; i < 3; i++)
		elf.dynamic[i] = (Elf64_Dyn){.d_tag = DT_DEBUG};
	elf.dynamic[3] = (Elf64_Dyn){.d_tag = DT_FLAGS_1, .d_un.d_val = DF_1_PIE | DF_1_NOW};
	assert_true(is_executable());
	elf.dynamic[2] = (Elf64_Dyn){.d_tag = DT_FLAGS_1, .d_un.d_val = DF_1_NOW};
	assert_false(is_executable());
	elf.dynamic[2] = (Elf64_Dyn){.d_tag = DT_DEBUG};
	elf.program[1].p_filesz--;
	assert_false(is_executable());
	elf.program[1].p_vaddr = MADE_END - 8; /* an entry in part */
	assert_false(is_executable());
	elf.section[2].sh_name = made_string(&elf, ".interp");
	assert_true(is_executable());
	elf.section[2].sh_name = 0;
	assert_false(is_executable());
	elf.header.e_type = ET_EXEC;
	assert_true(is_executable());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(python_info_read__exports_tell_the_minor_version),
		cmocka_unit_test(python_info_read__variable_of_3_11_has_the_version),
		cmocka_unit_test(python_info_read__text_has_the_micro_version),
		cmocka_unit_test(python_info_read__text_is_found_where_the_code_points),
		cmocka_unit_test(python_info_read__version_is_searched_in_whole_instructions),
		cmocka_unit_test(python_info_read__text_and_exports_must_agree),
		cmocka_unit_test(python_info_read__needs_the_state_and_the_type_of_code),
		cmocka_unit_test(python_info_read__other_size_of_code_objects_is_refused),
		cmocka_unit_test(python_info_read__static_variables_of_3_6_are_found_by_name),
		cmocka_unit_test(python_info_read__collecting_may_be_unknown),
		cmocka_unit_test(python_info_read__list_of_interpreters_is_for_3_11_and_before),
		cmocka_unit_test(python_info_read__gil_s_words_are_covered_from_first_to_last),
		cmocka_unit_test(python_info_read__all_of_bss_stands_in_for_unnamed_words),
		cmocka_unit_test(python_info_read__words_without_a_size_are_no_range),
		cmocka_unit_test(python_info_read__words_are_not_searched_in_2_7),
		cmocka_unit_test(python_info_read__executable_says_so),
	};

	return cmocka_run_group_tests_name("python/python_info_made", tests, NULL, NULL);
}
