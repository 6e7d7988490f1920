/* SPDX-License-Identifier: BSD-2-Clause */
#include "drain/incomplete_queue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "base/hash.h"

/* A user who has stacks in the queue. */
struct queue_user {
	uint32_t uid;
	struct queued_incomplete *first;
	struct queue_user *prev, *next; /* next: whose turn comes after this user's */
	UT_hash_handle hh;
};

struct incomplete_queue {
	struct queue_user *users; /* by uid */
	struct queue_user *turn;  /* the same, in the order of their turns */
	struct user_quota quota;
};

int incomplete_queue_new(uint64_t max_bytes, struct incomplete_queue **ret_queue)
{
	struct incomplete_queue *queue = calloc(1, sizeof(*queue));

	if (!queue)
		return -ENOMEM;
	queue->quota.total = max_bytes;
	*ret_queue = queue;
	return 0;
}

void incomplete_queue_free(struct incomplete_queue *queue)
{
	struct queued_incomplete *queued;

	if (!queue)
		return;
	while ((queued = incomplete_queue_take(queue)))
		free(queued);
	user_quota_release(&queue->quota);
	free(queue);
}

static uint64_t bytes_of(const struct pp_incomplete_record *record)
{
	return sizeof(struct queued_incomplete) + record->record.size;
}

/* Returns NULL when there is no memory. */
static struct queue_user *user_get(struct incomplete_queue *queue, uint32_t uid)
{
	struct queue_user *user = HASH_GET(queue->users, uid, uid);

	if (user && !user->prev) /* it is new */
		DL_APPEND(queue->turn, user);
	return user;
}

static int add(struct incomplete_queue *queue, const struct decoded_incomplete *incomplete,
	       uint64_t now_ns)
{
	const struct pp_incomplete_record *record = incomplete->record;
	OWNED_MEM struct queued_incomplete *queued = malloc(bytes_of(record));
	struct queue_user *user = queued ? user_get(queue, record->user) : NULL;

	if (!user)
		return -ENOMEM;
	memcpy(queued->bytes, record, record->record.size);
	decoded_incomplete_set((const struct pp_incomplete_record *)queued->bytes,
			       &queued->incomplete);
	queued->queued_ns = now_ns;
	DL_APPEND(user->first, queued);
	(void)TAKE(queued);
	return 0;
}

int incomplete_queue_add(struct incomplete_queue *queue,
			 const struct decoded_incomplete *incomplete, uint64_t now_ns)
{
	const uint32_t uid = incomplete->record->user;
	const uint64_t bytes = bytes_of(incomplete->record);
	int err = user_quota_take(&queue->quota, uid, bytes);

	if (err)
		return err;
	err = add(queue, incomplete, now_ns);
	if (err) {
		user_quota_give(&queue->quota, uid, bytes);
		user_quota_refuse(&queue->quota, uid);
	}
	return err;
}

struct queued_incomplete *incomplete_queue_take(struct incomplete_queue *queue)
{
	struct queue_user *user = queue->turn;
	struct queued_incomplete *queued;

	if (!user)
		return NULL;
	queued = user->first;
	DL_DELETE(user->first, queued);
	user_quota_give(&queue->quota, user->uid, bytes_of(queued->incomplete.record));
	DL_DELETE(queue->turn, user);
	if (user->first) {
		DL_APPEND(queue->turn, user);
		return queued;
	}
	HASH_DROP(queue->users, user);
	return queued;
}

bool incomplete_queue_is_empty(const struct incomplete_queue *queue)
{
	return !queue->users;
}

struct user_quota *incomplete_queue_quota(struct incomplete_queue *queue)
{
	return &queue->quota;
}
