/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes a profile as gzip'd pprof, element by element: the whole message is never in memory.
 * The samples come before the code that they refer to, and the texts last, because all others
 * add some. */
#include "pprof/pprof.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/array.h"
#include "base/index_table.h"
#include "base/proto.h"
#include "pprof/gzip.h"
#include "pprof/pprof_tables.h"
#include "profile/profile_data.h"

/* ---- mappings ---- */

#define FRAME_KINDS (FRAME_MARKER + 1)

/* Orders a profile's modules as pprof mappings.  Every location gets a mapping that says
 * "symbolized". For a location without one, Pyroscope makes up an unsymbolized mapping, and then
 * looks for symbols itself (grafana/pyroscope, pkg/pprof and pkg/symbolizer).  So frames without a
 * file have mappings too, with a name in brackets. */
struct pprof_mappings {
	const struct profile *profile; /* borrowed */
	uint32_t *entry; /* mapping id - 1 -> module of the interface, or ENTRY_OF_KIND + kind */
	uint32_t count;
	uint32_t *module_id;	       /* the reverse; 0: the module is in no stack */
	uint32_t kind_id[FRAME_KINDS]; /* of frames without a module; 0: there are none */
};

#define ENTRY_OF_KIND 0x80000000U

static const char *const kind_name[FRAME_KINDS] = {
	[FRAME_PYTHON] = "[python]",	      [FRAME_NATIVE] = "[unknown]",
	[FRAME_KERNEL] = "[kernel.kallsyms]", [FRAME_JIT] = "[anon]",
	[FRAME_MARKER] = "[pyprofd]",
};

static uint32_t known_kind(const struct frame *frame)
{
	return frame->kind < FRAME_KINDS ? frame->kind : FRAME_NATIVE;
}

/* Returns how well a module serves as title: readers show the first mapping as "File:". */
static int title_rank(const struct profile *profile, const struct profile_module *module)
{
	const char *path = intern_get(profile->strings, module->module.path, NULL);
	const char *base = basename(path);

	if (!(module->kinds & 1U << FRAME_NATIVE))
		return module->kinds & 1U << FRAME_KERNEL ? 0 : 1;
	if (path[0] == '[')
		return 1;
	if (!strncmp(base, "libpython", strlen("libpython")))
		return 3;
	return strstr(base, ".so") ? 2 : 4;
}

/* Returns the module of the best rank, of equals the one in most samples.  0: none. */
static uint32_t find_title(const struct profile *profile)
{
	int64_t best_weight = 0;
	int best_rank = -1;
	uint32_t title = 0;

	for (uint32_t i = 1; i <= profile->module_count; i++) {
		const struct profile_module *module = &profile->module[i - 1];
		int rank = title_rank(profile, module);

		if (!module->kinds || rank < best_rank ||
		    (rank == best_rank && module->weight <= best_weight))
			continue;
		best_rank = rank;
		best_weight = module->weight;
		title = i;
	}
	return title;
}

static void add_entry(struct pprof_mappings *mappings, uint32_t entry)
{
	mappings->entry[mappings->count++] = entry;
	if (entry >= ENTRY_OF_KIND)
		mappings->kind_id[entry - ENTRY_OF_KIND] = mappings->count;
	else
		mappings->module_id[entry] = mappings->count;
}

static void add_modules(struct pprof_mappings *mappings, bool of_kernel)
{
	for (uint32_t i = 1; i <= mappings->profile->module_count; i++) {
		uint32_t kinds = mappings->profile->module[i - 1].kinds;
		bool is_kernel = kinds & 1U << FRAME_KERNEL;

		if (kinds && !mappings->module_id[i] && is_kernel == of_kernel)
			add_entry(mappings, i);
	}
}

/* Returns the kinds of frames without a module: bits 1 << kind. */
static uint32_t kinds_without_module(const struct profile *profile)
{
	uint32_t kinds = 0;

	for (uint32_t i = 0; i < profile->stacks.location_count; i++) {
		const struct frame *frame = &profile->stacks.location[i];

		if (!profile_frame_module(profile, frame))
			kinds |= 1U << known_kind(frame);
	}
	return kinds;
}

/* Returns the kernel's module with most samples.  0: none. */
static uint32_t find_kernel(const struct profile *profile)
{
	uint32_t kernel = 0;

	for (uint32_t i = 1; i <= profile->module_count; i++) {
		const struct profile_module *module = &profile->module[i - 1];

		if (module->kinds & 1U << FRAME_KERNEL &&
		    (!kernel || module->weight > profile->module[kernel - 1].weight))
			kernel = i;
	}
	return kernel;
}

