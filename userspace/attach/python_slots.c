/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/python_slots.h"

#include "attach/file_table.h"

void python_slots_init(struct python_slots *slots)
{
	*slots = (struct python_slots){.quota.total = PYTHON_SLOTS};
}

void python_slots_release(struct python_slots *slots)
{
	user_quota_release(&slots->quota);
}

int python_slots_take(struct python_slots *slots, uint32_t uid, struct file *file,
		      uint32_t *ret_index)
{
	int err = user_quota_take(&slots->quota, uid, 1);
	uint32_t index = 0;

	if (err)
		return err;
	/* The quota counts those that rest, too: one is free. */
	while (slots->slot[index].file || slots->slot[index].rest_epochs)
		index++;
	slots->slot[index] = (struct python_slot){.file = file, .uid = uid};
	*ret_index = index;
	return 0;
}

void python_slots_give(struct python_slots *slots, uint32_t index)
{
	user_quota_give(&slots->quota, slots->slot[index].uid, 1);
	slots->slot[index] = (struct python_slot){0};
}

void python_slots_tidy(struct python_slots *slots, uint64_t before_ns)
{
	for (uint32_t i = 0; i < PYTHON_SLOTS; i++) {
		struct python_slot *slot = &slots->slot[i];
		struct file *file = slot->file;

		if (!file || file->references || file->interpreted ||
		    file->unused_since_ns >= before_ns)
			continue;
		file->python_index = 0;
		slot->file = NULL;
		slot->rest_epochs = FILE_SLOT_REST_EPOCHS;
	}
}

void python_slots_end_epoch(struct python_slots *slots)
{
	for (uint32_t i = 0; i < PYTHON_SLOTS; i++) {
		struct python_slot *slot = &slots->slot[i];

		if (slot->rest_epochs && !--slot->rest_epochs)
			user_quota_give(&slots->quota, slot->uid, 1);
	}
}
