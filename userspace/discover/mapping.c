/* SPDX-License-Identifier: BSD-2-Clause */
#include "discover/mapping.h"

#include <string.h>

#define DELETED " (deleted)"
#define SYSV_KEY_DIGITS 8U

bool file_key_equal(const struct file_key *a, const struct file_key *b)
{
	if (!a->inode || !b->inode)
		return !a->inode && !b->inode;
	return a->inode == b->inode && a->major == b->major && a->minor == b->minor &&
	       (!a->inode_generation || !b->inode_generation ||
		a->inode_generation == b->inode_generation);
}

static bool is_shared_anonymous(const char *path)
{
	if (!strcmp(path, "/dev/zero") || !strcmp(path, "/anon_hugepage"))
		return true;
	return !strncmp(path, "/SYSV", 5) && strlen(path) == 5 + SYSV_KEY_DIGITS &&
	       strspn(path + 5, "0123456789abcdef") == SYSV_KEY_DIGITS;
}

void mapping_set_name(struct mapping *mapping, char *path)
{
	const size_t suffix = sizeof(DELETED) - 1;
	size_t length = strlen(path);

	mapping->path = path;
	if (mapping->key.inode) {
		if (length > suffix && !strcmp(path + length - suffix, DELETED))
			path[length - suffix] = '\0';
		if (!is_shared_anonymous(path))
			return;
	}
	if (strcmp(path, "[vdso]") != 0)
		path[0] = '\0';
	mapping->key = (struct file_key){0};
	mapping->offset = 0;
}

bool path_is_musl(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && (!strncmp(slash + 1, "ld-musl-", 8) || !strcmp(slash + 1, "libc.so"));
}
