/* SPDX-License-Identifier: BSD-2-Clause */
/* library_check FILE...   What the files of CUDA's libraries, and of those above them, show of
 * themselves.  A line each, its fields set apart by tabs:
 *   library PATH NEEDED SYMTAB STUBS LAUNCH CUDART FIRST
 * NEEDED: libraries of CUDA's that it is linked with, by commas · SYMTAB: yes or no · STUBS:
 * functions of .symtab with nvcc's prefix of host stubs · LAUNCH: functions for launches that it
 * imports · CUDART: `linked`, `inside` (the text of a cudart that asks the driver), `none` · FIRST:
 * how its exported functions of NCCL's or CUDA's driver begin, COUNT emulated/nop/stepped; else `-`
 */
#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../unit/elf/symbol_name.h"
#include "elf/elf_symbol_table.h"
#include "elf/probe_sites.h"

#define LIST_BYTES 1024U

static void add(char list[LIST_BYTES], const char *text)
{
	const size_t used = strlen(list);

	snprintf(list + used, LIST_BYTES - used, "%s%s", used ? "," : "", text);
}

static bool begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

static bool is_of_cuda(const char *name)
{
	static const char *const names[] = {"libcu",  "libnccl",  "libnv",
					    "libc10", "libtorch", "libfake"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (begins(name, names[i]))
			return true;
	return false;
}

/* ELF's section .dynamic, with the string table that it names. */
static void find_needed(const struct elf_image *image, char needed[LIST_BYTES])
{
	struct elf_section dynamic, strings;
	Elf64_Dyn entry;

	if (elf_image_section(image, ".dynamic", &dynamic) || !dynamic.data ||
	    elf_image_section_by_index(image, dynamic.link, &strings) || !strings.data)
		return;
	for (uint64_t at = 0; at + sizeof(entry) <= dynamic.size; at += sizeof(entry)) {
		const char *name;

		memcpy(&entry, dynamic.data + at, sizeof(entry));
		if (entry.d_tag == DT_NULL)
			return;
		if (entry.d_tag != DT_NEEDED || entry.d_un.d_val >= strings.size)
			continue;
		name = (const char *)strings.data + entry.d_un.d_val;
		if (memchr(name, 0, strings.size - entry.d_un.d_val) && is_of_cuda(name))
			add(needed, name);
	}
}

static size_t count_stubs(const struct elf_image *image, bool *ret_has_table)
{
	struct elf_symbol_table table;
	size_t count = 0;

	*ret_has_table = !elf_image_symbol_table(image, SHT_SYMTAB, &table);
	for (size_t i = 0; *ret_has_table && i < table.count; i++) {
		const Elf64_Sym symbol = elf_symbol_table_entry(&table, i);
		const char *name = symbol_name(&table, &symbol);

		count += ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && name &&
			 strstr(name, "__device_stub__");
	}
	return count;
}

/* What it imports for launches; how the functions begin that it exports. */
static void look_at_exports(const struct elf_image *image, char launches[LIST_BYTES],
			    unsigned int costs[PROBE_COSTS])
{
	struct elf_symbol_table table;

	if (elf_image_symbol_table(image, SHT_DYNSYM, &table))
		return;
	for (size_t i = 0; i < table.count; i++) {
		const Elf64_Sym symbol = elf_symbol_table_entry(&table, i);
		const char *name = symbol_name(&table, &symbol);
		const uint8_t *code;

		if (!name || !*name)
			continue;
		if (symbol.st_shndx == SHN_UNDEF) {
			if (strstr(name, "LaunchKernel"))
				add(launches, name);
			continue;
		}
		if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC ||
		    (!begins(name, "cu") && !begins(name, "nccl")))
			continue;
		code = elf_image_at(image, symbol.st_value, 16);
		if (code && !memcmp(code, "\xf3\x0f\x1e\xfa", 4))
			code += 4;
		if (code)
			costs[probe_instruction_cost(image->machine, code, 12)]++;
	}
}

static const char *find_cudart(const struct elf_image *image, const char *needed)
{
	static const char asks[] = "cuGetProcAddress", library[] = "libcuda.so.1";

	if (strstr(needed, "libcudart"))
		return "linked";
	return memmem(image->data, image->size, asks, sizeof(asks) - 1) &&
			       memmem(image->data, image->size, library, sizeof(library))
		       ? "inside"
		       : "none";
}

static void tell(const char *path, const struct elf_image *image)
{
	char needed[LIST_BYTES] = "", launches[LIST_BYTES] = "";
	unsigned int costs[PROBE_COSTS] = {0};
	bool has_table;
	size_t stubs;

	find_needed(image, needed);
	stubs = count_stubs(image, &has_table);
	look_at_exports(image, launches, costs);
	printf("library\t%s\t%s\t%s\t%zu\t%s\t%s\t", path, *needed ? needed : "-",
	       has_table ? "yes" : "no", stubs, *launches ? launches : "-",
	       find_cudart(image, needed));
	if (costs[0] + costs[1] + costs[2])
		printf("%u/%u/%u\n", costs[PROBE_COST_EMULATED], costs[PROBE_COST_LONG_NOP],
		       costs[PROBE_COST_SINGLE_STEP]);
	else
		puts("-");
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		OWNED(elf_image) struct elf_image *image = NULL;
		const int fd = open(argv[i], O_RDONLY | O_CLOEXEC);

		if (fd < 0 || elf_image_open(fd, &image))
			warnx("%s cannot be read", argv[i]);
		else
			tell(argv[i], image);
		if (fd >= 0)
			close(fd);
	}
	return argc > 1 ? 0 : 2;
}
