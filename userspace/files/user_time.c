/* SPDX-License-Identifier: BSD-2-Clause */
#include "files/user_time.h"

static uint64_t owed_ns(const struct user_time *time, uint64_t now_ns)
{
	const uint64_t paid_ns = (now_ns - time->since_ns) / USER_TIME_SHARE;

	return paid_ns < time->owed_ns ? time->owed_ns - paid_ns : 0;
}

bool user_times_allow(const struct user_times *times, uint32_t uid, uint64_t now_ns)
{
	for (const struct user_time *time = times->user; uid && time < times->user + USER_TIMES;
	     time++)
		if (time->uid == uid)
			return owed_ns(time, now_ns) < USER_TIME_BURST_NS;
	return true;
}

void user_times_add(struct user_times *times, uint32_t uid, uint64_t used_ns, uint64_t now_ns)
{
	struct user_time *least = &times->user[0];

	if (!uid)
		return;
	for (struct user_time *time = times->user; time < times->user + USER_TIMES; time++) {
		if (time->uid == uid) {
			least = time;
			break;
		}
		if (owed_ns(time, now_ns) < owed_ns(least, now_ns))
			least = time;
	}
	if (least->uid != uid)
		*least = (struct user_time){.uid = uid};
	least->owed_ns = owed_ns(least, now_ns) + used_ns;
	least->since_ns = now_ns;
}
