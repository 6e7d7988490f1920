/* SPDX-License-Identifier: BSD-2-Clause */
/* Names users by our own /etc/passwd alone, which the parser child reads: what the name service
 * asks may be a server that does not answer, and the file may lie on a disk that does not.  Users
 * of a directory service are shown by their number.  One thread. */
#ifndef IDENTITY_USERS_H
#define IDENTITY_USERS_H

#include <stddef.h>
#include <stdint.h>

#include "identity/label_value.h"

/* Of the file PROCESS_TEXT_MAX_BYTES are read: some five thousand users. */
#define USERS_AGAIN_NS 60000000000ULL /* the file is read again for a user that is not in it */

/* All zero is a table that has not read the file. */
struct users {
	char *text;	  /* owned; NULL: none */
	uint64_t read_ns; /* 0: never */
};
void users_release(struct users *users);

/* Finds a user's name; the number where there is none. */
void users_name(struct users *users, uint32_t uid, uint64_t now_ns,
		char ret_name[LABEL_VALUE_BYTES]);
/* Finds a name in the text of a file as /etc/passwd.  Returns whether it is there. */
bool users_find(const char *text, uint32_t uid, char ret_name[LABEL_VALUE_BYTES]);

#endif