/* Orders the mappings: the title first, the kernel last. */
static void order_mappings(struct pprof_mappings *mappings)
{
	uint32_t kinds = kinds_without_module(mappings->profile);
	uint32_t title = find_title(mappings->profile), kernel;

	if (title)
		add_entry(mappings, title);
	add_modules(mappings, false);
	for (uint32_t kind = 0; kind < FRAME_KINDS; kind++)
		if (kind != FRAME_KERNEL && kinds & 1U << kind)
			add_entry(mappings, ENTRY_OF_KIND + kind);
	add_modules(mappings, true);
	if (!(kinds & 1U << FRAME_KERNEL))
		return;
	kernel = find_kernel(mappings->profile);
	if (kernel)
		mappings->kind_id[FRAME_KERNEL] = mappings->module_id[kernel];
	else
		add_entry(mappings, ENTRY_OF_KIND + FRAME_KERNEL);
}

/* Returns the mapping id of a frame of the profile, never 0. */
static uint32_t pprof_mappings_id(const struct pprof_mappings *mappings, const struct frame *frame)
{
	return profile_frame_module(mappings->profile, frame)
		       ? mappings->module_id[frame->module]
		       : mappings->kind_id[known_kind(frame)];
}

/* Returns the name of the mapping with id index + 1, where it is one of frames without a file; NULL
 * and its module for all others. */
static const char *pprof_mappings_get(const struct pprof_mappings *mappings, uint32_t index,
				      const struct module **ret_module)
{
	uint32_t entry = mappings->entry[index];

	if (entry >= ENTRY_OF_KIND)
		return kind_name[entry - ENTRY_OF_KIND];
	*ret_module = &mappings->profile->module[entry - 1].module;
	return NULL;
}

#define PENDING_BYTES 32768U /* what one call of deflate() gets */

struct function {
	uint32_t name, system_name, file, start_line; /* texts: indices in the file */
};

struct pprof_writer {
	const struct profile *profile;
	struct gzip_sink *sink;
	struct proto_writer proto; /* what is not compressed yet */
	/* The string table: clean UTF-8, each text once (viewers compare indices), "" first. */
	struct intern *texts;
	uint32_t *known; /* string of the profile -> index in the file + 1; 0: not asked for yet */
	uint32_t known_count;
	uint32_t *key, *unit; /* texts of profile.key */
	struct pprof_mappings mappings;
	struct function *function; /* id - 1 */
	uint32_t function_count, function_capacity;
	struct index_table function_index;
};

static void writer_release(struct pprof_writer *writer)
{
	gzip_sink_free(writer->sink);
	proto_release(&writer->proto);
	intern_free(writer->texts);
	free(writer->known);
	free(writer->key);
	free(writer->unit);
	free(writer->mappings.entry);
	free(writer->mappings.module_id);
	free(writer->function);
	index_table_release(&writer->function_index);
}

/* Compresses what has been written, once it is more than `above` bytes. */
static int flush(struct pprof_writer *writer, size_t above)
{
	struct proto_writer *proto = &writer->proto;
	int err = proto->error;

	if (err || proto->size <= above)
		return err;
	err = gzip_sink_put(writer->sink, proto->byte, proto->size);
	proto->size = 0;
	return err;
}

/* ---- texts ---- */

/* Adds a string of the profile.  -EINVAL: a frame or module refers to one that is not there. */
static int add_string(struct pprof_writer *writer, uint32_t string, uint32_t *ret_index)
{
	const char *bytes;
	uint32_t index;
	size_t size;
	int err;

	if (string >= writer->known_count)
		return -EINVAL;
	if (writer->known[string]) {
		*ret_index = writer->known[string] - 1;
		return 0;
	}
	bytes = intern_get(writer->profile->strings, string, &size);
	err = intern_clean(writer->texts, bytes, size, &index);
	if (err)
		return err;
	writer->known[string] = index + 1;
	*ret_index = index;
	return 0;
}

static int add_text(struct pprof_writer *writer, const char *text, uint32_t *ret_index)
{
	return intern_clean(writer->texts, text, strlen(text), ret_index);
}

static int put_string_table(struct pprof_writer *writer)
{
	int err = 0;

	for (uint32_t i = 0; !err && i < intern_count(writer->texts); i++) {
		size_t size;
		const char *text = intern_get(writer->texts, i, &size);

		proto_bytes(&writer->proto, PPROF_PROFILE_STRING_TABLE, text, size);
		err = flush(writer, PENDING_BYTES);
	}
	return err;
}

