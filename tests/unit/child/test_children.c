/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of children, and the page that shows it. */
#include "child/children.h"

#include <cmocka.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/task.h"

#define PAGE "docs/children.md"
#define MIB (1ULL << 20)

/* ---- the page ---- */

static const char head[] =
	"<!-- Made by `build/tests/unit/child/test_children write`. -->\n"
	"# Children\n\n"
	"pyprofd, pyprofd-serve and pyprof start these processes. `userspace/child/children.c` has "
	"the table that all of them\n"
	"are started by (`child/spawn.c`), confined by (`child/sandbox.c`) and started again by "
	"(`child/worker.c`); this page is\n"
	"that table. A name is argv[0] and what `ps` shows; those with a colon are pyprofd's own "
	"program, started again.\n"
	"Confined ones have no new privileges and no core files, and others cannot look at "
	"them.\n\n";

struct word {
	uint64_t value;
	const char *name;
};

static const struct word capability_words[] = {
	{CAPABILITY_BIT(CAP_SYS_PTRACE), "CAP_SYS_PTRACE"},
	{CAPABILITY_BIT(CAP_DAC_READ_SEARCH), "CAP_DAC_READ_SEARCH"},
	{CAPABILITY_BIT(CAP_CHECKPOINT_RESTORE), "CAP_CHECKPOINT_RESTORE"},
	{CAPABILITY_BIT(CAP_SYS_ADMIN), "CAP_SYS_ADMIN"},
	{CAPABILITY_BIT(CAP_PERFMON), "CAP_PERFMON"},
	{CAPABILITY_BIT(CAP_SETUID), "CAP_SETUID"},
	{CAPABILITY_BIT(CAP_SETGID), "CAP_SETGID"},
};
static const struct word file_words[] = {
	{LANDLOCK_ACCESS_FS_READ_FILE, "read"},
	{LANDLOCK_ACCESS_FS_READ_DIR, "list"},
	{LANDLOCK_ACCESS_FS_WRITE_FILE, "write"},
	{LANDLOCK_ACCESS_FS_MAKE_REG, "make files"},
	{LANDLOCK_ACCESS_FS_REMOVE_FILE, "remove files"},
	{LANDLOCK_ACCESS_FS_MAKE_DIR, "make directories"},
	{LANDLOCK_ACCESS_FS_REMOVE_DIR, "remove directories"},
};
static const struct word limit_words[] = {
	{RLIMIT_FSIZE, "FSIZE"}, {RLIMIT_CORE, "CORE"},	    {RLIMIT_NPROC, "NPROC"},
	{RLIMIT_AS, "AS"},	 {RLIMIT_NOFILE, "NOFILE"}, {RLIMIT_DATA, "DATA"},
};

static void print_words(FILE *file, uint64_t set, const struct word *word, size_t count)
{
	const char *between = "";

	for (size_t i = 0; i < count; i++) {
		if (!(set & word[i].value))
			continue;
		fprintf(file, "%s%s", between, word[i].name);
		between = ", ";
	}
}

static void print_descriptors(FILE *file, const struct child_row *row)
{
	fputs("- Handed over:", file);
	for (size_t i = 0; i < row->fd_count; i++)
		fprintf(file, "%s %d: %s", i ? ";" : "", row->fd[i].number,
			row->fd[i].what ?: "/dev/null");
	fprintf(file, "%s%s.\n", row->fd_count ? "" : " nothing",
		row->has_bare_environment ? "; of the environment LD_LIBRARY_PATH alone" : "");
}

static void print_user(FILE *file, const struct child_row *row)
{
	static const char *const user[] = {
		[CHILD_USER_SAME] = "its starter's",
		[CHILD_USER_OWNER] = "the directory's owner, if its starter is root",
		[CHILD_USER_NOBODY] = "nobody, if its starter is root",
	};

	fprintf(file, "- User: %s. Capabilities: %s", user[row->user],
		row->capabilities ? "" : "none");
	print_words(file, row->capabilities, capability_words, ARRAY_SIZE(capability_words));
	fputs(".\n", file);
}

static void print_files(FILE *file, const struct child_row *row)
{
	const bool may_read = !(row->files_denied & LANDLOCK_ACCESS_FS_READ_FILE);

	if (!row->files_denied)
		return;
	fprintf(file, "- Landlock: %s", may_read ? "reads what its user may; " : "");
	for (size_t i = 0; i < row->path_count; i++) {
		fprintf(file, "%s`%s` (", i ? ", " : "", row->path[i].path);
		print_words(file, row->path[i].rights, file_words, ARRAY_SIZE(file_words));
		fputs(")", file);
	}
	fprintf(file, "%s.\n", row->program ? ", and what it is told to use" : "");
}

