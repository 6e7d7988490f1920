/* SPDX-License-Identifier: BSD-2-Clause */
/* Source: open-telemetry/opentelemetry-proto v1.10, profiles/v1development/profiles.proto and
 * collector/profiles/v1development/profiles_service.proto.  Index 0 of each table is its zero
 * value.
 * Resource, scope and period type are always written, because receivers fail without them. */
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/proto.h"
#include "export/exports.h"

#define SERVICE_NAME "pyprofd"
#define UNKNOWN_SERVICE "unknown_service" /* semantic conventions, "Service" */

enum { REQUEST_RESOURCE_PROFILES = 1, REQUEST_DICTIONARY = 2 };
enum {
	DICTIONARY_MAPPING = 1,
	DICTIONARY_LOCATION = 2,
	DICTIONARY_FUNCTION = 3,
	DICTIONARY_LINK = 4,
	DICTIONARY_STRING = 5,
	DICTIONARY_ATTRIBUTE = 6,
	DICTIONARY_STACK = 7,
};

/* A key and its value; strings are indices in the dictionary's own table. */
struct attribute {
	uint32_t key;
	uint32_t text; /* index + 1; 0: a number */
	int64_t number;
};

struct otlp {
	struct proto_writer proto;
	struct profile *profile;
	struct intern *texts; /* the dictionary's strings */
	struct attribute *attribute;
	uint32_t attribute_count, attribute_capacity;
	struct index_table attribute_index;
	const struct export_services *services; /* NULL: one resource, ours */
	int error;
};

/* The rows of one resource. */
struct resource {
	const char *service;
	uint32_t first, count;
};

static void otlp_release(struct otlp *otlp)
{
	proto_release(&otlp->proto);
	intern_free(otlp->texts);
	free(otlp->attribute);
	index_table_release(&otlp->attribute_index);
}

static uint32_t text(struct otlp *otlp, const char *string)
{
	uint32_t id = 0;
	int err = intern_string(otlp->texts, string, &id);

	if (err)
		otlp->error = err;
	return id;
}

static uint32_t text_of(struct otlp *otlp, uint32_t string)
{
	return text(otlp, intern_get(otlp->profile->strings, string, NULL));
}

/* ---- attributes ---- */

static bool attribute_equal(const void *context, uint32_t index, const void *key)
{
	const struct attribute *a = &((const struct otlp *)context)->attribute[index], *b = key;

	return a->key == b->key && a->text == b->text && a->number == b->number;
}

/* Returns the index of an attribute, from 1. */
static uint32_t attribute(struct otlp *otlp, const char *key, const char *string, int64_t number)
{
	struct attribute wanted = {.key = text(otlp, key),
				   .text = string ? text(otlp, string) + 1 : 0,
				   .number = number};
	uint32_t hash = (uint32_t)XXH3_64bits(&wanted, sizeof(wanted)), at;
	int err;

	if (index_table_find(&otlp->attribute_index, hash, attribute_equal, otlp, &wanted, &at))
		return at + 1;
	err = INDEX_RESERVE(&otlp->attribute_index, hash, otlp->attribute, otlp->attribute_count,
			    otlp->attribute_capacity);
	if (err) {
		otlp->error = err;
		return 0;
	}
	otlp->attribute[otlp->attribute_count] = wanted;
	return ++otlp->attribute_count;
}

/* Returns the semantic conventions' name for one of our keys. */
static const char *convention(const char *key)
{
	static const struct {
		const char *ours, *theirs;
	} known[] = {{"pid", "process.pid"},
		     {"ppid", "process.parent_pid"},
		     {"tid", "thread.id"},
		     {"comm", "process.executable.name"},
		     {"thread_name", "thread.name"},
		     {"container_id", "container.id"},
		     {"container", "k8s.container.name"},
		     {"pod", "k8s.pod.name"},
		     {"namespace", "k8s.namespace.name"}};

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (!strcmp(known[i].ours, key))
			return known[i].theirs;
	return key;
}

