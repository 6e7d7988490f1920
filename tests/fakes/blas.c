/* SPDX-License-Identifier: BSD-2-Clause */
/* libfakeblas.so: a library with cudart in itself, as cuBLAS is said to be.  It exports
 * fakeblas_* alone. */
#include "cudart.h"

int fakeblas_sgemm(unsigned int m, unsigned int n, unsigned int k, cudaStream_t stream);

static const char kernel_name[] = "_ZN8fakeblas12sgemm_128x64EPKfS1_Pfiii";
static const struct {
	int magic, version;
	const void *data;
	void *unused;
} fatbin __attribute__((section(".nvFatBinSegment"))) = {0x466243b1, 1, "a fake's code", NULL};

__attribute__((noipa)) static void sgemm_128x64(const float *a, const float *b, float *c,
						unsigned int m, unsigned int n, unsigned int k,
						cudaStream_t stream)
{
	uint64_t wide[] = {m, n, k};
	void *args[] = {&a, &b, &c, &wide[0], &wide[1], &wide[2]};
	struct dim3 grid = {(m + 127) / 128, (n + 63) / 64, 1}, block = {256, 1, 1};

	cudaLaunchKernel((const void *)sgemm_128x64, grid, block, args, 0, stream);
}

/* One launch.  0 or cudart's error. */
int fakeblas_sgemm(unsigned int m, unsigned int n, unsigned int k, cudaStream_t stream)
{
	float *data = (float *)0x1234567000;

	sgemm_128x64(data, data + 1, data + 2, m, n, k, stream);
	return cudaGetLastError();
}

__attribute__((constructor)) static void register_all(void)
{
	void **binary = __cudaRegisterFatBinary((void *)(uintptr_t)&fatbin);

	__cudaRegisterFunction(binary, (const char *)sgemm_128x64, (char *)(uintptr_t)kernel_name,
			       kernel_name, -1, NULL, NULL, NULL, NULL, NULL);
	__cudaRegisterFatBinaryEnd(binary);
}
