/* SPDX-License-Identifier: BSD-2-Clause */
/* faults touch   touches fresh pages on one CPU until SIGTERM; prints for each part when it ended
 *                (CLOCK_MONOTONIC, ns) and ns a page */
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define PAGES 512U
#define ROUNDS 4U /* of a part: some ms */
#define PARTS_MAX 1000000U

struct part {
	uint64_t end_ns;
	double page_ns;
};

static volatile sig_atomic_t is_over;

static void end(int number)
{
	(void)number;
	is_over = 1;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

static void must(int is_good, const char *what)
{
	if (is_good)
		return;
	perror(what);
	exit(1);
}

/* Returns the ns that touching took. */
static uint64_t touch(volatile char *memory, size_t page_bytes)
{
	uint64_t begin = now_ns(), took;

	for (size_t i = 0; i < PAGES; i++)
		memory[i * page_bytes] = 1;
	took = now_ns() - begin;
	must(!madvise((void *)memory, PAGES * page_bytes, MADV_DONTNEED), "madvise");
	return took;
}

static void touch_until_the_end(volatile char *memory, size_t page_bytes)
{
	struct part *part = calloc(PARTS_MAX, sizeof(*part));
	size_t count = 0;

	must(!!part, "calloc");
	while (!is_over && count < PARTS_MAX) {
		uint64_t took = 0;

		for (unsigned int i = 0; i < ROUNDS; i++)
			took += touch(memory, page_bytes);
		part[count++] = (struct part){now_ns(), (double)took / (ROUNDS * PAGES)};
	}
	for (size_t i = 0; i < count; i++)
		printf("%llu %.1f\n", (unsigned long long)part[i].end_ns, part[i].page_ns);
	free(part);
}

int main(int argc, char **argv)
{
	const size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	cpu_set_t one;
	char *memory;

	CPU_ZERO(&one);
	CPU_SET(0, &one);
	must(!sched_setaffinity(0, sizeof(one), &one), "sched_setaffinity");
	signal(SIGTERM, end);
	memory = mmap(NULL, PAGES * page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		      -1, 0);
	must(memory != MAP_FAILED, "mmap");
	madvise(memory, PAGES * page_bytes, MADV_NOHUGEPAGE);
	if (argc == 2 && !strcmp(argv[1], "touch"))
		touch_until_the_end(memory, page_bytes);
	else
		return 2;
	return 0;
}
