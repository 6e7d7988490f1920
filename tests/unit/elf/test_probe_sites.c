/* SPDX-License-Identifier: BSD-2-Clause */
/* Sites in files written by hand. */
#include "elf/probe_sites.h"

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>

#include "made_notes.h"

#define CODE (MADE_BASE + MADE_CODE)
#define DATA (MADE_BASE + MADE_DATA)
#define ENDBR64 "\xf3\x0f\x1e\xfa"

static struct made_elf elf;
static struct probe_sites sites;

static int setup(void **state)
{
	(void)state;
	made_notes_begin(&elf, EM_X86_64);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	probe_sites_release(&sites);
	return 0;
}

static struct probe_wanted wanted_of(enum probe_wanted_kind kind, const char *provider,
				     const char *name)
{
	struct probe_wanted wanted = {.kind = (uint32_t)kind, .wants_nearest = 1};

	strcpy(wanted.provider, provider);
	strcpy(wanted.name, name);
	assert_true(probe_wanted_is_sound(&wanted));
	return wanted;
}

/* Fills `sites`. */
static void find(enum probe_wanted_kind kind, const char *provider, const char *name)
{
	OWNED(elf_image) struct elf_image *image = made_open(&elf);
	const struct probe_wanted wanted = wanted_of(kind, provider, name);

	probe_sites_release(&sites);
	assert_int_equal(probe_sites_find(image, &wanted, 1, &sites), 0);
	assert_int_equal(sites.wanted_count, 1);
	assert_int_equal(sites.found[0].sites, sites.site_count);
}

static void find_function(const char *name)
{
	find(PROBE_WANTED_FUNCTION, "", name);
}

static void assert_nearest(const char *first, const char *second, const char *third)
{
	assert_string_equal(sites.found[0].nearest[0], first);
	assert_string_equal(sites.found[0].nearest[1], second);
	assert_string_equal(sites.found[0].nearest[2], third);
}

/* ---- static probes ---- */

static void usdt__site_has_offset_semaphore_and_arguments(void **state)
{
	(void)state;
	elf.program[2].p_vaddr += 0x100000; /* address and offset differ */
	MADE_NOTE(&elf, CODE + 5, DATA + 0x100000 + 6, "p\0n\0008@%rdi sym(%rip) -4@$1");
	MADE_NOTE(&elf, CODE + 9, 0, "p\0other\0");
	MADE_NOTE(&elf, CODE + 10, 0, "q\0n\0");
	MADE_PUT(&elf, CODE + 5, "\x90");
	find(PROBE_WANTED_USDT, "p", "n");
	assert_int_equal(sites.site_count, 1);
	assert_int_equal(sites.site[0].vaddr, CODE + 5);
	assert_int_equal(sites.site[0].offset, MADE_CODE + 5);
	assert_int_equal(sites.site[0].semaphore_offset, MADE_DATA + 6);
	assert_int_equal(sites.site[0].cost, PROBE_COST_EMULATED);
	assert_int_equal(sites.site[0].is_entry, 0);
	assert_int_equal(sites.site[0].arg_count, 3);
	assert_int_equal(sites.site[0].arg[0].kind, PP_ARG_REGISTER);
	assert_int_equal(sites.site[0].arg[1].kind, PP_ARG_NONE);
	assert_int_equal(sites.site[0].arg[2].kind, PP_ARG_CONSTANT);
	assert_int_equal(sites.unread_args, 1);
	assert_nearest("", "", "");
}

static void usdt__probe_at_several_sites_is_found_at_each_once(void **state)
{
	(void)state;
	MADE_NOTE(&elf, CODE + 5, 0, "p\0n\0");
	MADE_NOTE(&elf, CODE + 9, 0, "p\0n\0");
	MADE_NOTE(&elf, CODE + 5, 0, "p\0n\0");
	find(PROBE_WANTED_USDT, "p", "n");
	assert_int_equal(sites.site_count, 2);
	assert_int_equal(sites.site[1].offset, MADE_CODE + 9);
}

