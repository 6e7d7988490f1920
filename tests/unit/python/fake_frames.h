/* SPDX-License-Identifier: BSD-2-Clause */
/* The frames of an interpreter in memory of our own, which plays the profiled process.  All offsets
 * are made up. */
#ifndef TESTS_UNIT_PYTHON_FAKE_FRAMES_H
#define TESTS_UNIT_PYTHON_FAKE_FRAMES_H

#include <cmocka.h>
#include <string.h>
#include <unistd.h>

#include "python/python_frames.h"

enum layout {
	TS_INTERP = 8,
	TS_THREAD_ID = 24,
	TS_FRAME = 40,
	TS_CFRAME = 48,
	CFRAME_CURRENT = 8,
	CFRAME_PREVIOUS = 16,
	FRAME_CODE = 8,
	FRAME_PREVIOUS = 24,
	FRAME_INSTR = 40,
	FRAME_OWNER = 70,
	FRAME_IS_ENTRY = 71,
	OB_TYPE = 8,
};

#define BIAS 0x10000ULL
#define CODE_TYPE 0x700ULL
#define FRAMES 8U
#define SHIM 3U

static struct fake {
	struct pp_python layout;
	struct python_where where;
	uint8_t state[PP_TSTATE_READ_BYTES];
	uint8_t frame[FRAMES][PP_FRAME_READ_BYTES];
	uint64_t cframe[FRAMES][4];
	uint64_t code[FRAMES][8];
} fake;

static inline uint64_t at(const void *pointer)
{
	return (uint64_t)(uintptr_t)pointer;
}

static inline void put(void *object, uint16_t offset, uint64_t value)
{
	memcpy((uint8_t *)object + offset, &value, sizeof(value));
}

static inline void fake_begin(uint8_t chain)
{
	fake = (struct fake){
		.layout = {.chain = chain,
			   .shim_owner = SHIM,
			   .code_type = CODE_TYPE,
			   .ts_frame = TS_FRAME,
			   .ts_cframe = TS_CFRAME,
			   .ts_interp = TS_INTERP,
			   .ts_thread_id = TS_THREAD_ID,
			   .cframe_current = CFRAME_CURRENT,
			   .cframe_previous = CFRAME_PREVIOUS,
			   .frame_code = FRAME_CODE,
			   .frame_previous = FRAME_PREVIOUS,
			   .frame_instr = FRAME_INSTR,
			   .frame_owner = FRAME_OWNER,
			   .frame_is_entry = FRAME_IS_ENTRY,
			   .frame_tlbc_index = PP_NO_OFFSET,
			   .interp_gil = PP_NO_OFFSET,
			   .ob_type = OB_TYPE},
		.where = {.pid = getpid(), .layout = &fake.layout, .bias = BIAS},
	};
	if (chain <= PP_CHAIN_FRAME_CFRAME)
		fake.layout.flags = PP_PYTHON_LASTI;
	/* Frame i runs code i at instruction 10 i; its caller is i + 1. */
	for (size_t i = 0; i < FRAMES; i++) {
		put(fake.code[i], OB_TYPE, CODE_TYPE + BIAS);
		put(fake.frame[i], FRAME_CODE, at(fake.code[i]));
		put(fake.frame[i], FRAME_INSTR,
		    fake.layout.flags & PP_PYTHON_LASTI ? 10 * i : at(fake.code[i]) + 10 * i);
		put(fake.frame[i], FRAME_PREVIOUS, i + 1 < FRAMES ? at(fake.frame[i + 1]) : 0);
		put(fake.cframe[i], CFRAME_PREVIOUS, i + 1 < FRAMES ? at(fake.cframe[i + 1]) : 0);
	}
	put(fake.cframe[0], CFRAME_CURRENT, at(fake.frame[0]));
	put(fake.state, TS_FRAME, at(fake.frame[0]));
	if (chain == PP_CHAIN_FRAME_CFRAME)
		put(fake.state, TS_CFRAME, at(fake.cframe[0]));
	if (chain == PP_CHAIN_CFRAME_ENTRY || chain == PP_CHAIN_CFRAME_SHIM)
		put(fake.state, TS_FRAME, at(fake.cframe[0]));
}

static inline struct python_frames *fake_read(void)
{
	static struct python_frames frames;

	python_frames_read(&fake.where, at(fake.state), &frames);
	assert_int_equal(frames.thread_state, at(fake.state));
	return &frames;
}

static inline void assert_frame(const struct python_frames *frames, size_t index, size_t code)
{
	assert_int_equal(frames->frame[index].kind, PP_FRAME_PYTHON_RAW);
	assert_int_equal(frames->frame[index].where, at(fake.code[code]));
	assert_int_equal(frames->frame[index].what, 10 * code);
}

#endif
