/* SPDX-License-Identifier: BSD-2-Clause */
#include "reader/top_view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/io.h"
#include "base/kinds.h"

/* What identifies a row. */
struct row_key {
	uint32_t level, parent;
	int64_t id;
};

static bool row_equal(const void *context, uint32_t index, const void *key)
{
	const struct top_model *model = context;
	const struct top_row *row = &model->row[index];
	const struct row_key *wanted = key;
	int64_t id = row->level == TOP_PROCESS ? row->pid
		     : row->level == TOP_WAIT  ? row->name
					       : row->code;

	return row->level == wanted->level && row->parent == wanted->parent && id == wanted->id;
}

static int find_row(struct top_model *model, const struct row_key *key, uint32_t *ret_row)
{
	uint32_t hash = (uint32_t)XXH3_64bits(key, sizeof(*key));
	uint32_t *head;
	int err;

	if (index_table_find(&model->index, hash, row_equal, model, key, ret_row))
		return 0;
	err = INDEX_RESERVE(&model->index, hash, model->row, model->count, model->capacity);
	if (err)
		return err;
	head = key->parent == TOP_NONE ? &model->first : &model->row[key->parent].child;
	model->row[model->count] = (struct top_row){
		.level = (enum top_level)key->level,
		.parent = key->parent,
		.child = TOP_NONE,
		.sibling = *head,
		.code = (uint32_t)key->id,
		.pid = key->id,
		.name = (uint32_t)key->id,
	};
	*head = *ret_row = model->count++;
	return 0;
}

/* ---- a sample ---- */

struct sample {
	uint32_t process;
	const struct stack *stack;
	int64_t value;
	uint32_t wait; /* string; 0: on the CPU */
	bool has_gil;
};

static void add_time(struct top_row *row, const struct sample *sample)
{
	if (sample->wait)
		row->wait_ns += sample->value;
	else
		row->cpu_ns += sample->value;
	if (sample->has_gil)
		row->gil_ns += sample->value;
}

/* Finds or adds a row with this parent, or TOP_NONE, and adds the sample to it. */
static int add_to(struct top_model *model, const struct row_key *key, const struct sample *sample,
		  uint32_t *ret_row)
{
	int err = find_row(model, key, ret_row);

	if (!err)
		add_time(&model->row[*ret_row], sample);
	return err;
}

static enum frame_class class_at(const struct top_model *model, const struct stack *stack,
				 uint32_t at)
{
	const struct profile *profile = profile_reader_profile(model->reader);

	return frame_class(profile, &profile->stacks.location[stack->location[at]]);
}

/* Returns the frame that a sample's time belongs to. */
static uint32_t find_own(const struct top_model *model, const struct stack *stack)
{
	uint32_t outside = UINT32_MAX;

	for (uint32_t i = 0; !model->by_leaf && i < stack->count; i++) {
		enum frame_class class = class_at(model, stack, i);

		if (class == FRAME_CLASS_PYTHON)
			return i;
		if (class != FRAME_CLASS_KERNEL && outside == UINT32_MAX)
			outside = i;
	}
	return outside == UINT32_MAX ? 0 : outside;
}

static int find_function(struct top_model *model, uint32_t process, uint32_t location,
			 uint32_t *ret_row)
{
	uint32_t code;
	int err = code_table_of_location(&model->function, location, &code);
	const struct row_key key = {.level = TOP_FUNCTION, .parent = process, .id = code};

	return err ? err : find_row(model, &key, ret_row);
}

/* Adds the sample to every function of the stack of the class that time is given to. */
static int add_totals(struct top_model *model, const struct sample *sample, uint32_t own)
{
	enum frame_class class = class_at(model, sample->stack, own);
	int err = 0;

	model->sample++;
	for (uint32_t i = own; i < sample->stack->count && !err; i++) {
		uint32_t row;

		if (!model->by_leaf && class_at(model, sample->stack, i) != class)
			continue;
		err = find_function(model, sample->process, sample->stack->location[i], &row);
		if (err || model->row[row].last_sample == model->sample)
			continue;
		model->row[row].last_sample = model->sample;
		model->row[row].total_ns += sample->value;
	}
	return err;
}