/* Returns whether a label is the resource's, not the sample's. */
static bool is_service(const struct otlp *otlp, const char *key)
{
	return otlp->services && !strcmp(otlp->services->service_key, key);
}

static void put_sample_attributes(struct otlp *otlp, uint32_t label_set)
{
	const struct label_set *set = &otlp->profile->label_set[label_set];

	if (!set->count)
		return;
	proto_open(&otlp->proto, 2);
	for (uint32_t i = 0; i < set->count; i++) {
		const struct stored_label *label = &otlp->profile->label[set->first + i];
		const char *key = otlp->profile->key[label->key].name;

		if (is_service(otlp, key))
			continue;
		key = convention(key);
		proto_packed(&otlp->proto,
			     label->is_number ? attribute(otlp, key, NULL, label->value)
					      : attribute(otlp, key,
							  intern_get(otlp->profile->strings,
								     (uint32_t)label->value, NULL),
							  0));
	}
	proto_close(&otlp->proto);
}

static void put_any_value(struct otlp *otlp, uint32_t field, const struct attribute *attribute_)
{
	proto_open(&otlp->proto, field);
	if (attribute_->text)
		proto_text(&otlp->proto, 1, intern_get(otlp->texts, attribute_->text - 1, NULL));
	else
		proto_uint_always(&otlp->proto, 3, (uint64_t)attribute_->number);
	proto_close(&otlp->proto);
}

/* ---- profiles ---- */

static void put_value_type(struct otlp *otlp, uint32_t field, const struct profile_value_type *type)
{
	proto_open(&otlp->proto, field);
	proto_uint(&otlp->proto, 1, text(otlp, type->type));
	proto_uint(&otlp->proto, 2, text(otlp, type->unit));
	proto_close(&otlp->proto);
}

static void put_sample(struct otlp *otlp, uint32_t row, size_t value_index)
{
	int64_t value = profile_row_values(otlp->profile, row)[value_index];

	if (!value)
		return;
	proto_open(&otlp->proto, 2);
	proto_uint(&otlp->proto, 1, (uint64_t)otlp->profile->row[row].stack + 1);
	put_sample_attributes(otlp, otlp->profile->row[row].label_set);
	proto_open(&otlp->proto, 4);
	proto_packed(&otlp->proto, (uint64_t)value);
	proto_close(&otlp->proto);
	proto_close(&otlp->proto);
}

static void put_profile(struct otlp *otlp, const struct export_facts *facts,
			const struct resource *resource, size_t value_index)
{
	const struct profile_options *options = &otlp->profile->options;
	const struct profile_value_type *period_type =
		options->period_type.type && options->period_type.type[0]
			? &options->period_type
			: &options->value_type[value_index];
	const char *host = otlp->services ? otlp->services->host : "";
	uint64_t mixed[] = {facts->start_wall_ns,
			    facts->duration_ns,
			    value_index,
			    resource->first,
			    resource->count,
			    XXH3_64bits(resource->service, strlen(resource->service)),
			    XXH3_64bits(host, strlen(host))};
	XXH128_hash_t id = XXH3_128bits(mixed, sizeof(mixed));

	proto_open(&otlp->proto, 2);
	put_value_type(otlp, 1, &options->value_type[value_index]);
	for (uint32_t i = 0; i < resource->count; i++)
		put_sample(otlp, resource->first + i, value_index);
	proto_fixed64(&otlp->proto, 3, facts->start_wall_ns);
	proto_uint(&otlp->proto, 4, facts->duration_ns);
	put_value_type(otlp, 5, period_type);
	proto_uint(&otlp->proto, 6, options->period > 0 ? (uint64_t)options->period : 1);
	proto_bytes(&otlp->proto, 7, &id, sizeof(id));
	proto_close(&otlp->proto);
}

