/* SPDX-License-Identifier: BSD-2-Clause */
#include "reader/kept.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/utf8.h"

bool kept_name_is_valid(const char *name)
{
	static const char shape[] = "dddd-dd-ddTddddddZ-";

	for (size_t i = 0; shape[i]; i++)
		if (shape[i] == 'd' ? name[i] < '0' || name[i] > '9' : name[i] != shape[i])
			return false;
	return strlen(name) < KEPT_NAME_BYTES && !strchr(name, '/') &&
	       utf8_is_clean(name, strlen(name));
}

/* ---- the list ---- */

static int compare_names(const void *a, const void *b)
{
	return strcmp(((const struct kept *)b)->name, ((const struct kept *)a)->name);
}

/* Leaves out the older half. */
static void drop_older(struct kept *kept, size_t *count)
{
	qsort(kept, *count, sizeof(*kept), compare_names);
	*count = KEPT_MAX;
}

static int list_names(DIR *dir, struct kept **ret_kept, size_t *ret_count)
{
	OWNED_MEM struct kept *kept = NULL;
	size_t count = 0, capacity = 0;
	const struct dirent *entry;

	while ((entry = readdir(dir))) {
		if (!kept_name_is_valid(entry->d_name))
			continue;
		if (count == 2U * KEPT_MAX)
			drop_older(kept, &count);
		if (ARRAY_RESERVE(kept, count, capacity))
			return -ENOMEM;
		snprintf(kept[count++].name, KEPT_NAME_BYTES, "%s", entry->d_name);
	}
	if (count)
		qsort(kept, count, sizeof(*kept), compare_names);
	*ret_count = count < KEPT_MAX ? count : KEPT_MAX;
	*ret_kept = TAKE(kept);
	return 0;
}

int kept_list(const char *store, struct kept **ret_kept, size_t *ret_count)
{
	OWNED_FD int store_fd = open(store, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int fd, err;
	DIR *dir;

	if (store_fd < 0)
		return -errno;
	fd = openat(store_fd, KEPT_DIRECTORY, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 && errno != ENOENT)
		return -errno;
	*ret_kept = NULL;
	*ret_count = 0;
	if (fd < 0)
		return 0;
	dir = fdopendir(fd);
	if (!dir) {
		close(fd);
		return -ENOMEM;
	}
	err = list_names(dir, ret_kept, ret_count);
	closedir(dir);
	return err;
}

/* ---- about ---- */

/* Copies the beginning of a value, cleaned: each of its bytes may become several. */
static void take_text(const char *value, size_t size, char text[KEPT_TEXT_BYTES])
{
	const size_t most = (KEPT_TEXT_BYTES - 1) / UTF8_CLEAN_MAX_GROWTH;

	text[utf8_clean(value, size < most ? size : most, text)] = '\0';
}

static void take_line(const char *line, size_t size, struct kept_about *about)
{
	const struct {
		const char *key;
		char *text;
	} known[] = {{"reason=", about->reason}, {"pid=", about->pid},	 {"comm=", about->comm},
		     {"time=", about->time},	 {"from=", about->from}, {"to=", about->to}};

	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		const size_t key_size = strlen(known[i].key);

		if (size >= key_size && !memcmp(line, known[i].key, key_size))
			take_text(line + key_size, size - key_size, known[i].text);
	}
}

void kept_about_parse(const char *text, size_t size, struct kept_about *ret_about)
{
	const char *end = text + size;

	*ret_about = (struct kept_about){0};
	while (text < end) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		const char *line_end = newline ? newline : end;

		take_line(text, (size_t)(line_end - text), ret_about);
		text = newline ? newline + 1 : end;
	}
}

static char *path_of(const char *store, const char *name, const char *file)
{
	char *path;

	return asprintf(&path, "%s/" KEPT_DIRECTORY "/%s/%s", store, name, file) < 0 ? NULL : path;
}

void kept_about_read(const char *store, const char *name, struct kept_about *ret_about)
{
	OWNED_MEM char *path = path_of(store, name, KEPT_ABOUT);
	OWNED_MEM char *text = NULL;
	size_t size;

	*ret_about = (struct kept_about){0};
	if (path && !read_file(path, KEPT_ABOUT_MAX_BYTES, &text, &size))
		kept_about_parse(text, size, ret_about);
}

char *kept_profile(const char *store, const char *name, const char *kind)
{
	OWNED_MEM char *path = NULL;
	char file[64];

	snprintf(file, sizeof(file), "%s.pb.gz", kind);
	path = path_of(store, name, file);
	return path && !access(path, F_OK) ? TAKE(path) : NULL;
}
