/* SPDX-License-Identifier: BSD-2-Clause */
/* profile_sums FILE...   What pyprofd has written, summed up by process and what it had the GPU do,
 * as lines of fields set apart by tabs:
 *   types   the names of the sample types
 *   sum     pid, api, kernel, direction, gpu ("-": without this label), the sums of each type
 *   comment a comment of the profile
 * The files are of one kind. */
#include <err.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/intern.h"
#include "pprof/profile_read.h"
#include "profile/profile_data.h"

static const char *const keys[] = {"pid", "api", "kernel", "direction", "gpu", NULL};

static void print_label(const struct profile *profile, uint32_t label_set, const char *key)
{
	const struct stored_label *label = profile_find_label(profile, label_set, key);
	const char *text;
	size_t size;

	if (!label) {
		fputs("\t-", stdout);
		return;
	}
	if (label->is_number) {
		printf("\t%" PRId64, label->value);
		return;
	}
	text = intern_get(profile->strings, (uint32_t)label->value, &size);
	printf("\t%s", *text ? text : "-");
}

static void print_row(const struct profile *profile, uint32_t number)
{
	const int64_t *value = profile_row_values(profile, number);

	fputs("sum", stdout);
	for (size_t i = 0; keys[i]; i++)
		print_label(profile, profile->row[number].label_set, keys[i]);
	for (size_t i = 0; i < profile->options.value_count; i++)
		printf("\t%" PRId64, value[i]);
	putchar('\n');
}

static void print_comment(void *context, const char *text)
{
	(void)context;
	printf("comment\t%s\n", text);
}

int main(int argc, char **argv)
{
	const struct profile_read_options options = {
		.keep_labels = keys, .drop_stacks = true, .comment = print_comment};
	OWNED(profile_reader) struct profile_reader *reader = NULL;
	const struct profile *profile;

	if (argc < 2 || profile_reader_new(&options, &reader))
		errx(2, "usage: profile_sums FILE...");
	for (int i = 1; i < argc; i++) {
		OWNED_FD int fd = open(argv[i], O_RDONLY | O_CLOEXEC);

		if (fd < 0)
			err(1, "%s", argv[i]);
		if (profile_reader_add(reader, fd, NULL))
			errx(1, "%s: %s", argv[i], profile_reader_error(reader));
	}
	profile = profile_reader_profile(reader);
	fputs("types", stdout);
	for (size_t i = 0; i < profile->options.value_count; i++)
		printf("\t%s", profile->options.value_type[i].type);
	putchar('\n');
	for (uint32_t i = 0; i < profile->row_count; i++)
		print_row(profile, i);
	return 0;
}
