/* SPDX-License-Identifier: BSD-2-Clause */
#include "collectors/requests.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "pprof/pprof.h"
#include "profile/profile_data.h"

void push_requests_release(struct push_requests *requests)
{
	for (uint32_t i = 0; i < requests->count; i++)
		free(requests->request[i].body);
	free(requests->request);
	*requests = (struct push_requests){0};
}

int push_encode(const struct push_encoding *encoding, struct profile *profile,
		const struct push_division *division, const struct push_window *window,
		struct push_requests *ret_requests)
{
	struct push_writer writer = {.encoding = encoding, .window = window, .profile = profile};
	int err = encoding->collector->encode(&writer, division);

	if (err)
		push_requests_release(&writer.requests);
	*ret_requests = writer.requests;
	return err;
}

/* ---- parts of a profile ---- */

/* How many independent waits a sum rests on: our reader's errors, nothing that adds up. */
#define OWN_VALUE_TYPE "effective"

static bool is_own(const struct profile_value_type *type)
{
	return !strcmp(type->type, OWN_VALUE_TYPE);
}

static int begin(const struct push_writer *writer, struct profile **ret_part)
{
	const struct profile *from = writer->profile;
	struct profile_options options = from->options;
	OWNED(profile) struct profile *part = NULL;
	uint32_t ignored;
	int err;

	options.value_count = 0;
	for (size_t i = 0; i < from->options.value_count; i++)
		if (!is_own(&from->options.value_type[i]))
			options.value_type[options.value_count++] = from->options.value_type[i];
	if (!options.value_count)
		return -EBADMSG;
	/* Parca shows nothing of a store with a single profile that has none. */
	if (!options.period_type.type || !options.period_type.type[0])
		options.period_type = options.value_type[0];
	if (options.period <= 0)
		options.period = 1;
	options.start_wall_ns = writer->window->start_wall_ns;
	options.duration_ns = writer->window->duration_ns;
	err = profile_new(&options, from->strings, &part);
	/* In the same order, as frames refer to them by number. */
	for (uint32_t i = 0; !err && i < from->module_count; i++)
		err = profile_add_module(part, &from->module[i].module, &ignored);
	if (err)
		return err;
	*ret_part = TAKE(part);
	return 0;
}

static int add_stack(const struct profile *from, uint32_t stack, struct profile *part,
		     uint32_t *ret_stack)
{
	const struct stack *old = &from->stacks.stack[stack];
	OWNED_MEM uint32_t *location = calloc((size_t)old->count + 1, sizeof(*location));
	int err = location ? 0 : -ENOMEM;

	for (uint32_t i = 0; !err && i < old->count; i++)
		err = profile_add_location(part, &from->stacks.location[old->location[i]],
					   &location[i]);
	return err ? err : profile_add_stack(part, location, old->count, ret_stack);
}

static int add_labels(const struct push_writer *writer, const struct push_series *series,
		      const char *service_key, struct profile *part, uint32_t *ret_set)
{
	const struct push_label_choice *choice = &writer->encoding->labels;
	struct profile_label label[1 + PUSH_LABELS_MAX + 1];
	const char *key = service_key;
	size_t count = 0;

	for (size_t i = 0; key; key = push_series_key(choice, ++i))
		if (series->value[i])
			label[count++] =
				(struct profile_label){.key = key, .string = series->value[i]};
	return profile_add_label_set(part, label, count, ret_set);
}

int push_part_add(const struct push_writer *writer, const struct push_series *series,
		  uint32_t first, uint32_t count, const char *service_key, struct profile **part)
{
	const struct profile *from = writer->profile;
	uint32_t set, stack, ignored;
	int err = *part ? 0 : begin(writer, part);

	if (!err)
		err = add_labels(writer, series, service_key, *part, &set);
	for (uint32_t i = first; !err && i < first + count; i++) {
		const int64_t *value = profile_row_values(from, series->row[i]);
		int64_t kept[PROFILE_MAX_VALUES] = {0};
		size_t kept_count = 0;

		for (size_t k = 0; k < from->options.value_count; k++)
			if (!is_own(&from->options.value_type[k]))
				kept[kept_count++] = value[k];
		err = add_stack(from, from->row[series->row[i]].stack, *part, &stack);
		if (!err)
			err = profile_add_row(*part, stack, set, kept, &ignored);
	}
	return err;
}

/* ---- what the encoders share ---- */

#define GZIP_SIZE_BYTES 4U /* RFC 1952: the last field, little-endian */

int push_writer_add(struct push_writer *writer, void *body, size_t size, uint64_t raw_bytes)
{
	struct push_requests *requests = &writer->requests;

	if (ARRAY_RESERVE(requests->request, requests->count, requests->capacity)) {
		free(body);
		return -ENOMEM;
	}
	requests->request[requests->count++] =
		(struct push_request){.body = body, .size = size, .raw_bytes = raw_bytes};
	return 0;
}

