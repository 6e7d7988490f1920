/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "elf/elf_symbol_table.h"
#include "elf/probe_sites.h"
#include "elf/usdt_notes.h"

#define UNITS_MAX (16ULL << 20) /* a name's share of the budget */
#define WORK_PER_CHARACTER 2U	/* of one name with one of the other */
_Static_assert(PROBE_NEAREST_BYTES >= 2 * (NEAREST_MAX_CHARS + 1), "a provider and a name fit");

struct search {
	const struct probe_wanted *wanted;
	struct elf_work work; /* a part of the file's, which is for what is wanted */
	size_t distance[PROBE_NEAREST_MAX];
	char (*name)[PROBE_NEAREST_BYTES];
};

/* Returns SIZE_MAX when they are not near. */
static size_t distance_of(struct search *search, const char *a, const char *b)
{
	struct nearest nearest = NEAREST_NONE;
	const size_t a_size = strlen(a), b_size = strlen(b);
	const size_t difference = a_size > b_size ? a_size - b_size : b_size - a_size;
	const uint64_t price = WORK_PER_CHARACTER * (a_size + 1) * (b_size + 1);

	if (difference > 1 + b_size / 3 || a_size > NEAREST_MAX_CHARS || b_size > NEAREST_MAX_CHARS)
		return SIZE_MAX;
	if (!elf_work_pay(&search->work, 1, price))
		return SIZE_MAX;
	nearest_compare(&nearest, a, a_size, b);
	return nearest.distance;
}

static bool is_listed(const struct search *search, const char *name)
{
	for (size_t i = 0; i < PROBE_NEAREST_MAX; i++)
		if (!strcmp(search->name[i], name))
			return true;
	return false;
}

/* Puts a name where it belongs in the list. */
static void offer(struct search *search, size_t distance, const char *name)
{
	size_t at = PROBE_NEAREST_MAX - 1;

	if (distance >= search->distance[at] || is_listed(search, name))
		return;
	for (; at && search->distance[at - 1] > distance; at--) {
		search->distance[at] = search->distance[at - 1];
		memcpy(search->name[at], search->name[at - 1], PROBE_NEAREST_BYTES);
	}
	search->distance[at] = distance;
	snprintf(search->name[at], PROBE_NEAREST_BYTES, "%s", name);
}

static bool on_note(void *context, const struct usdt_note *note)
{
	struct search *search = context;
	const size_t provider = distance_of(search, search->wanted->provider, note->provider);
	const size_t name = distance_of(search, search->wanted->name, note->name);
	char pair[PROBE_NEAREST_BYTES];

	if (provider != SIZE_MAX && name != SIZE_MAX) {
		snprintf(pair, sizeof(pair), "%.64s:%.64s", note->provider, note->name);
		offer(search, provider + name, pair);
	}
	return !elf_work_is_over(&search->work);
}

static void compare_functions(struct search *search, const struct elf_image *image, uint32_t type)
{
	struct elf_symbol_table table;

	if (elf_image_symbol_table(image, type, &table))
		return;
	for (size_t i = 1; i < table.count && elf_work_pay(&search->work, 1, ELF_WORK_PER_SYMBOL);
	     i++) {
		const Elf64_Sym symbol = elf_symbol_table_entry(&table, i);
		char name[NEAREST_MAX_CHARS + 2] = "";
		size_t size;

		if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_shndx == SHN_UNDEF ||
		    symbol.st_name >= table.names_size)
			continue;
		size = table.names_size - symbol.st_name;
		size = size < sizeof(name) ? size : sizeof(name) - 1;
		memcpy(name, table.names + symbol.st_name, size);
		name[strcspn(name, "@")] = '\0';
		if (name[0])
			offer(search, distance_of(search, search->wanted->name, name), name);
	}
}

void probe_sites_nearest(const struct elf_image *image, const struct probe_wanted *wanted,
			 char ret_nearest[PROBE_NEAREST_MAX][PROBE_NEAREST_BYTES])
{
	const uint64_t left =
		elf_work_is_over(image->work) ? 0 : image->work->limit - image->work->spent;
	struct search search = {.wanted = wanted, .name = ret_nearest};
	struct elf_image copy = *image; /* the same file, with a budget of its own */
	struct usdt_refused refused;

	memset(ret_nearest, 0, PROBE_NEAREST_MAX * PROBE_NEAREST_BYTES);
	for (size_t i = 0; i < PROBE_NEAREST_MAX; i++)
		search.distance[i] = SIZE_MAX;
	/* Half of what is left: whoever comes next finds the other half. */
	search.work.limit = left / 2 < UNITS_MAX ? left / 2 : UNITS_MAX;
	copy.work = &search.work;
	if (wanted->kind == PROBE_WANTED_USDT) {
		(void)usdt_notes_read(&copy, on_note, &search, &refused);
	} else if (wanted->kind == PROBE_WANTED_FUNCTION) {
		compare_functions(&search, &copy, SHT_DYNSYM);
		compare_functions(&search, &copy, SHT_SYMTAB);
	}
	(void)elf_work_pay(image->work, 1,
			   elf_work_is_over(&search.work) ? search.work.limit : search.work.spent);
}