static void assert_refused(uint64_t vaddr, uint64_t semaphore, int refusal)
{
	elf.section[3].sh_size = 0;
	MADE_NOTE(&elf, vaddr, semaphore, "p\0n\0");
	find(PROBE_WANTED_USDT, "p", "n");
	assert_int_equal(sites.site_count, refusal < 0);
	assert_int_equal(sites.found[0].refusals, refusal < 0 ? 0 : 1U << refusal);
	if (refusal >= 0)
		assert_int_equal(sites.refused[refusal], 1);
	/* It is there: nothing else was meant. */
	assert_nearest("", "", "");
}

static void usdt__site_outside_of_code_is_refused(void **state)
{
	(void)state;
	assert_refused(MADE_BASE - 1, 0, PROBE_REFUSED_NO_CODE);
	assert_refused(MADE_BASE, 0, -1);
	assert_refused(DATA - 1, 0, -1);
	assert_refused(DATA, 0, PROBE_REFUSED_NO_CODE); /* not executable */
	assert_refused(UINT64_MAX, 0, PROBE_REFUSED_NO_CODE);
	assert_refused(0, 0, PROBE_REFUSED_NO_CODE);
}

static void usdt__semaphore_outside_of_writable_data_is_refused(void **state)
{
	(void)state;
	assert_refused(CODE, DATA, -1);
	assert_refused(CODE, MADE_END - 2, -1);
	assert_refused(CODE, MADE_END - 1, PROBE_REFUSED_SEMAPHORE); /* half of it */
	assert_refused(CODE, MADE_END, PROBE_REFUSED_SEMAPHORE);     /* .bss: not in the file */
	assert_refused(CODE, DATA - 2, PROBE_REFUSED_SEMAPHORE);     /* read-only */
	assert_refused(CODE, CODE, PROBE_REFUSED_SEMAPHORE);
	assert_refused(CODE, DATA + 1, PROBE_REFUSED_SEMAPHORE); /* odd: could cross a page */
	assert_refused(CODE, UINT64_MAX, PROBE_REFUSED_SEMAPHORE);
	assert_refused(CODE, 1, PROBE_REFUSED_SEMAPHORE);
}

static void usdt__bad_notes_are_counted(void **state)
{
	(void)state;
	MADE_NOTE(&elf, CODE, 0, "p\0n\0");
	elf.section[3].sh_size += 12;
	memset(elf.data + MADE_NOTES + elf.section[3].sh_size - 12, 0xff, 12);
	find(PROBE_WANTED_USDT, "p", "n");
	assert_int_equal(sites.site_count, 1);
	assert_int_equal(sites.refused[PROBE_REFUSED_CUT_NOTE], 1);
}

/* Twice as many notes as are kept, each at a site of its own, then the first ones again. */
static void usdt__more_sites_than_are_kept_are_counted(void **state)
{
	const size_t size = MADE_BYTES + 2 * PROBE_SITES_PER_FILE * 52;
	const struct probe_wanted wanted = wanted_of(PROBE_WANTED_USDT, "p", "n");
	OWNED(elf_image) struct elf_image *image = NULL;
	OWNED_MEM uint8_t *data = calloc(1, size);

	(void)state;
	assert_non_null(data);
	elf.section[3].sh_offset = MADE_BYTES;
	elf.section[3].sh_size = 2 * PROBE_SITES_PER_FILE * 52;
	memcpy(data, elf.data, MADE_BYTES);
	for (uint64_t i = 0; i < 2 * PROBE_SITES_PER_FILE; i++) {
		elf.section[3].sh_size = 0;
		memcpy(data + MADE_BYTES + i * 52, MADE_NOTE(&elf, CODE + i, 0, "p\0n\0"), 52);
	}
	assert_int_equal(elf_image_from_memory(data, size, &image), 0);
	assert_int_equal(probe_sites_find(image, &wanted, 1, &sites), 0);
	assert_int_equal(sites.site_count, PROBE_SITES_PER_FILE);
	assert_int_equal(sites.found[0].sites, PROBE_SITES_PER_FILE);
	assert_int_equal(sites.refused[PROBE_REFUSED_FULL], PROBE_SITES_PER_FILE);
	assert_int_equal(sites.found[0].refusals, 1U << PROBE_REFUSED_FULL);
	for (uint32_t i = 0; i < sites.site_count; i++)
		assert_int_equal(sites.site[i].offset, MADE_CODE + i);
}

/* ---- functions ---- */

