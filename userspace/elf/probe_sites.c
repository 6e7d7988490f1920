/* SPDX-License-Identifier: BSD-2-Clause */
#include "elf/probe_sites.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/nearest.h"
#include "elf/elf_symbol_table.h"
#include "elf/usdt_notes.h"

/* What the kernel does with the instruction at a probe's site: arch/x86/kernel/uprobes.c
 * (branch_setup_xol_ops(), push_setup_xol_ops()), arch/arm64/kernel/probes/decode-insn.c. */

/* Intel SDM volume 2, NOP: the forms that compilers and assemblers emit. */
static const struct {
	uint8_t size;
	uint8_t bytes[9];
} long_nops[] = {
	{3, {0x0f, 0x1f, 0x00}},
	{4, {0x0f, 0x1f, 0x40, 0x00}},
	{5, {0x0f, 0x1f, 0x44, 0x00, 0x00}},
	{6, {0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00}},
	{7, {0x0f, 0x1f, 0x80, 0x00, 0x00, 0x00, 0x00}},
	{8, {0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00}},
	{9, {0x66, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00}},
};

static bool is_push(uint8_t opcode)
{
	return opcode >= 0x50 && opcode <= 0x57;
}

/* Jumps and calls to a distance. */
static bool is_branch(const uint8_t *code, uint64_t size)
{
	if (code[0] == 0xeb || code[0] == 0xe9 || code[0] == 0xe8 ||
	    (code[0] >= 0x70 && code[0] <= 0x7f))
		return true;
	return size > 1 && code[0] == 0x0f && code[1] >= 0x80 && code[1] <= 0x8f;
}

static enum probe_cost x86_cost(const uint8_t *code, uint64_t size)
{
	const bool has_prefix = size > 1 && (code[0] == 0x41 || code[0] == 0x66);

	if (code[0] == 0x90 || is_push(code[0]) || is_branch(code, size))
		return PROBE_COST_EMULATED;
	/* push %r8 and on; the NOP of two bytes */
	if (has_prefix && (code[0] == 0x41 ? is_push(code[1]) : code[1] == 0x90))
		return PROBE_COST_EMULATED;
	for (size_t i = 0; i < ARRAY_SIZE(long_nops); i++)
		if (size >= long_nops[i].size &&
		    !memcmp(code, long_nops[i].bytes, long_nops[i].size))
			return PROBE_COST_LONG_NOP;
	return PROBE_COST_SINGLE_STEP;
}

/* Arm A64 encodings: mask, value. */
static const uint32_t arm_simulated[][2] = {
	{0x7c000000, 0x14000000}, /* b, bl */
	{0xff000010, 0x54000000}, /* b.cond */
	{0x7e000000, 0x34000000}, /* cbz, cbnz */
	{0x7e000000, 0x36000000}, /* tbz, tbnz */
	{0xff9ffc1f, 0xd61f0000}, /* br, blr, ret */
	{0x1f000000, 0x10000000}, /* adr, adrp */
	{0xbf000000, 0x18000000}, /* ldr (literal) */
	{0xff000000, 0x98000000}, /* ldrsw (literal) */
};
#define ARM_NOP 0xd503201fU /* simulated since Linux 6.13 */

static enum probe_cost arm_cost(const uint8_t *code, uint64_t size)
{
	uint32_t word;

	if (size < sizeof(word))
		return PROBE_COST_SINGLE_STEP;
	word = load_u32(code);
	if (word == ARM_NOP)
		return PROBE_COST_LONG_NOP;
	for (size_t i = 0; i < ARRAY_SIZE(arm_simulated); i++)
		if ((word & arm_simulated[i][0]) == arm_simulated[i][1])
			return PROBE_COST_EMULATED;
	return PROBE_COST_SINGLE_STEP;
}

enum probe_cost probe_instruction_cost(uint16_t machine, const uint8_t *code, uint64_t size)
{
	if (!size)
		return PROBE_COST_SINGLE_STEP;
	return machine == EM_X86_64 ? x86_cost(code, size) : arm_cost(code, size);
}

#define PLACES 4096U	       /* of the hash table of sites; a power of two */
#define INSTRUCTION_BYTES 9U   /* what probe_instruction_cost() looks at, at most */
#define SEMAPHORE_BYTES 2U     /* the kernel's: uprobe_register() */
#define SYMBOLS_MAX (1U << 21) /* of one table; the rest is not read */
_Static_assert(PLACES >= 2 * PROBE_SITES_PER_FILE, "there is always a free place");
_Static_assert(PROBE_WANTED_MAX <= 64, "a bit for each");
_Static_assert(USDT_NAME_MAX_BYTES == PROBE_NAME_MAX_BYTES, "every name can be wanted");
_Static_assert(PROBE_NAMES_MAX_BYTES / 2 <= UINT8_MAX, "alternatives have numbers");

