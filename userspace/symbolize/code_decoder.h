/* SPDX-License-Identifier: BSD-2-Clause */
/* Has the child decode the code objects that are new in the dictionary, those of a user in one
 * request.  One thread. */
#ifndef SYMBOLIZE_CODE_DECODER_H
#define SYMBOLIZE_CODE_DECODER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "drain/dictionary.h"

struct foreign;

struct code_decoder {
	struct dictionary *dictionary; /* borrowed */
	struct foreign *foreign;       /* borrowed; NULL: none is decoded */
	/* So many are asked about one by one: the child was late, or ended, at them together. */
	uint32_t singles;
	uint64_t given_up; /* code objects at which it was late or ended */
};
/* Decodes code objects until the slice is over, one request at least; slice may be NULL.  Those for
 * which there is no child now, or no time of the child for their user, stay as they are for the
 * next call.  Returns whether there are others that it has not come to. */
bool code_decoder_run(struct code_decoder *decoder, const struct slice *slice);

#endif