static void print_limits(FILE *file, const struct child_row *row)
{
	for (size_t i = 0; i < row->limit_count; i++) {
		const char *name = "?";

		for (size_t j = 0; j < ARRAY_SIZE(limit_words); j++)
			if (limit_words[j].value == (uint64_t)row->limit[i].resource)
				name = limit_words[j].name;
		if (row->limit[i].most < MIB)
			fprintf(file, "%s%s %llu", i ? ", " : "- Limits: ", name,
				(unsigned long long)row->limit[i].most);
		else
			fprintf(file, ", %s %llu MiB", name,
				(unsigned long long)row->limit[i].most / MIB);
	}
	if (row->limit_count)
		fprintf(file, "%s.\n", row->steps_back ? "; the lowest priority" : "");
}

static void print_calls(FILE *file, const struct child_row *row)
{
	if (!row->call)
		return;
	fputs("- System calls: ", file);
	for (size_t i = 0; i < row->call_count; i++) {
		const struct call_rule *rule = &row->call[i];

		fprintf(file, "%s%s%s", i ? ", " : "", rule->name, rule->kills ? " kills it" : "");
		if (rule->when)
			fprintf(file, " (%s)", rule->when);
	}
	fprintf(file, ". Any other %s.\n",
		row->is_killed_by_others ? "kills it" : "fails with ENOSYS");
}

static void print_restart(FILE *file, const struct child_row *row)
{
	const unsigned long long steady_s = row->restart.steady_ns / NS_PER_SEC,
				 first_s = row->restart.first_ns / NS_PER_SEC,
				 most_s = row->restart.most_ns / NS_PER_SEC;

	if (!first_s) {
		fputs("- Started again: no.\n\n", file);
		return;
	}
	if (most_s == first_s) {
		fprintf(file,
			"- Started again: at once; after %llu s where it ended within %llu s.\n\n",
			first_s, steady_s);
		return;
	}
	fprintf(file, "- Started again: after %llu s", first_s);
	fprintf(file, ", each time twice as long, up to %llu s", most_s);
	if (steady_s)
		fprintf(file, "; one that ran for %llu s begins anew", steady_s);
	fputs(".\n\n", file);
}

static void print_page(FILE *file)
{
	fputs(head, file);
	for (unsigned int kind = 0; kind < CHILD_KINDS; kind++) {
		const struct child_row *row = child_row((enum child_kind)kind);

		fprintf(file, "## `%s`\n\nIt %s.\n\n", row->name, row->why);
		print_descriptors(file, row);
		if (row->is_confined)
			print_user(file, row);
		print_files(file, row);
		print_limits(file, row);
		print_calls(file, row);
		print_restart(file, row);
	}
}

#ifndef __SANITIZE_ADDRESS__ /* under which filters are wider */
static void children__page_shows_the_table(void **state)
{
	OWNED_FILE FILE *page = fopen(PAGE, "re");
	OWNED_MEM char *wanted = NULL, *text = NULL;
	size_t wanted_bytes, room = 0;
	FILE *memory = open_memstream(&wanted, &wanted_bytes);

	(void)state;
	assert_non_null(memory);
	print_page(memory);
	assert_int_equal(fclose(memory), 0);
	if (!page)
		fail_msg(PAGE " is looked for in the project's directory");
	assert_true(getdelim(&text, &room, '\0', page) > 0);
	if (strcmp(text, wanted) != 0)
		fail_msg(PAGE " is not the table: `build/tests/unit/child/test_children write`");
}
#endif

/* A name is cut after 15 bytes by the kernel. */
static void children__names_are_whole_and_found(void **state)
{
	(void)state;
	for (unsigned int kind = 0; kind < CHILD_KINDS; kind++) {
		const struct child_row *row = child_row((enum child_kind)kind);
		const bool is_ours = !strncmp(row->name, "pyprofd: ", 9) && kind != CHILD_SOCKET;

		assert_in_range(strlen(row->name), 1, 15);
		assert_int_equal(child_named(row->name), is_ours ? kind : CHILD_KINDS);
	}
	assert_int_equal(child_named("pyprofd"), CHILD_KINDS);
	assert_int_equal(child_named("pyprofd: files "), CHILD_KINDS);
	assert_int_equal(child_named(NULL), CHILD_KINDS);
}

/* The agent's own program under another name has none of the agent's rights. */
static void children__own_ones_are_confined_and_end_with_the_agent(void **state)
{
	(void)state;
	for (unsigned int kind = CHILD_MEMORY; kind <= CHILD_GAUGES; kind++) {
		const struct child_row *row = child_row((enum child_kind)kind);

		assert_true(row->is_confined && row->ignores_signals && row->call);
		assert_int_equal(row->death_signal, SIGKILL);
		assert_true(row->limit_count && row->restart.first_ns);
		assert_true(row->restart.first_ns <= row->restart.most_ns);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
#ifndef __SANITIZE_ADDRESS__
		cmocka_unit_test(children__page_shows_the_table),
#endif
		cmocka_unit_test(children__names_are_whole_and_found),
		cmocka_unit_test(children__own_ones_are_confined_and_end_with_the_agent),
	};

	if (argc > 1 && !strcmp(argv[1], "write")) {
		OWNED_FILE FILE *page = fopen(PAGE, "we");

		if (!page)
			return 1;
		print_page(page);
		return 0;
	}
	return cmocka_run_group_tests_name("child/children", tests, NULL, NULL);
}
