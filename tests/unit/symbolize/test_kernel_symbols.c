/* SPDX-License-Identifier: BSD-2-Clause */
#include "symbolize/kernel_symbols.h"

#include <cmocka.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct fixture {
	char proc[64];
	struct kernel_symbols *symbols;
};

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	strcpy(fixture->proc, "/tmp/test_kernel_symbols.XXXXXX");
	assert_non_null(mkdtemp(fixture->proc));
	assert_int_equal(kernel_symbols_new(fixture->proc, &fixture->symbols), 0);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", fixture->proc);
	assert_int_equal(system(command), 0);
	kernel_symbols_free(fixture->symbols);
	free(fixture);
	return 0;
}

static void write_file(const struct fixture *fixture, const char *name, const char *text)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", fixture->proc, name);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void assert_symbol(struct fixture *fixture, uint64_t address, const char *want,
			  const char *want_module)
{
	const char *name = NULL, *module = NULL;
	int err = kernel_symbols_find(fixture->symbols, address, &name, &module);

	assert_int_equal(err, want ? 0 : -ENOENT);
	if (!want)
		return;
	assert_string_equal(name, want);
	assert_string_equal(module, want_module);
}

static void kernel_symbols__code_is_found_data_is_not(void **state)
{
	struct fixture *fixture = *state;

	write_file(fixture, "kallsyms",
		   "ffffffff81000000 T _stext\n"
		   "ffffffff81000ff0 t __pfx_vfs_read\n"
		   "ffffffff81001000 T vfs_read\n"
		   "ffffffff81001800 d some_data\n"
		   "ffffffff81002000 W weak_one\n"
		   "0000000000000000 A fixed_percpu_data\n"
		   "ffffffffc0401000 t nft_init\t[nf_tables]\n"
		   "ffffffffc0a00000 t bpf_prog_6deef7357e7b4530_sd_fw_ingress\t[bpf]\n"
		   "ffff800080001000 T far_away\n"
		   "not a line\n");
	assert_symbol(fixture, 0xffffffff81000fff, "_stext", "");
	assert_symbol(fixture, 0xffffffff81001010, "vfs_read", "");
	assert_symbol(fixture, 0xffffffff81001900, "vfs_read", "");
	assert_symbol(fixture, 0xffffffff81002000, "weak_one", "");
	assert_symbol(fixture, 0xffffffffc0401020, "nft_init", "nf_tables");
	assert_symbol(fixture, 0xffffffffc0a00010, "bpf_prog_6deef7357e7b4530_sd_fw_ingress",
		      "bpf");
	assert_symbol(fixture, 0xffff800080001001, "far_away", "");
	assert_symbol(fixture, 0xffffffff80ffffff, NULL, NULL);
	assert_symbol(fixture, 0xffffffff81102000, NULL, NULL); /* 1 MiB behind weak_one */
	assert_symbol(fixture, 0x1000, NULL, NULL);
}

static void kernel_symbols__best_of_several_names(void **state)
{
	struct fixture *fixture = *state;

	write_file(fixture, "kallsyms",
		   "ffffffff81000000 t local_alias\n"
		   "ffffffff81000000 W weak_alias\n"
		   "ffffffff81000000 T __do_sys_read\n"
		   "ffffffff81000000 T do_read\n");
	assert_symbol(fixture, 0xffffffff81000000, "do_read", "");
}

/* More than one read of the file gives: some line is cut wherever a read ends. */
#define MANY_LINES 10000U

static char *many_lines(bool is_ordered)
{
	char *text = malloc(MANY_LINES * 64), *at = text;

	assert_non_null(text);
	for (unsigned int i = 0; i < MANY_LINES; i++) {
		unsigned int number = is_ordered ? i : MANY_LINES - 1 - i;

		at += sprintf(at, "%" PRIx64 " %c %sfunction_%u%s%s\n",
			      UINT64_C(0xffffffff81000000) + number * 16, number % 3 ? 't' : 'd',
			      number % 2 ? "" : "__pfx_", number, number % 5 ? "" : "\t[module]",
			      number % 7 ? "" : "\n");
	}
	at[-1] = '\0'; /* the last line has no end */
	return text;
}

