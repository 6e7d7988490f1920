/* SPDX-License-Identifier: BSD-2-Clause */
#include "discover/proc_maps.h"

#include <cmocka.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "discover/mapping_set.h"

#define MAX_SEEN 256U

struct seen {
	size_t count;
	struct mapping mapping[MAX_SEEN];
	char path[MAX_SEEN][512];
};

static int collect(void *context, const struct mapping *mapping)
{
	struct seen *seen = context;

	if (seen->count == MAX_SEEN)
		return -ENOSPC;
	seen->mapping[seen->count] = *mapping;
	snprintf(seen->path[seen->count], sizeof(seen->path[0]), "%s", mapping->path);
	seen->mapping[seen->count].path = seen->path[seen->count];
	seen->count++;
	return 0;
}

static struct proc_maps_summary parse(const char *text, struct seen *seen)
{
	struct proc_maps_summary summary;

	memset(seen, 0, sizeof(*seen));
	assert_int_equal(proc_maps_parse(text, strlen(text), collect, seen, &summary), 0);
	return summary;
}

static void proc_maps_parse__keeps_executable_files_whole(void **state)
{
	struct proc_maps_summary summary;
	struct seen seen;

	(void)state;
	summary = parse("556c234cd000-556c234cf000 r--p 00000000 fe:00 247278                     "
			"/usr/bin/head\n"
			"556c234cf000-556c234d5000 r-xp 00002000 103:0a 4294967297                 "
			"/opt/a b/head (deleted)\n"
			"7ffe000-7fff000 rw-p 00000000 00:00 0                     [stack]\n",
			&seen);
	assert_int_equal(summary.line_count, 3);
	assert_int_equal(summary.bad_line_count, 0);
	assert_false(summary.has_musl);
	assert_int_equal(seen.count, 1);
	assert_int_equal(seen.mapping[0].start, 0x556c234cf000);
	assert_int_equal(seen.mapping[0].end, 0x556c234d5000);
	assert_int_equal(seen.mapping[0].offset, 0x2000);
	assert_int_equal(seen.mapping[0].key.major, 0x103);
	assert_int_equal(seen.mapping[0].key.minor, 0x0a);
	assert_int_equal(seen.mapping[0].key.inode, 4294967297);
	assert_int_equal(seen.mapping[0].time_ns, 0);
	assert_string_equal(seen.path[0], "/opt/a b/head");
}

static void proc_maps_parse__memory_without_a_file_is_anonymous(void **state)
{
	const char *const name[] = {
		"00000000 00:00 0 ",
		"00000000 00:00 0 [heap]",
		"00000000 00:00 0 [anon:v8]",
		"00000000 00:00 0 [uprobes]",
		"00000000 00:01 1034 /dev/zero (deleted)",
		"00001000 00:06 6 /dev/zero",
		"00000000 00:01 32769 /SYSV00001a2b (deleted)",
		"00000000 00:01 0 /SYSV00000000 (deleted)",
		"00000000 00:0f 17 /anon_hugepage (deleted)",
	};
	const struct file_key none = {0};
	char text[128];
	struct seen seen;

	(void)state;
	for (size_t i = 0; i < sizeof(name) / sizeof(name[0]); i++) {
		snprintf(text, sizeof(text), "1000-2000 rwxp %s\n", name[i]);
		parse(text, &seen);
		assert_int_equal(seen.count, 1);
		assert_string_equal(seen.path[0], "");
		assert_memory_equal(&seen.mapping[0].key, &none, sizeof(none));
		assert_int_equal(seen.mapping[0].offset, 0);
	}
}

static void proc_maps_parse__vdso_and_memfd_keep_their_names(void **state)
{
	struct seen seen;

	(void)state;
	parse("1000-2000 r-xp 00000000 00:00 0                  [vdso]\n"
	      "2000-3000 r-xs 00000000 00:01 2053 /memfd:libffi (deleted)\n"
	      "3000-4000 r-xp 00000000 08:01 7 /SYSVinit\n"
	      "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0   [vsyscall]\n",
	      &seen);
	assert_int_equal(seen.count, 3);
	assert_string_equal(seen.path[0], "[vdso]");
	assert_string_equal(seen.path[1], "/memfd:libffi");
	assert_int_equal(seen.mapping[1].key.inode, 2053);
	assert_string_equal(seen.path[2], "/SYSVinit");
}

static void proc_maps_parse__escaped_newline_is_decoded_and_no_more(void **state)
{
	struct seen seen;

	(void)state;
	parse("1000-2000 r-xp 00000000 08:01 7    /a\\012b\\040c\\01\n", &seen);
	assert_string_equal(seen.path[0], "/a\nb\\040c\\01");
}

static void proc_maps_parse__musl_is_seen_in_any_mapping(void **state)
{
	struct seen seen;

	(void)state;
	assert_true(parse("1000-2000 r--p 00000000 08:01 7 /lib/ld-musl-x86_64.so.1\n", &seen)
			    .has_musl);
	assert_true(parse("1000-2000 r-xp 00000000 08:01 7 /usr/lib/libc.so (deleted)\n", &seen)
			    .has_musl);
	assert_false(parse("1000-2000 r-xp 00000000 08:01 7 /usr/lib/libc.so.6\n", &seen).has_musl);
	assert_false(parse("1000-2000 r-xp 00000000 08:01 7 /ld-musl-x/lib.so\n", &seen).has_musl);
}

