/* SPDX-License-Identifier: BSD-2-Clause */
#include "identity/cgroup_names.h"

#include <stdio.h>
#include <string.h>

#include "discover/container.h"

#define UUID_CHARACTERS 36U /* 8-4-4-4-12 hex digits */
#define HASH_DIGITS 32U	    /* of a static pod */

/* ---- units ---- */

static bool ends_with(const char *text, size_t size, const char *suffix)
{
	const size_t suffix_size = strlen(suffix);

	return size > suffix_size && !memcmp(text + size - suffix_size, suffix, suffix_size);
}

static bool is_user_manager(const char *text, size_t size)
{
	static const char prefix[] = "user@";

	return size > sizeof(prefix) && !memcmp(text, prefix, sizeof(prefix) - 1) &&
	       ends_with(text, size, ".service");
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
		if (is_unit && (manager || !is_user_manager(part, size)))
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
 * it, as users make cgroups below theirs. */
static const char *find_kubepods(const char *path)
{
	static const char user[] = "user.slice";

	for (const char *part = path; *part;) {
		const size_t size = strcspn(part, "/");

		if (is_kubepods(part))
			return part;
		if (is_user_manager(part, size) ||
		    (size == sizeof(user) - 1 && !memcmp(part, user, size)))
			return NULL;
		part += size + (part[size] == '/');
	}
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