static void check_many_lines(struct fixture *fixture, bool is_ordered)
{
	OWNED_MEM char *text = many_lines(is_ordered);
	char name[32];

	write_file(fixture, "kallsyms", text);
	for (unsigned int i = 1; i < MANY_LINES; i++) {
		if (!(i % 3) || !(i % 2))
			continue;
		snprintf(name, sizeof(name), "function_%u", i);
		assert_symbol(fixture, 0xffffffff81000000 + i * 16, name, i % 5 ? "" : "module");
	}
}

static void kernel_symbols__lines_cut_by_reads_are_whole(void **state)
{
	check_many_lines(*state, true);
}

static void kernel_symbols__order_of_the_file_does_not_matter(void **state)
{
	check_many_lines(*state, false);
}

static void kernel_symbols__endless_line_ends_the_list(void **state)
{
	OWNED_MEM char *text = malloc(1 << 17);
	struct fixture *fixture = *state;

	assert_non_null(text);
	strcpy(text, "ffffffff81000000 T before\nffffffff81001000 T ");
	memset(text + strlen("ffffffff81000000 T before\nffffffff81001000 T "), 'x', 1 << 16);
	strcpy(text + (1 << 16), "\nffffffff81002000 T after\n");
	write_file(fixture, "kallsyms", text);
	assert_symbol(fixture, 0xffffffff81002000, "before", "");
}

static void kernel_symbols__half_a_line_is_no_symbol(void **state)
{
	struct fixture *fixture = *state;

	write_file(fixture, "kallsyms",
		   "ffffffff81000000 T first\n"
		   "\n"
		   "ffffffff81000010\n"
		   "ffffffff81000020 \n"
		   "ffffffff81000030 T\n"
		   "ffffffff81000040 T \n"
		   "ffffffff81000050 T \t[module]\n"
		   "FFFFFFFF81000060 t upper\t\n"
		   "ffffffff81000070 t open\t[bracket\n"
		   "ffffffff81000080 T last");
	assert_symbol(fixture, 0xffffffff8100005f, "first", "");
	assert_symbol(fixture, 0xffffffff81000060, "upper", "");
	assert_symbol(fixture, 0xffffffff81000070, "open", "bracket");
	assert_symbol(fixture, 0xffffffff81000080, "last", "");
}

static void kernel_symbols__hidden_addresses_are_eperm_once(void **state)
{
	struct fixture *fixture = *state;
	const char *name, *module;

	write_file(fixture, "kallsyms",
		   "0000000000000000 T _stext\n0000000000000000 t foo\t[bar]\n");
	assert_int_equal(kernel_symbols_find(fixture->symbols, 1, &name, &module), -EPERM);
	assert_int_equal(kernel_symbols_find(fixture->symbols, 1, &name, &module), -ENOENT);
}

static void kernel_symbols__missing_file_is_reported_once(void **state)
{
	struct fixture *fixture = *state;
	const char *name, *module;

	assert_int_equal(kernel_symbols_find(fixture->symbols, 1, &name, &module), -ENOENT);
}

static void kernel_symbols_refresh__only_a_changed_module_list_reloads(void **state)
{
	struct fixture *fixture = *state;

	write_file(fixture, "modules", "ext4 900 3 - Live 0xffffffffc0000000\n");
	write_file(fixture, "kallsyms", "ffffffff81000000 T before\n");
	assert_symbol(fixture, 0xffffffff81000000, "before", "");
	write_file(fixture, "kallsyms", "ffffffff81000000 T after\n");
	/* One more user of the module: the symbols are the same. */
	write_file(fixture, "modules", "ext4 900 4 jbd2, Live 0xffffffffc0000000\n");
	assert_int_equal(kernel_symbols_refresh(fixture->symbols), 0);
	assert_symbol(fixture, 0xffffffff81000000, "before", "");
	write_file(fixture, "modules",
		   "ext4 900 4 - Live 0xffffffffc0000000\nzfs 9 0 - Live 0xffffffffc0900000\n");
	assert_int_equal(kernel_symbols_refresh(fixture->symbols), 1);
	assert_symbol(fixture, 0xffffffff81000000, "after", "");
}

