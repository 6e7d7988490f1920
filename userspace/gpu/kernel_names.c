/* SPDX-License-Identifier: BSD-2-Clause */
#include "gpu/kernel_names.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pyprofd/limits.h>

#include "attach/file_table.h"
#include "base/array.h"
#include "discover/proc_scan.h"
#include "discover/process_table.h"
#include "drain/counts.h"
#include "drain/cuda_names.h"
#include "drain/cuda_totals.h"
#include "drain/hash_set.h"
#include "files/client.h"
#include "gpu/launch_site.h"
#include "probes/cuda_functions.h"
#include "windows/source.h"

#define KERNELS_MAX (4U * PP_CUDA_NAMES_MAX)
#define KERNELS_MAX_BYTES (16U << 20) /* of their names */
/* Stacks of a kernel that are looked at for its stub.  A kernel that has one has it in each. */
#define SITES_MAX 4U
#define LIBRARY_MAX_BYTES 64U /* of its name in a kernel's */
#define FALLBACK_BYTES 32U
/* Numbers by which the child is blamed for the texts of a process: as of code objects
 * (symbolize/symbolizer.h), no file has them soon. */
#define FIRST_TEXT_NUMBER 0xa0000000U

enum state {
	KERNEL_UNKNOWN, /* by its handle */
	KERNEL_RAW,	/* mangled: the child could not be asked */
	KERNEL_NAMED,
};

struct kernel {
	uint64_t hash; /* first: hash_set.h */
	struct pp_cuda_handle handle;
	uint32_t life;	  /* struct pp_cuda_what: of the handle */
	char *name;	  /* owned; NULL: none was set */
	uint64_t text_id; /* of what the driver was given; 0: nothing, or it is not known */
	const char *text; /* borrowed, in this round: that text, which is asked about; or NULL */
	uint32_t sites;	  /* that were looked at */
	uint32_t order;	  /* of the question that named it, in this round */
	uint8_t state;	  /* enum state */
	bool is_function_asked;
	bool is_counted; /* as unnamed */
	bool is_ended;
};

/* The order of questions about a kernel: that about its function has 0, and frames the next ones,
 * the innermost first.  The first one that has an answer counts. */
#define FIRST_FRAME 1U

/* An address that may be a kernel's stub. */
struct question {
	uint32_t file; /* id */
	uint32_t order;
	uint64_t vaddr;
	struct kernel *kernel;
	bool is_function; /* it is that of the function */
};

struct kernel_names {
	const struct services *services;
	const struct cuda_names *handles;
	const struct cuda_totals *totals;
	struct hash_set set; /* frees what it holds, but not their texts */
	size_t bytes;
	uint64_t unnamed;
	/* Of the round that goes on: a window's. */
	struct question *question; /* owned */
	size_t question_count, question_capacity, questions_done;
	struct kernel **text; /* owned; whose texts are asked about */
	size_t text_count, text_capacity, texts_done;
	bool is_noted;
	char fallback[FALLBACK_BYTES];
};

int kernel_names_new(const struct services *services, const struct cuda_names *handles,
		     const struct cuda_totals *totals, struct kernel_names **ret_names)
{
	OWNED(kernel_names) struct kernel_names *names = calloc(1, sizeof(*names));

	if (!names)
		return -ENOMEM;
	names->services = services;
	names->handles = handles;
	names->totals = totals;
	hash_set_init(&names->set);
	*ret_names = TAKE(names);
	return 0;
}

static void drop_name(struct kernel_names *names, struct kernel *kernel)
{
	names->bytes -= kernel->name ? strlen(kernel->name) : 0;
	free(kernel->name);
	kernel->name = NULL;
}

void kernel_names_free(struct kernel_names *names)
{
	if (!names)
		return;
	for (size_t i = 0; i < names->set.count; i++)
		free(((struct kernel *)names->set.entry[i])->name);
	hash_set_release(&names->set);
	free(names->question);
	free(names->text);
	free(names);
}

/* ---- kernels ---- */