static void put_resource_attribute(struct proto_writer *proto, const char *key, const char *value)
{
	proto_open(proto, 1);
	proto_text(proto, 1, key);
	proto_open(proto, 2);
	proto_text(proto, 1, value);
	proto_close(proto);
	proto_close(proto);
}

static void put_resource_profiles(struct otlp *otlp, const struct export_facts *facts,
				  const struct resource *resource)
{
	struct proto_writer *proto = &otlp->proto;

	proto_open(proto, REQUEST_RESOURCE_PROFILES);
	proto_open(proto, 1); /* resource */
	put_resource_attribute(proto, "service.name", resource->service);
	if (otlp->services)
		put_resource_attribute(proto, "host.name", otlp->services->host);
	proto_close(proto);
	proto_open(proto, 2); /* scope profiles */
	proto_open(proto, 1);
	proto_text(proto, 1, "pyprof");
	proto_close(proto);
	for (size_t i = 0; i < otlp->profile->options.value_count; i++)
		put_profile(otlp, facts, resource, i);
	proto_close(proto);
	proto_close(proto);
}

static const char *service_of_row(const struct otlp *otlp, uint32_t row)
{
	const struct stored_label *label;

	label = profile_find_label(otlp->profile, otlp->profile->row[row].label_set,
				   otlp->services->service_key);
	return label && !label->is_number
		       ? intern_get(otlp->profile->strings, (uint32_t)label->value, NULL)
		       : UNKNOWN_SERVICE;
}

static void put_services(struct otlp *otlp, const struct export_facts *facts)
{
	struct resource resource = {0};

	for (uint32_t i = 0; i < otlp->profile->row_count; i++) {
		const char *service = service_of_row(otlp, i);

		if (resource.count && strcmp(resource.service, service) != 0) {
			put_resource_profiles(otlp, facts, &resource);
			resource = (struct resource){.first = i};
		}
		resource.service = service;
		resource.count++;
	}
	if (resource.count)
		put_resource_profiles(otlp, facts, &resource);
}

/* ---- the dictionary ---- */

static void put_empty(struct otlp *otlp, uint32_t field)
{
	proto_open(&otlp->proto, field);
	proto_close(&otlp->proto);
}

static void put_mappings(struct otlp *otlp)
{
	put_empty(otlp, DICTIONARY_MAPPING);
	for (uint32_t i = 0; i < otlp->profile->module_count; i++) {
		const struct module *module = &otlp->profile->module[i].module;
		const char *build_id = intern_get(otlp->profile->strings, module->build_id, NULL);

		proto_open(&otlp->proto, DICTIONARY_MAPPING);
		proto_uint(&otlp->proto, 1, module->start);
		proto_uint(&otlp->proto, 2, module->limit);
		proto_uint(&otlp->proto, 3, module->offset);
		proto_uint(&otlp->proto, 4, text_of(otlp, module->path));
		if (build_id[0]) {
			proto_open(&otlp->proto, 5);
			proto_packed(&otlp->proto,
				     attribute(otlp, "process.executable.build_id.gnu", build_id,
					       0));
			proto_close(&otlp->proto);
		}
		proto_close(&otlp->proto);
	}
}

static const char *frame_type(const struct profile *profile, const struct frame *frame)
{
	switch (frame_class(profile, frame)) {
	case FRAME_CLASS_PYTHON:
		return "cpython";
	case FRAME_CLASS_KERNEL:
		return "kernel";
	default:
		return "native";
	}
}

