/* SPDX-License-Identifier: BSD-2-Clause */
/* Whose memory did not answer in time: single processes, and users of whose processes several did
 * not. They are left alone for a time. Root's processes count one by one only: one of them must not
 * cost all others their stacks. */
#ifndef CHILD_LATE_H
#define CHILD_LATE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define LATE_ALONE_NS 10000000000ULL	  /* a process that was late */
#define LATE_USER_ALONE_NS 60000000000ULL /* a user whose processes were late, other than root */
#define LATE_USER_MAX 4U		  /* so often within LATE_USER_ALONE_NS */
#define LATE_ENTRIES 32U		  /* of each kind; the one that ends first makes room */

struct late_entry {
	uint32_t id;	   /* task, or user */
	uint32_t count;	   /* lates since `since_ns` */
	uint64_t since_ns; /* 0: the entry is free */
	uint64_t until_ns; /* left alone until then */
};

struct late_table {
	struct late_entry task[LATE_ENTRIES], user[LATE_ENTRIES];
	uint64_t users_until_ns;    /* until then some user is left alone */
	uint64_t suspects_until_ns; /* until then some user is suspected */
};

/* Notes a task that was late, and its user: see LATE_ALONE_NS and LATE_USER_MAX. */
void late_table_add(struct late_table *table, pid_t tid, uid_t user, uint64_t now_ns);
bool late_table_has_task(const struct late_table *table, pid_t tid, uint64_t now_ns);
bool late_table_has_user(const struct late_table *table, uid_t user, uint64_t now_ns);
/* Returns whether a process of the user was late within LATE_USER_ALONE_NS. */
bool late_table_suspects(const struct late_table *table, uid_t user, uint64_t now_ns);

#endif
