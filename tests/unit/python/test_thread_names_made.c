/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of threads in interpreters that are written by hand into this process's own memory, with
 * the objects of 3.7 to 3.9 as Include/cpython/ and Objects/dict-common.h lay them out. */
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "python/python_objects.h"
#include "python/python_offsets.h"
#include "python/python_process.h"

#define DICT_TYPE 0x1000ULL
#define STR_TYPE 0x2000ULL
#define UNREADABLE 0x100ULL
#define MOST_IDENT ((1ULL << 61) - 2)
#define HEAD_OFFSET 24U /* of the list's head in _PyRuntime */
#define MODULES_OFFSET 16U

static unsigned int calls;
/* Called once, before this address is read. */
static uint64_t hook_address;
static void (*hook)(void);
static bool is_gone; /* the process */

/* Instead of libc's. */
ssize_t process_vm_readv(pid_t pid, const struct iovec *here, unsigned long here_count,
			 const struct iovec *there, unsigned long there_count, unsigned long flags)
{
	calls++;
	if (is_gone) {
		errno = ESRCH;
		return -1;
	}
	if (hook && (uintptr_t)there[0].iov_base == hook_address) {
		hook();
		hook = NULL;
	}
	return syscall(SYS_process_vm_readv, pid, here, here_count, there, there_count, flags);
}

static uint64_t at(const void *address)
{
	return (uintptr_t)address;
}

/* ---- objects ---- */

struct str {
	uint64_t word[6]; /* type at 8, length at 16, state at 32 */
	char text[80];
};

static void put_str(struct str *str, const char *text)
{
	*str = (struct str){
		.word = {[1] = STR_TYPE, [2] = strlen(text), [4] = 1 << 2 | 1 << 5 | 1 << 6}};
	memcpy(str->text, text, strlen(text));
}

#define DICT_SLOTS 8U

struct dict {
	uint64_t object[6]; /* type at 8; then used, version, keys, values */
	uint64_t keys[5];   /* dk_size at 8, dk_nentries at 32 */
	uint8_t index[DICT_SLOTS];
	uint64_t slot[DICT_SLOTS][3];
};

static void put_dict(struct dict *dict)
{
	*dict = (struct dict){.object = {[1] = DICT_TYPE, [4] = at(dict->keys)},
			      .keys = {[1] = DICT_SLOTS}};
}

static void add_entry(struct dict *dict, uint64_t hash, const void *key, const void *value)
{
	uint64_t *slot = dict->slot[dict->keys[4]++];

	slot[0] = hash;
	slot[1] = at(key);
	slot[2] = at(value);
}

struct thread {
	uint64_t object[3]; /* its dictionary at 16 */
	uint64_t type[40];  /* tp_flags at 168, tp_dictoffset at 288 */
	struct dict attributes;
	struct str name_key, name, id_key;
	uint64_t id[4]; /* ob_size at 16, digits of 30 bits at 24 */
};

static void put_thread(struct thread *thread, const char *key, const char *name, uint64_t id)
{
	*thread = (struct thread){.object = {[1] = at(thread->type), [2] = at(&thread->attributes)},
				  .type = {[288 / 8] = 16},
				  .id = {[2] = 2, [3] = (id & 0x3fffffff) | id >> 30 << 32}};
	put_dict(&thread->attributes);
	put_str(&thread->name_key, key);
	put_str(&thread->name, name);
	put_str(&thread->id_key, "_native_id");
	add_entry(&thread->attributes, 1, &thread->name_key, &thread->name);
	add_entry(&thread->attributes, 1, &thread->id_key, thread->id);
}

struct interpreter {
	uint64_t word[4]; /* next at 0, modules at 16 */
	struct dict modules, globals, active;
	struct str threading, active_name;
	uint64_t module[3]; /* md_dict at 16 */
	struct thread thread[4];
	size_t threads;
};

