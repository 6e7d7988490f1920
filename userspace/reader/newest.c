/* SPDX-License-Identifier: BSD-2-Clause */
#include "reader/newest.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/kinds.h"
#include "store/store_query.h"

#define SUFFIX ".pb.gz"

struct newest {
	char *path; /* owned; NULL: none found yet */
	struct timespec modified;
};

static void newest_release(struct newest *newest)
{
	free(newest->path);
}

static bool is_later(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec != b->tv_sec ? a->tv_sec > b->tv_sec : a->tv_nsec > b->tv_nsec;
}

/* Returns whether a path is one word to a shell, and harmless to a terminal; other names are
 * skipped. */
static bool is_plain(const char *path)
{
	return path[0] != '-' &&
	       !path[strspn(path, "abcdefghijklmnopqrstuvwxyz"
				  "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-+,@%:/")];
}

static void consider(struct newest *newest, const char *path)
{
	struct stat status;
	char *copy;

	if (!is_plain(path) || lstat(path, &status) || !S_ISREG(status.st_mode) ||
	    (newest->path && !is_later(&status.st_mtim, &newest->modified)))
		return;
	copy = strdup(path);
	if (!copy)
		return;
	free(newest->path);
	*newest = (struct newest){.path = copy, .modified = status.st_mtim};
}

static void consider_here(struct newest *newest)
{
	DIR *directory = opendir(".");
	const struct dirent *entry;

	while (directory && (entry = readdir(directory))) {
		size_t size = strlen(entry->d_name);

		if (size > strlen(SUFFIX) && !strcmp(entry->d_name + size - strlen(SUFFIX), SUFFIX))
			consider(newest, entry->d_name);
	}
	if (directory)
		closedir(directory);
}

void newest_print(const char *store, FILE *out)
{
	const struct store_range range = {.until_ms = UINT64_MAX,
					  .kind = kind_get(PP_PROFILE_CPU)->name};
	CLEANUP(newest_release) struct newest newest = {0};
	CLEANUP(store_listing_release) struct store_listing listing = {0};
	int err = store_list(store, &range, &listing);

	if (!err && listing.count)
		consider(&newest, listing.entry[listing.count - 1].path);
	consider_here(&newest);
	if (newest.path)
		fprintf(out, "The newest profile here:\n  pyprof report %s\n\n", newest.path);
	else if (err == -EACCES)
		fprintf(out, "The last minutes, as root:\n  sudo pyprof report %s --since 10m\n\n",
			store);
	else
		fprintf(out, "There is no profile here yet; this takes one of ten seconds:\n"
			     "  sudo pyprofd -d 10 -o cpu.pb.gz\n\n");
}
