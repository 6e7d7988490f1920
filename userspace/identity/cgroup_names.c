/* SPDX-License-Identifier: BSD-2-Clause */
#include "identity/cgroup_names.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "base/utf8.h"
#include "discover/proc_scan.h"

#define UUID_CHARACTERS 36U /* 8-4-4-4-12 hex digits */
#define HASH_DIGITS 32U	    /* of a static pod */

/* ---- values of labels ---- */

#define DIGITS_MAX 10U
/* A character that the bound cuts off must be whole: else it would be cleaned as a broken one. */
#define LONGEST_REST 3U

static bool is_continuation(char byte)
{
	return ((unsigned char)byte & 0xc0) == 0x80;
}

void label_value(const char *bytes, size_t size, char ret_value[LABEL_VALUE_BYTES])
{
	char clean[(LABEL_VALUE_MAX_BYTES + LONGEST_REST) * UTF8_CLEAN_MAX_GROWTH];

	size = strnlen(bytes, size);
	for (; size && bytes[0] == ' '; size--)
		bytes++;
	if (size > LABEL_VALUE_MAX_BYTES + LONGEST_REST)
		size = LABEL_VALUE_MAX_BYTES + LONGEST_REST;
	size = utf8_clean(bytes, size, clean);
	if (size > LABEL_VALUE_MAX_BYTES)
		for (size = LABEL_VALUE_MAX_BYTES; is_continuation(clean[size]);)
			size--;
	while (size && clean[size - 1] == ' ')
		size--;
	memcpy(ret_value, clean, size);
	ret_value[size] = '\0';
}

bool label_value_number(const char *bytes, size_t size, char ret_value[LABEL_VALUE_BYTES])
{
	ret_value[0] = '\0';
	if (!size || size > DIGITS_MAX)
		return false;
	for (size_t i = 0; i < size; i++)
		if (bytes[i] < '0' || bytes[i] > '9')
			return false;
	memcpy(ret_value, bytes, size);
	ret_value[size] = '\0';
	return true;
}

/* ---- units ---- */

static bool ends_with(const char *text, size_t size, const char *suffix)
{
	const size_t suffix_size = strlen(suffix);

	return size > suffix_size && !memcmp(text + size - suffix_size, suffix, suffix_size);
}

/* Puts a unit, behind its user's manager: a user's own nginx.service is not the system's. */
static void put_unit(const char *manager, size_t manager_size, const char *unit, size_t size,
		     char ret_unit[LABEL_VALUE_BYTES])
{
	char text[2 * LABEL_VALUE_BYTES];

	if (!manager) {
		label_value(unit, size, ret_unit);
		return;
	}
	snprintf(text, sizeof(text), "%.*s/%.*s", (int)manager_size, manager, (int)size, unit);
	label_value(text, strlen(text), ret_unit);
}

void cgroup_unit(const char *path, char ret_unit[LABEL_VALUE_BYTES])
{
	char id[CONTAINER_ID_BYTES];

	const char *manager = NULL;
	size_t manager_size = 0;

	ret_unit[0] = '\0';
	if (!container_id_find(path, id))
		return;
	for (const char *part = path; *part;) {
		const size_t size = strcspn(part, "/");
		const bool is_unit =
			ends_with(part, size, ".service") || ends_with(part, size, ".scope");

		if (is_unit)
			put_unit(manager, manager_size, part, size, ret_unit);
		if (is_unit && (manager || !cgroup_is_user_manager(part, size)))
			return;
		if (is_unit) {
			manager = part;
			manager_size = size;
		}
		part += size + (part[size] == '/');
	}
}

/* ---- pods ---- */

static bool is_hex(char byte)
{
	return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'f');
}

/* Returns how many characters of a text are a pod's uid; 0: it is none. */
static size_t uid_size(const char *text)
{
	size_t size = 0;

	while (size < HASH_DIGITS && is_hex(text[size]))
		size++;
	if (size == HASH_DIGITS)
		return size;
	for (size = 0; size < UUID_CHARACTERS; size++) {
		const bool is_dash = size == 8 || size == 13 || size == 18 || size == 23;

		if (is_dash ? text[size] != '-' && text[size] != '_' : !is_hex(text[size]))
			return 0;
	}
	return size;
}

/* Returns whether the text behind a uid ends the name of its cgroup. */
static bool is_end(const char *text)
{
	static const char slice[] = ".slice";

	if (!strncmp(text, slice, sizeof(slice) - 1))
		text += sizeof(slice) - 1;
	return *text == '\0' || *text == '/' || *text == ':';
}

static bool is_kubepods(const char *part)
{
	static const char kubelet[] = "kubelet-", kubepods[] = "kubepods";

	if (!strncmp(part, kubelet, sizeof(kubelet) - 1))
		part += sizeof(kubelet) - 1;
	return !strncmp(part, kubepods, sizeof(kubepods) - 1) &&
	       strchr("/.-", part[sizeof(kubepods) - 1]);
}

/* Returns where the kubelet's part of a path starts; NULL: there is none, or a user may have made
 * it. */
static const char *find_kubepods(const char *path)
{
	const char *end = path + cgroup_of_root(path);

	for (const char *part = path; part < end; part += strcspn(part, "/") + 1)
		if (is_kubepods(part))
			return part;
	return NULL;
}

void cgroup_pod(const char *path, char ret_uid[POD_UID_BYTES])
{
	static const char pod[] = "pod";
	const char *root = find_kubepods(path);

	ret_uid[0] = '\0';
	for (const char *at = root; root && (at = strstr(at, pod)); at += sizeof(pod) - 1) {
		const char *uid = at + sizeof(pod) - 1;
		const size_t size = uid_size(uid);
		const bool is_start = at[-1] == '/' || at[-1] == '-';

		if (!size || !is_start || !is_end(uid + size))
			continue;
		for (size_t i = 0; i < size; i++)
			ret_uid[i] = uid[i] == '_' ? '-' : uid[i];
		ret_uid[size] = '\0';
		return;
	}
}

/* ---- the names of pods ---- */

/* Names Kubernetes' pods and their containers by the names of the logs that the kubelet keeps:
 * /var/log/containers/POD_NAMESPACE_CONTAINER-ID.log, and for what is not there
 * /var/log/pods/NAMESPACE_POD_UID.  No API is asked.  One thread. */

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
