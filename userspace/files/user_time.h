/* SPDX-License-Identifier: BSD-2-Clause */
/* How much of the CPU time of the child the files of each user have taken of late.  It answers one
 * question after the other, so who has files parsed all the time would have all others wait.  Root
 * is not counted. */
#ifndef FILES_USER_TIME_H
#define FILES_USER_TIME_H

#include <stdbool.h>
#include <stdint.h>

/* So much at once (a desktop's 1,000 files take about a second), and then a tenth of a CPU. */
#define USER_TIME_BURST_NS 2000000000ULL
#define USER_TIME_SHARE 10U
#define USER_TIMES 64U /* users that are counted; who owes least makes room */

struct user_time {
	uint32_t uid;	  /* 0: free */
	uint64_t owed_ns; /* at since_ns; a share of the time that passes is taken off */
	uint64_t since_ns;
};
struct user_times {
	struct user_time user[USER_TIMES];
};
/* Returns whether the user may have more parsed now. */
bool user_times_allow(const struct user_times *times, uint32_t uid, uint64_t now_ns);
void user_times_add(struct user_times *times, uint32_t uid, uint64_t used_ns, uint64_t now_ns);

#endif