/* ---- the window ---- */

static int put_value_type(struct pprof_writer *writer, uint32_t field,
			  const struct profile_value_type *type)
{
	uint32_t name, unit;
	int err = add_text(writer, type->type ? type->type : "", &name);

	if (!err)
		err = add_text(writer, type->unit ? type->unit : "", &unit);
	if (err)
		return err;
	proto_open(&writer->proto, field);
	proto_uint(&writer->proto, PPROF_VALUE_TYPE_TYPE, name);
	proto_uint(&writer->proto, PPROF_VALUE_TYPE_UNIT, unit);
	proto_close(&writer->proto);
	return 0;
}

static int put_comments(struct pprof_writer *writer)
{
	const struct profile *profile = writer->profile;
	uint32_t text;

	if (!profile->comment_count)
		return 0;
	proto_open(&writer->proto, PPROF_PROFILE_COMMENT);
	for (uint32_t i = 0; i < profile->comment_count; i++) {
		int err = add_string(writer, profile->comment[i], &text);

		if (err)
			return err;
		proto_packed(&writer->proto, text);
	}
	proto_close(&writer->proto);
	return 0;
}

/* Writes the fields of Profile that are not long lists. */
static int put_window(struct pprof_writer *writer)
{
	const struct profile_options *options = &writer->profile->options;
	const char *default_type = options->default_value_type ? options->default_value_type : "";
	struct proto_writer *proto = &writer->proto;
	uint32_t text;
	int err = 0;

	for (size_t i = 0; !err && i < options->value_count; i++)
		err = put_value_type(writer, PPROF_PROFILE_SAMPLE_TYPE, &options->value_type[i]);
	proto_uint(proto, PPROF_PROFILE_TIME_NANOS, options->start_wall_ns);
	proto_uint(proto, PPROF_PROFILE_DURATION_NANOS, options->duration_ns);
	if (!err)
		err = put_value_type(writer, PPROF_PROFILE_PERIOD_TYPE, &options->period_type);
	proto_uint(proto, PPROF_PROFILE_PERIOD, (uint64_t)options->period);
	if (!err)
		err = put_comments(writer);
	if (!err)
		err = add_text(writer, default_type, &text);
	if (err)
		return err;
	proto_uint(proto, PPROF_PROFILE_DEFAULT_SAMPLE_TYPE, text);
	return 0;
}

/* ---- samples ---- */

/* Texts of labels' keys and their units: each is asked for by most samples. */
static int add_keys(struct pprof_writer *writer)
{
	const struct profile *profile = writer->profile;
	int err = 0;

	for (uint32_t i = 0; !err && i < profile->key_count; i++) {
		err = add_text(writer, profile->key[i].name, &writer->key[i]);
		if (!err)
			err = add_text(writer, profile->key[i].unit, &writer->unit[i]);
	}
	return err;
}

/* Leaves out a label with an empty text, which a reader would take for the number 0. */
static int put_label(struct pprof_writer *writer, const struct stored_label *label)
{
	struct proto_writer *proto = &writer->proto;
	uint32_t text = 0;

	if (!label->is_number) {
		int err = add_string(writer, (uint32_t)label->value, &text);

		if (err || !text)
			return err;
	}
	proto_open(proto, PPROF_SAMPLE_LABEL);
	proto_uint(proto, PPROF_LABEL_KEY, writer->key[label->key]);
	proto_uint(proto, PPROF_LABEL_STR, text);
	proto_uint(proto, PPROF_LABEL_NUM, label->is_number ? (uint64_t)label->value : 0);
	proto_uint(proto, PPROF_LABEL_NUM_UNIT, writer->unit[label->key]);
	proto_close(proto);
	return 0;
}

static int put_sample(struct pprof_writer *writer, uint32_t index)
{
	const struct profile *profile = writer->profile;
	const struct profile_row *row = &profile->row[index];
	const struct stack *stack = &profile->stacks.stack[row->stack];
	const struct label_set *set = &profile->label_set[row->label_set];
	struct proto_writer *proto = &writer->proto;
	int err = 0;

	proto_open(proto, PPROF_PROFILE_SAMPLE);
	if (stack->count) {
		proto_open(proto, PPROF_SAMPLE_LOCATION_ID);
		for (uint32_t i = 0; i < stack->count; i++)
			proto_packed(proto, (uint64_t)stack->location[i] + 1);
		proto_close(proto);
	}
	proto_open(proto, PPROF_SAMPLE_VALUE);
	for (size_t i = 0; i < profile->options.value_count; i++)
		proto_packed(proto, (uint64_t)profile_row_values(profile, index)[i]);
	proto_close(proto);
	for (uint32_t i = 0; !err && i < set->count; i++)
		err = put_label(writer, &profile->label[set->first + i]);
	proto_close(proto);
	return err ? err : flush(writer, PENDING_BYTES);
}

