/* SPDX-License-Identifier: BSD-2-Clause */
/* fault_storm WHAT THREADS   Page faults as fast as the kernel takes them: `new`: memory that is
 * mapped, touched and given back; `zeros`: the same, and it is read alone, which takes no page;
 * `copies`: memory that a child shares is written; `changes`: the mapping that is touched is split,
 * replaced and taken away by another thread meanwhile. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "storm.h"

#define PAGE 4096UL
#define PAGES 256UL

static const char *what;
static char *place;
static _Thread_local sigjmp_buf again;

static void on_fault(int number)
{
	(void)number;
	siglongjmp(again, 1);
}

static char *map(char *at)
{
	return mmap(at, PAGES * PAGE, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED : 0), -1, 0);
}

static void touch(volatile char *at)
{
	for (size_t i = 0; i < PAGES; i++)
		at[i * PAGE]++;
}

static void look(const volatile char *at)
{
	for (size_t i = 0; i < PAGES; i++)
		(void)at[i * PAGE];
}

static void change(void)
{
	for (;;) {
		mprotect(place + PAGE * (size_t)(rand() % (int)PAGES), PAGE, PROT_READ);
		munmap(place + PAGE * (size_t)(rand() % (int)PAGES), PAGE);
		if (!(rand() % 16))
			map(place);
	}
}

static void copy(char *at)
{
	touch(at);
	if (fork() == 0) {
		touch(at);
		_exit(0);
	}
	touch(at);
	wait(NULL);
}

static void *run(void *unused)
{
	char *at = *what == 'c' && what[1] == 'h' ? place : map(NULL);

	sigsetjmp(again, 1);
	for (;;) {
		if (!strcmp(what, "copies")) {
			copy(at);
			continue;
		}
		if (*what == 'z')
			look(at);
		else
			touch(at);
		if (*what == 'z' || *what == 'n')
			madvise(at, PAGES * PAGE, MADV_DONTNEED);
	}
	return unused;
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 1;
	what = argv[1];
	signal(SIGSEGV, on_fault);
	place = map(NULL);
	storm_begin(run, argv[2]);
	if (!strcmp(what, "changes"))
		change();
	run(NULL);
	return 0;
}