static uint64_t hash_of(const struct pp_cuda_handle *handle, uint32_t life)
{
	uint64_t hash = (uint64_t)handle->id.tgid << 32 | handle->id.generation;

	hash = (hash ^ hash >> 29) * 0x9e3779b97f4a7c15ULL ^ handle->handle;
	hash = (hash ^ hash >> 31) * 0x9e3779b97f4a7c15ULL ^ life;
	return (hash ^ hash >> 32) * 0x9e3779b97f4a7c15ULL;
}

static bool are_equal(const struct pp_cuda_handle *a, const struct pp_cuda_handle *b)
{
	return a->id.tgid == b->id.tgid && a->id.generation == b->id.generation &&
	       a->handle == b->handle;
}

/* The handles of one kernel are one. */
static struct pp_cuda_handle handle_of(const struct kernel_names *names,
				       const struct pp_cuda_what *what)
{
	const struct pp_cuda_handle handle = {.id = what->id, .handle = what->ident};

	return cuda_names_origin(names->handles, &handle, what->life);
}

/* Returns NULL also where a program has chosen a handle whose hash another one has. */
static struct kernel *find(const struct kernel_names *names, const struct pp_cuda_handle *handle,
			   uint32_t life)
{
	struct kernel *kernel = hash_set_find(&names->set, hash_of(handle, life));

	return kernel && kernel->life == life && are_equal(&kernel->handle, handle) ? kernel : NULL;
}

/* Returns NULL where there is no room. */
static struct kernel *get(struct kernel_names *names, const struct pp_cuda_handle *handle,
			  uint32_t life)
{
	struct kernel *kernel = find(names, handle, life);
	const uint64_t hash = hash_of(handle, life);

	if (kernel || names->set.count >= KERNELS_MAX || hash_set_find(&names->set, hash))
		return kernel;
	kernel = hash_set_get(&names->set, hash, sizeof(*kernel));
	if (kernel) {
		kernel->handle = *handle;
		kernel->life = life;
	}
	return kernel;
}

static void count_unnamed(struct kernel_names *names, struct kernel *kernel)
{
	names->unnamed += !kernel->is_counted;
	kernel->is_counted = true;
}

static int set_name(struct kernel_names *names, struct kernel *kernel, const char *text,
		    enum state state)
{
	const size_t size = strlen(text);
	char *copy;

	if (names->bytes + size > KERNELS_MAX_BYTES) {
		count_unnamed(names, kernel);
		return 0;
	}
	copy = strdup(text);
	if (!copy)
		return -ENOMEM;
	drop_name(names, kernel);
	kernel->name = copy;
	names->bytes += size;
	kernel->state = state;
	return 0;
}

/* kernel@0xHANDLE (FILE) */
static int set_handle(struct kernel_names *names, struct kernel *kernel, const struct file *file)
{
	const char *last = strrchr(file->path, '/');
	const char *from = last ? last + 1 : file->path;
	char text[FALLBACK_BYTES + LIBRARY_MAX_BYTES];

	snprintf(text, sizeof(text), *from ? "kernel@0x%" PRIx64 " (%.*s)" : "kernel@0x%" PRIx64,
		 (uint64_t)kernel->handle.handle, (int)LIBRARY_MAX_BYTES, from);
	return set_name(names, kernel, text, KERNEL_UNKNOWN);
}

/* ---- what is asked ---- */

static int add_question(struct kernel_names *names, const struct question *question)
{
	if (ARRAY_RESERVE(names->question, names->question_count, names->question_capacity))
		return -ENOMEM;
	names->question[names->question_count++] = *question;
	return 0;
}

static const struct mapping *mapping_at(const struct process *process, uint64_t address)
{
	for (size_t i = 0; process && i < process->mapping_count; i++)
		if (address >= process->mapping[i].start && address < process->mapping[i].end)
			return &process->mapping[i];
	return NULL;
}

/* A kernel of the runtime may be the address of a function of the program. */
static int note_function(struct kernel_names *names, struct kernel *kernel)
{
	const struct process *process =
		process_table_find(names->services->processes, kernel->handle.id);
	const struct mapping *mapping = mapping_at(process, kernel->handle.handle);
	struct question question = {.kernel = kernel, .is_function = true};

	if (kernel->is_function_asked || !mapping ||
	    !file_table_find(names->services->files, mapping->file))
		return 0;
	kernel->is_function_asked = true;
	question.file = mapping->file;
	question.vaddr = kernel->handle.handle - mapping->bias;
	return add_question(names, &question);
}

