/* SPDX-License-Identifier: BSD-2-Clause */
/* The question where probes are attached: the agent's side and the child's with a file written by
 * hand, and what either of them refuses. */
#include "files/client.h"

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../elf/made_notes.h"
#include "base/io.h"
#include "files/check.h"
#include "here.h"

#define CODE (MADE_BASE + MADE_CODE)

static struct made_elf elf;

/* ---- both sides ---- */

static int find(void *context, struct foreign_source *ret_source)
{
	ret_source->fd = *(const int *)context;
	return 0;
}

static int ask(struct foreign *foreign, const struct probe_wanted *wanted, size_t count,
	       struct probe_sites *ret_sites)
{
	OWNED_FD int fd = memfd_create("elf", MFD_CLOEXEC);
	const struct foreign_file file = {.number = 1, .find = find, .context = &fd};

	assert_int_equal(write_full(fd, elf.data, MADE_BYTES), 0);
	return foreign_probes(foreign, &file, wanted, count, ret_sites);
}

static void put_wanted(struct probe_wanted *wanted, enum probe_wanted_kind kind,
		       const char *provider, const char *name)
{
	*wanted = (struct probe_wanted){.kind = (uint32_t)kind, .wants_nearest = 1};
	strcpy(wanted->provider, provider);
	strcpy(wanted->name, name);
}

static void probes__answer_is_what_the_file_has(void **state)
{
	CLEANUP(probe_sites_release) struct probe_sites sites = {0};
	OWNED(foreign) struct foreign *foreign = NULL;
	struct probe_wanted wanted[3];

	(void)state;
	made_notes_begin(&elf, EM_X86_64);
	MADE_NOTE(&elf, CODE, MADE_BASE + MADE_DATA, "p\0n\0008@%rdi");
	made_symbol(&elf, "f", CODE + 16, 16, STT_FUNC);
	made_symbol(&elf, "mal\xff\nck", CODE + 16, 16, STT_FUNC);
	put_wanted(&wanted[0], PROBE_WANTED_USDT, "p", "n");
	put_wanted(&wanted[1], PROBE_WANTED_FUNCTION, "", "f");
	put_wanted(&wanted[2], PROBE_WANTED_FUNCTION, "", "mallock");
	assert_int_equal(foreign_new("", &foreign), 0);
	assert_int_equal(ask(foreign, wanted, 3, &sites), 0);
	assert_int_equal(sites.site_count, 2);
	assert_int_equal(sites.wanted_count, 3);
	assert_int_equal(sites.site[0].semaphore_offset, MADE_DATA);
	assert_int_equal(sites.site[0].arg[0].base, 5);
	assert_int_equal(sites.site[1].offset, MADE_CODE + 16);
	assert_int_equal(sites.found[1].sites, 1);
	/* A name is the file's: it is cleaned. */
	assert_string_equal(sites.found[2].nearest[0], "mal??ck");
}

static void probes__errors_of_the_file_are_told(void **state)
{
	OWNED(foreign) struct foreign *foreign = NULL;
	struct probe_sites sites = {.site_count = 77};
	struct probe_wanted wanted;

	(void)state;
	put_wanted(&wanted, PROBE_WANTED_FUNCTION, "", "f");
	memset(&elf, 0, sizeof(elf));
	assert_int_equal(foreign_new("", &foreign), 0);
	assert_int_equal(ask(foreign, &wanted, 1, &sites), -ENOEXEC);
	here_lates = 1;
	assert_int_equal(ask(foreign, &wanted, 1, &sites), -ETIME);
	assert_int_equal(sites.site_count, 77);
}

static void probes__unsound_ones_are_not_asked_for(void **state)
{
	OWNED(foreign) struct foreign *foreign = NULL;
	struct probe_wanted wanted[PROBE_WANTED_MAX + 1];
	struct probe_sites sites;

	(void)state;
	for (size_t i = 0; i <= PROBE_WANTED_MAX; i++)
		put_wanted(&wanted[i], PROBE_WANTED_FUNCTION, "", "f");
	assert_int_equal(foreign_new("", &foreign), 0);
	assert_int_equal(ask(foreign, wanted, 0, &sites), -EINVAL);
	assert_int_equal(ask(foreign, wanted, PROBE_WANTED_MAX + 1, &sites), -EINVAL);
	memset(wanted[PROBE_WANTED_MAX - 1].name, 'n', PROBE_NAMES_MAX_BYTES);
	assert_int_equal(ask(foreign, wanted, PROBE_WANTED_MAX, &sites), -EINVAL);
}

/* ---- the request ---- */

static union {
	struct foreign_request request;
	/* One more than may be. */
	uint8_t bytes[FOREIGN_REQUEST_MAX_BYTES + sizeof(struct probe_wanted)];
} asked;

