/* SPDX-License-Identifier: BSD-2-Clause */
/* Files that the configuration names, above all those with secrets in them: tokens and private
 * keys. */
#ifndef CONFIG_SECRET_H
#define CONFIG_SECRET_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "config/config.h"

/* ---- files that must be regular ones: a FIFO would block, a device might never end ---- */

struct plain_file {
	char *text; /* owned by the caller; ends in NUL */
	size_t size;
	mode_t mode;
	uid_t uid; /* whose it is */
};

/* Reads the whole file.  Returns 0; -EINVAL: not a regular file; -EFBIG: longer than max_bytes;
 * -errno. */
int plain_file_read(const char *path, size_t max_bytes, struct plain_file *ret_file);

/* Returns whether what belongs to this user may say what we do: root's, our own user's, and as root
 * that of the user who called us through sudo. */
bool plain_file_is_trusted(uid_t uid);

/* ---- secrets ---- */

#define CONFIG_SECRET_MAX_BYTES 16384U

/* Checks that a file with a secret is a regular file that not everybody may read (mode 0640 with a
 * group of its own is fine), that only its owner may write, and that the owner is one whom we
 * trust, or user.  Returns 0; -EPERM, -EINVAL or -errno with one line in `why` that names the file
 * and the fix. */
int config_check_secret(const char *path, uid_t user, char why[CONFIG_WHY_BYTES]);
/* Returns as whom pyprofd-serve runs, for root who looks at its files: the user of its unit, where
 * there is that one; else the caller's. */
uid_t config_server_user(void);
/* Checks the file for our own user and reads the text of its first line without blanks at its ends,
 * on the heap.  Returns as config_check_secret(); -ENODATA: it is empty; -EFBIG; -EINVAL: it has
 * control codes; -ENOMEM without a line.  The caller clears the text (explicit_bzero) before it
 * frees it. */
int config_read_secret(const char *path, char **ret_text, char why[CONFIG_WHY_BYTES]);

/* The token that clients of [http] show. */
#define CONFIG_TOKEN_MIN_BYTES 16U
#define CONFIG_TOKEN_MAX_BYTES 256U
/* Returns whether a token can stand in a header, URL and cookie as it is, and is long enough. */
bool config_token_is_valid(const char *token);
/* Reads such a token as config_read_secret() does, from a file that may be `user`'s, too.  -EINVAL:
 * also when it is not valid. */
int config_read_token(const char *path, uid_t user, char **ret_token, char why[CONFIG_WHY_BYTES]);

#endif
