/* SPDX-License-Identifier: BSD-2-Clause */
#include "foreign/check.h"

#include <errno.h>
#include <string.h>

#define REGISTERS_MAX 32U /* DWARF numbers that are known on any machine */

static bool is_rows_error(int error)
{
	return !error || error == -ENODATA || error == -EBADMSG || error == -E2BIG;
}

/* Returns whether a text ends in its room and can be shown as it is. */
static bool is_plain(const char *text, size_t room)
{
	for (size_t i = 0; i < room; i++) {
		if (!text[i])
			return true;
		if (text[i] < ' ' || text[i] > '~')
			return false;
	}
	return false;
}

bool foreign_facts_are_sound(const struct foreign_facts *facts)
{
	if (facts->build_id_bytes > FOREIGN_BUILD_ID_BYTES ||
	    facts->segment_count > FOREIGN_MAX_SEGMENTS || !is_rows_error(facts->rows_error) ||
	    !is_plain(facts->reason, sizeof(facts->reason)))
		return false;
	for (uint32_t i = 0; i < facts->segment_count; i++) {
		const struct foreign_segment *segment = &facts->segment[i];

		if (segment->vaddr + segment->memory_size < segment->vaddr ||
		    segment->file_size > segment->memory_size ||
		    segment->offset + segment->file_size < segment->offset)
			return false;
	}
	return true;
}

static bool is_rule_known(const struct pp_rule *rule)
{
	if (rule->kind > PP_RULE_SIGNAL || rule->cfa_register >= REGISTERS_MAX ||
	    rule->fp_kind > PP_FP_UNDEFINED || rule->ra_kind > PP_RA_UNDEFINED)
		return false;
	return rule->ra_kind != PP_RA_REGISTER ||
	       (rule->ra_offset >= 0 && rule->ra_offset < (int)REGISTERS_MAX);
}

bool foreign_rows_are_sound(const struct cfi_row *row, size_t count, uint64_t low, uint64_t high)
{
	if (!count || row[0].vaddr != low || row[count - 1].vaddr >= high)
		return false;
	for (size_t i = 0; i < count; i++)
		if ((i && row[i].vaddr <= row[i - 1].vaddr) || !is_rule_known(&row[i].rule))
			return false;
	return true;
}