static void function__site_is_its_first_instruction(void **state)
{
	(void)state;
	made_symbol(&elf, "f", CODE, 16, STT_FUNC);
	made_symbol(&elf, "ff", CODE + 16, 16, STT_FUNC);
	MADE_PUT(&elf, CODE, "\x55");
	find_function("f");
	assert_int_equal(sites.site_count, 1);
	assert_int_equal(sites.site[0].offset, MADE_CODE);
	assert_int_equal(sites.site[0].vaddr, CODE);
	assert_int_equal(sites.site[0].is_entry, 1);
	assert_int_equal(sites.site[0].cost, PROBE_COST_EMULATED);
	assert_int_equal(sites.site[0].arg_count, 0);
	find_function("ff");
	assert_int_equal(sites.site[0].offset, MADE_CODE + 16);
	assert_int_equal(sites.site[0].cost, PROBE_COST_SINGLE_STEP);
}

/* CUDA's libraries have a function twice, for two kinds of default stream. */
static void function__has_the_sites_of_its_twins(void **state)
{
	OWNED(elf_image) struct elf_image *image = NULL;
	struct probe_wanted wanted = wanted_of(PROBE_WANTED_ANY_OF, "", "g copy");

	(void)state;
	made_symbol(&elf, "copy", CODE, 16, STT_FUNC);
	made_symbol(&elf, "copy_ptsz", CODE + 16, 16, STT_FUNC);
	made_symbol(&elf, "copy_ptds", CODE + 16, 16, STT_FUNC);
	made_symbol(&elf, "copy_ptdsx", CODE + 32, 16, STT_FUNC);
	made_symbol(&elf, "copy_pt", CODE + 48, 16, STT_FUNC);
	image = made_open(&elf);
	assert_int_equal(probe_sites_find(image, &wanted, 1, &sites), 0);
	assert_int_equal(sites.site_count, 1);
	probe_sites_release(&sites);
	wanted.takes_twins = 1;
	assert_int_equal(probe_sites_find(image, &wanted, 1, &sites), 0);
	assert_int_equal(sites.site_count, 2);
	assert_int_equal(sites.site[0].offset, MADE_CODE);
	assert_int_equal(sites.site[1].offset, MADE_CODE + 16);
	assert_int_equal(sites.site[1].alternative, 1);
	assert_int_equal(sites.site[0].is_twin, 0);
	assert_int_equal(sites.site[1].is_twin, 1);
}

/* Whichever of its names comes first. */
static void function__that_is_its_own_twin_is_none(void **state)
{
	static const char *const names[][2] = {{"f", "f_ptsz"}, {"f_ptsz", "f"}};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		OWNED(elf_image) struct elf_image *image = NULL;
		struct probe_wanted wanted = wanted_of(PROBE_WANTED_ANY_OF, "", "f");

		setup(NULL);
		wanted.takes_twins = 1;
		for (size_t j = 0; j < 2; j++)
			made_symbol(&elf, names[i][j], CODE, 16, STT_FUNC);
		image = made_open(&elf);
		assert_int_equal(probe_sites_find(image, &wanted, 1, &sites), 0);
		assert_int_equal(sites.site_count, 1);
		assert_int_equal(sites.site[0].is_twin, 0);
		probe_sites_release(&sites);
	}
}

static void assert_moved(const char *code, size_t size, uint64_t symbol_size, uint64_t offset,
			 enum probe_cost cost)
{
	setup(NULL);
	made_symbol(&elf, "f", CODE, symbol_size, STT_FUNC);
	made_put(&elf, CODE, code, size);
	find_function("f");
	assert_int_equal(sites.site_count, 1);
	assert_int_equal(sites.site[0].offset, MADE_CODE + offset);
	assert_int_equal(sites.site[0].cost, cost);
	assert_int_equal(sites.site[0].is_entry, 1);
}