static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};

#define PROBE_REFUSAL_TEXT(id, text) text,
const char *probe_refusal_text(enum probe_refusal refusal)
{
	static const char *const texts[] = {PROBE_REFUSALS(PROBE_REFUSAL_TEXT)};

	return refusal < PROBE_REFUSAL_KINDS ? texts[refusal] : "";
}

struct finding {
	const struct elf_image *image;
	const struct probe_wanted *wanted;
	size_t wanted_count;
	struct probe_sites sites; /* being filled */
	uint16_t place[PLACES];	  /* 1 + the index of a site, by wanted probe and offset */
	/* The wanted functions (bits) of which a name begins with that byte. */
	uint64_t by_first[256];
};

/* ---- sites ---- */

static void refuse(struct finding *finding, uint32_t wanted, enum probe_refusal why)
{
	finding->sites.refused[why]++;
	finding->sites.found[wanted].refusals |= 1U << why;
}

/* Returns the place of a site, or the free one where it belongs. */
static uint16_t *find_place(struct finding *finding, uint32_t wanted, uint64_t offset)
{
	/* Fibonacci hashing; a file that makes them collide pays below. */
	size_t at = (size_t)((offset * PROBE_WANTED_MAX + wanted) * 0x9e3779b97f4a7c15ULL >> 52);

	for (; finding->place[at]; at = (at + 1) % PLACES) {
		const struct probe_site *site = &finding->sites.site[finding->place[at] - 1];

		if ((site->offset == offset && site->wanted == wanted) ||
		    !elf_work_pay(finding->image->work, 1, 1))
			break;
	}
	return &finding->place[at];
}

/* Adds a site whose cost is not known yet, unless it is there. */
static void add_site(struct finding *finding, const struct probe_site *found)
{
	struct probe_sites *sites = &finding->sites;
	uint16_t *place = find_place(finding, found->wanted, found->offset);
	uint8_t code[INSTRUCTION_BYTES];
	struct probe_site *site;
	uint64_t size;
	const uint8_t *at;

	if (*place) {
		/* One that has a name without that is not of each thread. */
		sites->site[*place - 1].is_twin &= found->is_twin;
		return;
	}
	if (sites->site_count == PROBE_SITES_PER_FILE) {
		refuse(finding, found->wanted, PROBE_REFUSED_FULL);
		return;
	}
	site = &sites->site[sites->site_count++];
	*site = *found;
	size = elf_image_readable_bytes(finding->image, found->vaddr);
	size = size < sizeof(code) ? size : sizeof(code);
	at = elf_image_at(finding->image, found->vaddr, size);
	if (at)
		memcpy(code, at, size);
	site->cost = (uint8_t)probe_instruction_cost(finding->image->machine, code, at ? size : 0);
	*place = (uint16_t)sites->site_count;
	sites->found[found->wanted].sites++;
	for (uint8_t i = 0; i < site->arg_count; i++)
		sites->unread_args += site->arg[i].kind == PP_ARG_NONE;
}

/* ---- static probes ---- */

/* The kernel adds to two bytes there in each process that maps the file; it refuses odd offsets. */
static bool find_semaphore(const struct elf_image *image, const struct usdt_note *note,
			   uint64_t *ret_offset)
{
	uint64_t offset = 0;

	if (note->semaphore &&
	    (elf_image_vaddr_to_offset(image, note->semaphore, SEMAPHORE_BYTES, PF_W, &offset) ||
	     offset % SEMAPHORE_BYTES || !offset))
		return false;
	*ret_offset = offset;
	return true;
}

static void add_probe(struct finding *finding, uint32_t wanted, const struct usdt_note *note)
{
	const struct elf_image *image = finding->image;
	struct probe_site site = {.wanted = wanted, .vaddr = note->vaddr};

	if (elf_image_vaddr_to_offset(image, note->vaddr, 1, PF_X, &site.offset)) {
		refuse(finding, wanted, PROBE_REFUSED_NO_CODE);
		return;
	}
	if (!find_semaphore(image, note, &site.semaphore_offset)) {
		refuse(finding, wanted, PROBE_REFUSED_SEMAPHORE);
		return;
	}
	site.arg_count = (uint8_t)usdt_args_parse(image->machine, note->args, site.arg);
	add_site(finding, &site);
}

static bool on_note(void *context, const struct usdt_note *note)
{
	struct finding *finding = context;

	for (uint32_t i = 0; i < finding->wanted_count; i++) {
		const struct probe_wanted *wanted = &finding->wanted[i];

		if (wanted->kind == PROBE_WANTED_USDT && !strcmp(wanted->name, note->name) &&
		    !strcmp(wanted->provider, note->provider))
			add_probe(finding, i, note);
	}
	return elf_work_pay(finding->image->work, finding->wanted_count, ELF_WORK_PER_HEADER);
}