static struct probe_wanted *set_request(uint32_t count)
{
	struct probe_wanted *wanted = (struct probe_wanted *)asked.request.vaddr;

	memset(&asked, 0, sizeof(asked));
	asked.request.kind = FOREIGN_PROBES;
	asked.request.number = 1;
	asked.request.vaddr_count = (uint32_t)(count * FOREIGN_WANTED_WORDS);
	for (uint32_t i = 0; i < count; i++)
		put_wanted(&wanted[i], i % 2 ? PROBE_WANTED_FUNCTION : PROBE_WANTED_USDT,
			   i % 2 ? "" : "p", "n");
	return wanted;
}

static bool request_is_sound(void)
{
	return foreign_request_is_sound(&asked.request,
					sizeof(asked.request) + 8 * asked.request.vaddr_count);
}

static void request__has_one_to_64_sound_probes(void **state)
{
	(void)state;
	set_request(1);
	assert_true(request_is_sound());
	set_request(PROBE_WANTED_MAX);
	assert_true(request_is_sound());
	set_request(PROBE_WANTED_MAX + 1);
	assert_false(request_is_sound());
	set_request(0);
	assert_false(request_is_sound());
	set_request(2);
	asked.request.vaddr_count--;
	assert_false(request_is_sound());
	asked.request.vaddr_count += 2;
	assert_false(request_is_sound());
	set_request(2);
	assert_false(foreign_request_is_sound(&asked.request, sizeof(asked.request)));
}

#define ASSERT_UNSOUND(change)                                                                     \
	do {                                                                                       \
		struct probe_wanted *last = set_request(2) + 1;                                    \
		assert_true(request_is_sound());                                                   \
		change;                                                                            \
		assert_false(request_is_sound());                                                  \
	} while (0)

static void request__with_unsound_probes_is_refused(void **state)
{
	(void)state;
	ASSERT_UNSOUND(last->kind = PROBE_WANTED_KINDS);
	ASSERT_UNSOUND(last->wants_nearest = 2);
	ASSERT_UNSOUND(last->name[0] = 0);
	ASSERT_UNSOUND(memset(last->name, 'n', sizeof(last->name)));
	ASSERT_UNSOUND(memset(last->provider, 'p', sizeof(last->provider)));
	ASSERT_UNSOUND(last->provider[0] = 'p'); /* a function has none */
	ASSERT_UNSOUND(last->kind = PROBE_WANTED_USDT);
}

/* ---- the answer ---- */

static struct {
	struct foreign_probes head;
	struct probe_found found[2];
	struct probe_site site[3];
} answer;
static struct probe_wanted for_these[2];

static void set_answer(void)
{
	put_wanted(&for_these[0], PROBE_WANTED_USDT, "p", "n");
	put_wanted(&for_these[1], PROBE_WANTED_FUNCTION, "", "f");
	memset(&answer, 0, sizeof(answer));
	answer.head.wanted_count = 2;
	answer.head.site_count = 2;
	answer.found[0].sites = answer.found[1].sites = 1;
	answer.site[0] = (struct probe_site){
		.offset = 10,
		.semaphore_offset = 20,
		.arg_count = 1,
		.arg = {{.kind = PP_ARG_MEMORY, .bytes = 8, .index = PP_ARG_NO_INDEX}}};
	answer.site[1] = (struct probe_site){.offset = 10, .wanted = 1, .is_entry = 1};
}

static bool is_sound_of(uint32_t sites)
{
	return foreign_probes_are_sound(&answer.head,
					foreign_sites_at(2) + sites * sizeof(struct probe_site),
					for_these, 2);
}

static bool is_sound(void)
{
	return is_sound_of(2);
}

static void answer__of_its_size_is_sound(void **state)
{
	(void)state;
	set_answer();
	assert_true(is_sound());
	assert_false(is_sound_of(1));
	assert_false(is_sound_of(3));
	assert_false(foreign_probes_are_sound(&answer.head, 0, for_these, 2));
	assert_false(foreign_probes_are_sound(&answer.head, sizeof(answer.head), for_these, 2));
	answer.head.site_count = UINT32_MAX;
	assert_false(is_sound());
	set_answer();
	answer.head.wanted_count = 1;
	assert_false(is_sound());
	answer.head.wanted_count = UINT32_MAX;
	assert_false(is_sound());
}

/* Changes a sound answer, with which it stays sound or not. */
#define ASSERT_ANSWER(expected, change)                                                            \
	do {                                                                                       \
		set_answer();                                                                      \
		change;                                                                            \
		assert_int_equal(is_sound(), expected);                                            \
	} while (0)

