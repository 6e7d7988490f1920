/* SPDX-License-Identifier: BSD-2-Clause */
#include "drain/wakes.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>

#define FIRST_ENTRIES 256U

void wakes_release(struct wakes *wakes)
{
	free(wakes->entry);
	*wakes = (struct wakes){};
}

static int add(struct wakes *wakes, const struct woken *woken)
{
	if (wakes->count == wakes->capacity) {
		size_t capacity = wakes->capacity ? wakes->capacity * 2 : FIRST_ENTRIES;
		struct woken *grown = realloc(wakes->entry, capacity * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		wakes->entry = grown;
		wakes->capacity = capacity;
	}
	wakes->entry[wakes->count++] = *woken;
	return 0;
}

int wakes_drain(int map_fd, struct wakes *wakes)
{
	struct woken woken;
	int err;

	while (!(err = bpf_map_get_next_key(map_fd, NULL, &woken.key))) {
		err = bpf_map_lookup_elem(map_fd, &woken.key, &woken.count);
		if (!err)
			err = bpf_map_delete_elem(map_fd, &woken.key);
		if (!err)
			err = add(wakes, &woken);
		if (err)
			return err;
	}
	return err == -ENOENT ? 0 : err;
}
