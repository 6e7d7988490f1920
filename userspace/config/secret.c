/* SPDX-License-Identifier: BSD-2-Clause */
#include "config/secret.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/utf8.h"
#include "config/plain_file.h"

/* Writes the line about a file; returns err. */
static int explain(const char *path, int err, char why[CONFIG_WHY_BYTES])
{
	switch (err) {
	case -EINVAL:
		snprintf(why, CONFIG_WHY_BYTES, "'%s' is not a regular file", path);
		break;
	case -EFBIG:
		snprintf(why, CONFIG_WHY_BYTES, "'%s' is longer than %u bytes", path,
			 CONFIG_SECRET_MAX_BYTES);
		break;
	case -EPERM:
		snprintf(why, CONFIG_WHY_BYTES,
			 "'%s' holds a secret that other users may read or change: chmod o= '%s'",
			 path, path);
		break;
	case -ENODATA:
		snprintf(why, CONFIG_WHY_BYTES, "'%s' is empty: it should hold a token", path);
		break;
	case -ENOMEM:
		break;
	default:
		snprintf(why, CONFIG_WHY_BYTES, "cannot read '%s': %s", path, strerror(-err));
	}
	return err;
}

int config_check_secret(const char *path, char why[CONFIG_WHY_BYTES])
{
	struct stat status;

	if (stat(path, &status))
		return explain(path, -errno, why);
	if (!S_ISREG(status.st_mode))
		return explain(path, -EINVAL, why);
	if (status.st_mode & S_IRWXO)
		return explain(path, -EPERM, why);
	return 0;
}

int config_read_secret(const char *path, char **ret_text, char why[CONFIG_WHY_BYTES])
{
	struct plain_file file = {0};
	const char *start;
	size_t size;
	int err = plain_file_read(path, CONFIG_SECRET_MAX_BYTES, &file);

	if (!err && file.mode & S_IRWXO)
		err = -EPERM;
	if (!err) {
		start = file.text + strspn(file.text, " \t\r\n");
		size = strcspn(start, "\r\n");
		while (size && (start[size - 1] == ' ' || start[size - 1] == '\t'))
			size--;
		if (!size)
			err = -ENODATA;
		else if (!utf8_is_clean(start, size))
			err = -EILSEQ;
	}
	if (!err) {
		*ret_text = strndup(start, size);
		err = *ret_text ? 0 : -ENOMEM;
	}
	if (file.text)
		explicit_bzero(file.text, file.size);
	free(file.text);
	if (err == -EILSEQ) {
		snprintf(why, CONFIG_WHY_BYTES, "'%s' has control codes, or is not UTF-8", path);
		return -EINVAL;
	}
	return err ? explain(path, err, why) : 0;
}