static void answer__site_that_cannot_be_is_refused(void **state)
{
	struct probe_site *usdt = &answer.site[0], *function = &answer.site[1];

	(void)state;
	ASSERT_ANSWER(false, usdt->wanted = 2);
	ASSERT_ANSWER(false, usdt->wanted = 1); /* not counted with it */
	ASSERT_ANSWER(false, answer.found[1].sites = 2);
	ASSERT_ANSWER(true, usdt->offset = INT64_MAX);
	ASSERT_ANSWER(false, usdt->offset = 1ULL << 63);
	ASSERT_ANSWER(false, usdt->semaphore_offset = 1ULL << 63);
	ASSERT_ANSWER(false, usdt->semaphore_offset = 21);
	ASSERT_ANSWER(true, usdt->semaphore_offset = 0);
	ASSERT_ANSWER(true, usdt->cost = PROBE_COSTS - 1);
	ASSERT_ANSWER(false, usdt->cost = PROBE_COSTS);
	ASSERT_ANSWER(false, usdt->is_entry = 1);
	ASSERT_ANSWER(true, usdt->arg_count = PP_PROBE_ARGS);
	ASSERT_ANSWER(false, usdt->arg_count = PP_PROBE_ARGS + 1);
	ASSERT_ANSWER(false, usdt->alternative = 1);
	ASSERT_ANSWER(false, function->is_entry = 0);
	ASSERT_ANSWER(false, function->is_entry = 2);
	ASSERT_ANSWER(false, function->semaphore_offset = 2);
	ASSERT_ANSWER(false, function->arg_count = 1);
	ASSERT_ANSWER(false, function->alternative = 1);
	ASSERT_ANSWER(true, {
		for_these[1].kind = PROBE_WANTED_ANY_OF;
		function->alternative = PROBE_NAMES_MAX_BYTES / 2 - 1;
	});
	ASSERT_ANSWER(false, {
		for_these[1].kind = PROBE_WANTED_ANY_OF;
		function->alternative = PROBE_NAMES_MAX_BYTES / 2;
	});
	ASSERT_ANSWER(false, function->is_twin = 1);
	ASSERT_ANSWER(true, {
		for_these[1].takes_twins = 1;
		function->is_twin = 1;
	});
	ASSERT_ANSWER(false, {
		for_these[1].takes_twins = 1;
		function->is_twin = 2;
	});
}

static void answer__argument_that_cannot_be_is_refused(void **state)
{
	struct pp_probe_arg *arg = &answer.site[0].arg[0];

	(void)state;
	ASSERT_ANSWER(true, *arg = (struct pp_probe_arg){.bytes = 77});
	ASSERT_ANSWER(false, arg->kind = PP_ARG_MEMORY + 1);
	ASSERT_ANSWER(false, arg->bytes = 0);
	ASSERT_ANSWER(false, arg->bytes = 3);
	ASSERT_ANSWER(false, arg->bytes = 16);
	ASSERT_ANSWER(false, arg->is_signed = 2);
	ASSERT_ANSWER(true, arg->base = 31);
	ASSERT_ANSWER(false, arg->base = 32);
	ASSERT_ANSWER(true, arg->index = 31);
	ASSERT_ANSWER(false, arg->index = 32);
	ASSERT_ANSWER(true, arg->scale = 3);
	ASSERT_ANSWER(false, arg->scale = 4);
	/* Also one that is not counted: the kernel side gets them all. */
	ASSERT_ANSWER(false, arg[PP_PROBE_ARGS - 1].kind = 200);
}

static void answer__texts_end_and_refusals_are_known(void **state)
{
	(void)state;
	ASSERT_ANSWER(false, memset(answer.found[1].nearest[2], 'n', PROBE_NEAREST_BYTES));
	ASSERT_ANSWER(true, memset(answer.found[1].nearest[2], 'n', PROBE_NEAREST_BYTES - 1));
	ASSERT_ANSWER(true, answer.found[1].refusals = (1U << PROBE_REFUSAL_KINDS) - 1);
	ASSERT_ANSWER(false, answer.found[1].refusals = 1U << PROBE_REFUSAL_KINDS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(probes__answer_is_what_the_file_has),
		cmocka_unit_test(probes__errors_of_the_file_are_told),
		cmocka_unit_test(probes__unsound_ones_are_not_asked_for),
		cmocka_unit_test(request__has_one_to_64_sound_probes),
		cmocka_unit_test(request__with_unsound_probes_is_refused),
		cmocka_unit_test(answer__of_its_size_is_sound),
		cmocka_unit_test(answer__site_that_cannot_be_is_refused),
		cmocka_unit_test(answer__argument_that_cannot_be_is_refused),
		cmocka_unit_test(answer__texts_end_and_refusals_are_known),
	};

	return cmocka_run_group_tests_name("files/probes", tests, NULL, NULL);
}
