/* SPDX-License-Identifier: BSD-2-Clause */
#include "gpu/cuda_devices.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/hash.h"

struct known {
	struct pp_process_id id;
	int device;
	bool is_told;	    /* the device was */
	bool is_asked;	    /* in this window */
	bool is_on_several; /* it was, once: which call is for which is not known */
	UT_hash_handle hh;
};

struct cuda_devices {
	struct known *known; /* owned: hash table by id */
};

int cuda_devices_new(struct cuda_devices **ret_devices)
{
	struct cuda_devices *devices = calloc(1, sizeof(*devices));

	if (!devices)
		return -ENOMEM;
	*ret_devices = devices;
	return 0;
}

void cuda_devices_free(struct cuda_devices *devices)
{
	if (!devices)
		return;
	HASH_DROP_ALL(devices->known);
	free(devices);
}

static struct known *find(const struct cuda_devices *devices, struct pp_process_id id)
{
	struct known *known;

	HASH_FIND(hh, devices->known, &id, (unsigned int)sizeof(id), known);
	return known;
}

void cuda_devices_begin(struct cuda_devices *devices,
			bool (*is_alive)(void *context, struct pp_process_id id), void *context)
{
	struct known *known, *next;

	HASH_ITER (hh, devices->known, known, next) {
		/* One that ended in this window has calls in it. */
		if (!known->is_asked && !is_alive(context, known->id))
			HASH_DROP(devices->known, known);
		else
			known->is_asked = false;
	}
}

int cuda_devices_note(struct cuda_devices *devices, struct pp_process_id id, cuda_devices_ask *ask,
		      void *context)
{
	struct known *known = HASH_GET(devices->known, id, id);
	int device;

	if (!known)
		return -ENOMEM;
	if (known->is_asked)
		return 0;
	known->is_asked = true;
	device = ask(context, id);
	known->is_on_several |= device == -EMFILE;
	if (device < 0)
		return 0;
	known->is_on_several |= known->is_told && known->device != device;
	known->is_told = true;
	known->device = device;
	return 0;
}

int cuda_devices_find(const struct cuda_devices *devices, struct pp_process_id id)
{
	const struct known *known = find(devices, id);

	return known && known->is_told && !known->is_on_several ? known->device : -ENOENT;
}
