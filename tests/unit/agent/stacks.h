/* SPDX-License-Identifier: BSD-2-Clause */
/* A stand-in for the symbolizer: stacks by hash, each a list of frames that a test writes down. */
#ifndef TESTS_UNIT_AGENT_STACKS_H
#define TESTS_UNIT_AGENT_STACKS_H

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/naming.h"
#include "base/intern.h"
#include "drain/dictionary.h"
#include "symbolize/symbolizer.h"

#define STACK_FRAMES_MAX 40U

/* kind: 'k'ernel, 'p'ython, 'n'ative. */
struct known_stack {
	uint64_t hash;
	const char *kinds;
	const char *name[STACK_FRAMES_MAX]; /* leaf first */
	const char *file;		    /* of the Python frames; NULL: "" */
	uint32_t line;			    /* ... and their line */
	uint32_t module;		    /* of the native frames */
};
static const struct known_stack *known_stacks;
static size_t known_stack_count;
static struct intern *strings; /* NULL: those of the call */
static uint64_t noted[8192];
static size_t noted_count;
static bool is_resolved;
static unsigned int late_files;	 /* that are not named by the first calls */
static unsigned int symbolizers; /* that are open */
static struct naming_options begun_with;
static const char *stacks_fail; /* "begin", "note", "resolve", "stack": -ENOMEM from there */

static int stacks_result(const char *name)
{
	return stacks_fail && !strcmp(stacks_fail, name) ? -ENOMEM : 0;
}

struct symbolizer {
	struct frame frame[2 * STACK_FRAMES_MAX];
};

int naming_begin(struct naming *naming, const struct naming_options *options,
		 struct symbolizer **ret_symbolizer)
{
	(void)naming;
	if (strings)
		assert_ptr_equal(options->strings, strings);
	begun_with = *options;
	noted_count = 0;
	is_resolved = false;
	if (stacks_result("begin"))
		return -ENOMEM;
	*ret_symbolizer = calloc(1, sizeof(**ret_symbolizer));
	assert_non_null(*ret_symbolizer);
	symbolizers++;
	return 0;
}

void symbolizer_free(struct symbolizer *symbolizer)
{
	symbolizers -= symbolizer != NULL;
	free(symbolizer);
}

int symbolizer_note_hash(struct symbolizer *symbolizer, uint64_t hash)
{
	(void)symbolizer;
	assert_true(noted_count < sizeof(noted) / sizeof(noted[0]));
	noted[noted_count++] = hash;
	return stacks_result("note");
}

int symbolizer_resolve_slice(struct symbolizer *symbolizer, const struct slice *slice)
{
	(void)symbolizer;
	is_resolved &= slice != NULL;
	assert_false(is_resolved && noted_count);
	if (late_files && slice_is_over(slice)) {
		late_files--;
		return 1;
	}
	is_resolved = true;
	return stacks_result("resolve");
}

static const struct known_stack *known_stack(uint64_t hash)
{
	for (size_t i = 0; i < known_stack_count; i++)
		if (known_stacks[i].hash == hash)
			return &known_stacks[i];
	return NULL;
}

/* The dictionary's stacks are the known ones. */
static const struct dict_stack *dict_user(uint64_t hash)
{
	return (const struct dict_stack *)known_stack(hash);
}

static const struct dict_kernel *dict_kernel(uint64_t hash)
{
	return (const struct dict_kernel *)known_stack(hash);
}

static void add_string(const char *string, uint32_t *ret_id)
{
	assert_int_equal(intern_string(begun_with.strings, string, ret_id), 0);
}

static size_t add_frames(struct frame *frame, size_t count, const struct known_stack *stack)
{
	for (size_t i = 0; stack && stack->kinds[i]; i++) {
		struct frame *one = &frame[count++];

		*one = (struct frame){.kind = FRAME_KERNEL};
		if (stack->kinds[i] == 'p') {
			*one = (struct frame){.kind = FRAME_PYTHON, .line = stack->line};
			add_string(stack->file ? stack->file : "", &one->file);
		} else if (stack->kinds[i] == 'n') {
			*one = (struct frame){.kind = FRAME_NATIVE, .module = stack->module};
		}
		add_string(stack->name[i], &one->name);
	}
	return count;
}

int symbolizer_stack(struct symbolizer *symbolizer, struct pp_process_id id,
		     const struct dict_stack *user, const struct dict_kernel *kernel,
		     const struct frame **ret_frames, size_t *ret_count)
{
	size_t count;

	(void)id;
	assert_true(is_resolved);
	if (stacks_result("stack"))
		return -ENOMEM;
	count = add_frames(symbolizer->frame, 0, (const struct known_stack *)kernel);
	*ret_count = add_frames(symbolizer->frame, count, (const struct known_stack *)user);
	*ret_frames = symbolizer->frame;
	return 0;
}

static bool is_noted(uint64_t hash)
{
	for (size_t i = 0; i < noted_count; i++)
		if (noted[i] == hash)
			return true;
	return false;
}

#endif