static void function__site_is_behind_endbr64_but_no_other_instruction(void **state)
{
	(void)state;
	assert_moved(ENDBR64 "\x55", 5, 16, 4, PROBE_COST_EMULATED);
	assert_moved(ENDBR64 "\x41\x57", 6, 0, 4, PROBE_COST_EMULATED);
	assert_moved(ENDBR64 "\x48\x83\xec\x08", 8, 16, 4, PROBE_COST_SINGLE_STEP);
	assert_moved(ENDBR64 ENDBR64 "\x55", 9, 16, 4, PROBE_COST_SINGLE_STEP);
	assert_moved("\x90" ENDBR64, 5, 16, 0, PROBE_COST_EMULATED);
	/* A function that is no longer. */
	assert_moved(ENDBR64 "\x55", 5, 4, 0, PROBE_COST_SINGLE_STEP);
	/* endbr32 */
	assert_moved("\xf3\x0f\x1e\xfb\x55", 5, 16, 0, PROBE_COST_SINGLE_STEP);
}

/* The site of a function whose calls with 0 need not hit it. */
static void assert_null_skipped(const char *code, size_t size, uint64_t symbol_size,
				uint64_t offset)
{
	OWNED(elf_image) struct elf_image *image = NULL;
	struct probe_wanted wanted = wanted_of(PROBE_WANTED_FUNCTION, "", "f");

	assert_moved(code, size, symbol_size, 0, PROBE_COST_SINGLE_STEP);
	wanted.skips_null = 1;
	image = made_open(&elf);
	probe_sites_release(&sites);
	assert_int_equal(probe_sites_find(image, &wanted, 1, &sites), 0);
	assert_int_equal(sites.site[0].offset, MADE_CODE + offset);
}

static void function__site_may_be_behind_a_test_for_null(void **state)
{
	(void)state;
	/* test %rdi, %rdi; je, near or far; push %rbp */
	assert_null_skipped("\x48\x85\xff\x74\x10\x55", 6, 64, 5);
	assert_null_skipped("\x48\x85\xff\x0f\x84\xbf\0\0\0\x55", 10, 64, 9);
	/* jne; another register; backwards; what follows costs as much; the function ends. */
	assert_null_skipped("\x48\x85\xff\x75\x10\x55", 6, 64, 0);
	assert_null_skipped("\x48\x85\xf6\x74\x10\x55", 6, 64, 0);
	assert_null_skipped("\x48\x85\xff\x74\xf0\x55", 6, 64, 0);
	assert_null_skipped("\x48\x85\xff\x0f\x84\xbf\0\0\xff\x55", 10, 64, 0);
	assert_null_skipped("\x48\x85\xff\x74\x10\x48\x89", 7, 64, 0);
	assert_null_skipped("\x48\x85\xff\x74\x10\x55", 6, 6, 0);
}

static void function__at_the_end_of_code_is_not_moved_out_of_it(void **state)
{
	(void)state;
	made_symbol(&elf, "f", DATA - 4, 0, STT_FUNC);
	made_put(&elf, DATA - 4, ENDBR64, 4);
	find_function("f");
	assert_int_equal(sites.site_count, 1);
	assert_int_equal(sites.site[0].vaddr, DATA - 4);
}

static void function__of_both_tables_is_found_once(void **state)
{
	(void)state;
	made_symbol(&elf, "f", CODE, 16, STT_FUNC);
	made_symbol(&elf, "f", CODE, 0, STT_FUNC);
	made_symbol(&elf, "f", CODE + 32, 0, STT_FUNC);
	elf.section[4] = elf.section[2];
	elf.section[4].sh_type = SHT_DYNSYM;
	find_function("f");
	assert_int_equal(sites.site_count, 2);
	assert_int_equal(sites.site[1].offset, MADE_CODE + 32);
	assert_int_equal(sites.refused[PROBE_REFUSED_FULL], 0);
	elf.section[2].sh_type = SHT_NULL;
	find_function("f");
	assert_int_equal(sites.site_count, 2);
}

static void function__has_its_name_with_a_version_too(void **state)
{
	(void)state;
	made_symbol(&elf, "f@@V_2", CODE, 16, STT_FUNC);
	made_symbol(&elf, "f@V_1", CODE + 16, 16, STT_FUNC);
	made_symbol(&elf, "f.cold", CODE + 32, 16, STT_FUNC);
	find_function("f");
	assert_int_equal(sites.site_count, 2);
}

