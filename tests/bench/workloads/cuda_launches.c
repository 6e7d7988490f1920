/* SPDX-License-Identifier: BSD-2-Clause */
/* cuda_launches   Launches a kernel as often as each line that it reads says, and answers with the
 * ns that it took. */
#include <stdio.h>
#include <time.h>

int cuLaunchKernel(void *function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
		   unsigned int block_x, unsigned int block_y, unsigned int block_z,
		   unsigned int shared_bytes, void *stream, void **parameters, void **extra);

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
			cuLaunchKernel((void *)0x1000, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
		printf("%lld\n", now_ns() - before_ns);
		fflush(stdout);
	}
	return 0;
}
