/* SPDX-License-Identifier: BSD-2-Clause */
#include "reader/source.h"

#include <cmocka.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

#define NOBODY "65534"

/* A directory that goes away with what is in it. */
struct place {
	char directory[64], path[192];
};

static int make_place(void **state)
{
	struct place *place = calloc(1, sizeof(*place));

	snprintf(place->directory, sizeof(place->directory), "/tmp/test_source.XXXXXX");
	if (!mkdtemp(place->directory) || chmod(place->directory, 0755))
		return -1;
	unsetenv("SUDO_UID");
	unsetenv("SUDO_GID");
	*state = place;
	return 0;
}

static int remove_place(void **state)
{
	struct place *place = *state;
	char command[128];

	snprintf(command, sizeof(command), "rm -r %s", place->directory);
	(void)!system(command);
	free(place);
	return 0;
}

/* Returns the path of a name; valid until the next call. */
static const char *at(struct place *place, const char *name)
{
	snprintf(place->path, sizeof(place->path), "%s/%s", place->directory, name);
	return place->path;
}

static void put(struct place *place, const char *name, const char *text, size_t size)
{
	int fd = open(at(place, name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, size), size);
	close(fd);
}

static void assert_refused(const char *path, const char *why)
{
	CLEANUP(source_release) struct source source = {0};

	assert_int_equal(source_read(path, SOURCE_NAMED_BY_PROFILE, &source), 0);
	assert_non_null(source.error);
	assert_string_equal(source.error, why);
	assert_null(source_line(&source, 1));
}

static void assert_first_line(const char *path, enum source_named named, const char *line)
{
	CLEANUP(source_release) struct source source = {0};

	assert_int_equal(source_read(path, named, &source), 0);
	assert_null(source.error);
	assert_string_equal(source_line(&source, 1), line);
}

static void source_read__only_what_ends_as_a_source_is_read_for_a_profile(void **state)
{
	static const char *const read[] = {"a.py", "b.pyx", "c.c", "d.hpp", "e.rs", "f.go", "g.S"};
	static const char *const refused[] = {"shadow", "id_rsa.pub", "py",    ".py",  "a.py.bak",
					      "a.py~",	"key.pem",    "a.PY.", "x.key"};
	struct place *place = *state;

	for (size_t i = 0; i < ARRAY_SIZE(read); i++) {
		put(place, read[i], "seen\n", 5);
		assert_first_line(at(place, read[i]), SOURCE_NAMED_BY_PROFILE, "seen");
	}
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
		put(place, refused[i], "secret\n", 7);
		assert_refused(at(place, refused[i]), "has not the ending of a source file");
		/* What the user names herself is hers to see. */
		assert_first_line(at(place, refused[i]), SOURCE_NAMED_BY_USER, "secret");
	}
	assert_refused("/etc/shadow", "has not the ending of a source file");
	assert_refused("/etc/passwd", "has not the ending of a source file");
}

static void source_read__links_lead_to_sources_only(void **state)
{
	struct place *place = *state;
	char target[192];

	put(place, "secret", "secret\n", 7);
	snprintf(target, sizeof(target), "%s", at(place, "secret"));
	assert_int_equal(symlink(target, at(place, "link.py")), 0);
	assert_refused(at(place, "link.py"), "is a link to a file that is no source");
	put(place, "real.py", "seen\n", 5);
	assert_int_equal(symlink("real.py", at(place, "good.py")), 0);
	assert_first_line(at(place, "good.py"), SOURCE_NAMED_BY_PROFILE, "seen");
	assert_int_equal(symlink(place->directory, at(place, "directory.py")), 0);
	assert_refused(at(place, "directory.py"), "is not a regular file");
}

static void source_read__what_the_kernel_makes_is_left_alone(void **state)
{
	struct place *place = *state;

	assert_int_equal(symlink("/proc/self/maps", at(place, "maps.py")), 0);
	assert_refused(at(place, "maps.py"), "is not on a disk");
	assert_int_equal(symlink("/sys/kernel/vmcoreinfo", at(place, "sys.py")), 0);
	if (!access(at(place, "sys.py"), F_OK))
		assert_refused(place->path, "is not on a disk");
	put(place, "real.py", "seen\n", 5);
	/* A link of /proc leads into another process's file system. */
	assert_int_equal(symlink("/proc/self/cwd", at(place, "cwd")), 0);
	assert_int_equal(chdir(place->directory), 0);
	assert_refused(at(place, "cwd/real.py"), "cannot be read");
	assert_int_equal(chdir("/"), 0);
}

static void source_read__fifos_block_nobody_and_giants_are_not_loaded(void **state)
{
	struct place *place = *state;

	assert_int_equal(mkfifo(at(place, "fifo.py"), 0644), 0);
	assert_refused(at(place, "fifo.py"), "is not a regular file");
	put(place, "giant.py", "x", 1);
	assert_int_equal(truncate(at(place, "giant.py"), SOURCE_MAX_BYTES + 1), 0);
	assert_refused(at(place, "giant.py"), "is too big");
	assert_refused(at(place, "missing.py"), "is not here");
	assert_refused(place->directory, "has not the ending of a source file");
}

