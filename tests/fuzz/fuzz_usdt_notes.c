/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: elf/probe_sites.c elf/usdt_notes.c elf/elf_image.c elf/elf_symbol_table.c base/nearest.c */
/* An ELF file with notes of static probes and symbols: the first probe that it names is wanted, and
 * so is a function.  Each site must lie in code, each semaphore in writable data. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "../unit/elf/symbol_name.h"
#include "base/cleanup.h"
#include "elf/elf_symbol_table.h"
#include "elf/probe_sites.h"
#include "elf/usdt_notes.h"

#define WANTED 3U

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_args(const struct pp_probe_arg *arg)
{
	for (size_t i = 0; i < PP_PROBE_ARGS; i++) {
		if (arg[i].kind == PP_ARG_NONE)
			continue;
		assert(arg[i].kind <= PP_ARG_MEMORY && arg[i].base < 32 && arg[i].scale <= 3);
		assert(arg[i].index < 32 || arg[i].index == PP_ARG_NO_INDEX);
		assert(arg[i].bytes && arg[i].bytes <= 8 && !(arg[i].bytes & (arg[i].bytes - 1)));
	}
}

static bool on_note(void *context, const struct usdt_note *note)
{
	struct probe_wanted *wanted = context;
	struct pp_probe_arg arg[PP_PROBE_ARGS];

	assert(strlen(note->provider) < sizeof(note->provider));
	assert(strlen(note->name) < sizeof(note->name));
	assert(usdt_args_parse(EM_X86_64, note->args, arg) <= PP_PROBE_ARGS);
	check_args(arg);
	assert(usdt_args_parse(EM_AARCH64, note->args, arg) <= PP_PROBE_ARGS);
	check_args(arg);
	strcpy(wanted->provider, note->provider);
	strcpy(wanted->name, note->name);
	return true;
}

static void check_site(const struct elf_image *image, const struct probe_site *site)
{
	uint64_t offset;

	assert(site->wanted < WANTED && site->offset < image->size);
	assert(!elf_image_vaddr_to_offset(image, site->vaddr, 1, PF_X, &offset));
	assert(offset == site->offset);
	check_args(site->arg);
	if (!site->semaphore_offset)
		return;
	for (size_t i = 0; i < image->segment_count; i++) {
		const struct elf_segment *segment = &image->segment[i];

		if (segment->writable && site->semaphore_offset >= segment->offset &&
		    site->semaphore_offset + 2 <= segment->offset + segment->file_size)
			return;
	}
	abort();
}

/* Takes the name of the last function of .symtab. */
static void want_function(const struct elf_image *image, struct probe_wanted *wanted)
{
	struct elf_symbol_table table;

	strcpy(wanted->name, "malloc");
	if (elf_image_symbol_table(image, SHT_SYMTAB, &table) || !table.count)
		return;
	for (size_t i = table.count > 16 ? table.count - 16 : 0; i < table.count; i++) {
		const Elf64_Sym symbol = elf_symbol_table_entry(&table, i);
		const char *name = symbol_name(&table, &symbol);

		if (name && *name && strlen(name) < sizeof(wanted->name))
			strcpy(wanted->name, name);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct probe_wanted wanted[WANTED] = {{.wants_nearest = 1},
					      {.kind = PROBE_WANTED_FUNCTION, .wants_nearest = 1},
					      {.kind = PROBE_WANTED_ANY_OF, .name = "free malloc"}};
	CLEANUP(probe_sites_release) struct probe_sites sites = {0};
	OWNED(elf_image) struct elf_image *image = NULL;
	struct usdt_refused refused;
	uint32_t found = 0;

	if (elf_image_from_memory(data, size, &image))
		return 0;
	(void)usdt_notes_read(image, on_note, &wanted[0], &refused);
	want_function(image, &wanted[1]);
	if (probe_sites_find(image, wanted, WANTED, &sites))
		return 0;
	assert(sites.site_count <= PROBE_SITES_PER_FILE);
	for (uint32_t i = 0; i < sites.site_count; i++)
		check_site(image, &sites.site[i]);
	for (size_t i = 0; i < WANTED; i++)
		found += sites.found[i].sites;
	assert(found == sites.site_count);
	return 0;
}