static void function__that_is_none_is_not_found(void **state)
{
	Elf64_Sym *symbol = (Elf64_Sym *)(elf.data + MADE_SYMBOLS) + 1;

	(void)state;
	made_symbol(&elf, "f", CODE, 16, STT_OBJECT);
	find_function("f");
	assert_int_equal(sites.site_count + sites.found[0].refusals, 0);
	symbol->st_info = STT_FUNC;
	symbol->st_shndx = SHN_UNDEF;
	find_function("f");
	assert_int_equal(sites.site_count + sites.found[0].refusals, 0);
	symbol->st_shndx = 1;
	symbol->st_name = 0xfff; /* the last byte of the names */
	find_function("f");
	assert_int_equal(sites.site_count + sites.found[0].refusals, 0);
	symbol->st_name = UINT32_MAX;
	find_function("f");
	assert_int_equal(sites.site_count + sites.found[0].refusals, 0);
}

static void function__reasons_are_told(void **state)
{
	(void)state;
	made_symbol(&elf, "i", CODE, 16, STT_GNU_IFUNC);
	made_symbol(&elf, "d", DATA, 16, STT_FUNC);
	made_symbol(&elf, "x", UINT64_MAX, 16, STT_FUNC);
	find_function("i");
	assert_int_equal(sites.found[0].refusals, 1U << PROBE_REFUSED_INDIRECT);
	find_function("d");
	assert_int_equal(sites.found[0].refusals, 1U << PROBE_REFUSED_NO_CODE);
	find_function("x");
	assert_int_equal(sites.found[0].refusals, 1U << PROBE_REFUSED_NO_CODE);
	assert_int_equal(sites.site_count, 0);
	for (int i = 0; i < PROBE_REFUSAL_KINDS; i++)
		assert_true(strlen(probe_refusal_text((enum probe_refusal)i)) > 10);
	assert_string_equal(probe_refusal_text(PROBE_REFUSAL_KINDS), "");
}

static void any_of__finds_all_that_there_are(void **state)
{
	(void)state;
	made_symbol(&elf, "malloc", CODE, 16, STT_FUNC);
	made_symbol(&elf, "free", CODE + 16, 16, STT_FUNC);
	made_symbol(&elf, "cfree", CODE + 16, 16, STT_FUNC);
	made_symbol(&elf, "mall", CODE + 32, 16, STT_FUNC);
	find(PROBE_WANTED_ANY_OF, "", " malloc calloc  free cfree ");
	assert_int_equal(sites.site_count, 2);
	assert_int_equal(sites.site[0].alternative, 0);
	assert_int_equal(sites.site[1].alternative, 2);
	find(PROBE_WANTED_ANY_OF, "", " ");
	assert_int_equal(sites.site_count, 0);
}

static void find__each_of_several_has_its_own(void **state)
{
	OWNED(elf_image) struct elf_image *image = NULL;
	struct probe_wanted wanted[PROBE_WANTED_MAX];

	(void)state;
	made_symbol(&elf, "f", CODE, 16, STT_FUNC);
	MADE_NOTE(&elf, CODE + 5, 0, "p\0n\0");
	for (size_t i = 0; i < PROBE_WANTED_MAX; i++)
		wanted[i] = i % 2 ? wanted_of(PROBE_WANTED_USDT, "p", "n")
				  : wanted_of(PROBE_WANTED_FUNCTION, "", "f");
	image = made_open(&elf);
	assert_int_equal(probe_sites_find(image, wanted, PROBE_WANTED_MAX, &sites), 0);
	assert_int_equal(sites.site_count, PROBE_WANTED_MAX);
	for (size_t i = 0; i < PROBE_WANTED_MAX; i++)
		assert_int_equal(sites.found[i].sites, 1);
	for (size_t i = 0; i < sites.site_count; i++)
		assert_int_equal(sites.site[i].offset,
				 sites.site[i].wanted % 2 ? MADE_CODE + 5 : MADE_CODE);
}

static void find__budget_ends_the_search(void **state)
{
	const struct probe_wanted wanted = wanted_of(PROBE_WANTED_FUNCTION, "", "f");
	OWNED(elf_image) struct elf_image *image = NULL;

	(void)state;
	for (uint64_t i = 0; i < 50; i++)
		made_symbol(&elf, "f", CODE + i, 16, STT_FUNC);
	image = made_open(&elf);
	image->work->spent = 0;
	image->work->limit = 500;
	assert_int_equal(probe_sites_find(image, &wanted, 1, &sites), -E2BIG);
	assert_null(sites.site);
}

