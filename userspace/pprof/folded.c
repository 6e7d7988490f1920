/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes a profile as folded text.  Each distinct frame is formatted once; lines exist only in the
 * result. */
#include "pprof/pprof.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "base/utf8.h"
#include "profile/profile_data.h"

#define MAX_HEAD_FRAMES 2U  /* process, thread */
#define MAX_COUNT_CHARS 24U /* " -9223372036854775808\n" */

struct folded_head {
	uint32_t text[MAX_HEAD_FRAMES];
	uint32_t count;
};

struct folded_writer {
	const struct profile *profile;
	unsigned int value_index;
	struct intern *texts;	  /* rendered frames */
	uint32_t *location_text;  /* by location */
	struct folded_head *head; /* by label set */
	uint32_t *row;		  /* rows in the order of their lines */
	uint32_t row_count;
};

static void writer_release(struct folded_writer *writer)
{
	intern_free(writer->texts);
	free(writer->location_text);
	free(writer->head);
	free(writer->row);
}

/* Stores a text in which the characters that folded text cannot hold are replaced. */
static int keep_text(struct folded_writer *writer, const char *text, size_t size, uint32_t *ret_id)
{
	OWNED_MEM char *clean = reallocarray(NULL, size + 1, UTF8_CLEAN_MAX_GROWTH);
	size_t clean_size;

	if (!clean)
		return -ENOMEM;
	clean_size = utf8_clean(text, size, clean);
	for (size_t i = 0; i < clean_size; i++)
		if (clean[i] == ';')
			clean[i] = ':';
	return intern_bytes(writer->texts, clean, clean_size, ret_id);
}

static const char *module_name(const struct profile *profile, const struct frame *frame)
{
	const struct module *module = profile_frame_module(profile, frame);

	return module ? basename(intern_get(profile->strings, module->path, NULL)) : "";
}

static int print_frame(FILE *out, const struct profile *profile, const struct frame *frame)
{
	const char *name = intern_get(profile->strings, frame->name, NULL);
	const char *file = intern_get(profile->strings, frame->file, NULL);
	const char *module = module_name(profile, frame);

	if (!name[0])
		name = "[unknown]";
	if (frame->kind == FRAME_KERNEL)
		return fprintf(out, "%s_[k]", name);
	if (frame->kind == FRAME_MARKER)
		return fprintf(out, "%s", name);
	if (frame->kind == FRAME_PYTHON && file[0])
		return frame->line ? fprintf(out, "%s (%s:%" PRIu32 ")", name, file, frame->line)
				   : fprintf(out, "%s (%s)", name, file);
	if (frame->kind != FRAME_PYTHON && module[0])
		return fprintf(out, "%s (%s)", name, module);
	return fprintf(out, "%s", name);
}

static int render_locations(struct folded_writer *writer)
{
	const struct stack_table *stacks = &writer->profile->stacks;

	for (uint32_t i = 0; i < stacks->location_count; i++) {
		OWNED_MEM char *text = NULL;
		size_t size = 0;
		FILE *out = open_memstream(&text, &size);
		int printed, err;

		if (!out)
			return -ENOMEM;
		printed = print_frame(out, writer->profile, &stacks->location[i]);
		if (close_memory_file(out, &text) || printed < 0)
			return -ENOMEM;
		err = keep_text(writer, text, size, &writer->location_text[i]);
		if (err)
			return err;
	}
	return 0;
}

static const char *label_text(const struct profile *profile, uint32_t set, const char *key)
{
	return intern_get(profile->strings, profile_label_text(profile, set, key), NULL);
}

/* Formats "process 12: python3" from a number and a name; nothing without the number. */
static int add_head(struct folded_writer *writer, uint32_t set, struct folded_head *head,
		    const char *what, const char *number_key, const char *name)
{
	const struct stored_label *number = profile_find_label(writer->profile, set, number_key);
	OWNED_MEM char *text = NULL;
	int size, err;

	if (!number || !number->is_number)
		return 0;
	size = asprintf(&text, "%s %" PRId64 "%s%s", what, number->value, name[0] ? ": " : "",
			name);
	if (size < 0) {
		text = NULL;
		return -ENOMEM;
	}
	err = keep_text(writer, text, (size_t)size, &head->text[head->count]);
	if (!err)
		head->count++;
	return err;
}

static int render_heads(struct folded_writer *writer)
{
	const struct profile *profile = writer->profile;

	for (uint32_t i = 0; i < profile->label_set_count; i++) {
		const char *thread = label_text(profile, i, "thread_name");
		int err;

		if (!thread[0])
			thread = label_text(profile, i, "thread");
		err = add_head(writer, i, &writer->head[i], "process", "pid",
			       label_text(profile, i, "comm"));
		if (!err)
			err = add_head(writer, i, &writer->head[i], "thread", "tid", thread);
		if (err)
			return err;
	}
	return 0;
}

static int64_t row_value(const struct folded_writer *writer, uint32_t row)
{
	return profile_row_values(writer->profile, row)[writer->value_index];
}

static uint32_t line_length(const struct folded_writer *writer, uint32_t row)
{
	const struct profile_row *at = &writer->profile->row[row];

	return writer->head[at->label_set].count + writer->profile->stacks.stack[at->stack].count;
}

