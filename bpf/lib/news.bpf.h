/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How much a user's hits of probes bring that is new: counters, names of modules, calls that are
 * open.  A program can hit probes of its own a million times a second; unbounded it would take all
 * rows of a window and all of the agent's time. */
#ifndef BPF_LIB_NEWS_H
#define BPF_LIB_NEWS_H

#include "lib/user.bpf.h"

/* Notes something new.  These are not inlined: the walks of their callers leave no stack. */
__weak __noinline int news_add(__u32 user)
{
	struct pp_user_share *share = share_of(user);

	if (share)
		__sync_fetch_and_add(&share->news, 1);
	return 0;
}

/* Takes it back: a call has ended. */
__weak __noinline int news_drop(__u32 user)
{
	struct pp_user_share *share = share_of(user);

	if (share && share->news)
		__sync_fetch_and_add(&share->news, -1);
	return 0;
}

/* Counts the calls that a user has open: one more or one less. */
__weak __noinline int open_calls_add(__u32 user, __s32 more)
{
	struct pp_user_share *share = share_of(user);

	if (share)
		__sync_fetch_and_add(&share->calls, more);
	return 0;
}

/* Returns whether a user has as many calls open as he may. */
__weak __noinline int open_calls_are_refused(__u32 user)
{
	struct pp_user_share *share = share_of(user);

	return share && share->calls >= PP_PROBE_CALLS_USER;
}

/* Returns whether a user's hits may bring nothing new any more in this round (struct pp_config). */
__weak __noinline int news_are_refused(__u32 user, __u32 round)
{
	struct pp_user_share *share = share_of(user);

	if (!share)
		return 0;
	if (share->news_round != round) {
		share->news_round = round;
		share->news = 0;
	}
	return share->news >= PP_PROBE_NEWS_MAX;
}

#endif