/* ---- code: a location's id is its index in profile.stacks + 1 ---- */

static bool function_equal(const void *context, uint32_t index, const void *key)
{
	const struct pprof_writer *writer = context;

	return !memcmp(&writer->function[index], key, sizeof(writer->function[0]));
}

static int function_id(struct pprof_writer *writer, const struct function *function,
		       uint32_t *ret_id)
{
	uint32_t hash = (uint32_t)XXH3_64bits(function, sizeof(*function));
	uint32_t found;
	int err;

	if (!index_table_find(&writer->function_index, hash, function_equal, writer, function,
			      &found)) {
		found = writer->function_count;
		err = ARRAY_RESERVE(writer->function, found, writer->function_capacity);
		if (err)
			return err;
		err = index_table_add(&writer->function_index, hash, found);
		if (err)
			return err;
		writer->function[writer->function_count++] = *function;
	}
	*ret_id = found + 1;
	return 0;
}

/* Names a location without a function, which readers would drop, after its file. */
static int add_unnamed(struct pprof_writer *writer, const struct module *module, uint32_t *ret_name)
{
	const char *path = module ? intern_get(writer->profile->strings, module->path, NULL) : "";
	OWNED_MEM char *name = NULL;

	if (!path[0])
		return add_text(writer, "[unknown]", ret_name);
	if (path[0] == '[')
		return add_string(writer, module->path, ret_name);
	if (asprintf(&name, "[%s]", basename(path)) < 0) {
		name = NULL;
		return -ENOMEM;
	}
	return add_text(writer, name, ret_name);
}

static int describe_function(struct pprof_writer *writer, const struct frame *frame,
			     struct function *ret_function)
{
	const struct module *module = profile_frame_module(writer->profile, frame);
	struct function function = {.start_line = frame->start_line};
	uint32_t file = frame->file;
	int err;

	if (!file && module && frame->kind != FRAME_PYTHON)
		file = module->path;
	err = frame->name ? add_string(writer, frame->name, &function.name)
			  : add_unnamed(writer, module, &function.name);
	if (!err)
		err = add_string(writer, file, &function.file);
	/* pprof demangles a system name that equals the name, and would take <module> for a
	 * template. */
	if (!err && frame->kind != FRAME_PYTHON && frame->system_name != frame->name)
		err = add_string(writer, frame->system_name, &function.system_name);
	if (!err)
		*ret_function = function;
	return err;
}

/* Writes a mapping.  If has_functions were false, a reader would look for the file on its own
 * machine, and warn. */
static int put_mapping(struct pprof_writer *writer, uint32_t index)
{
	static const struct module none;
	const struct module *module = &none;
	const char *name = pprof_mappings_get(&writer->mappings, index, &module);
	struct proto_writer *proto = &writer->proto;
	uint32_t file, build_id;
	int err = name ? add_text(writer, name, &file) : add_string(writer, module->path, &file);

	if (!err)
		err = add_string(writer, module->build_id, &build_id);
	if (err)
		return err;
	proto_open(proto, PPROF_PROFILE_MAPPING);
	proto_uint(proto, PPROF_MAPPING_ID, (uint64_t)index + 1);
	proto_uint(proto, PPROF_MAPPING_MEMORY_START, module->start);
	proto_uint(proto, PPROF_MAPPING_MEMORY_LIMIT, module->limit);
	proto_uint(proto, PPROF_MAPPING_FILE_OFFSET, module->offset);
	proto_uint(proto, PPROF_MAPPING_FILENAME, file);
	proto_uint(proto, PPROF_MAPPING_BUILD_ID, build_id);
	proto_uint(proto, PPROF_MAPPING_HAS_FUNCTIONS, 1);
	proto_uint(proto, PPROF_MAPPING_HAS_FILENAMES, 1);
	proto_uint(proto, PPROF_MAPPING_HAS_LINE_NUMBERS, 1);
	proto_uint(proto, PPROF_MAPPING_HAS_INLINE_FRAMES, 1);
	proto_close(proto);
	return flush(writer, PENDING_BYTES);
}