/* Returns the text of the i-th frame of a line, root first. */
static uint32_t line_text(const struct folded_writer *writer, uint32_t row, uint32_t i)
{
	const struct profile_row *at = &writer->profile->row[row];
	const struct folded_head *head = &writer->head[at->label_set];
	const struct stack *stack = &writer->profile->stacks.stack[at->stack];

	if (i < head->count)
		return head->text[i];
	return writer->location_text[stack->location[stack->count - 1 - (i - head->count)]];
}

/* Compares two frames as parts of their lines, in which ';' or nothing follows them. */
static int compare_frames(const struct folded_writer *writer, uint32_t text_a, bool is_last_a,
			  uint32_t text_b, bool is_last_b)
{
	size_t size_a, size_b, shorter;
	const unsigned char *a = (const unsigned char *)intern_get(writer->texts, text_a, &size_a);
	const unsigned char *b = (const unsigned char *)intern_get(writer->texts, text_b, &size_b);
	int next_a, next_b, order;

	shorter = size_a < size_b ? size_a : size_b;
	order = memcmp(a, b, shorter);
	if (order)
		return order;
	next_a = size_a > shorter ? a[shorter] : is_last_a ? -1 : ';';
	next_b = size_b > shorter ? b[shorter] : is_last_b ? -1 : ';';
	return next_a - next_b;
}

/* Sorts by the bytes of the stacks' texts, like `LC_ALL=C sort`. */
static int compare_rows(const void *a, const void *b, void *context)
{
	const struct folded_writer *writer = context;
	uint32_t row_a = *(const uint32_t *)a, row_b = *(const uint32_t *)b;
	uint32_t length_a = line_length(writer, row_a), length_b = line_length(writer, row_b);

	for (uint32_t i = 0; i < length_a && i < length_b; i++) {
		uint32_t text_a = line_text(writer, row_a, i), text_b = line_text(writer, row_b, i);

		if (text_a != text_b)
			return compare_frames(writer, text_a, i + 1 == length_a, text_b,
					      i + 1 == length_b);
	}
	return (length_a > length_b) - (length_a < length_b);
}

static size_t line_bytes(const struct folded_writer *writer, uint32_t row)
{
	size_t bytes = MAX_COUNT_CHARS;

	for (uint32_t i = 0; i < line_length(writer, row); i++) {
		size_t size;

		intern_get(writer->texts, line_text(writer, row, i), &size);
		bytes += size + 1;
	}
	return bytes;
}

static char *put_line(const struct folded_writer *writer, uint32_t row, int64_t value, char *put)
{
	for (uint32_t i = 0; i < line_length(writer, row); i++) {
		size_t size;
		const char *text = intern_get(writer->texts, line_text(writer, row, i), &size);

		if (i)
			*put++ = ';';
		memcpy(put, text, size);
		put += size;
	}
	return put + snprintf(put, MAX_COUNT_CHARS, " %" PRId64 "\n", value);
}

/* Writes the lines.  Rows with equal text (other addresses in one function, other labels) become
 * one. */
static int put_lines(struct folded_writer *writer, char **ret_text, size_t *ret_size)
{
	OWNED_MEM char *text = NULL;
	size_t size = 1;
	char *put;

	for (uint32_t i = 0; i < writer->row_count; i++)
		size += line_bytes(writer, writer->row[i]);
	text = malloc(size);
	if (!text)
		return -ENOMEM;
	put = text;
	for (uint32_t i = 0; i < writer->row_count;) {
		uint32_t first = i;
		int64_t value = 0;

		for (; i < writer->row_count &&
		       !compare_rows(&writer->row[first], &writer->row[i], writer);
		     i++)
			if (__builtin_add_overflow(value, row_value(writer, writer->row[i]),
						   &value))
				value = INT64_MAX;
		put = put_line(writer, writer->row[first], value, put);
	}
	*put = '\0';
	*ret_size = (size_t)(put - text);
	*ret_text = TAKE(text);
	return 0;
}

static int writer_init(struct folded_writer *writer, const struct profile *profile)
{
	int err;

	writer->profile = profile;
	writer->location_text =
		calloc((size_t)profile->stacks.location_count + 1, sizeof(*writer->location_text));
	writer->head = calloc((size_t)profile->label_set_count + 1, sizeof(*writer->head));
	writer->row = calloc((size_t)profile->row_count + 1, sizeof(*writer->row));
	if (!writer->location_text || !writer->head || !writer->row)
		return -ENOMEM;
	err = intern_new(&writer->texts);
	if (!err)
		err = render_heads(writer);
	if (!err)
		err = render_locations(writer);
	if (err)
		return err;
	for (uint32_t i = 0; i < profile->row_count; i++)
		if (row_value(writer, i) && line_length(writer, i))
			writer->row[writer->row_count++] = i;
	qsort_r(writer->row, writer->row_count, sizeof(*writer->row), compare_rows, writer);
	return 0;
}

int profile_encode_folded(const struct profile *profile, char **ret_text, size_t *ret_size)
{
	return profile_encode_folded_value(profile, 0, ret_text, ret_size);
}

int profile_encode_folded_value(const struct profile *profile, unsigned int value_index,
				char **ret_text, size_t *ret_size)
{
	CLEANUP(writer_release) struct folded_writer writer = {.value_index = value_index};
	int err = writer_init(&writer, profile);

	return err ? err : put_lines(&writer, ret_text, ret_size);
}
