/* SPDX-License-Identifier: BSD-2-Clause */
#include "files/check.h"

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

static bool is_link_name(const char *name, size_t room)
{
	const size_t size = strnlen(name, room);

	return size < room && !memchr(name, '/', size);
}

bool foreign_facts_are_sound(const struct foreign_facts *facts)
{
	if (facts->debug.build_id_bytes > sizeof(facts->debug.build_id) ||
	    !is_link_name(facts->debug.link, sizeof(facts->debug.link)) ||
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

static bool is_in_text(const struct foreign_names *names, uint32_t at, uint32_t bytes)
{
	return bytes <= FOREIGN_NAME_MAX_BYTES && at <= names->text_bytes &&
	       bytes <= names->text_bytes - at;
}

bool foreign_names_are_sound(const struct foreign_names *names, size_t bytes, const uint64_t *vaddr,
			     size_t count)
{
	if (count > FOREIGN_MAX_NAMES || bytes < foreign_text_at((uint32_t)count) ||
	    names->text_bytes > bytes - foreign_text_at((uint32_t)count) || !names->count ||
	    names->count > count)
		return false;
	for (uint32_t i = 0; i < names->count; i++) {
		const struct foreign_name *name = &names->name[i];

		if (vaddr[i] < name->low || vaddr[i] >= name->high ||
		    !is_in_text(names, name->name_at, name->name_bytes) ||
		    !is_in_text(names, name->system_at, name->system_bytes))
			return false;
	}
	return true;
}

static bool is_line_sound(const struct foreign_line *line, const uint8_t *name)
{
	if (!line->code_bytes || line->start + line->code_bytes < line->start)
		return false;
	for (uint32_t i = 0; i < line->name_bytes; i++)
		if (name[i] < ' ')
			return false;
	return true;
}

bool foreign_lines_are_sound(const struct foreign_lines *lines, size_t bytes, uint64_t low,
			     uint64_t high)
{
	size_t left, at = 0;

	if (bytes < sizeof(*lines) || lines->bytes != bytes - sizeof(*lines) || lines->next < low ||
	    lines->next > high)
		return false;
	left = lines->bytes;
	for (uint32_t i = 0; i < lines->count; i++) {
		struct foreign_line line;

		if (left < sizeof(line))
			return false;
		memcpy(&line, lines->line + at, sizeof(line));
		left -= sizeof(line);
		at += sizeof(line);
		if (!line.name_bytes || line.name_bytes > FOREIGN_LINE_NAME_BYTES ||
		    line.name_bytes > left || !is_line_sound(&line, lines->line + at))
			return false;
		left -= line.name_bytes;
		at += line.name_bytes;
	}
	return !left;
}

static bool is_name_sound(const uint8_t *name, uint32_t bytes, uint32_t raw_bytes)
{
	return bytes <= 3 * raw_bytes && (!bytes || !memchr(name, 0, bytes));
}

static bool are_line_rows_sound(const uint8_t *rows, uint32_t count)
{
	struct line_row row, last = {0};

	for (uint32_t i = 0; i < count; i++, last = row) {
		memcpy(&row, rows + i * sizeof(row), sizeof(row));
		if (row.line > INT32_MAX || (i ? row.start <= last.start : row.start != 0))
			return false;
	}
	return true;
}

static bool is_code_sound(const struct foreign_code *code, const uint8_t *rows,
			  const struct python_code_raw *raw)
{
	const uint8_t *name = rows + code->row_count * sizeof(struct line_row);

	return are_line_rows_sound(rows, code->row_count) &&
	       is_name_sound(name, code->name_bytes, raw->name_bytes) &&
	       is_name_sound(name + code->name_bytes, code->filename_bytes, raw->filename_bytes);
}

bool foreign_codes_are_sound(const struct foreign_codes *codes, size_t bytes,
			     const struct python_code_raw *const *raw, size_t count)
{
	uint64_t next = 0;
	size_t at = 0;

	if (bytes < sizeof(*codes) || codes->bytes != bytes - sizeof(*codes) || !codes->count ||
	    codes->count > count)
		return false;
	for (uint32_t i = 0; i < codes->count; i++) {
		struct foreign_code code;
		size_t size;

		if (codes->bytes - at < sizeof(code))
			return false;
		memcpy(&code, codes->code + at, sizeof(code));
		if (!code.row_count || code.row_count > python_code_rows_max(raw[i]))
			return false;
		size = foreign_code_bytes(&code);
		if (size > codes->bytes - at ||
		    !is_code_sound(&code, codes->code + at + sizeof(code), raw[i]))
			return false;
		at += size;
		next += raw[i]->size;
	}
	return at == codes->bytes && codes->next == next;
}

static bool is_size_known(const struct pp_probe_arg *arg)
{
	return arg->bytes == 1 || arg->bytes == 2 || arg->bytes == 4 || arg->bytes == 8;
}

static bool is_arg_sound(const struct pp_probe_arg *arg)
{
	if (arg->kind == PP_ARG_NONE)
		return true;
	return arg->kind <= PP_ARG_MEMORY && is_size_known(arg) && arg->is_signed <= 1 &&
	       arg->base < REGISTERS_MAX &&
	       (arg->index == PP_ARG_NO_INDEX || arg->index < REGISTERS_MAX) && arg->scale <= 3;
}

static bool are_args_sound(const struct probe_site *site)
{
	for (size_t i = 0; i < PP_PROBE_ARGS; i++)
		if (!is_arg_sound(&site->arg[i]))
			return false;
	return true;
}

/* Only static probes have a semaphore and arguments, only functions an entry. */
static bool is_site_sound(const struct probe_site *site, const struct probe_wanted *wanted)
{
	const bool is_usdt = wanted->kind == PROBE_WANTED_USDT;

	if (site->offset > INT64_MAX || site->semaphore_offset > INT64_MAX ||
	    site->semaphore_offset % sizeof(uint16_t) || site->cost >= PROBE_COSTS ||
	    site->is_entry != !is_usdt || site->arg_count > PP_PROBE_ARGS)
		return false;
	if (!is_usdt && (site->semaphore_offset || site->arg_count))
		return false;
	if (site->alternative &&
	    (wanted->kind != PROBE_WANTED_ANY_OF || site->alternative >= PROBE_NAMES_MAX_BYTES / 2))
		return false;
	return site->is_twin <= wanted->takes_twins && are_args_sound(site);
}

static bool is_found_sound(const struct probe_found *found)
{
	for (size_t i = 0; i < PROBE_NEAREST_MAX; i++)
		if (!memchr(found->nearest[i], 0, sizeof(found->nearest[i])))
			return false;
	return !(found->refusals >> PROBE_REFUSAL_KINDS);
}

bool foreign_probes_are_sound(const struct foreign_probes *probes, size_t bytes,
			      const struct probe_wanted *wanted, uint32_t count)
{
	const struct probe_found *found = (const struct probe_found *)(probes + 1);
	const struct probe_site *site = (const struct probe_site *)(found + count);
	uint32_t sites[PROBE_WANTED_MAX] = {0};

	if (count > PROBE_WANTED_MAX || bytes < foreign_sites_at(count) ||
	    probes->wanted_count != count || probes->site_count > PROBE_SITES_PER_FILE ||
	    bytes != foreign_sites_at(count) + probes->site_count * sizeof(*site))
		return false;
	for (uint32_t i = 0; i < probes->site_count; i++) {
		if (site[i].wanted >= count || !is_site_sound(&site[i], &wanted[site[i].wanted]))
			return false;
		sites[site[i].wanted]++;
	}
	for (uint32_t i = 0; i < count; i++)
		if (!is_found_sound(&found[i]) || found[i].sites != sites[i])
			return false;
	return true;
}
