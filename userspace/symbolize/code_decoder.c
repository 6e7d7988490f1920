/* SPDX-License-Identifier: BSD-2-Clause */
#include "symbolize/code_decoder.h"

#include <errno.h>

#include "foreign/client.h"

#define BATCH_MAX 512U
#define USERS_LEFT_MAX 16U /* whose code objects are left for the next call; more are tried again */
/* Ids of files come that far only when slots have been reused 1,536 times. */
#define FIRST_NUMBER 0xc0000000U
#define FIRST_BATCH_NUMBER 0xe0000000U

/* Code objects of a user. */
struct batch {
	uint32_t user, count;
	uint32_t index[BATCH_MAX];
	const struct python_code_raw *raw[BATCH_MAX];
	struct dictionary *dictionary;
};

struct users_left {
	uint32_t user[USERS_LEFT_MAX];
	size_t count;
};

static bool is_left(const struct users_left *left, uint32_t user)
{
	for (size_t i = 0; i < left->count; i++)
		if (left->user[i] == user)
			return true;
	return false;
}

/* Collects code objects of the first user who has some and is not left. */
static void collect(const struct code_decoder *decoder, const struct users_left *left,
		    struct batch *batch)
{
	const uint32_t max = decoder->singles ? 1 : BATCH_MAX;
	uint32_t from = 1, user;

	batch->count = 0;
	while (batch->count < max) {
		from = dictionary_next_raw(decoder->dictionary, from, &user);
		if (!from)
			return;
		if (!is_left(left, user) && (!batch->count || user == batch->user)) {
			batch->user = user;
			batch->index[batch->count] = from;
			batch->raw[batch->count++] =
				dictionary_code(decoder->dictionary, from)->raw;
		}
		from++;
	}
}

static void on_decoded(void *context, size_t index, struct python_code_text *text)
{
	struct batch *batch = context;

	dictionary_decode_code(batch->dictionary, batch->index[index], text);
}

/* Asks about a batch.  Returns 0; -ETIMEDOUT: not now. */
static int decode(struct code_decoder *decoder, struct batch *batch)
{
	const struct foreign_file file = {
		.number = (batch->count > 1 ? FIRST_BATCH_NUMBER : FIRST_NUMBER) | batch->index[0],
		.user = batch->user,
		.payer = batch->user};
	const int err = foreign_codes(decoder->foreign, &file, batch->raw, batch->count,
				      on_decoded, batch);

	decoder->singles -= decoder->singles > 0;
	if (err >= 0)
		return 0;
	if (err != -ETIME)
		return -ETIMEDOUT;
	if (batch->count > 1) {
		decoder->singles = batch->count;
		return 0;
	}
	dictionary_give_up_code(decoder->dictionary, batch->index[0]);
	decoder->given_up++;
	return 0;
}

bool code_decoder_run(struct code_decoder *decoder, const struct slice *slice)
{
	struct users_left left = {.count = 0};
	struct batch batch;

	batch.dictionary = decoder->dictionary;
	while (decoder->foreign && left.count < USERS_LEFT_MAX) {
		collect(decoder, &left, &batch);
		if (!batch.count)
			break;
		if (decode(decoder, &batch))
			left.user[left.count++] = batch.user;
		else if (slice_is_over(slice))
			return true;
	}
	return false;
}
