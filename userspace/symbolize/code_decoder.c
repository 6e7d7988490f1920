/* SPDX-License-Identifier: BSD-2-Clause */
#include "symbolize/code_decoder.h"

#include <errno.h>

#include "drain/raw_codes.h"
#include "files/client.h"

#define BATCH_MAX 512U
/* Numbers of code objects, which the child is not asked about again for a while when it was late at
 * them. */
#define FIRST_NUMBER 0xc0000000U
#define FIRST_BATCH_NUMBER 0xe0000000U

/* The code objects of a user that came first. */
struct batch {
	struct code_decoder *decoder;
	uint32_t user, count;
	uint32_t index[BATCH_MAX];
	const struct python_code_raw *raw[BATCH_MAX];
};

/* Collects as many as go into a request. */
static void collect(const struct raw_user *user, struct batch *batch)
{
	const uint32_t max = user->singles ? 1 : BATCH_MAX;
	size_t bytes = 0;

	batch->user = user->user;
	batch->count = 0;
	for (const struct raw_code_link *at = user->first; at; at = at->next) {
		const struct python_code_raw *raw =
			dictionary_code(batch->decoder->dictionary, at->index)->raw;

		bytes += raw->size;
		if (batch->count == max || (batch->count && bytes > FOREIGN_CODES_BYTES))
			break;
		batch->index[batch->count] = at->index;
		batch->raw[batch->count++] = raw;
	}
}

static void on_decoded(void *context, size_t index, struct python_code_text *text)
{
	struct batch *batch = context;
	struct code_decoder *decoder = batch->decoder;

	if (dictionary_decode_code(decoder->dictionary, batch->index[index], text))
		decoder->given_up++;
}

/* Asks about code objects of a user, who is gone when these were the last ones. */
static void decode(struct code_decoder *decoder, struct raw_codes *codes, struct raw_user *user)
{
	struct batch batch = {.decoder = decoder};
	const uint32_t singles = user->singles;
	struct foreign_file file;
	int err;

	collect(user, &batch);
	file = (struct foreign_file){
		.number = (batch.count > 1 ? FIRST_BATCH_NUMBER : FIRST_NUMBER) | batch.index[0],
		.user = batch.user,
		.payer = batch.user};
	user->singles -= singles > 0;
	err = foreign_codes(decoder->foreign, &file, batch.raw, batch.count, on_decoded, &batch);
	if (err >= 0)
		return;
	if (err != -ETIME) {
		user->singles = singles;
		raw_codes_put_off(codes, user);
	} else if (batch.count > 1) {
		user->singles = batch.count;
	} else {
		dictionary_give_up_code(decoder->dictionary, batch.index[0]);
		decoder->given_up++;
	}
}

void code_decoder_begin(struct code_decoder *decoder)
{
	raw_codes_recall(dictionary_raw_codes(decoder->dictionary));
	decoder->is_counted = false;
}

bool code_decoder_run(struct code_decoder *decoder, const struct slice *slice)
{
	struct raw_codes *codes = dictionary_raw_codes(decoder->dictionary);
	struct raw_user *user;

	while (decoder->foreign && (user = raw_codes_take_turn(codes))) {
		decode(decoder, codes, user);
		if (slice_is_over(slice) && codes->waiting)
			return true;
	}
	if (!decoder->is_counted)
		decoder->without_names += codes->count;
	decoder->is_counted = true;
	return false;
}
