/* SPDX-License-Identifier: BSD-2-Clause */
/* Has the child decode the code objects that are new in the dictionary, those of a user in one
 * request, users in turn.  One thread. */
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
	bool is_counted;	       /* in without_names, since code_decoder_begin() */
	/* Code objects at which the child was late or ended, or for whose names the dictionary had
	 * no room. */
	uint64_t given_up;
	/* Those that were not decoded when all had been asked about that could be, once for each
	 * code_decoder_begin(). */
	uint64_t without_names;
};
/* Something is to be named: users who were put off are asked about again. */
void code_decoder_begin(struct code_decoder *decoder);
/* Decodes code objects until the slice is over, one request at least; slice may be NULL.  Those for
 * which there is no child now, or no time of the child for their user, stay as they are until the
 * next code_decoder_begin().  Returns whether there are others that it has not come to. */
bool code_decoder_run(struct code_decoder *decoder, const struct slice *slice);

#endif
