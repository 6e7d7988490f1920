/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: symbolize/kernel_symbols.c base/io.c */
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
	assert_int_equal(kernel_symbols_count(fixture->symbols), 6);
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
	assert_int_equal(kernel_symbols_count(fixture->symbols), 0);
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
	assert_true(kernel_symbols_bytes(symbols) < 6U << 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(kernel_symbols__code_is_found_data_is_not, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(kernel_symbols__best_of_several_names, set_up,
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
		cmocka_unit_test(kernel_symbols__running_kernel_fits_in_6_mib),
	};

	return cmocka_run_group_tests_name("symbolize/kernel_symbols", tests, NULL, NULL);
}