static enum launch_file file_of(void *context, uint32_t slot)
{
	const struct kernel_names *names = context;
	const struct file *file = file_table_in_slot(names->services->files, slot);

	switch (file ? cuda_library_of(file->path) : CUDA_LIBRARIES) {
	case CUDA_DRIVER:
		return LAUNCH_FILE_DRIVER;
	case CUDA_RUNTIME:
		return LAUNCH_FILE_RUNTIME;
	default:
		return LAUNCH_FILE_OTHER;
	}
}

/* One of a call's frames may be the kernel's stub. */
static int note_site(struct kernel_names *names, struct kernel *kernel, uint64_t stack_hash)
{
	const struct dict_stack *stack =
		dictionary_find_stack(names->services->dictionary, stack_hash);
	struct question question = {.kernel = kernel};
	struct launch_site site;
	const struct file *file;
	int err = 0;

	if (kernel->sites == SITES_MAX || !stack || !launch_site_find(stack, file_of, names, &site))
		return 0;
	file = file_table_in_slot(names->services->files, site.file);
	if (!file)
		return 0;
	if (!kernel->name)
		err = set_handle(names, kernel, file);
	kernel->sites++;
	question.file = file->id;
	for (uint32_t i = 0; i < site.count && !err; i++) {
		question.vaddr = site.vaddr[i];
		question.order = FIRST_FRAME + i;
		err = add_question(names, &question);
	}
	return err;
}

/* The driver was given a name; the last one counts. */
static int note_text(struct kernel_names *names, struct kernel *kernel, const char *text,
		     uint64_t id)
{
	if (kernel->text || (kernel->text_id == id && kernel->state == KERNEL_NAMED))
		return 0;
	kernel->text_id = id;
	kernel->text = text;
	if (ARRAY_RESERVE(names->text, names->text_count, names->text_capacity))
		return -ENOMEM;
	names->text[names->text_count++] = kernel;
	return 0;
}

/* Returns what the driver was given for a row's handle when the row was made, or else what it was
 * given later. */
static const char *text_of(const struct kernel_names *names, const struct pp_cuda_what *what,
			   uint64_t row, uint64_t *ret_id)
{
	const struct cuda_names *handles = names->handles;
	const struct pp_cuda_handle handle = handle_of(names, what);
	const char *text;

	*ret_id = cuda_totals_name(names->totals, row);
	text = *ret_id ? cuda_names_find_text(handles, what->id, *ret_id) : NULL;
	return text ? text : cuda_names_find(handles, &handle, what->life, ret_id);
}

static int note_launch(struct kernel_names *names, const struct pp_cuda_what *what,
		       const struct cuda_function *function, const struct pp_count_key *key)
{
	const struct pp_cuda_handle handle = handle_of(names, what);
	struct kernel *kernel = get(names, &handle, what->life);
	uint64_t id;
	const char *text;
	int err = 0;

	if (!kernel)
		return 0;
	text = text_of(names, what, key->detail, &id);
	if (text)
		return note_text(names, kernel, text, id);
	if (kernel->state == KERNEL_NAMED)
		return 0;
	kernel->order = UINT32_MAX;
	if (function->library == CUDA_RUNTIME)
		err = note_function(names, kernel);
	return err ? err : note_site(names, kernel, key->user_stack);
}

static int compare_questions(const void *a, const void *b)
{
	const struct question *left = a, *right = b;

	return ORDER(left->file, right->file) ?: ORDER(left->is_function, right->is_function)
						 ?: ORDER(left->vaddr, right->vaddr);
}

static int compare_texts(const void *a, const void *b)
{
	const struct kernel *left = *(struct kernel *const *)a, *right = *(struct kernel *const *)b;

	return ORDER(left->handle.id.tgid, right->handle.id.tgid);
}