static void put_interpreter(struct interpreter *interpreter)
{
	*interpreter = (struct interpreter){.word = {[2] = at(&interpreter->modules)},
					    .module = {[2] = at(&interpreter->globals)}};
	put_dict(&interpreter->modules);
	put_dict(&interpreter->globals);
	put_dict(&interpreter->active);
	put_str(&interpreter->threading, "threading");
	put_str(&interpreter->active_name, "_active");
	add_entry(&interpreter->modules, 1, &interpreter->threading, interpreter->module);
	add_entry(&interpreter->globals, 1, &interpreter->active_name, &interpreter->active);
}

static struct thread *add_thread(struct interpreter *interpreter, uint64_t ident, const char *name,
				 uint64_t id)
{
	struct thread *thread = &interpreter->thread[interpreter->threads++];

	put_thread(thread, "_name", name, id);
	add_entry(&interpreter->active, ident, thread /* never read */, thread);
	return thread;
}

/* ---- the process ---- */

static struct interpreter a, b;
static uint64_t runtime[8];
static struct python_info info;

static void begin(unsigned int minor)
{
	info = python_layout_find(3, minor, false)->info;
	info.symbols = (struct python_symbols){.runtime = 0x7000};
	info.runtime_interpreters_head = HEAD_OFFSET;
	info.interp_next = 0;
	info.interp_modules = MODULES_OFFSET;
	put_interpreter(&a);
	put_interpreter(&b);
	memset(runtime, 0, sizeof(runtime));
	runtime[HEAD_OFFSET / 8] = at(&a);
	hook = NULL;
	is_gone = false;
}

static uint64_t bias(void)
{
	return at(runtime) - 0x7000;
}

/* "NAME:IDENT:ID" in their order, separated by commas; or the error's number. */
static const char *look_as(const struct python_info *as, struct python_names_hint *hint)
{
	OWNED_MEM struct python_thread_name *names = NULL;
	static char said[1024];
	size_t count = 0, size = 0;
	int err;

	calls = 0;
	err = python_process_thread_names(as, getpid(), bias(), hint, &names, &count);
	said[0] = '\0';
	if (err)
		snprintf(said, sizeof(said), "%d", err);
	for (size_t i = 0; i < count && size < sizeof(said); i++)
		size += (size_t)snprintf(said + size, sizeof(said) - size, "%s%s:%lu:%u",
					 i ? "," : "", names[i].name,
					 (unsigned long)names[i].thread_id, names[i].native_id);
	return said;
}

static const char *look(struct python_names_hint *hint)
{
	return look_as(&info, hint);
}

static const char *error(int err)
{
	static char text[16];

	snprintf(text, sizeof(text), "%d", err);
	return text;
}

/* ---- where the list begins ---- */

static void thread_names__list_begins_at_the_runtime_s_head(void **state)
{
	(void)state;
	begin(9);
	add_thread(&a, 7, "one", 70);
	assert_string_equal(look(NULL), "one:7:70");
	runtime[HEAD_OFFSET / 8] = 0;
	assert_string_equal(look(NULL), error(-EAGAIN));
	info.runtime_interpreters_head = 0xf0000000;
	assert_string_equal(look(NULL), error(-EFAULT));
	info.interp_modules = 0;
	assert_string_equal(look(NULL), error(-ENOTSUP));
}

/* 3.6 and 2.7 */
static void thread_names__list_begins_at_the_variable_or_the_running_thread_s(void **state)
{
	uint64_t thread_state[8] = {0};

	(void)state;
	begin(7);
	add_thread(&a, 7, "one", 70);
	info.symbols = (struct python_symbols){.interp_head = 0x7000 + HEAD_OFFSET};
	assert_string_equal(look(NULL), "one:7:0");
	info.symbols = (struct python_symbols){.thread_state_current = 0x7000 + 40};
	assert_string_equal(look(NULL), error(-EAGAIN));
	runtime[5] = at(thread_state);
	thread_state[info.bpf.ts_interp / 8] = at(&a);
	assert_string_equal(look(NULL), "one:7:0");
	thread_state[info.bpf.ts_interp / 8] = 0;
	assert_string_equal(look(NULL), error(-EAGAIN));
	runtime[5] = UNREADABLE;
	assert_string_equal(look(NULL), error(-EFAULT));
	info.symbols.thread_state_current = 0x8000 - at(runtime);
	assert_string_equal(look(NULL), error(-EFAULT));
	info.symbols = (struct python_symbols){0};
	assert_string_equal(look(NULL), error(-ENOTSUP));
}