static void proc_maps_parse__broken_lines_are_counted_and_skipped(void **state)
{
	struct proc_maps_summary summary;
	struct seen seen;

	(void)state;
	summary = parse("\n"
			"1000-1000 r-xp 00000000 08:01 7 /empty\n"
			"2000-1000 r-xp 00000000 08:01 7 /backwards\n"
			"1000-2000 r-x 00000000 08:01 7 /short\n"
			"1000-2000 r-xp 00000000 08:01 7x /trailing\n"
			"1000-2000 r-xp 00000000 100000000:01 7 /device\n"
			"10000000000000000-2000 r-xp 00000000 08:01 7 /overflow\n"
			"1000-2000 r-xp 00000000 08:01 18446744073709551616 /overflow\n"
			"1000-2000 r-xp 00000000 08:01 7 /good",
			&seen);
	assert_int_equal(summary.line_count, 9);
	assert_int_equal(summary.bad_line_count, 8);
	assert_int_equal(seen.count, 1);
	assert_string_equal(seen.path[0], "/good");
}

static void proc_maps_parse__path_beyond_the_bound_is_toolong(void **state)
{
	static char text[8192];
	struct seen seen;
	int size;

	(void)state;
	size = snprintf(text, sizeof(text), "1000-2000 r-xp 00000000 08:01 7 /");
	memset(text + size, 'a', 6000);
	parse(text, &seen);
	assert_string_equal(seen.path[0], "//toolong");
}

static void proc_maps_parse__callback_can_stop(void **state)
{
	const char text[] = "1000-2000 r-xp 0 08:01 7 /a\n2000-3000 r-xp 0 08:01 7 /b\n";
	struct proc_maps_summary summary;
	struct seen seen = {.count = MAX_SEEN};

	(void)state;
	assert_int_equal(proc_maps_parse(text, sizeof(text) - 1, collect, &seen, &summary),
			 -ENOSPC);
}

static const struct mapping *seen_at(const struct seen *seen, const void *address)
{
	for (size_t i = 0; i < seen->count; i++)
		if (seen->mapping[i].start <= (uintptr_t)address &&
		    (uintptr_t)address < seen->mapping[i].end)
			return &seen->mapping[i];
	return NULL;
}

/* The truth about this process: dladdr(), fstat(), and a file with an odd name that is mapped and
 * then deleted. */
static void proc_maps_read__of_this_process(void **state)
{
	char name[] = "/tmp/a\nb (x)XXXXXX";
	OWNED_FD int fd = mkstemp(name);
	struct proc_maps_summary summary;
	const struct mapping *found;
	struct stat status;
	struct seen seen = {0};
	void *memory;
	Dl_info info;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 16384), 0);
	memory = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 8192);
	assert_int_not_equal(unlink(name), -1);
	if (memory == MAP_FAILED) {
		print_message("skipped: /tmp is mounted noexec\n");
		skip();
	}
	assert_int_equal(fstat(fd, &status), 0);
	assert_int_equal(proc_maps_read((uint32_t)getpid(), collect, &seen, &summary), 0);
	assert_int_equal(summary.bad_line_count, 0);

	found = seen_at(&seen, memory);
	assert_non_null(found);
	assert_string_equal(found->path, name);
	assert_int_equal(found->offset, 8192);
	assert_int_equal(found->key.inode, status.st_ino);

	assert_int_not_equal(dladdr((void *)(uintptr_t)getpid, &info), 0);
	found = seen_at(&seen, (void *)(uintptr_t)getpid);
	assert_non_null(found);
	assert_string_equal(strrchr(found->path, '/'), strrchr(info.dli_fname, '/'));
	munmap(memory, 4096);
}

static void proc_maps_read__no_process_and_kernel_thread_are_esrch(void **state)
{
	struct seen seen = {0};

	(void)state;
	/* Above the highest pid_max. */
	assert_int_equal(proc_maps_read(4194305, collect, &seen, NULL), -ESRCH);
	if (access("/proc/2/exe", F_OK) == 0) {
		print_message("skipped: pid 2 is no kernel thread here\n");
		skip();
	}
	assert_int_equal(proc_maps_read(2, collect, &seen, NULL), -ESRCH);
}

static void file_key_equal__uses_what_both_know(void **state)
{
	struct file_key a = {.major = 8, .minor = 1, .inode = 7, .inode_generation = 5};
	struct file_key b = a, none = {0};

	(void)state;
	assert_true(file_key_equal(&a, &b));
	b.inode_generation = 0;
	assert_true(file_key_equal(&a, &b));
	b.inode_generation = 6;
	assert_false(file_key_equal(&a, &b));
	b = a;
	b.minor = 2;
	assert_false(file_key_equal(&a, &b));
	assert_true(file_key_equal(&none, &none));
	assert_false(file_key_equal(&a, &none));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(proc_maps_parse__keeps_executable_files_whole),
		cmocka_unit_test(proc_maps_parse__memory_without_a_file_is_anonymous),
		cmocka_unit_test(proc_maps_parse__vdso_and_memfd_keep_their_names),
		cmocka_unit_test(proc_maps_parse__escaped_newline_is_decoded_and_no_more),
		cmocka_unit_test(proc_maps_parse__musl_is_seen_in_any_mapping),
		cmocka_unit_test(proc_maps_parse__broken_lines_are_counted_and_skipped),
		cmocka_unit_test(proc_maps_parse__path_beyond_the_bound_is_toolong),
		cmocka_unit_test(proc_maps_parse__callback_can_stop),
		cmocka_unit_test(proc_maps_read__of_this_process),
		cmocka_unit_test(proc_maps_read__no_process_and_kernel_thread_are_esrch),
		cmocka_unit_test(file_key_equal__uses_what_both_know),
	};

	return cmocka_run_group_tests_name("discover/proc_maps", tests, NULL, NULL);
}
