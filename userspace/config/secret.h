/* SPDX-License-Identifier: BSD-2-Clause */
/* Files with secrets in them: tokens and private keys. */
#ifndef CONFIG_SECRET_H
#define CONFIG_SECRET_H

#include "config/config.h"

#define CONFIG_SECRET_MAX_BYTES 16384U

/* Checks that a file with a secret is a regular file that not everybody may read (mode 0640 with a
 * group of its own is fine), that only its owner may write, and that the owner is one whom we trust
 * (plain_file.h), or user.  Returns 0; -EPERM, -EINVAL or -errno with one line in `why` that names
 * the file and the fix. */
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