static void kernel_symbols_forget__next_find_reads_anew(void **state)
{
	struct fixture *fixture = *state;

	write_file(fixture, "kallsyms", "ffffffff81000000 T before\n");
	assert_symbol(fixture, 0xffffffff81000000, "before", "");
	write_file(fixture, "kallsyms", "ffffffff81000000 T after\n");
	kernel_symbols_forget(fixture->symbols);
	assert_symbol(fixture, 0xffffffff81000000, "after", "");
}

/* A slice that is over makes one read of 32 KiB a call. */
static void kernel_symbols_read__goes_on_in_slices(void **state)
{
	static const struct slice over = {.ends_ns = 1};
	struct fixture *fixture = *state;
	char text[90000] = "", line[64];
	unsigned int parts = 0;
	size_t size = 0;

	for (unsigned int i = 0; size < sizeof(text) - sizeof(line); i++) {
		snprintf(line, sizeof(line), "ffffffff%08x T function_%u\n", 0x1000 * i, i);
		memcpy(text + size, line, strlen(line) + 1);
		size += strlen(line);
	}
	write_file(fixture, "kallsyms", text);
	while (kernel_symbols_read(fixture->symbols, &over) == 1) {
		parts++;
	}
	assert_in_range(parts, 3, 4);
	assert_symbol(fixture, 0xffffffff00001000, "function_1", "");
	assert_symbol(fixture, 0xffffffff00400010, "function_1024", "");
	/* A find in the middle reads the rest; what is forgotten is read anew. */
	kernel_symbols_forget(fixture->symbols);
	assert_int_equal(kernel_symbols_read(fixture->symbols, &over), 1);
	assert_symbol(fixture, 0xffffffff00400010, "function_1024", "");
	kernel_symbols_forget(fixture->symbols);
	assert_int_equal(kernel_symbols_read(fixture->symbols, &over), 1);
	kernel_symbols_forget(fixture->symbols);
	assert_symbol(fixture, 0xffffffff00400010, "function_1024", "");
	/* The last one is freed in the middle. */
	kernel_symbols_forget(fixture->symbols);
	assert_int_equal(kernel_symbols_read(fixture->symbols, &over), 1);
}

static void kernel_symbols__running_kernel_fits_in_6_mib(void **state)
{
	OWNED(kernel_symbols) struct kernel_symbols *symbols = NULL;
	const char *name, *module;
	uint64_t address = 0;
	char line[512], type, want[256];
	FILE *file = fopen("/proc/kallsyms", "re");
	int err;

	(void)state;
	assert_int_equal(kernel_symbols_new("/proc", &symbols), 0);
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "%" SCNx64 " %c %255s", &address, &type, want) == 3 &&
		    !strcmp(want, "vfs_read"))
			break;
	if (file)
		fclose(file);
	if (!address || strcmp(want, "vfs_read")) {
		print_message("skipped: kallsyms is not readable or lacks vfs_read\n");
		skip();
	}
	err = kernel_symbols_find(symbols, address + 1, &name, &module);
	assert_int_equal(err, 0);
	assert_string_equal(name, "vfs_read");
	assert_string_equal(module, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(kernel_symbols__code_is_found_data_is_not, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(kernel_symbols__best_of_several_names, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(kernel_symbols__lines_cut_by_reads_are_whole,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(kernel_symbols__order_of_the_file_does_not_matter,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(kernel_symbols__endless_line_ends_the_list, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(kernel_symbols__half_a_line_is_no_symbol, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(kernel_symbols__hidden_addresses_are_eperm_once,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(kernel_symbols__missing_file_is_reported_once,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			kernel_symbols_refresh__only_a_changed_module_list_reloads, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(kernel_symbols_forget__next_find_reads_anew, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(kernel_symbols_read__goes_on_in_slices, set_up,
						tear_down),
		cmocka_unit_test(kernel_symbols__running_kernel_fits_in_6_mib),
	};

	return cmocka_run_group_tests_name("symbolize/kernel_symbols", tests, NULL, NULL);
}
