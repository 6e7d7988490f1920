/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/turn_questions.h"

void turn_questions_begin(struct turn_questions *questions, uint64_t used_ns)
{
	questions->began_ns = used_ns;
	questions->put_off = questions->has_put_off ? questions->put_off + 1 : 0;
	questions->has_put_off = false;
}

bool turn_questions_allow(struct turn_questions *questions, uint64_t used_ns)
{
	if (used_ns - questions->began_ns < TURN_QUESTIONS_LONG_NS ||
	    questions->put_off >= TURN_QUESTIONS_PUT_OFF_MAX)
		return true;
	questions->has_put_off = true;
	return false;
}
