/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A synthetic interpreter in the host's heap: code objects, frames.  Include host.h before. */
#ifndef TESTS_BPF_HOST_PYTHON_H
#define TESTS_BPF_HOST_PYTHON_H

#define CODE_TYPE (INTERPRETER + 0x7000) /* PyCode_Type in memory */

/* An invented layout, as far from CPython's as the headers allow: only struct pp_python tells
 * it. */
enum layout {
	TS_INTERP = 8,
	TS_THREAD_ID = 24,
	TS_FRAME = 40,
	TS_CFRAME = 48,
	TS_GIL = 64,
	CFRAME_CURRENT = 8,
	CFRAME_PREVIOUS = 16,
	FRAME_CODE = 8,
	FRAME_PREVIOUS = 24,
	FRAME_INSTR = 40,
	FRAME_OWNER = 70,
	FRAME_IS_ENTRY = 71,
	FRAME_TLBC = 76,
	OB_TYPE = 8,
	CODE_FLAGS = 20,
	CODE_FIRST_LINE = 28,
	CODE_FILENAME = 40,
	CODE_NAME = 48,
	CODE_QUALNAME = 64, /* right before the line table, as in 3.11+ */
	CODE_LINES = 72,
	CODE_ADAPTIVE = 184,
	CODE_TLBC = 96,
	STR_LENGTH = 16,
	STR_STATE = 32,
	STR_ASCII = 40,
	STR_COMPACT = 56,
	BYTES_SIZE = 16,
	BYTES_DATA = 32,
};

static inline void python_init(uint8_t chain, uint8_t minor)
{
	host->python = (struct pp_python){
		.major = 3,
		.minor = minor,
		.chain = chain,
		.shim_owner = 3,
		.file = INTERPRETER_FILE,
		.code_type = CODE_TYPE - INTERPRETER,
		.runtime = 0x8000,
		.ts_frame = TS_FRAME,
		.ts_cframe = TS_CFRAME,
		.ts_interp = TS_INTERP,
		.ts_thread_id = TS_THREAD_ID,
		.ts_native_id = PP_NO_OFFSET,
		.cframe_current = CFRAME_CURRENT,
		.cframe_previous = CFRAME_PREVIOUS,
		.frame_code = FRAME_CODE,
		.frame_previous = FRAME_PREVIOUS,
		.frame_instr = FRAME_INSTR,
		.frame_owner = FRAME_OWNER,
		.frame_is_entry = FRAME_IS_ENTRY,
		.frame_tlbc_index = PP_NO_OFFSET,
		.ob_type = OB_TYPE,
		.code_flags = CODE_FLAGS,
		.code_first_line = CODE_FIRST_LINE,
		.code_filename = CODE_FILENAME,
		.code_name = CODE_NAME,
		.code_qualname = CODE_QUALNAME,
		.code_line_table = CODE_LINES,
		.code_adaptive = CODE_ADAPTIVE,
		.code_tlbc = CODE_TLBC,
		.str_length = STR_LENGTH,
		.str_state = STR_STATE,
		.str_ascii_data = STR_ASCII,
		.str_compact_data = STR_COMPACT,
		.str_kind_shift = 2,
		.str_ascii_shift = 6,
		.bytes_size = BYTES_SIZE,
		.bytes_data = BYTES_DATA,
	};
}

static inline void put_u32(uint64_t address, uint32_t value)
{
	put_bytes(address, &value, sizeof(value));
}

/* A str of one byte a character, ASCII. */
static inline uint64_t new_string(const char *text)
{
	uint64_t at = heap_take(sizeof(host->walk.string) + strlen(text));

	put_word(at + STR_LENGTH, strlen(text));
	put_u32(at + STR_STATE, 1 << 2 | 1 << 6);
	put_bytes(at + STR_ASCII, text, strlen(text));
	return at;
}

static inline uint64_t new_line_table(const char *bytes, size_t size)
{
	uint64_t at = heap_take(BYTES_DATA + size);

	put_word(at + BYTES_SIZE, size);
	put_bytes(at + BYTES_DATA, bytes, size);
	return at;
}

static inline uint64_t new_code(const char *name, uint32_t first_line)
{
	uint64_t at = heap_take(256);

	put_word(at + OB_TYPE, CODE_TYPE);
	put_u32(at + CODE_FLAGS, 0x43);
	put_u32(at + CODE_FIRST_LINE, first_line);
	put_word(at + CODE_FILENAME, new_string("/srv/app.py"));
	put_word(at + CODE_NAME, new_string("short"));
	put_word(at + CODE_QUALNAME, new_string(name));
	put_word(at + CODE_LINES, new_line_table("\x80\x01\x02", 3));
	return at;
}

/* 3.11+: instr is an address, 100 bytes into the bytecode. */
static inline uint64_t new_frame(uint64_t code, uint64_t previous, uint8_t owner)
{
	uint64_t at = heap_take(PP_FRAME_READ_BYTES);

	put_word(at + FRAME_CODE, code);
	put_word(at + FRAME_PREVIOUS, previous);
	put_word(at + FRAME_INSTR, (code & ~7ULL) + CODE_ADAPTIVE + 100);
	put_bytes(at + FRAME_OWNER, &owner, 1);
	return at;
}

#define THREAD_POINTER 0x7f00deadb000ULL

static uint64_t state_address;

static inline void python_begin(uint8_t chain, uint8_t minor)
{
	python_init(chain, minor);
	host->walk.id = (struct pp_process_id){.tgid = 70, .generation = 3};
	host->walk.tid = 71;
	host->walk.thread_pointer = THREAD_POINTER;
	host->walk.context.python = 1;
	host->walk.context.python_bias = INTERPRETER;
	host->walk.context.code_space = 9;
	state_address = heap_take(256);
	put_word(state_address + TS_THREAD_ID, THREAD_POINTER);
	/* Its address lies in a global, as in 2.7. */
	host->walk.context.tls[0] =
		(struct pp_tls){.mode = PP_TLS_GLOBAL, .address = heap_take(16)};
	put_word(host->walk.context.tls[0].address, state_address);
}

/* The code record whose id a stored frame has. */
static inline const struct pp_code_record *code_of(const struct pp_frame *frame)
{
	for (uint32_t i = 0; i < host->record_count; i++) {
		const struct pp_code_record *record = host->record[i].data;

		if (record->record.type == PP_RECORD_CODE && record->id == frame->where)
			return record;
	}
	fail_msg("no record of this code");
	return NULL;
}

#define assert_python(at, name, instruction)                                                       \
	do {                                                                                       \
		const struct pp_code_record *record_ = code_of(python_frame(at));                  \
                                                                                                   \
		assert_int_equal(python_frame(at)->kind, PP_FRAME_PYTHON);                         \
		assert_int_equal(python_frame(at)->what, instruction);                             \
		assert_int_equal(record_->name_bytes, strlen(name));                               \
		assert_memory_equal(record_->bytes, name, strlen(name));                           \
	} while (0)

#endif