/* ---- names that are near ---- */

static void nearest__functions_come_by_their_distance(void **state)
{
	(void)state;
	made_symbol(&elf, "mallocs", CODE, 16, STT_FUNC);
	made_symbol(&elf, "mallok", CODE, 16, STT_FUNC);
	made_symbol(&elf, "mallok@@V", CODE, 16, STT_FUNC);
	made_symbol(&elf, "mxxloc", CODE, 16, STT_FUNC);
	made_symbol(&elf, "xalloc", CODE, 16, STT_FUNC);
	made_symbol(&elf, "malxoc", CODE, 16, STT_OBJECT);
	made_symbol(&elf, "quite_another", CODE, 16, STT_FUNC);
	find_function("malloc");
	assert_nearest("mallocs", "mallok", "xalloc");
	find_function("another_name_which_differs_in_everything");
	assert_nearest("", "", "");
	find(PROBE_WANTED_ANY_OF, "", "malloc");
	assert_nearest("", "", "");
}

static void nearest__probes_are_compared_by_provider_and_name(void **state)
{
	(void)state;
	MADE_NOTE(&elf, CODE, 0, "python\0gc__start\0");
	MADE_NOTE(&elf, CODE, 0, "python\0import__find__load__start\0");
	MADE_NOTE(&elf, CODE, 0, "ruby\0gc__start\0");
	find(PROBE_WANTED_USDT, "python", "gc_start");
	assert_nearest("python:gc__start", "", "");
	find(PROBE_WANTED_USDT, "pyton", "import__find__load__strt");
	assert_nearest("python:import__find__load__start", "", "");
}

static void nearest__is_not_looked_for_unasked(void **state)
{
	OWNED(elf_image) struct elf_image *image = NULL;
	struct probe_wanted wanted = wanted_of(PROBE_WANTED_FUNCTION, "", "malloc");

	(void)state;
	made_symbol(&elf, "mallok", CODE, 16, STT_FUNC);
	image = made_open(&elf);
	wanted.wants_nearest = 0;
	assert_int_equal(probe_sites_find(image, &wanted, 1, &sites), 0);
	assert_nearest("", "", "");
}

/* A file for which no more than the search may be done is not given up for a hint. */
static void nearest__leaves_a_part_of_the_budget(void **state)
{
	const struct probe_wanted wanted = wanted_of(PROBE_WANTED_FUNCTION, "", "malloc");
	OWNED(elf_image) struct elf_image *image = NULL;
	char nearest[PROBE_NEAREST_MAX][PROBE_NEAREST_BYTES];

	(void)state;
	for (uint64_t i = 0; i < 50; i++)
		made_symbol(&elf, "mallok", CODE + i, 16, STT_FUNC);
	image = made_open(&elf);
	image->work->spent = 0;
	image->work->limit = 1000;
	for (int i = 0; i < 20; i++)
		probe_sites_nearest(image, &wanted, nearest);
	assert_false(elf_work_is_over(image->work));
	assert_in_range(image->work->spent, 900, 1000);
	image->work->spent = 1001;
	probe_sites_nearest(image, &wanted, nearest);
	assert_string_equal(nearest[0], "");
}

/* ---- what a hit costs ---- */

