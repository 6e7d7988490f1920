/* SPDX-License-Identifier: BSD-2-Clause */
/* What victim.py does, for a sixth of the time, in native code: NAME is given to the compiler. */
#include <poll.h>
#include <stdio.h>
#include <time.h>

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define OF(function) JOIN(NAME, function)
#define WORK_S 0.02

int OF(_inner)(void);
int OF(_middle)(void);
void OF(_outer)(void);

static double clock_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

__attribute__((noinline)) int OF(_inner)(void)
{
	struct pollfd input = {.fd = 0, .events = POLLIN};
	double end_s = clock_s() + WORK_S;

	while (clock_s() < end_s)
		for (volatile int i = 0; i < 20000; i++)
			;
	return !poll(&input, 1, 100);
}

__attribute__((noinline)) int OF(_middle)(void)
{
	return OF(_inner)();
}

__attribute__((noinline)) void OF(_outer)(void)
{
	while (OF(_middle)())
		;
}

int main(void)
{
	char line[16];

	puts("ready");
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	double began_s = clock_s();

	OF(_outer)();
	printf("%f\n", clock_s() - began_s);
	return 0;
}
