/* SPDX-License-Identifier: BSD-2-Clause */
/* probe_storm WHAT THREADS   A file that claims to be a CPython 3.11 and hits its own probes as
 * fast as it can: `names`: imports of ever new modules; `open`: the same, and none of them ends;
 * `threads`: as many as one thread may have open, in ever new threads; `gc`: collections of ever
 * new generations, `nested`: that never end either. */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "storm.h"

/* What makes it an interpreter: the symbols, a version, and the size of code objects. */
unsigned char _PyRuntime[0x700] = {1};
uint64_t PyCode_Type[51] = {[4] = 184};
uint64_t Py_Version = 0x030b08f0;
uint64_t _Py_NoneStruct[2] = {1};
__attribute__((noinline, used)) int _PyEval_EvalFrameDefault(int a)
{
	return a + Py_Version;
}

/* <sys/sdt.h>, without semaphores. */
#define PROBE(name, value)                                                                         \
	__asm__ volatile("990: nop\n"                                                              \
			 ".pushsection .note.stapsdt,\"\",\"note\"\n"                              \
			 ".balign 4\n"                                                             \
			 ".4byte 992f-991f, 994f-993f, 3\n"                                        \
			 "991: .asciz \"stapsdt\"\n"                                               \
			 "992: .balign 4\n"                                                        \
			 "993: .8byte 990b, 0, 0\n"                                                \
			 ".asciz \"python\"\n"                                                     \
			 ".asciz \"" name "\"\n"                                                   \
			 ".asciz \"8@%%rdi\"\n"                                                    \
			 "994: .balign 4\n"                                                        \
			 ".popsection\n" ::"D"(value)                                              \
			 : "memory")

static const char *what;
static atomic_ulong count;

/* A text of its own for each number. */
static void spell(char *text, unsigned long number)
{
	for (int i = 0; i < 16; i++, number >>= 4)
		text[i] = (char)('a' + (number & 15));
	text[16] = '\0';
}

static void import(bool ends)
{
	char name[200];

	memset(name, 'm', sizeof(name));
	spell(name + sizeof(name) - 17, atomic_fetch_add(&count, 1));
	PROBE("import__find__load__start", name);
	if (ends)
		PROBE("import__find__load__done", name);
}

static void collect(bool ends)
{
	PROBE("gc__start", atomic_fetch_add(&count, 1));
	if (ends)
		PROBE("gc__done", 0);
}

#define OPEN_MAX 200 /* probe.bpf.c: IMPORTS_DEEP */

/* Then another thread goes on. */
static void *open_many(void *unused)
{
	pthread_t thread;

	pthread_detach(pthread_self());
	for (int i = 0; i < OPEN_MAX; i++)
		import(false);
	while (pthread_create(&thread, NULL, open_many, NULL))
		usleep(1000);
	return unused;
}

static void *run(void *unused)
{
	for (;;) {
		if (!strcmp(what, "threads"))
			return open_many(unused);
		if (!strcmp(what, "names") || !strcmp(what, "open"))
			import(*what == 'n');
		else
			collect(*what == 'g');
	}
	return unused;
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 1;
	what = argv[1];
	storm_begin(run, argv[2]);
	run(NULL);
	pthread_exit(NULL);
}
