/* SPDX-License-Identifier: BSD-2-Clause */
/* Decodes bytes from the rings into checked records.  Trusts no length.  No global state. */
#ifndef DRAIN_DECODE_H
#define DRAIN_DECODE_H

#include <stddef.h>
#include <stdint.h>

#include <pyprofd/sample.h>
#include <pyprofd/wait.h>

/* The parts of a record point into its bytes and are valid as long as these. */
struct decoded_stack {
	const struct pp_stack_record *record;
	const struct pp_frame *python; /* record->python_stored */
	const struct pp_frame *native; /* record->native_stored */
};

struct decoded_kernel {
	const struct pp_kernel_record *record;
	size_t count; /* addresses */
};

struct decoded_incomplete {
	const struct pp_incomplete_record *record;
	const struct pp_frame *python, *native;
	const struct pp_segment *segment; /* record->segment_count */
	const struct pp_return *returns;  /* record->return_count */
	const uint8_t *stack;		  /* record->stack_bytes */
};
/* Points at the parts of a record whose lengths were checked. */
void decoded_incomplete_set(const struct pp_incomplete_record *record,
			    struct decoded_incomplete *ret_incomplete);

struct drain_handlers {
	void *context;
	void (*stack)(void *context, const struct decoded_stack *stack);
	void (*kernel)(void *context, const struct decoded_kernel *kernel);
	void (*code)(void *context, const struct pp_code_record *record);
	void (*incomplete)(void *context, const struct decoded_incomplete *incomplete);
	/* May be NULL: such a record is then -EBADMSG. */
	void (*text)(void *context, const struct pp_text_record *record, size_t bytes);
	void (*event)(void *context, const struct pp_event *event);
	void (*timeline)(void *context, const struct pp_timeline_record *record);
};

/* Decodes one record of the ring `stacks`; data is 8-byte aligned.  Returns 0; -EBADMSG: sizes do
 * not add up, the type is unknown, or a count exceeds its bound. */
int decode_record(const void *data, size_t size, const struct drain_handlers *handlers);
/* Decodes one record of the ring `events`. */
int decode_event(const void *data, size_t size, const struct drain_handlers *handlers);
/* Decodes one record of the ring `timeline`, and checks that its times are in order. */
int decode_timeline(const void *data, size_t size, const struct drain_handlers *handlers);

#endif
