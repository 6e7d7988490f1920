/* SPDX-License-Identifier: BSD-2-Clause */
/* probe_calls   Calls a function that does nothing as often as each line that it reads says, and
 * answers with the ns that it took.  The function begins with a NOP, which the kernel need not
 * step. */
#include <stdio.h>
#include <time.h>

void probed(void);
__asm__(".text\n"
	".globl probed\n"
	".type probed, %function\n"
	"probed:\n"
	"	nop\n"
	"	ret\n"
	".size probed, . - probed\n");

static long long now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

int main(void)
{
	unsigned long calls;

	while (scanf("%lu", &calls) == 1) {
		const long long before_ns = now_ns();

		for (unsigned long i = 0; i < calls; i++)
			probed();
		printf("%lld\n", now_ns() - before_ns);
		fflush(stdout);
	}
	return 0;
}