/* Returns whether static probes, or functions, are wanted. */
static bool wants(const struct finding *finding, bool is_usdt)
{
	for (size_t i = 0; i < finding->wanted_count; i++)
		if ((finding->wanted[i].kind == PROBE_WANTED_USDT) == is_usdt)
			return true;
	return false;
}

static int find_probes(struct finding *finding)
{
	struct usdt_refused refused;
	int err;

	if (!wants(finding, true))
		return 0;
	err = usdt_notes_read(finding->image, on_note, finding, &refused);
	if (err)
		return err;
	finding->sites.refused[PROBE_REFUSED_CUT_NOTE] = refused.cut;
	finding->sites.refused[PROBE_REFUSED_LONG_NAME] = refused.long_names;
	return 0;
}

/* ---- functions ---- */

/* A name among those of a wanted function. */
struct alternative {
	const char *name;
	size_t size;
	uint8_t number;
};

/* Steps to the next name.  Begins with {.name = wanted->name}. */
static bool next_alternative(const struct probe_wanted *wanted, struct alternative *at)
{
	const bool is_one = wanted->kind == PROBE_WANTED_FUNCTION;
	const bool is_first = !at->size;

	at->name += at->size;
	at->number += !is_first;
	at->name += is_one ? 0 : strspn(at->name, " ");
	at->size = is_one ? strlen(at->name) : strcspn(at->name, " ");
	return at->size;
}

static void sort_by_first(struct finding *finding)
{
	for (size_t i = 0; i < finding->wanted_count; i++) {
		const struct probe_wanted *wanted = &finding->wanted[i];
		struct alternative at = {.name = wanted->name};

		if (wanted->kind == PROBE_WANTED_USDT)
			continue;
		while (next_alternative(wanted, &at))
			finding->by_first[(uint8_t)*at.name] |= 1ULL << i;
	}
}

#define TWIN_BYTES 5U
static bool is_twin(const char *behind, uint64_t room)
{
	return room > TWIN_BYTES &&
	       (!memcmp(behind, "_ptsz", TWIN_BYTES) || !memcmp(behind, "_ptds", TWIN_BYTES));
}

/* Returns whether a symbol has this name, with a version or without: "malloc@@GLIBC_2.2.5".
 * *twin: whether twins are taken, and then whether it is one. */
static bool is_named(const char *name, uint64_t room, const struct alternative *wanted, bool *twin)
{
	if (room <= wanted->size || memcmp(name, wanted->name, wanted->size))
		return false;
	name += wanted->size;
	*twin = *twin && is_twin(name, room - wanted->size);
	if (*twin)
		name += TWIN_BYTES;
	return !*name || *name == '@';
}

/* test %rdi, %rdi and a jump forward when it is 0, near or far: Intel SDM volume 2, TEST, Jcc. */
static const uint8_t test_first[] = {0x48, 0x85, 0xff};
#define NEAR_JUMP_BYTES 2U
#define FAR_JUMP_BYTES 6U

/* Returns how many bytes of a function's beginning only ask whether its first argument is 0; 0: it
 * begins otherwise.  Behind them all registers and the stack are the same. */
static uint64_t null_test_bytes(const struct elf_image *image, uint64_t vaddr)
{
	const uint64_t room = sizeof(test_first) + FAR_JUMP_BYTES;
	const uint8_t *code = elf_image_at(image, vaddr, room + 1);

	if (image->machine != EM_X86_64 || !code || memcmp(code, test_first, sizeof(test_first)))
		return 0;
	code += sizeof(test_first);
	if (code[0] == 0x74 && code[1] < 0x80)
		return sizeof(test_first) + NEAR_JUMP_BYTES;
	if (code[0] == 0x0f && code[1] == 0x84 && code[5] < 0x80)
		return room;
	return 0;
}

static void skip_null_test(const struct elf_image *image, struct probe_site *site,
			   uint64_t symbol_end)
{
	const uint64_t vaddr = site->vaddr + null_test_bytes(image, site->vaddr);
	const uint8_t *code = elf_image_at(image, vaddr, 2);

	if (code && vaddr + 2 <= symbol_end &&
	    probe_instruction_cost(image->machine, code, 2) == PROBE_COST_EMULATED)
		site->vaddr = vaddr;
}