static int put_location(struct pprof_writer *writer, uint32_t index)
{
	const struct frame *frame = &writer->profile->stacks.location[index];
	struct proto_writer *proto = &writer->proto;
	struct function function;
	uint32_t id;
	int err = describe_function(writer, frame, &function);

	if (!err)
		err = function_id(writer, &function, &id);
	if (err)
		return err;
	proto_open(proto, PPROF_PROFILE_LOCATION);
	proto_uint(proto, PPROF_LOCATION_ID, (uint64_t)index + 1);
	proto_uint(proto, PPROF_LOCATION_MAPPING_ID, pprof_mappings_id(&writer->mappings, frame));
	proto_uint(proto, PPROF_LOCATION_ADDRESS, frame->address);
	proto_open(proto, PPROF_LOCATION_LINE);
	proto_uint(proto, PPROF_LINE_FUNCTION_ID, id);
	proto_uint(proto, PPROF_LINE_LINE, frame->line);
	proto_close(proto);
	proto_close(proto);
	return flush(writer, PENDING_BYTES);
}

static int put_function(struct pprof_writer *writer, uint32_t index)
{
	const struct function *function = &writer->function[index];
	struct proto_writer *proto = &writer->proto;

	proto_open(proto, PPROF_PROFILE_FUNCTION);
	proto_uint(proto, PPROF_FUNCTION_ID, (uint64_t)index + 1);
	proto_uint(proto, PPROF_FUNCTION_NAME, function->name);
	proto_uint(proto, PPROF_FUNCTION_SYSTEM_NAME, function->system_name);
	proto_uint(proto, PPROF_FUNCTION_FILENAME, function->file);
	proto_uint(proto, PPROF_FUNCTION_START_LINE, function->start_line);
	proto_close(proto);
	return flush(writer, PENDING_BYTES);
}

static int put_code(struct pprof_writer *writer)
{
	int err = 0;

	for (uint32_t i = 0; !err && i < writer->mappings.count; i++)
		err = put_mapping(writer, i);
	for (uint32_t i = 0; !err && i < writer->profile->stacks.location_count; i++)
		err = put_location(writer, i);
	for (uint32_t i = 0; !err && i < writer->function_count; i++)
		err = put_function(writer, i);
	return err;
}

/* ---- all of it ---- */

static int writer_init(struct pprof_writer *writer, const struct profile *profile,
		       enum gzip_effort effort)
{
	const size_t modules = (size_t)profile->module_count + 1;
	int err;

	writer->profile = profile;
	writer->known_count = intern_count(profile->strings);
	writer->known = calloc(writer->known_count, sizeof(*writer->known));
	writer->key = calloc((size_t)profile->key_count + 1, sizeof(*writer->key));
	writer->unit = calloc((size_t)profile->key_count + 1, sizeof(*writer->unit));
	writer->mappings.profile = profile;
	writer->mappings.entry = calloc(modules + FRAME_KINDS, sizeof(uint32_t));
	writer->mappings.module_id = calloc(modules, sizeof(uint32_t));
	if (!writer->known || !writer->key || !writer->unit || !writer->mappings.entry ||
	    !writer->mappings.module_id)
		return -ENOMEM;
	order_mappings(&writer->mappings);
	err = gzip_sink_new(effort, &writer->sink);
	if (!err)
		err = intern_new(&writer->texts);
	return err ? err : add_keys(writer);
}

static int encode(const struct profile *profile, enum gzip_effort effort, void **ret_bytes,
		  size_t *ret_size)
{
	CLEANUP(writer_release) struct pprof_writer writer = {0};
	int err = writer_init(&writer, profile, effort);

	if (!err)
		err = put_window(&writer);
	for (uint32_t i = 0; !err && i < profile->row_count; i++)
		err = put_sample(&writer, i);
	if (!err)
		err = put_code(&writer);
	if (!err)
		err = put_string_table(&writer);
	if (!err)
		err = flush(&writer, 0);
	return err ? err : gzip_sink_finish(writer.sink, ret_bytes, ret_size);
}

int profile_encode_pprof(const struct profile *profile, void **ret_bytes, size_t *ret_size)
{
	return encode(profile, GZIP_FAST, ret_bytes, ret_size);
}

int profile_encode_pprof_small(const struct profile *profile, void **ret_bytes, size_t *ret_size)
{
	return encode(profile, GZIP_SMALL, ret_bytes, ret_size);
}