static void put_locations(struct otlp *otlp, const struct code_table *code)
{
	put_empty(otlp, DICTIONARY_LOCATION);
	for (uint32_t i = 0; i < otlp->profile->stacks.location_count; i++) {
		const struct frame *frame = &otlp->profile->stacks.location[i];

		proto_open(&otlp->proto, DICTIONARY_LOCATION);
		proto_uint(&otlp->proto, 1,
			   frame->module <= otlp->profile->module_count ? frame->module : 0);
		proto_uint(&otlp->proto, 2, frame->address);
		proto_open(&otlp->proto, 3);
		proto_uint(&otlp->proto, 1, (uint64_t)code->of_location.index_plus_1[i]);
		proto_uint(&otlp->proto, 2, frame->line);
		proto_close(&otlp->proto);
		proto_open(&otlp->proto, 4);
		proto_packed(&otlp->proto, attribute(otlp, "profile.frame.type",
						     frame_type(otlp->profile, frame), 0));
		proto_close(&otlp->proto);
		proto_close(&otlp->proto);
	}
}

static void put_functions(struct otlp *otlp, const struct code_table *table)
{
	put_empty(otlp, DICTIONARY_FUNCTION);
	for (uint32_t i = 0; i < table->count; i++) {
		const struct code *code = &table->code[i];

		proto_open(&otlp->proto, DICTIONARY_FUNCTION);
		proto_uint(&otlp->proto, 1,
			   code->name ? text_of(otlp, code->name) : text(otlp, "[unknown]"));
		proto_uint(&otlp->proto, 3, text_of(otlp, code->file));
		proto_uint(&otlp->proto, 4, code->start_line);
		proto_close(&otlp->proto);
	}
}

static void put_stacks(struct otlp *otlp)
{
	put_empty(otlp, DICTIONARY_STACK);
	for (uint32_t i = 0; i < otlp->profile->stacks.stack_count; i++) {
		const struct stack *stack = &otlp->profile->stacks.stack[i];

		proto_open(&otlp->proto, DICTIONARY_STACK);
		proto_open(&otlp->proto, 1);
		for (uint32_t k = 0; k < stack->count; k++)
			proto_packed(&otlp->proto, (uint64_t)stack->location[k] + 1);
		proto_close(&otlp->proto);
		proto_close(&otlp->proto);
	}
}

static void put_attributes_and_strings(struct otlp *otlp)
{
	put_empty(otlp, DICTIONARY_ATTRIBUTE);
	for (uint32_t i = 0; i < otlp->attribute_count; i++) {
		proto_open(&otlp->proto, DICTIONARY_ATTRIBUTE);
		proto_uint(&otlp->proto, 1, otlp->attribute[i].key);
		put_any_value(otlp, 2, &otlp->attribute[i]);
		proto_close(&otlp->proto);
	}
	for (uint32_t i = 0; i < intern_count(otlp->texts); i++)
		proto_text(&otlp->proto, DICTIONARY_STRING, intern_get(otlp->texts, i, NULL));
}

static int put_dictionary(struct otlp *otlp)
{
	CLEANUP(code_table_release) struct code_table code;
	uint32_t ignored;
	int err = 0;

	code_table_init(&code, otlp->profile, CODE_BY_FUNCTION);
	for (uint32_t i = 0; !err && i < otlp->profile->stacks.location_count; i++)
		err = code_table_of_location(&code, i, &ignored);
	if (err)
		return err;
	proto_open(&otlp->proto, REQUEST_DICTIONARY);
	put_mappings(otlp);
	put_locations(otlp, &code);
	put_functions(otlp, &code);
	put_empty(otlp, DICTIONARY_LINK);
	put_stacks(otlp);
	put_attributes_and_strings(otlp);
	proto_close(&otlp->proto);
	return 0;
}

int export_otlp(struct profile *profile, const struct export_facts *facts,
		const struct export_services *services, FILE *out)
{
	CLEANUP(otlp_release) struct otlp otlp = {.profile = profile, .services = services};
	const struct resource all = {.service = SERVICE_NAME, .count = profile->row_count};
	int err = intern_new(&otlp.texts);

	if (err)
		return err;
	if (services)
		put_services(&otlp, facts);
	else
		put_resource_profiles(&otlp, facts, &all);
	err = put_dictionary(&otlp);
	if (!err)
		err = otlp.error;
	return err ? err : proto_flush(&otlp.proto, out);
}