static int note_all(struct kernel_names *names, const struct counts *counts)
{
	int err = 0;

	for (size_t i = 0; i < counts->count && !err; i++) {
		const struct pp_count_key *key = &counts->entry[i].key;
		const struct pp_cuda_what *what = NULL;
		const struct cuda_function *function;

		if (key->kind == PP_KIND_CUDA)
			what = cuda_totals_what(names->totals, key->detail);
		function = what ? cuda_function_get(what->api) : NULL;
		if (function && function->has_kernel && what->ident != PP_CUDA_IDENT_OTHERS)
			err = note_launch(names, what, function, key);
	}
	if (names->question_count)
		qsort(names->question, names->question_count, sizeof(*names->question),
		      compare_questions);
	if (names->text_count)
		qsort(names->text, names->text_count, sizeof(*names->text), compare_texts);
	return err;
}

/* ---- answers about files ---- */

struct answering {
	struct kernel_names *names;
	const struct question *question; /* the next one */
	int err;
};

static void on_kernel(void *context, const struct foreign_function *function)
{
	struct answering *answering = context;
	const struct question *question = answering->question++;
	struct kernel *kernel = question->kernel;

	if (!function->name || answering->err || kernel->text ||
	    (kernel->state == KERNEL_NAMED && question->order >= kernel->order))
		return;
	answering->err = set_name(answering->names, kernel, function->name, KERNEL_NAMED);
	kernel->order = question->order;
}

/* What could not be asked is asked again in the next round; until then kernels have their
 * handles. */
static void put_off(const struct question *question, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (question[i].is_function)
			question[i].kernel->is_function_asked = false;
		else if (question[i].order == FIRST_FRAME && question[i].kernel->sites)
			question[i].kernel->sites--;
	}
}

/* Asks about the questions from `from` on that are about one file and alike. */
static int ask_file(struct kernel_names *names, size_t from, size_t count)
{
	const struct question *first = names->question + from;
	struct file *file = file_table_find(names->services->files, first->file);
	struct answering answering = {.names = names, .question = first};
	OWNED_MEM uint64_t *vaddr = calloc(count, sizeof(*vaddr));
	int err = 0;

	if (!vaddr)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		vaddr[i] = first[i].vaddr;
	if (file)
		err = file_table_kernels(names->services->files, file, vaddr, count,
					 first->is_function, on_kernel, &answering);
	if (err == -ETIMEDOUT || err == -EAGAIN)
		put_off(first, count);
	return answering.err;
}

static int ask_files(struct kernel_names *names, const struct slice *slice)
{
	while (names->questions_done < names->question_count) {
		const struct question *first = names->question + names->questions_done;
		size_t count = 1;
		int err;

		while (names->questions_done + count < names->question_count &&
		       first[count].file == first->file &&
		       first[count].is_function == first->is_function)
			count++;
		err = ask_file(names, names->questions_done, count);
		names->questions_done += count;
		if (err)
			return err;
		if (names->questions_done < names->question_count && slice_is_over(slice))
			return 1;
	}
	return 0;
}

/* ---- answers about texts ---- */

struct texts_answering {
	struct kernel_names *names;
	struct kernel **kernel; /* the next one */
	int err;
};

/* A text that is cut says nothing of what it would mean. */
static bool is_cut(const char *text)
{
	return strlen(text) >= PP_MAX_TEXT_BYTES - 1;
}

static int set_raw(struct kernel_names *names, struct kernel *kernel, enum state state)
{
	char text[PP_MAX_TEXT_BYTES + 4];

	count_unnamed(names, kernel);
	snprintf(text, sizeof(text), "%.*s%s", (int)PP_MAX_TEXT_BYTES - 1, kernel->text,
		 is_cut(kernel->text) ? "..." : "");
	return set_name(names, kernel, text, state);
}

static void on_text(void *context, const struct foreign_function *function)
{
	struct texts_answering *answering = context;
	struct kernel *kernel = *answering->kernel++;

	if (!answering->err)
		answering->err =
			set_name(answering->names, kernel,
				 function->name ? function->name : kernel->text, KERNEL_NAMED);
}