static void add_function(struct finding *finding, struct probe_site site, const Elf64_Sym *symbol)
{
	const struct elf_image *image = finding->image;
	const uint8_t *first;

	if (ELF64_ST_TYPE(symbol->st_info) == STT_GNU_IFUNC) {
		refuse(finding, site.wanted, PROBE_REFUSED_INDIRECT);
		return;
	}
	site.vaddr = symbol->st_value;
	site.is_entry = 1;
	first = elf_image_at(image, site.vaddr, sizeof(endbr64) + 1);
	if (image->machine == EM_X86_64 && first && !memcmp(first, endbr64, sizeof(endbr64)) &&
	    (!symbol->st_size || symbol->st_size > sizeof(endbr64)))
		site.vaddr += sizeof(endbr64);
	if (finding->wanted[site.wanted].skips_null)
		skip_null_test(image, &site, symbol->st_value + symbol->st_size);
	if (elf_image_vaddr_to_offset(image, site.vaddr, 1, PF_X, &site.offset)) {
		refuse(finding, site.wanted, PROBE_REFUSED_NO_CODE);
		return;
	}
	for (size_t i = 0; i < PP_PROBE_ARGS; i++)
		site.arg[i].index = PP_ARG_NO_INDEX;
	add_site(finding, &site);
}

static void compare_symbol(struct finding *finding, const Elf64_Sym *symbol, const char *name,
			   uint64_t room)
{
	for (uint64_t left = finding->by_first[(uint8_t)*name]; left; left &= left - 1) {
		const uint32_t i = (uint32_t)__builtin_ctzll(left);
		const struct probe_wanted *wanted = &finding->wanted[i];
		struct alternative at = {.name = wanted->name};

		if (!elf_work_pay(finding->image->work, 1, ELF_WORK_PER_SYMBOL))
			return;
		while (next_alternative(wanted, &at)) {
			bool twin = wanted->takes_twins;

			if (is_named(name, room, &at, &twin))
				add_function(finding,
					     (struct probe_site){.wanted = i,
								 .alternative = at.number,
								 .is_twin = twin},
					     symbol);
		}
	}
}

static bool is_function(const Elf64_Sym *symbol)
{
	const uint8_t type = ELF64_ST_TYPE(symbol->st_info);

	return (type == STT_FUNC || type == STT_GNU_IFUNC) && symbol->st_shndx != SHN_UNDEF &&
	       symbol->st_shndx < SHN_LORESERVE;
}

static int find_in_table(struct finding *finding, uint32_t type)
{
	struct elf_symbol_table table;

	if (elf_image_symbol_table(finding->image, type, &table))
		return 0;
	for (size_t i = 1; i < table.count && i < SYMBOLS_MAX; i++) {
		const Elf64_Sym symbol = elf_symbol_table_entry(&table, i);

		if (!elf_work_pay(finding->image->work, 1, ELF_WORK_PER_SYMBOL))
			return -E2BIG;
		if (is_function(&symbol) && symbol.st_name < table.names_size)
			compare_symbol(finding, &symbol, table.names + symbol.st_name,
				       table.names_size - symbol.st_name);
	}
	return 0;
}

static int find_functions(struct finding *finding)
{
	int err;

	if (!wants(finding, false))
		return 0;
	sort_by_first(finding);
	err = find_in_table(finding, SHT_DYNSYM);
	return err ? err : find_in_table(finding, SHT_SYMTAB);
}

/* ---- all ---- */

int probe_sites_find(const struct elf_image *image, const struct probe_wanted *wanted, size_t count,
		     struct probe_sites *ret_sites)
{
	OWNED_MEM struct finding *finding = calloc(1, sizeof(*finding));
	OWNED_MEM struct probe_site *site = calloc(PROBE_SITES_PER_FILE, sizeof(*site));
	int err;

	if (!finding || !site)
		return -ENOMEM;
	finding->image = image;
	finding->wanted = wanted;
	finding->wanted_count = count < PROBE_WANTED_MAX ? count : PROBE_WANTED_MAX;
	finding->sites.site = site;
	finding->sites.wanted_count = (uint32_t)finding->wanted_count;
	err = find_probes(finding);
	if (!err)
		err = find_functions(finding);
	if (err || elf_work_is_over(image->work))
		return err ? err : -E2BIG;
	for (size_t i = 0; i < finding->wanted_count; i++)
		if (wanted[i].wants_nearest && !finding->sites.found[i].sites &&
		    !finding->sites.found[i].refusals)
			probe_sites_nearest(image, &wanted[i], finding->sites.found[i].nearest);
	*ret_sites = finding->sites;
	ret_sites->site = TAKE(site);
	return 0;
}

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

static bool on_near_note(void *context, const struct usdt_note *note)
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
		(void)usdt_notes_read(&copy, on_near_note, &search, &refused);
	} else if (wanted->kind == PROBE_WANTED_FUNCTION) {
		compare_functions(&search, &copy, SHT_DYNSYM);
		compare_functions(&search, &copy, SHT_SYMTAB);
	}
	(void)elf_work_pay(image->work, 1,
			   elf_work_is_over(&search.work) ? search.work.limit : search.work.spent);
}
