/* SPDX-License-Identifier: BSD-2-Clause */
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "live/reply.h"

#define HEAD "process\t7\t1000\tpython3\n"
#define STACK "frame\t0\t12\tf\t/w.py\t\nframe\t1\t0\tread\t\t/lib/libc.so.6\n"
#define END "end\t3\t1\t0\t0\n"

struct seen {
	unsigned int processes, threads;
	uint32_t stack[8];
	char name[64];
};

static void on_process(void *context, const struct live_process *process)
{
	struct seen *seen = context;
	struct live_model_frame frame;

	seen->processes++;
	for (size_t i = 0; i < process->thread_count && i < 8; i++)
		seen->stack[i] = process->thread[i].stack;
	seen->threads += (unsigned int)process->thread_count;
	if (process->thread_count &&
	    live_process_frame(process, process->thread[0].stack, 0, &frame))
		snprintf(seen->name, sizeof(seen->name), "%s",
			 live_process_string(process, frame.name));
}

static int read_text(const char *text, struct seen *seen, struct live_end *end, char **why)
{
	FILE *stream = fmemopen((char *)text, strlen(text), "r");
	int err;

	*seen = (struct seen){};
	assert_non_null(stream);
	err = live_model_read(stream, on_process, seen, end, why);
	fclose(stream);
	return err;
}

static void model__equal_stacks_are_one(void **state)
{
	struct seen seen;
	struct live_end end;
	char *why;

	(void)state;
	assert_int_equal(read_text(HEAD "stack\t1\t2\n" STACK "thread\t7\t1\t1\t0\tMain\tlock\n"
					"stack\t2\t2\n" STACK "thread\t8\t2\t0\t5\tT\tlock\n"
					"stack\t3\t1\nframe\t0\t13\tf\t/w.py\t\n"
					"colour\tred\nthread\t9\t3\t0\t0\tT\tsleep\n"
					"thread\t10\t0\t4\t0\tT\t\n"
					"process\t9\t0\tsh\nstack\t4\t1\nframe\t2\t0\tk\t\t\n" END,
				   &seen, &end, &why),
			 0);
	assert_int_equal(seen.processes, 2);
	assert_int_equal(seen.threads, 4);
	assert_int_equal(seen.stack[0], seen.stack[1]);
	assert_int_not_equal(seen.stack[0], seen.stack[2]);
	assert_int_equal(seen.stack[3], 0);
	assert_int_equal(end.threads, 3);
	assert_int_equal(end.torn, 1);
}

static void model__control_codes_do_not_get_through(void **state)
{
	struct seen seen;
	struct live_end end;
	char *why;

	(void)state;
	assert_int_equal(read_text(HEAD "stack\t1\t1\nframe\t0\t1\ta\\x1b[2Jb\t\t\n"
					"thread\t7\t1\t0\t0\t\t\n" END,
				   &seen, &end, &why),
			 0);
	assert_string_equal(seen.name, "a\\x1b[2Jb");
}

static void model__an_error_is_told(void **state)
{
	struct seen seen;
	struct live_end end;
	char *why = NULL;

	(void)state;
	assert_int_equal(read_text("error\t16\ttoo busy\n", &seen, &end, &why), -EREMOTEIO);
	assert_string_equal(why, "too busy");
	free(why);
}

static void model__what_is_broken_is_refused(void **state)
{
	static const char *const cases[] = {
		"\n",
		"process\t7\n" END,
		HEAD,
		HEAD "end\t1",
		"thread\t7\t0\t0\t0\t\t\n" END,
		"stack\t1\t1\n" END,
		HEAD "frame\t0\t1\ta\t\t\n" END,
		HEAD "stack\t1\t0\n" END,
		HEAD "stack\t1\t16385\n" END,
		HEAD "stack\t1\t2\nframe\t0\t1\ta\t\t\n" END,
		HEAD "stack\t1\t2\nframe\t0\t1\ta\t\t\nthread\t7\t1\t0\t0\t\t\n" END,
		HEAD "stack\t1\t1\nframe\t0\t1\ta\t\t\nstack\t3\t1\nframe\t0\t1\ta\t\t\n" END,
		HEAD "stack\t5\t1\nframe\t0\t1\ta\t\t\nthread\t7\t4\t0\t0\t\t\n" END,
		HEAD "stack\t5\t1\nframe\t0\t1\ta\t\t\nthread\t7\t6\t0\t0\t\t\n" END,
		HEAD "stack\t1\t1\nframe\t0\t4294967296\ta\t\t\n" END,
	};
	struct seen seen;
	struct live_end end;
	char *why;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		/* "\n" alone is a kind that is not known: the end is missing then. */
		if (read_text(cases[i], &seen, &end, &why) != -EBADMSG)
			fail_msg("case %zu", i);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(model__equal_stacks_are_one),
		cmocka_unit_test(model__control_codes_do_not_get_through),
		cmocka_unit_test(model__an_error_is_told),
		cmocka_unit_test(model__what_is_broken_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