/* Asks about the texts of a process, as many as go into a request.  Returns how many are done;
 * -ENOMEM. */
static int ask_texts(struct kernel_names *names, struct kernel **kernel, size_t count)
{
	const struct process *process =
		process_table_find(names->services->processes, kernel[0]->handle.id);
	const uint32_t user = process ? process_user(process) : 0;
	const struct foreign_file whose = {.number = FIRST_TEXT_NUMBER | kernel[0]->handle.id.tgid,
					   .user = user,
					   .payer = user};
	struct texts_answering answering = {.names = names, .kernel = kernel};
	OWNED_MEM const char **text = calloc(count, sizeof(*text));
	int done = -ETIMEDOUT;

	if (!text)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		text[i] = kernel[i]->text;
	if (names->services->foreign && process)
		done = foreign_texts(names->services->foreign, &whose, text, count, on_text,
				     &answering);
	if (done > 0 || done == -ENOMEM)
		return answering.err ? answering.err : done;
	/* Those at which the child was late are given up. */
	for (size_t i = 0; i < count && !answering.err; i++)
		answering.err =
			set_raw(names, kernel[i], done == -ETIME ? KERNEL_NAMED : KERNEL_RAW);
	return answering.err ? answering.err : (int)count;
}

static int ask_all_texts(struct kernel_names *names, const struct slice *slice)
{
	while (names->texts_done < names->text_count) {
		struct kernel **first = names->text + names->texts_done;
		const size_t left = names->text_count - names->texts_done;
		size_t count = 0;
		int done = 1;

		while (count < left && !is_cut(first[count]->text) &&
		       first[count]->handle.id.tgid == first[0]->handle.id.tgid)
			count++;
		if (count)
			done = ask_texts(names, first, count);
		else if (set_raw(names, first[0], KERNEL_NAMED))
			done = -ENOMEM;
		if (done < 0)
			return done;
		names->texts_done += (size_t)done;
		if (names->texts_done < names->text_count && slice_is_over(slice))
			return 1;
	}
	return 0;
}

/* ---- a round ---- */

static void end_round(struct kernel_names *names)
{
	for (size_t i = 0; i < names->text_count; i++)
		names->text[i]->text = NULL;
	names->question_count = names->questions_done = 0;
	names->text_count = names->texts_done = 0;
	names->is_noted = false;
}

int kernel_names_resolve(struct kernel_names *names, const struct counts *counts,
			 const struct slice *slice)
{
	int more = 0;

	if (!names->is_noted)
		more = note_all(names, counts);
	names->is_noted = true;
	if (!more)
		more = ask_files(names, slice);
	if (!more)
		more = ask_all_texts(names, slice);
	if (more <= 0)
		end_round(names);
	return more;
}

static bool is_kept(const void *context, const void *entry)
{
	const struct kernel *kernel = entry;

	(void)context;
	return !kernel->is_ended;
}

void kernel_names_tidy(struct kernel_names *names,
		       bool (*is_alive)(void *context, struct pp_process_id id), void *context)
{
	bool has_ended = false;

	end_round(names); /* a window that was given up */
	for (size_t i = 0; i < names->set.count; i++) {
		struct kernel *kernel = names->set.entry[i];

		if (is_alive(context, kernel->handle.id))
			continue;
		drop_name(names, kernel);
		kernel->is_ended = has_ended = true;
	}
	if (has_ended)
		hash_set_filter(&names->set, is_kept, names);
}

const char *kernel_names_get(struct kernel_names *names, const struct pp_cuda_what *what)
{
	const struct pp_cuda_handle handle = handle_of(names, what);
	struct kernel *kernel = find(names, &handle, what->life);

	if (kernel && kernel->state == KERNEL_UNKNOWN)
		count_unnamed(names, kernel);
	if (kernel && kernel->name)
		return kernel->name;
	snprintf(names->fallback, sizeof(names->fallback), "kernel@0x%" PRIx64,
		 (uint64_t)handle.handle);
	return names->fallback;
}

uint64_t kernel_names_unnamed(const struct kernel_names *names)
{
	return names->unnamed;
}