static void cost__of_instructions_of_x86_64(void **state)
{
	static const struct {
		const char *code;
		size_t size;
		enum probe_cost cost;
	} cases[] = {
		{"", 0, PROBE_COST_SINGLE_STEP},
		{"\x90", 1, PROBE_COST_EMULATED},
		{"\x66\x90", 2, PROBE_COST_EMULATED},
		{"\x66", 1, PROBE_COST_SINGLE_STEP},
		{"\x50", 1, PROBE_COST_EMULATED},
		{"\x57", 1, PROBE_COST_EMULATED},
		{"\x4f", 1, PROBE_COST_SINGLE_STEP},
		{"\x58", 1, PROBE_COST_SINGLE_STEP}, /* pop */
		{"\x41\x54", 2, PROBE_COST_EMULATED},
		{"\x41\x5c", 2, PROBE_COST_SINGLE_STEP},
		{"\xe9\0\0\0\0", 5, PROBE_COST_EMULATED},
		{"\xe8\0\0\0\0", 5, PROBE_COST_EMULATED},
		{"\xeb\0", 2, PROBE_COST_EMULATED},
		{"\x74\0", 2, PROBE_COST_EMULATED},
		{"\x0f\x84\0\0\0\0", 6, PROBE_COST_EMULATED},
		{"\x0f\x1f\x44\0\0", 5, PROBE_COST_LONG_NOP},
		{"\x0f\x1f\x44\0", 4, PROBE_COST_SINGLE_STEP}, /* cut */
		{"\x0f\x1f\0", 3, PROBE_COST_LONG_NOP},
		{"\x66\x0f\x1f\x84\0\0\0\0\0", 9, PROBE_COST_LONG_NOP},
		{ENDBR64, 4, PROBE_COST_SINGLE_STEP},
		{"\x48\x83\xec\x18", 4, PROBE_COST_SINGLE_STEP},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(probe_instruction_cost(EM_X86_64, (const uint8_t *)cases[i].code,
							cases[i].size),
				 cases[i].cost);
}

static void cost__of_instructions_of_aarch64(void **state)
{
	static const struct {
		uint32_t word;
		enum probe_cost cost;
	} cases[] = {
		{0xd503201f, PROBE_COST_LONG_NOP},    /* nop */
		{0x14000001, PROBE_COST_EMULATED},    /* b */
		{0x94000001, PROBE_COST_EMULATED},    /* bl */
		{0x54000040, PROBE_COST_EMULATED},    /* b.eq */
		{0xb4000040, PROBE_COST_EMULATED},    /* cbz x0 */
		{0x36000040, PROBE_COST_EMULATED},    /* tbz */
		{0xd65f03c0, PROBE_COST_EMULATED},    /* ret */
		{0x90000000, PROBE_COST_EMULATED},    /* adrp */
		{0x58000040, PROBE_COST_EMULATED},    /* ldr x0, literal */
		{0xa9bf7bfd, PROBE_COST_SINGLE_STEP}, /* stp x29, x30, [sp, #-16]! */
		{0xd503233f, PROBE_COST_SINGLE_STEP}, /* paciasp */
		{0xd503245f, PROBE_COST_SINGLE_STEP}, /* bti c */
		{0xd10043ff, PROBE_COST_SINGLE_STEP}, /* sub sp, sp, #16 */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(probe_instruction_cost(EM_AARCH64, (const uint8_t *)&cases[i].word,
							4),
				 cases[i].cost);
	assert_int_equal(probe_instruction_cost(EM_AARCH64, (const uint8_t *)&cases[0].word, 3),
			 PROBE_COST_SINGLE_STEP);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(usdt__site_has_offset_semaphore_and_arguments),
		TEST(usdt__probe_at_several_sites_is_found_at_each_once),
		TEST(usdt__site_outside_of_code_is_refused),
		TEST(usdt__semaphore_outside_of_writable_data_is_refused),
		TEST(usdt__bad_notes_are_counted),
		TEST(usdt__more_sites_than_are_kept_are_counted),
		TEST(function__site_is_its_first_instruction),
		TEST(function__has_the_sites_of_its_twins),
		TEST(function__that_is_its_own_twin_is_none),
		TEST(function__site_is_behind_endbr64_but_no_other_instruction),
		TEST(function__site_may_be_behind_a_test_for_null),
		TEST(function__at_the_end_of_code_is_not_moved_out_of_it),
		TEST(function__of_both_tables_is_found_once),
		TEST(function__has_its_name_with_a_version_too),
		TEST(function__that_is_none_is_not_found),
		TEST(function__reasons_are_told),
		TEST(any_of__finds_all_that_there_are),
		TEST(find__each_of_several_has_its_own),
		TEST(find__budget_ends_the_search),
		TEST(nearest__functions_come_by_their_distance),
		TEST(nearest__probes_are_compared_by_provider_and_name),
		TEST(nearest__is_not_looked_for_unasked),
		TEST(nearest__leaves_a_part_of_the_budget),
		TEST(cost__of_instructions_of_x86_64),
		TEST(cost__of_instructions_of_aarch64),
	};

	return cmocka_run_group_tests_name("elf/probe_sites", tests, NULL, NULL);
}