static void source_read__paths_may_be_relative(void **state)
{
	struct place *place = *state;

	put(place, "real.py", "seen\n", 5);
	assert_int_equal(chdir(place->directory), 0);
	assert_first_line("real.py", SOURCE_NAMED_BY_PROFILE, "seen");
	assert_first_line("./real.py", SOURCE_NAMED_BY_PROFILE, "seen");
	assert_int_equal(chdir("/"), 0);
}

static void source_read__under_sudo_the_callers_rights_hold(void **state)
{
	struct place *place = *state;
	gid_t before[64], after[64];
	int groups = getgroups(64, before);

	if (geteuid()) {
		print_message("    skipped: only root can lend rights\n");
		skip();
	}
	put(place, "root.py", "secret\n", 7);
	assert_int_equal(chmod(at(place, "root.py"), 0600), 0);
	put(place, "all.py", "seen\n", 5);
	assert_int_equal(mkdir(at(place, "closed"), 0700), 0);
	put(place, "closed/all.py", "secret\n", 7);
	/* Readable for root's group only, as /etc/shadow is for its own. */
	put(place, "group.py", "secret\n", 7);
	assert_int_equal(chmod(at(place, "group.py"), 0640), 0);
	assert_first_line(at(place, "root.py"), SOURCE_NAMED_BY_PROFILE, "secret");
	setenv("SUDO_UID", NOBODY, 1);
	setenv("SUDO_GID", NOBODY, 1);
	assert_refused(at(place, "root.py"), "may not be read by the user who called sudo");
	assert_refused(at(place, "group.py"), "may not be read by the user who called sudo");
	assert_refused(at(place, "closed/all.py"), "may not be read by the user who called sudo");
	assert_first_line(at(place, "all.py"), SOURCE_NAMED_BY_PROFILE, "seen");
	assert_first_line(at(place, "root.py"), SOURCE_NAMED_BY_USER, "secret");
	/* The rights are root's again. */
	assert_int_equal(geteuid(), 0);
	assert_int_equal(getegid(), 0);
	assert_int_equal(getgroups(64, after), groups);
	assert_memory_equal(before, after, (size_t)groups * sizeof(before[0]));
	setenv("SUDO_UID", "0", 1);
	assert_first_line(at(place, "root.py"), SOURCE_NAMED_BY_PROFILE, "secret");
}

static void source_read__what_a_source_hides_is_shown(void **state)
{
	static const char text[] = "\tif x:\t# \xe2\x80\xae\xe2\x81\xa6\r\n"
				   "\x1b[31mred\r\ngr\xc3\xbc\xc3\x9f"
				   "e\0\n\nlast";
	static const char *const line[] = {"\tif x:\t# \\u202e\\u2066", "\\x1b[31mred",
					   "gr\xc3\xbc\xc3\x9f"
					   "e\\x00",
					   "", "last"};
	CLEANUP(source_release) struct source source = {0};
	struct place *place = *state;

	put(place, "a.py", text, sizeof(text) - 1);
	assert_int_equal(source_read(at(place, "a.py"), SOURCE_NAMED_BY_PROFILE, &source), 0);
	assert_int_equal(source.count, ARRAY_SIZE(line));
	for (uint32_t i = 0; i < source.count; i++)
		assert_string_equal(source_line(&source, i + 1), line[i]);
	put(place, "empty.py", "", 0);
	assert_first_line(at(place, "empty.py"), SOURCE_NAMED_BY_PROFILE, "");
}

static struct source source_of(const char *text)
{
	char path[] = "/tmp/test_source.XXXXXX";
	OWNED_FD int fd = mkstemp(path);
	struct source source;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(source_read(path, SOURCE_NAMED_BY_USER, &source), 0);
	unlink(path);
	return source;
}

static void source__block_ends_where_the_indent_does(void **state)
{
	CLEANUP(source_release) struct source source = source_of("@wrap\n"
								 "def f(a,\n"
								 "      b):\n"
								 "    x = 1\n"
								 "\n"
								 "    return x\n"
								 "\n"
								 "def g():\n"
								 "    pass\n");

	(void)state;
	assert_int_equal(source.count, 9);
	assert_int_equal(source_block_end(&source, 1), 6);
	assert_int_equal(source_block_end(&source, 8), 9);
	assert_true(source_defines(&source, 1, "C.f"));
	assert_true(source_defines(&source, 8, "g"));
	assert_false(source_defines(&source, 4, "f"));
	assert_string_equal(source_line(&source, 4), "    x = 1");
	assert_null(source_line(&source, 10));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_place, remove_place)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(source_read__only_what_ends_as_a_source_is_read_for_a_profile),
		TEST(source_read__links_lead_to_sources_only),
		TEST(source_read__what_the_kernel_makes_is_left_alone),
		TEST(source_read__fifos_block_nobody_and_giants_are_not_loaded),
		TEST(source_read__paths_may_be_relative),
		TEST(source_read__under_sudo_the_callers_rights_hold),
		TEST(source_read__what_a_source_hides_is_shown),
		TEST(source__block_ends_where_the_indent_does),
	};

	return cmocka_run_group_tests_name("reader/source", tests, NULL, NULL);
}
