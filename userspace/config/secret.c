/* SPDX-License-Identifier: BSD-2-Clause */
#include "config/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/safe_file.h"
#include "base/utf8.h"

/* ---- whole files ---- */

int plain_file_read(const char *path, size_t max_bytes, struct plain_file *ret_file)
{
	OWNED_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	OWNED_MEM char *text = NULL;
	struct stat status;
	int err;

	if (fd < 0 || fstat(fd, &status))
		return -errno;
	if (!S_ISREG(status.st_mode))
		return -EINVAL;
	if ((size_t)status.st_size > max_bytes)
		return -EFBIG;
	text = malloc((size_t)status.st_size + 1);
	if (!text)
		return -ENOMEM;
	err = pread_full(fd, text, (size_t)status.st_size, 0);
	if (err)
		return err;
	text[status.st_size] = '\0';
	*ret_file = (struct plain_file){.text = TAKE(text),
					.size = (size_t)status.st_size,
					.mode = status.st_mode,
					.uid = status.st_uid};
	return 0;
}

bool plain_file_is_trusted(uid_t uid)
{
	uid_t caller;
	gid_t group;

	return !uid || uid == geteuid() ||
	       (!geteuid() && !sudo_user_ids(&caller, &group) && uid == caller);
}

#define SERVER_USER "pyprofd-serve" /* deploy/systemd/sysusers.conf */

/* Writes the line about a file; returns err. */
static int explain(const char *path, int err, char why[CONFIG_WHY_BYTES])
{
	switch (err) {
	case -EINVAL:
		return config_refuse(why, err, "'%s' is not a regular file", path);
	case -EFBIG:
		return config_refuse(why, err, "'%s' is longer than %u bytes", path,
				     CONFIG_SECRET_MAX_BYTES);
	case -ENODATA:
		return config_refuse(why, err, "'%s' is empty: it should hold a token", path);
	case -ENOMEM:
		return err;
	default:
		return config_refuse(why, err, "cannot read '%s': %s", path, strerror(-err));
	}
}

/* Who may read it has the secret; who may change it has one of his own.  Returns 0 or -EPERM. */
static int check_keeping(const char *path, mode_t mode, uid_t uid, uid_t user,
			 char why[CONFIG_WHY_BYTES])
{
	if (mode & S_IRWXO)
		return config_refuse(
			why, -EPERM,
			"'%s' holds a secret that other users may read or change: chmod o= '%s'",
			path, path);
	if (mode & S_IWGRP)
		return config_refuse(why, -EPERM,
				     "'%s' holds a secret that its group may change: chmod g-w "
				     "'%s'",
				     path, path);
	if (uid != user && !plain_file_is_trusted(uid))
		return config_refuse(why, -EPERM,
				     "'%s' holds a secret and belongs to uid %u, who may change "
				     "it: chown root '%s'",
				     path, uid, path);
	return 0;
}

uid_t config_server_user(void)
{
	OWNED_FILE FILE *file = geteuid() ? NULL : fopen("/etc/passwd", "re");
	const struct passwd *user = NULL;

	/* Not getpwnam(): the name service may ask a server that does not answer. */
	while (file && (user = fgetpwent(file)) && strcmp(user->pw_name, SERVER_USER))
		continue;
	return user ? user->pw_uid : geteuid();
}

int config_check_secret(const char *path, uid_t user, char why[CONFIG_WHY_BYTES])
{
	struct stat status;

	if (stat(path, &status))
		return explain(path, -errno, why);
	if (!S_ISREG(status.st_mode))
		return explain(path, -EINVAL, why);
	return check_keeping(path, status.st_mode, status.st_uid, user, why);
}

static int read_secret(const char *path, uid_t user, char **ret_text, char why[CONFIG_WHY_BYTES])
{
	struct plain_file file = {0};
	const char *start;
	size_t size;
	int err = plain_file_read(path, CONFIG_SECRET_MAX_BYTES, &file);

	if (!err)
		err = check_keeping(path, file.mode, file.uid, user, why);
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
	if (err == -EILSEQ)
		return config_refuse(why, -EINVAL, "'%s' has control codes, or is not UTF-8", path);
	return err && err != -EPERM ? explain(path, err, why) : err;
}

int config_read_secret(const char *path, char **ret_text, char why[CONFIG_WHY_BYTES])
{
	return read_secret(path, geteuid(), ret_text, why);
}

bool config_token_is_valid(const char *token)
{
	const size_t size = strlen(token);

	return size >= CONFIG_TOKEN_MIN_BYTES && size < CONFIG_TOKEN_MAX_BYTES &&
	       strspn(token, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
			     "0123456789-._~") == size;
}

int config_read_token(const char *path, uid_t user, char **ret_token, char why[CONFIG_WHY_BYTES])
{
	char *token = NULL;
	int err = read_secret(path, user, &token, why);

	if (err)
		return err;
	if (config_token_is_valid(token)) {
		*ret_token = token;
		return 0;
	}
	explicit_bzero(token, strlen(token));
	free(token);
	return config_refuse(why, -EINVAL,
			     "the token in '%s' is not of %u to %u letters, digits, - . _ ~: "
			     "openssl rand -hex 24 makes one",
			     path, CONFIG_TOKEN_MIN_BYTES, CONFIG_TOKEN_MAX_BYTES - 1);
}
