/* SPDX-License-Identifier: BSD-2-Clause */
/* Files with secrets in them: tokens and private keys. */
#ifndef CONFIG_SECRET_H
#define CONFIG_SECRET_H

#include "config/config.h"

#define CONFIG_SECRET_MAX_BYTES 16384U

/* Checks that a file with a secret is a regular file that not everybody may read or write (mode
 * 0640 with a group of its own is fine).  Returns 0; -EPERM, -EINVAL or -errno with one line in
 * `why` that names the file and the fix. */
int config_check_secret(const char *path, char why[CONFIG_WHY_BYTES]);
/* Checks the file and reads the text of its first line without blanks at its ends, on the heap.
 * Returns as config_check_secret(); -ENODATA: it is empty; -EFBIG; -EINVAL: it has control codes;
 * -ENOMEM without a line.  The caller clears the text (explicit_bzero) before it frees it. */
int config_read_secret(const char *path, char **ret_text, char why[CONFIG_WHY_BYTES]);

#endif