static int add_code(struct top_model *model, const struct sample *sample)
{
	uint32_t own = find_own(model, sample->stack), location, function, line;
	struct row_key key = {.level = TOP_LINE};
	int err;

	if (!sample->stack->count)
		return 0;
	location = sample->stack->location[own];
	err = sample->wait ? 0 : add_totals(model, sample, own);
	if (!err)
		err = find_function(model, sample->process, location, &function);
	if (err)
		return err;
	add_time(&model->row[function], sample);
	if (!model->function.profile->stacks.location[location].line)
		return 0;
	err = code_table_of_location(&model->line, location, &line);
	key.parent = function;
	key.id = line;
	return err ? err : add_to(model, &key, sample, &line);
}

static int add_row(struct top_model *model, const struct profile *profile,
		   const struct profile_delta *delta)
{
	const struct profile_row *from = &profile->row[delta->row];
	struct sample sample = {
		.stack = &profile->stacks.stack[from->stack],
		.value = delta->value,
		.wait = profile_label_text(profile, from->label_set, "wait"),
		.has_gil = profile_label_text(profile, from->label_set, "gil"),
	};
	const struct row_key key = {.level = TOP_PROCESS,
				    .parent = TOP_NONE,
				    .id = profile_label_number(profile, from->label_set, "pid")};
	uint32_t had = model->count, row;
	int err = add_to(model, &key, &sample, &sample.process);

	if (err)
		return err;
	/* A process may change its name: the last one is shown. */
	model->row[sample.process].name = profile_label_text(profile, from->label_set, "comm");
	model->processes += model->count - had;
	if (sample.wait) {
		const struct row_key wait = {
			.level = TOP_WAIT, .parent = sample.process, .id = sample.wait};

		err = add_to(model, &wait, &sample, &row);
	}
	return err ? err : add_code(model, &sample);
}

static void on_comment(void *context, const char *text)
{
	struct top_model *model = context;

	coverage_add(&model->coverage, text);
}

static int on_window(void *context, struct profile *profile, const struct profile_window *window)
{
	struct top_model *model = context;
	int err = 0;

	if (!model->function.profile) {
		code_table_init(&model->function, profile, CODE_BY_FUNCTION);
		code_table_init(&model->line, profile, CODE_BY_LINE);
	}
	for (size_t i = 0; i < window->delta_count && !err; i++)
		err = add_row(model, profile, &window->delta[i]);
	return err;
}

/* ---- the whole ---- */

int top_model_new(bool by_leaf, struct top_model **ret_model)
{
	static const char *const labels[] = {"pid", "comm", "wait", "gil", NULL};
	const struct kind *wall = kind_get(PP_PROFILE_WALL);
	OWNED(top_model) struct top_model *model = calloc(1, sizeof(*model));
	struct profile_read_options options = {.keep_labels = labels,
					       .drop_addresses = true,
					       .sample_type = wall->value[wall->default_value].type,
					       .window_done = on_window,
					       .comment = on_comment,
					       .context = model};
	int err;

	if (!model)
		return -ENOMEM;
	model->by_leaf = by_leaf;
	model->first = TOP_NONE;
	err = profile_reader_new(&options, &model->reader);
	if (err)
		return err;
	*ret_model = TAKE(model);
	return 0;
}

void top_model_free(struct top_model *model)
{
	if (!model)
		return;
	code_table_release(&model->function);
	code_table_release(&model->line);
	index_table_release(&model->index);
	free(model->row);
	profile_reader_free(model->reader);
	free(model);
}

int top_model_add(struct top_model *model, const char *file, size_t size, bool has_waits)
{
	OWNED_FD int fd = memfd_create("window", MFD_CLOEXEC);
	int err;

	if (fd < 0)
		return -errno;
	err = write_full(fd, file, size);
	if (err)
		return err;
	if (lseek(fd, 0, SEEK_SET))
		return -errno;
	model->has_waits = has_waits;
	return profile_reader_add(model->reader, fd, kind_get(PP_PROFILE_WALL)->name);
}

struct profile_read_totals top_model_totals(const struct top_model *model)
{
	struct profile_read_totals totals;

	profile_reader_totals(model->reader, &totals);
	return totals;
}

const char *top_model_coverage(const struct top_model *model, char buffer[COVERAGE_BYTES])
{
	return coverage_text(&model->coverage, kind_get(PP_PROFILE_WALL)->name, buffer);
}

const char *top_model_name(const struct top_model *model, const struct top_row *row)
{
	const struct profile *profile = profile_reader_profile(model->reader);

	if (row->level == TOP_PROCESS || row->level == TOP_WAIT)
		return intern_get(profile->strings, row->name, NULL);
	return code_text(
		row->level == TOP_LINE ? &model->line : &model->function,
		(row->level == TOP_LINE ? &model->line : &model->function)->code[row->code].name);
}
