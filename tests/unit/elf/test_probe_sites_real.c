/* SPDX-License-Identifier: BSD-2-Clause */
/* Sites in files of the machine: what readelf -n says of Debian's python3.11, the C library's
 * allocator. */
#include "elf/probe_sites.h"

#include <cmocka.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "elf/usdt_notes.h"

#define PYTHON "/usr/bin/python3.11"
#define PROBES_MAX 64U

static struct usdt_note seen[PROBES_MAX];
static size_t seen_count;

static bool on_note(void *context, const struct usdt_note *note)
{
	(void)context;
	assert_true(seen_count < PROBES_MAX);
	seen[seen_count++] = *note;
	return true;
}

static struct elf_image *open_file(const char *path)
{
	OWNED_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct elf_image *image = NULL;

	if (fd < 0)
		return NULL;
	assert_int_equal(elf_image_open(fd, &image), 0);
	return image;
}

/* Compares the note that readelf printed last with ours. */
static void compare(const struct usdt_note *told, size_t index)
{
	assert_true(index < seen_count);
	assert_string_equal(seen[index].provider, told->provider);
	assert_string_equal(seen[index].name, told->name);
	assert_string_equal(seen[index].args, told->args);
	assert_int_equal(seen[index].vaddr, told->vaddr);
	assert_int_equal(seen[index].semaphore, told->semaphore);
}

/* Returns how many notes readelf printed. */
static size_t compare_all(FILE *readelf)
{
	struct usdt_note told = {0};
	char line[2048];
	size_t count = 0;

	while (fgets(line, sizeof(line), readelf)) {
		line[strcspn(line, "\n")] = '\0';
		sscanf(line, "    Provider: %127s", told.provider);
		sscanf(line, "    Name: %127s", told.name);
		sscanf(line, "    Location: %lx, Base: %*x, Semaphore: %lx", &told.vaddr,
		       &told.semaphore);
		if (strncmp(line, "    Arguments: ", 15))
			continue;
		snprintf(told.args, sizeof(told.args), "%.1000s", line + 15);
		told.args[strcspn(told.args, "\n")] = '\0';
		while (told.args[0] && told.args[strlen(told.args) - 1] == ' ')
			told.args[strlen(told.args) - 1] = '\0';
		compare(&told, count++);
	}
	return count;
}

static void python__notes_are_those_of_readelf(void **state)
{
	OWNED(elf_image) struct elf_image *image = open_file(PYTHON);
	struct usdt_refused refused;
	size_t told;
	FILE *readelf;

	(void)state;
	if (!image || access("/usr/bin/readelf", X_OK)) {
		print_message("no %s, or no readelf\n", PYTHON);
		skip();
	}
	assert_int_equal(usdt_notes_read(image, on_note, NULL, &refused), 0);
	readelf = popen("readelf -n " PYTHON, "r");
	assert_non_null(readelf);
	told = compare_all(readelf);
	assert_int_equal(pclose(readelf), 0);
	assert_int_equal(told, seen_count);
	assert_int_equal(told, 8);
	assert_int_equal(refused.cut + refused.long_names, 0);
}

static void python__sites_have_semaphores_and_all_arguments(void **state)
{
	static const char *const names[] = {"function__entry",
					    "function__return",
					    "line",
					    "gc__start",
					    "gc__done",
					    "import__find__load__start",
					    "import__find__load__done",
					    "audit"};
	OWNED(elf_image) struct elf_image *image = open_file(PYTHON);
	CLEANUP(probe_sites_release) struct probe_sites sites = {0};
	struct probe_wanted wanted[ARRAY_SIZE(names)];

	(void)state;
	if (!image) {
		print_message("no %s\n", PYTHON);
		skip();
	}
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		wanted[i] = (struct probe_wanted){.provider = "python"};
		strcpy(wanted[i].name, names[i]);
	}
	assert_int_equal(probe_sites_find(image, wanted, ARRAY_SIZE(names), &sites), 0);
	assert_int_equal(sites.site_count, ARRAY_SIZE(names));
	assert_int_equal(sites.unread_args, 0);
	for (size_t i = 0; i < sites.site_count; i++) {
		const struct probe_site *site = &sites.site[i];

		assert_int_not_equal(site->semaphore_offset, 0);
		assert_int_not_equal(site->arg_count, 0);
		assert_int_equal(site->cost, PROBE_COST_EMULATED);
		assert_int_equal(image->data[site->offset], 0x90); /* nop */
	}
}

/* The symbol's address as the linker resolves it, in the file's terms. */
static uint64_t address_of(const char *name, char *ret_path, size_t room)
{
	void *function = dlsym(RTLD_NEXT, name);
	Dl_info info;

	assert_non_null(function);
	assert_int_not_equal(dladdr(function, &info), 0);
	snprintf(ret_path, room, "%s", info.dli_fname);
	return (uint64_t)function - (uint64_t)info.dli_fbase;
}

static void libc__allocator_is_where_the_linker_finds_it(void **state)
{
	static const char *const names[] = {"malloc",	   "calloc",	    "realloc",
					    "free",	   "aligned_alloc", "posix_memalign",
					    "reallocarray"};
	OWNED(elf_image) struct elf_image *image = NULL;
	char path[512];

	(void)state;
	address_of("fputs", path, sizeof(path));
	image = open_file(path);
	assert_non_null(image);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		CLEANUP(probe_sites_release) struct probe_sites sites = {0};
		struct probe_wanted wanted = {.kind = PROBE_WANTED_FUNCTION};
		char where[512];
		const uint64_t vaddr = address_of(names[i], where, sizeof(where));

		if (strcmp(where, path)) {
			print_message("%s is %s's\n", names[i], where);
			skip();
		}
		strcpy(wanted.name, names[i]);
		assert_int_equal(probe_sites_find(image, &wanted, 1, &sites), 0);
		assert_int_equal(sites.site_count, 1);
		assert_true(sites.site[0].vaddr == vaddr || sites.site[0].vaddr == vaddr + 4);
		assert_int_equal(sites.site[0].is_entry, 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(python__notes_are_those_of_readelf),
		cmocka_unit_test(python__sites_have_semaphores_and_all_arguments),
		cmocka_unit_test(libc__allocator_is_where_the_linker_finds_it),
	};

	return cmocka_run_group_tests_name("elf/probe_sites_real", tests, NULL, NULL);
}
