/* SPDX-License-Identifier: BSD-2-Clause */
#include "discover/target.h"

#include <errno.h>
#include <string.h>

#define MAX_ANCESTORS 256U
#define CGROUP_MOUNT "/sys/fs/cgroup"

void target_filter_release(struct target_filter *filter)
{
	free(filter->pid);
	free(filter->uid);
	free(filter->cgroup_prefix);
	if (filter->has_comm)
		regfree(&filter->comm);
	memset(filter, 0, sizeof(*filter));
}

static int append(uint32_t **array, size_t *count, size_t max, uint32_t value)
{
	uint32_t *grown;

	if (*count >= max)
		return -ENOSPC;
	grown = realloc(*array, (*count + 1) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	*array = grown;
	grown[(*count)++] = value;
	return 0;
}

int target_add_pid(struct target_filter *filter, uint32_t pid)
{
	return append(&filter->pid, &filter->pid_count, TARGET_MAX_PIDS, pid);
}

int target_add_uid(struct target_filter *filter, uint32_t uid)
{
	return append(&filter->uid, &filter->uid_count, TARGET_MAX_UIDS, uid);
}

int target_set_comm(struct target_filter *filter, const char *expression)
{
	int err;

	if (filter->has_comm)
		return -EEXIST;
	err = regcomp(&filter->comm, expression, REG_EXTENDED | REG_NOSUB);
	if (err)
		return err == REG_ESPACE ? -ENOMEM : -EINVAL;
	filter->has_comm = true;
	return 0;
}

/* Skips the name of the tree in a path below /sys/fs/cgroup, for the trees that container_parse()
 * takes paths from. */
static const char *skip_tree(const char *path)
{
	static const char *const tree[] = {"/unified", "/systemd", "/pids"};

	for (size_t i = 0; i < ARRAY_SIZE(tree); i++) {
		const size_t size = strlen(tree[i]);

		if (!strncmp(path, tree[i], size) && (path[size] == '/' || path[size] == '\0'))
			return path + size;
	}
	return path;
}

int target_set_cgroup(struct target_filter *filter, const char *prefix)
{
	const size_t mount = sizeof(CGROUP_MOUNT) - 1;
	size_t size;
	char *path;

	if (filter->cgroup_prefix)
		return -EEXIST;
	if (!strncmp(prefix, CGROUP_MOUNT, mount) &&
	    (prefix[mount] == '/' || prefix[mount] == '\0'))
		prefix = skip_tree(prefix + mount);
	while (*prefix == '/')
		prefix++;
	size = strlen(prefix);
	while (size && prefix[size - 1] == '/')
		size--;
	if (asprintf(&path, "/%.*s", (int)size, prefix) < 0)
		return -ENOMEM;
	filter->cgroup_prefix = path;
	return 0;
}

bool target_needs_details(const struct target_filter *filter)
{
	return filter->uid_count || filter->cgroup_prefix;
}

static bool contains(const uint32_t *array, size_t count, uint32_t value)
{
	for (size_t i = 0; i < count; i++)
		if (array[i] == value)
			return true;
	return false;
}

static bool descends(const struct target_filter *filter, const struct process_table *table,
		     const struct process *process)
{
	uint32_t tgid = process->id.tgid;

	/* Pids are reused, so a chain of parents may be circular. */
	for (unsigned i = 0; i < MAX_ANCESTORS && tgid; i++) {
		if (contains(filter->pid, filter->pid_count, tgid))
			return true;
		if (i)
			process = process_table_find_tgid(table, tgid);
		if (!process)
			return false;
		tgid = process->ppid;
	}
	return false;
}

static bool is_below(const char *cgroup, const char *prefix)
{
	const size_t size = strlen(prefix);

	if (size == 1)
		return cgroup[0] == '/';
	return !strncmp(cgroup, prefix, size) && (cgroup[size] == '/' || cgroup[size] == '\0');
}

bool target_matches(const struct target_filter *filter, const struct process_table *table,
		    const struct process *process)
{
	if (filter->pid_count && !descends(filter, table, process))
		return false;
	if (filter->uid_count && !contains(filter->uid, filter->uid_count, process->uid))
		return false;
	if (filter->has_comm && regexec(&filter->comm, process->comm, 0, NULL, 0) != 0)
		return false;
	return !filter->cgroup_prefix || is_below(process->cgroup, filter->cgroup_prefix);
}
