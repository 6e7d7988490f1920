/* SPDX-License-Identifier: BSD-2-Clause */
/* cuda   Waits for /tmp/go, calls the stand-in of libcuda (tests/e2e/targets/cuda_driver.c) from 64
 * threads at once, makes /tmp/cuda-done and waits to be ended. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#define THREADS 64U
#define KERNELS 8U
#define TIMES 400U
#define SYNCS 20U

int cuStreamSynchronize(void *stream);
int cuMemcpyHtoDAsync_v2(uintptr_t to, const void *from, size_t size, void *stream);
void fake_drive_threads(unsigned threads, unsigned kernels, unsigned times);

int main(void)
{
	FILE *done;

	while (access("/tmp/go", F_OK))
		usleep(10000);
	fake_drive_threads(THREADS, KERNELS, TIMES);
	for (unsigned i = 0; i < SYNCS; i++) {
		cuStreamSynchronize(NULL);
		cuMemcpyHtoDAsync_v2(0, NULL, 1000, NULL);
	}
	done = fopen("/tmp/cuda-done", "w");
	if (done)
		fclose(done);
	for (;;)
		pause();
}
