/* SPDX-License-Identifier: BSD-2-Clause */
#include "drain/raw_codes.h"

#include <errno.h>
#include <stdlib.h>

#include <utlist.h>

#include "base/hash.h"

static struct raw_user *find(const struct raw_codes *codes, uint32_t uid)
{
	struct raw_user *user;

	HASH_FIND(hh, codes->by_user, &uid, sizeof(uid), user);
	return user;
}

static struct raw_user *get(struct raw_codes *codes, uint32_t uid)
{
	struct raw_user *user = HASH_GET(codes->by_user, user, uid);

	if (user && !user->prev) /* it is new */
		DL_APPEND(codes->waiting, user);
	return user;
}

static struct raw_user **list_of(struct raw_codes *codes, const struct raw_user *user)
{
	return user->is_put_off ? &codes->later : &codes->waiting;
}

static void drop(struct raw_codes *codes, struct raw_user *user)
{
	DL_DELETE(*list_of(codes, user), user);
	HASH_DROP(codes->by_user, user);
}

void raw_codes_release(struct raw_codes *codes)
{
	struct raw_user *user, *next;

	HASH_ITER (hh, codes->by_user, user, next)
		drop(codes, user);
	codes->count = 0;
}

int raw_codes_add(struct raw_codes *codes, struct raw_code_link *link)
{
	struct raw_user *user = get(codes, link->user);

	if (!user)
		return -ENOMEM;
	DL_APPEND(user->first, link);
	codes->count++;
	return 0;
}

void raw_codes_remove(struct raw_codes *codes, struct raw_code_link *link)
{
	struct raw_user *user = link->prev ? find(codes, link->user) : NULL;

	if (!user)
		return;
	DL_DELETE(user->first, link);
	link->prev = link->next = NULL;
	codes->count--;
	if (!user->first)
		drop(codes, user);
}

struct raw_user *raw_codes_take_turn(struct raw_codes *codes)
{
	struct raw_user *user = codes->waiting;

	if (!user)
		return NULL;
	DL_DELETE(codes->waiting, user);
	DL_APPEND(codes->waiting, user);
	return user;
}

void raw_codes_put_off(struct raw_codes *codes, struct raw_user *user)
{
	DL_DELETE(*list_of(codes, user), user);
	user->is_put_off = true;
	DL_APPEND(codes->later, user);
}

void raw_codes_recall(struct raw_codes *codes)
{
	struct raw_user *user;

	DL_FOREACH(codes->later, user)
	user->is_put_off = false;
	DL_CONCAT(codes->waiting, codes->later);
	codes->later = NULL;
}
