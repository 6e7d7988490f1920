/* SPDX-License-Identifier: BSD-2-Clause */
#include "identity/pods.h"

#include <dirent.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Takes a text up to a character.  Returns what is behind that; NULL: it is not there, or nothing
 * is in front of it. */
static const char *take_until(const char *text, char end, char ret_value[LABEL_VALUE_BYTES])
{
	const char *at = strchr(text, end);

	if (!at || at == text)
		return NULL;
	label_value(text, (size_t)(at - text), ret_value);
	return at + 1;
}

bool pods_container_log(const char *entry, const char *container_id, struct pod_names *ret_names)
{
	static const char suffix[] = ".log";
	const size_t id_size = strlen(container_id), size = strlen(entry);
	const size_t tail = id_size + sizeof(suffix) - 1; /* ID.log */
	struct pod_names names = {0};
	const char *at;

	if (!id_size || size <= tail || entry[size - tail - 1] != '-' ||
	    memcmp(entry + size - tail, container_id, id_size) != 0 ||
	    strcmp(entry + size - (sizeof(suffix) - 1), suffix) != 0)
		return false;
	at = take_until(entry, '_', names.pod);
	if (at)
		at = take_until(at, '_', names.name_space);
	if (!at || at >= entry + size - tail - 1)
		return false;
	label_value(at, (size_t)(entry + size - tail - 1 - at), names.container);
	*ret_names = names;
	return true;
}

bool pods_pod_log(const char *entry, const char *pod_uid, struct pod_names *ret_names)
{
	struct pod_names names = {0};
	const char *at = take_until(entry, '_', names.name_space);

	if (at)
		at = take_until(at, '_', names.pod);
	if (!at || !*pod_uid || strcmp(at, pod_uid) != 0)
		return false;
	*ret_names = names;
	return true;
}

/* ---- directories ---- */

void pods_release(struct pods *pods)
{
	for (size_t i = 0; i < PROCESS_LOG_DIRECTORIES; i++)
		free(pods->entries[i].bytes);
	*pods = (struct pods){0};
}

static void read_directories(struct pods *pods, uint64_t now_ns)
{
	pods->read_ns = now_ns;
	for (size_t i = 0; i < PROCESS_LOG_DIRECTORIES; i++) {
		struct log_entries fresh = {0};

		if (process_list_logs((enum process_log_directory)i, &fresh.bytes, &fresh.size))
			continue;
		free(pods->entries[i].bytes);
		pods->entries[i] = fresh;
	}
}

/* Looks through the records of a directory.  Source: getdents(2), struct linux_dirent64, which is
 * the C library's struct dirent64. */
static bool find_entry(const struct log_entries *entries, const char *key,
		       bool (*take)(const char *entry, const char *key, struct pod_names *names),
		       struct pod_names *ret_names)
{
	const size_t head = offsetof(struct dirent64, d_name);
	unsigned short size;

	for (size_t at = 0; entries->size - at > head; at += size) {
		const char *record = entries->bytes + at;

		memcpy(&size, record + offsetof(struct dirent64, d_reclen), sizeof(size));
		if (size <= head || size > entries->size - at ||
		    !memchr(record + head, '\0', size - head))
			return false;
		if (take(record + head, key, ret_names))
			return true;
	}
	return false;
}

static bool find_names(const struct pods *pods, const char *pod_uid, const char *container_id,
		       struct pod_names *ret_names)
{
	return find_entry(&pods->entries[PROCESS_LOGS_CONTAINERS], container_id, pods_container_log,
			  ret_names) ||
	       find_entry(&pods->entries[PROCESS_LOGS_PODS], pod_uid, pods_pod_log, ret_names);
}

int pods_find(struct pods *pods, const char *pod_uid, const char *container_id, uint64_t now_ns,
	      struct pod_names *ret_names)
{
	if (find_names(pods, pod_uid, container_id, ret_names))
		return 0;
	if (pods->read_ns && now_ns - pods->read_ns < PODS_AGAIN_NS)
		return -ENOENT;
	read_directories(pods, now_ns);
	return find_names(pods, pod_uid, container_id, ret_names) ? 0 : -ENOENT;
}