/* ---- one thread ---- */

static void thread_names__names_are_cut_to_63_bytes(void **state)
{
	static const char text[] =
		"0123456789012345678901234567890123456789012345678901234567890123456789";
	char expected[80];

	(void)state;
	begin(9);
	add_thread(&a, 7, "", 1);
	assert_string_equal(look(NULL), ":7:1");
	for (int size = 61; size <= 70; size++) {
		char name[80];

		begin(9);
		snprintf(name, sizeof(name), "%.*s", size, text);
		snprintf(expected, sizeof(expected), "%.63s:7:1", name);
		add_thread(&a, 7, name, 1);
		assert_string_equal(look(NULL), expected);
	}
}

static void thread_names__native_id_is_a_positive_int_of_3_8(void **state)
{
	static const struct {
		unsigned int minor;
		uint64_t id;
		const char *expected;
	} cases[] = {
		{7, 70, "one:7:0"},
		{8, 70, "one:7:70"},
		{9, 0x7fffffff, "one:7:2147483647"},
		{9, 0x80000000, "one:7:0"},
		{9, 1ULL << 33, "one:7:0"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		begin(cases[i].minor);
		add_thread(&a, 7, "one", cases[i].id);
		assert_string_equal(look(NULL), cases[i].expected);
	}
	begin(9);
	add_thread(&a, 7, "one", 70)->attributes.keys[4] = 1;
	assert_string_equal(look(NULL), "one:7:0");
	begin(9);
	add_thread(&a, 7, "one", 70)->id[2] = -1ULL; /* negative */
	assert_string_equal(look(NULL), "one:7:0");
}

static void thread_names__key_of_an_ident_is_its_hash(void **state)
{
	(void)state;
	begin(9);
	add_thread(&a, 0, "zero", 1);
	add_thread(&a, MOST_IDENT, "most", 2);
	add_thread(&a, MOST_IDENT + 1, "more", 3);
	add_thread(&a, 1, "one", 4);
	assert_string_equal(look(NULL), "most:2305843009213693950:2,one:1:4");
}

/* The rest are read; the next look tries again. */
static void thread_names__unfinished_threads_are_left_out(void **state)
{
	(void)state;
	for (int way = 0; way < 4; way++) {
		struct python_names_hint hint = {.keeps_names = true};
		struct thread *broken;

		begin(9);
		broken = add_thread(&a, 5, "broken", 50);
		add_thread(&a, 7, "one", 70);
		if (way == 0)
			broken->object[1] = UNREADABLE;
		else if (way == 1)
			broken->name.word[1] = DICT_TYPE;
		else if (way == 2)
			broken->name_key.text[0] = 'x';
		else
			broken->attributes.slot[0][2] = UNREADABLE;
		assert_string_equal(look(&hint), "one:7:70");
		assert_string_equal(look(&hint), "one:7:70");
		python_names_hint_release(&hint);
		assert_null(hint.known);
	}
}

/* ---- threads that end while names are read ---- */

static void remove_first(void)
{
	a.active.slot[0][2] = 0;
}

static void replace_first(void)
{
	a.active.slot[0][2] = at(&a.thread[1]);
}

static void give_first_another_ident(void)
{
	a.active.slot[0][0] = 9;
}

static void end_process(void)
{
	is_gone = true;
}

static void move_away(void)
{
	a.active.object[4] = UNREADABLE;
}

static const char *look_while(void (*change)(void), struct python_names_hint *hint)
{
	begin(9);
	add_thread(&a, 5, "first", 50);
	add_thread(&a, 7, "second", 70);
	hook = change;
	hook_address = at(&a.thread[1].name);
	return look(hint);
}

static void thread_names__who_is_not_listed_any_more_is_left_out(void **state)
{
	struct python_names_hint hint = {.keeps_names = true};

	(void)state;
	assert_string_equal(look_while(remove_first, &hint), "second:7:70");
	a.active.slot[0][2] = at(&a.thread[0]);
	assert_string_equal(look(&hint), "first:5:50,second:7:70");
	assert_string_equal(look(&hint), error(-EALREADY));
	python_names_hint_release(&hint);
	assert_string_equal(look_while(replace_first, NULL), "second:7:70");
	assert_string_equal(look_while(give_first_another_ident, NULL), "second:7:70");
	assert_string_equal(look_while(move_away, NULL), error(-EFAULT));
}

/* One interpreter's dictionary moves; what was read of it does not count, the other's does. */
static void thread_names__one_interpreter_is_enough(void **state)
{
	struct python_names_hint hint = {.keeps_names = true};

	(void)state;
	for (int is_first = 0; is_first < 2; is_first++) {
		begin(9);
		add_thread(&a, 5, "first", 50);
		add_thread(&a, 6, "more", 60);
		add_thread(&b, 7, "other", 70);
		runtime[HEAD_OFFSET / 8] = is_first ? at(&a) : at(&b);
		a.word[0] = is_first ? at(&b) : 0;
		b.word[0] = is_first ? 0 : at(&a);
		hook = move_away;
		hook_address = at(&a.thread[1].name);
		assert_string_equal(look(NULL), "other:7:70");
	}
	/* The process ends while the second is read. */
	begin(9);
	add_thread(&a, 5, "first", 50);
	a.word[0] = at(&b);
	hook = end_process;
	hook_address = at(&b.modules);
	assert_string_equal(look(NULL), error(-ESRCH));
	assert_true(is_gone);
	/* The second is not known whole. */
	begin(9);
	add_thread(&a, 5, "first", 50);
	a.word[0] = at(&b);
	b.active.object[1] = STR_TYPE;
	assert_string_equal(look(&hint), "first:5:50");
	assert_string_equal(look(&hint), "first:5:50");
	/* Without any the reason is told. */
	a.word[2] = UNREADABLE;
	a.word[0] = 0;
	assert_string_equal(look(NULL), error(-EFAULT));
	a.word[2] = at(&a.modules);
	a.word[0] = at(&b);
	/* It has no `threading`. */
	b.modules.keys[4] = 0;
	assert_string_equal(look(&hint), "first:5:50");
	assert_string_equal(look(&hint), error(-EALREADY));
	python_names_hint_release(&hint);
}

/* ---- bounds ---- */

/* A table of `count` entries, all with this hash (0: counting from 1) and value. */
static void *big_table(struct dict *dict, uint64_t count, bool is_counting, const void *value)
{
	const uint64_t size = 1 << 17;
	uint64_t *keys = calloc(5 + size * 4 / 8 + 3 * count, 8), *slot = keys + 5 + size * 4 / 8;

	assert_non_null(keys);
	keys[1] = size; /* indices of 4 bytes */
	keys[4] = count;
	for (uint64_t i = 0; i < count; i++) {
		slot[3 * i] = is_counting ? i + 1 : 0;
		slot[3 * i + 1] = at(value);
		slot[3 * i + 2] = at(value);
	}
	dict->object[4] = at(keys);
	return keys;
}

/* Of the directory that has one for each thread. */
static nlink_t thread_links = 3;

int stat(const char *path, struct stat *ret_status)
{
	assert_non_null(strstr(path, "/task"));
	*ret_status = (struct stat){.st_nlink = thread_links};
	return 0;
}

static void thread_names__at_most_4096_threads(void **state)
{
	OWNED_MEM struct python_thread_name *names = NULL;
	OWNED_MEM void *keys = NULL;
	size_t count = 0;

	(void)state;
	begin(9);
	add_thread(&a, 7, "all", 70);
	keys = big_table(&a.active, 4100, true, &a.thread[0]);
	thread_links = 4096;
	assert_int_equal(python_process_thread_names(&info, getpid(), bias(), NULL, &names, &count),
			 0);
	assert_int_equal(count, 4096);
	assert_int_equal(names[0].thread_id, 1);
	assert_int_equal(names[4095].thread_id, 4096);
	thread_links = 3;
}

/* Of all interpreters together. */
static void thread_names__at_most_65536_entries(void **state)
{
	(void)state;
	for (uint64_t entries = 65535; entries <= 65536; entries++) {
		struct python_names_hint hint = {.keeps_names = true};
		OWNED_MEM void *keys = NULL;

		begin(9);
		a.word[0] = at(&b);
		add_thread(&b, 7, "one", 70);
		keys = big_table(&a.active, entries, false, &b.thread[0]);
		assert_string_equal(look(&hint), entries == 65535 ? "one:7:70" : "");
		assert_string_equal(look(&hint), entries == 65535 ? error(-EALREADY) : "");
		python_names_hint_release(&hint);
	}
}

/* Each thread has no name, which takes some ten reads. */
static void thread_names__reads_of_one_look_are_bounded(void **state)
{
	struct python_names_hint hint = {.keeps_names = true};
	OWNED_MEM void *keys = NULL;

	(void)state;
	begin(9);
	add_thread(&a, 7, "one", 70)->name_key.text[0] = 'x';
	keys = big_table(&a.active, 60000, true, &a.thread[0]);
	assert_string_equal(look(&hint), "");
	assert_in_range(calls, 4000, 8192 + 32 * 3);
	assert_string_equal(look(&hint), "");
	python_names_hint_release(&hint);
}

/* ---- a look in slices ---- */

static const struct slice over = {.ends_ns = 1};

/* What a part of a look returns; its names are said as look() says them. */
static int look_part(struct python_names_hint *hint, const char *wanted)
{
	OWNED_MEM struct python_thread_name *names = NULL;
	char said[128] = "";
	size_t count = 0;
	int more = python_process_thread_names(&info, getpid(), bias(), hint, &names, &count);

	assert_in_range(count, 0, 1);
	if (count)
		snprintf(said, sizeof(said), "%s:%lu:%u", names[0].name,
			 (unsigned long)names[0].thread_id, names[0].native_id);
	assert_string_equal(said, wanted);
	return more;
}

static void thread_names__slice_that_is_over_gives_a_thread(void **state)
{
	struct python_names_hint hint = {.keeps_names = true, .slice = &over};

	(void)state;
	begin(9);
	a.word[0] = at(&b);
	add_thread(&a, 7, "one", 70);
	add_thread(&a, 8, "two", 80);
	add_thread(&b, 9, "three", 90);
	assert_int_equal(look_part(&hint, "one:7:70"), 1);
	assert_int_equal(look_part(&hint, "two:8:80"), 1);
	assert_int_equal(look_part(&hint, "three:9:90"), 1);
	assert_int_equal(look_part(&hint, ""), 0);
	/* All parts together are a whole look. */
	assert_string_equal(look(&hint), error(-EALREADY));
	hint.slice = NULL;
	hint.keeps_names = false;
	assert_string_equal(look(&hint), "one:7:70,two:8:80,three:9:90");
	python_names_hint_release(&hint);
}

/* What was read before the change may not be true any more. */
static void thread_names__change_between_slices_is_looked_at_again(void **state)
{
	struct python_names_hint hint = {.keeps_names = true, .slice = &over};

	(void)state;
	begin(9);
	add_thread(&a, 7, "one", 70);
	add_thread(&a, 8, "two", 80);
	assert_int_equal(look_part(&hint, "one:7:70"), 1);
	add_thread(&a, 9, "three", 90);
	assert_int_equal(look_part(&hint, "two:8:80"), 1);
	assert_int_equal(look_part(&hint, "three:9:90"), 1);
	assert_int_equal(look_part(&hint, ""), 0);
	hint.slice = NULL;
	assert_string_equal(look(&hint), "one:7:70,two:8:80,three:9:90");
	assert_string_equal(look(&hint), error(-EALREADY));
	/* A look that fails begins anew. */
	hint.keeps_names = false;
	hint.slice = &over;
	assert_int_equal(look_part(&hint, "one:7:70"), 1);
	runtime[HEAD_OFFSET / 8] = 0;
	assert_int_equal(look_part(&hint, ""), -EAGAIN);
	runtime[HEAD_OFFSET / 8] = at(&a);
	assert_int_equal(look_part(&hint, "one:7:70"), 1);
	python_names_hint_release(&hint);
}

static void thread_names__parts_of_a_look_share_its_reads(void **state)
{
	struct python_names_hint hint = {.keeps_names = true, .slice = &over};
	OWNED_MEM void *keys = NULL;
	unsigned int parts = 0;
	int more;

	(void)state;
	begin(9);
	add_thread(&a, 7, "one", 70)->name_key.text[0] = 'x';
	keys = big_table(&a.active, 6000, true, &a.thread[0]);
	calls = 0;
	do
		more = look_part(&hint, "");
	while (more == 1 && ++parts < 6000);
	assert_int_equal(more, -ETIME);
	assert_in_range(parts, 10, 1000);
	assert_in_range(calls, 100, 8192 + 32 * 3);
	python_names_hint_release(&hint);
}

/* An endless list. */
static void thread_names__at_most_64_interpreters(void **state)
{
	OWNED_MEM struct python_thread_name *names = NULL;
	size_t count = 0;

	(void)state;
	begin(9);
	add_thread(&a, 7, "one", 70);
	a.word[0] = at(&a);
	assert_int_equal(python_process_thread_names(&info, getpid(), bias(), NULL, &names, &count),
			 0);
	assert_int_equal(count, 64);
}

/* ---- what a look remembers ---- */

static void thread_names__any_change_of_the_dictionary_is_seen(void **state)
{
	struct python_names_hint hint = {.keeps_names = true};

	(void)state;
	begin(9);
	add_thread(&a, 7, "one", 70);
	put_thread(&a.thread[1], "_name", "two", 80);
	assert_string_equal(look(&hint), "one:7:70");
	assert_string_equal(look(&hint), error(-EALREADY));
	hint.keeps_names = false;
	assert_string_equal(look(&hint), "one:7:70");
	hint.keeps_names = true;
	assert_string_equal(look(&hint), error(-EALREADY));
	a.active.keys[4]++; /* a thread came and went */
	assert_string_equal(look(&hint), "one:7:70");
	assert_string_equal(look(&hint), error(-EALREADY));
	a.active.object[3]++; /* the version tag */
	assert_string_equal(look(&hint), "one:7:70");
	assert_string_equal(look(&hint), error(-EALREADY));
	a.active.slot[0][2] = at(&a.thread[1]);
	assert_string_equal(look(&hint), "two:7:80");
	assert_string_equal(look(&hint), error(-EALREADY));
	/* the second interpreter's, too */
	a.word[0] = at(&b);
	add_thread(&b, 9, "three", 90);
	assert_string_equal(look(&hint), "two:7:80,three:9:90");
	assert_string_equal(look(&hint), error(-EALREADY));
	b.active.slot[0][2] = at(&a.thread[0]);
	assert_string_equal(look(&hint), "two:7:80,one:9:70");
	python_names_hint_release(&hint);
}

static void thread_names__not_imported_is_remembered(void **state)
{
	struct python_names_hint hint = {.keeps_names = true};

	(void)state;
	begin(9);
	add_thread(&a, 7, "one", 70);
	a.modules.keys[4] = 0;
	for (int i = 0; i < 3; i++)
		assert_string_equal(look(&hint), error(-EAGAIN));
	assert_int_equal(calls, 2); /* the head and the interpreter's words */
	a.modules.keys[4] = 1;
	assert_string_equal(look(&hint), "one:7:70");
	python_names_hint_release(&hint);
}

/* An interpreter that broke, besides one that is as before. */
static void thread_names__what_is_not_whole_is_not_as_before(void **state)
{
	struct python_names_hint hint = {.keeps_names = true};

	(void)state;
	begin(9);
	add_thread(&a, 7, "one", 70);
	assert_string_equal(look(&hint), "one:7:70");
	b.word[0] = at(&a);
	b.active.object[1] = STR_TYPE;
	runtime[HEAD_OFFSET / 8] = at(&b);
	assert_string_equal(look(&hint), "one:7:70");
	python_names_hint_release(&hint);
}

/* A known interpreter costs one call for its words and two for its empty dictionary; two more when
 * names are read, as it is read again. */
static void thread_names__known_interpreters_keep_their_place(void **state)
{
	struct python_names_hint hint = {.keeps_names = true};
	unsigned int search;

	(void)state;
	begin(9);
	assert_string_equal(look(NULL), "");
	search = calls - 1 - 4;
	assert_string_equal(look(&hint), "");
	assert_string_equal(look(&hint), error(-EALREADY));
	assert_int_equal(calls, 1 + 3);
	/* a new one before it */
	runtime[HEAD_OFFSET / 8] = at(&b);
	b.word[0] = at(&a);
	assert_string_equal(look(&hint), "");
	assert_int_equal(calls, 1 + search + 4 + 1 + 4);
	assert_string_equal(look(&hint), error(-EALREADY));
	assert_int_equal(calls, 1 + 3 + 3);
	/* it ends, and another comes to its place */
	runtime[HEAD_OFFSET / 8] = at(&a);
	assert_string_equal(look(&hint), "");
	assert_int_equal(calls, 1 + 1 + 4);
	runtime[HEAD_OFFSET / 8] = at(&b);
	assert_string_equal(look(&hint), "");
	assert_int_equal(calls, 1 + search + 4 + 1 + 4);
	python_names_hint_release(&hint);
}

static void thread_names__hint_of_another_interpreter_file_is_not_used(void **state)
{
	struct python_names_hint hint = {.keeps_names = true};
	struct python_info other;

	(void)state;
	begin(9);
	assert_string_equal(look(&hint), "");
	assert_string_equal(look(&hint), error(-EALREADY));
	assert_int_equal(calls, 1 + 3);
	other = info;
	look_as(&other, &hint);
	assert_true(calls > 1 + 3);
	look_as(&other, &hint);
	assert_int_equal(calls, 1 + 3);
	python_names_hint_release(&hint);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(thread_names__list_begins_at_the_runtime_s_head),
		cmocka_unit_test(thread_names__list_begins_at_the_variable_or_the_running_thread_s),
		cmocka_unit_test(thread_names__names_are_cut_to_63_bytes),
		cmocka_unit_test(thread_names__native_id_is_a_positive_int_of_3_8),
		cmocka_unit_test(thread_names__key_of_an_ident_is_its_hash),
		cmocka_unit_test(thread_names__unfinished_threads_are_left_out),
		cmocka_unit_test(thread_names__who_is_not_listed_any_more_is_left_out),
		cmocka_unit_test(thread_names__one_interpreter_is_enough),
		cmocka_unit_test(thread_names__at_most_4096_threads),
		cmocka_unit_test(thread_names__at_most_65536_entries),
		cmocka_unit_test(thread_names__reads_of_one_look_are_bounded),
		cmocka_unit_test(thread_names__slice_that_is_over_gives_a_thread),
		cmocka_unit_test(thread_names__change_between_slices_is_looked_at_again),
		cmocka_unit_test(thread_names__parts_of_a_look_share_its_reads),
		cmocka_unit_test(thread_names__at_most_64_interpreters),
		cmocka_unit_test(thread_names__any_change_of_the_dictionary_is_seen),
		cmocka_unit_test(thread_names__not_imported_is_remembered),
		cmocka_unit_test(thread_names__what_is_not_whole_is_not_as_before),
		cmocka_unit_test(thread_names__known_interpreters_keep_their_place),
		cmocka_unit_test(thread_names__hint_of_another_interpreter_file_is_not_used),
	};

	return cmocka_run_group_tests_name("python/thread_names_made", tests, NULL, NULL);
}
