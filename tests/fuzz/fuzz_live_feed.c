/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: live/reply.c live/record.c base/intern.c base/utf8.c base/index_table.c */
/* The reply to `top`: the windows must not depend on where the bytes are split, which the first
 * byte decides. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "live/reply.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
	uint64_t windows, bytes, sum;
};

static int on_window(void *context, const char *file, size_t size, uint64_t flags)
{
	struct seen *seen = context;

	seen->windows++;
	seen->bytes += size;
	for (size_t i = 0; i < size; i++)
		seen->sum = seen->sum * 31 + (uint8_t)file[i] + flags;
	return 0;
}

static int take(const char *bytes, size_t size, size_t piece, struct seen *seen)
{
	CLEANUP(live_feed_release) struct live_feed feed = {};
	const struct live_feed_handler handler = {.on_window = on_window, .context = seen};
	int err = 0;

	for (size_t at = 0; at < size && !err; at += piece)
		err = live_feed_take(&feed, bytes + at, size - at < piece ? size - at : piece,
				     &handler);
	return err;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct seen whole = {}, cut = {};
	int err;

	if (size < 2)
		return 0;
	err = take((const char *)data + 1, size - 1, size, &whole);
	assert(take((const char *)data + 1, size - 1, data[0] % 16 + 1, &cut) == err || err);
	if (!err)
		assert(!memcmp(&whole, &cut, sizeof(whole)));
	return 0;
}