/* ---- parts of a series ---- */

struct packer {
	const struct push_writer *writer;
	const struct push_bundle *bundle;
	const struct push_series *series;
	uint64_t raw_bytes; /* of the request */
};

static uint64_t unpacked_size(const uint8_t *bytes, size_t size)
{
	uint64_t unpacked = 0;

	for (size_t i = 0; i < GZIP_SIZE_BYTES && i < size; i++)
		unpacked |= (uint64_t)bytes[size - GZIP_SIZE_BYTES + i] << 8 * i;
	return unpacked;
}

static int pack(const struct packer *packer, uint32_t first, uint32_t count, void **ret_bytes,
		size_t *ret_size)
{
	OWNED(profile) struct profile *part = NULL;
	int err = push_part_add(packer->writer, packer->series, first, count, NULL, &part);

	if (err)
		return err;
	profile_weigh_modules(part);
	return profile_encode_pprof(part, ret_bytes, ret_size);
}

static int end_request(struct packer *packer)
{
	const uint64_t raw_bytes = packer->raw_bytes;

	packer->raw_bytes = 0;
	return packer->bundle->end(packer->bundle->context, raw_bytes);
}

static int put_rows(void *context, uint32_t first, uint32_t count)
{
	struct packer *packer = context;
	OWNED_MEM void *bytes = NULL;
	uint64_t raw_bytes;
	size_t size;
	int err = pack(packer, first, count, &bytes, &size);

	if (err)
		return err;
	raw_bytes = unpacked_size(bytes, size);
	if (raw_bytes > PUSH_PART_RAW_MAX_BYTES)
		return -E2BIG;
	if (packer->raw_bytes + raw_bytes > PUSH_PART_RAW_MAX_BYTES)
		err = end_request(packer);
	packer->raw_bytes += raw_bytes;
	return err ? err
		   : packer->bundle->put(packer->bundle->context, packer->series,
					 &(struct push_packed){bytes, size});
}

int push_halve(uint32_t first, uint32_t count,
	       int (*put)(void *context, uint32_t first, uint32_t count), void *context)
{
	int err = count <= PUSH_PART_ROWS_MAX ? put(context, first, count) : -E2BIG;

	if (err != -E2BIG)
		return err;
	if (count == 1)
		return -EFBIG;
	err = push_halve(first, count / 2, put, context);
	return err ? err : push_halve(first + count / 2, count - count / 2, put, context);
}

int push_bundle(const struct push_writer *writer, const struct push_division *division,
		const struct push_bundle *bundle)
{
	struct packer packer = {.writer = writer, .bundle = bundle};
	int err = 0;

	for (uint32_t i = 0; !err && i < division->count; i++) {
		packer.series = &division->series[i];
		err = push_halve(0, packer.series->row_count, put_rows, &packer);
	}
	return err || !packer.raw_bytes ? err : end_request(&packer);
}

/* ---- labels of a series ---- */

static void add_label(struct push_labels *labels, const char *name, const char *value)
{
	struct push_label label = {.value = value, .value_size = push_label_value_size(value)};
	size_t at = labels->count;

	push_label_name(name, label.name);
	/* Reserved names are the protocol's own. */
	if (!strncmp(name, "__", 2))
		snprintf(label.name, sizeof(label.name), "%s", name);
	for (size_t i = 0; i < labels->count; i++)
		if (!strcmp(labels->label[i].name, label.name))
			return;
	for (; at && strcmp(labels->label[at - 1].name, label.name) > 0; at--)
		labels->label[at] = labels->label[at - 1];
	labels->label[at] = label;
	labels->count++;
}

void push_labels_of(const struct push_writer *writer, const struct push_series *series,
		    const char *name, const char *host_key, struct push_labels *ret_labels)
{
	const struct push_label_choice *choice = &writer->encoding->labels;
	const struct intern *strings = writer->profile->strings;
	char key[PUSH_LABEL_NAME_MAX_BYTES + 1];

	ret_labels->count = 0;
	add_label(ret_labels, "__name__", name);
	add_label(ret_labels, PUSH_SERVICE_NAME,
		  series->value[0] ? intern_get(strings, series->value[0], NULL)
				   : PUSH_SERVICE_UNKNOWN);
	add_label(ret_labels, host_key, writer->encoding->host);
	for (size_t i = 1; push_series_key(choice, i); i++) {
		if (!series->value[i])
			continue;
		push_label_name(push_series_key(choice, i), key);
		add_label(ret_labels, key, intern_get(strings, series->value[i], NULL));
	}
}
