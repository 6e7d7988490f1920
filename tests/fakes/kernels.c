/* SPDX-License-Identifier: BSD-2-Clause */
/* libfakekernels.so: what nvcc makes of a file with kernels, under the names that it gives.  The
 * name of a host stub is that of its kernel but for one of an unnamed namespace (L); one stub
 * goes through __device_stub__, one through the helper that -O0 builds have.  CUDART_MAJOR 13:
 * stubs ask for a handle once and launch that; 12: they launch their own address.
 *
 * fakekernels_NAME(count, grid, block, stream) launches one of them so many times; 0 or cudart's
 * error. */
#include "cudart.h"

#include <stdlib.h>

#define PUBLIC __attribute__((visibility("default")))
#define NOINLINE __attribute__((noipa)) /* nor a copy under another name */
#define ALWAYS_INLINE __attribute__((always_inline)) static inline

#define FAKEKERNELS_ARGS                                                                           \
	(unsigned int count, unsigned int grid, unsigned int block, cudaStream_t stream)
PUBLIC int fakekernels_vector_add FAKEKERNELS_ARGS;
PUBLIC int fakekernels_matmul FAKEKERNELS_ARGS;
PUBLIC int fakekernels_nms FAKEKERNELS_ARGS;
PUBLIC int fakekernels_reduce_rows FAKEKERNELS_ARGS;
PUBLIC int fakekernels_softmax FAKEKERNELS_ARGS;

#if CUDART_MAJOR >= 13
#define STUB __attribute__((visibility("hidden")))
#else
/* Their addresses come out of the GOT. */
#define STUB __attribute__((visibility("default")))
#endif
STUB void _Z9vectorAddPKfS0_Pfi(const float *a, const float *b, float *c, int n);
STUB void _ZN4fake6matmulIfLi16EEEvPKT_S3_PS1_i(const float *a, const float *b, float *c, int n);
STUB void _Z11reduce_rowsPKfPfi(const float *in, float *out, int n);
STUB void _Z7softmaxPfi(float *x, int n);

#if CUDART_MAJOR >= 13
#define LAUNCH(stub, start, args)                                                                  \
	static cudaKernel_t handle;                                                                \
                                                                                                   \
	if (!handle)                                                                               \
		__cudaGetKernel(&handle, (const void *)(stub));                                    \
	start(handle, args)
#define LAUNCH_ENTRY __cudaLaunchKernel
#else
#define LAUNCH(stub, start, args) start((const void *)(stub), args)
#define LAUNCH_ENTRY cudaLaunchKernel
#endif

ALWAYS_INLINE void start(const void *func, void **args)
{
	struct dim3 grid, block;
	cudaStream_t stream;
	size_t smem;

	if (__cudaPopCallConfiguration(&grid, &block, &smem, &stream))
		return;
	LAUNCH_ENTRY(func, grid, block, args, smem, stream);
}

NOINLINE void _Z9vectorAddPKfS0_Pfi(const float *a, const float *b, float *c, int n)
{
	uint64_t wide = (uint64_t)n;
	void *args[] = {&a, &b, &c, &wide};

	LAUNCH(_Z9vectorAddPKfS0_Pfi, start, args);
}

NOINLINE void _ZN4fake6matmulIfLi16EEEvPKT_S3_PS1_i(const float *a, const float *b, float *c, int n)
{
	uint64_t wide = (uint64_t)n;
	void *args[] = {&a, &b, &c, &wide};

	LAUNCH(_ZN4fake6matmulIfLi16EEEvPKT_S3_PS1_i, start, args);
}

NOINLINE static void _ZN4fakeL15nms_kernel_implEPKfi(const float *boxes, int n)
{
	uint64_t wide = (uint64_t)n;
	void *args[] = {&boxes, &wide};

	LAUNCH(_ZN4fakeL15nms_kernel_implEPKfi, start, args);
}

NOINLINE static void _Z35__device_stub__Z11reduce_rowsPKfPfiPKfPfi(const float *in, float *out,
								   int n)
{
	uint64_t wide = (uint64_t)n;
	void *args[] = {&in, &out, &wide};

	LAUNCH(_Z11reduce_rowsPKfPfi, start, args);
}

NOINLINE void _Z11reduce_rowsPKfPfi(const float *in, float *out, int n)
{
	_Z35__device_stub__Z11reduce_rowsPKfPfiPKfPfi(in, out, n);
}

NOINLINE static cudaError_t _ZL25__cudaLaunchKernel_helperPKv4dim3S1_PPvmP11CUstream_st LAUNCH_ARGS
{
	return LAUNCH_ENTRY(func, grid, block, args, smem, stream);
}

ALWAYS_INLINE void start_by_helper(const void *func, void **args)
{
	struct dim3 grid, block;
	cudaStream_t stream;
	size_t smem;

	if (__cudaPopCallConfiguration(&grid, &block, &smem, &stream))
		return;
	_ZL25__cudaLaunchKernel_helperPKv4dim3S1_PPvmP11CUstream_st(func, grid, block, args, smem,
								    stream);
}

NOINLINE void _Z7softmaxPfi(float *x, int n)
{
	uint64_t wide = (uint64_t)n;
	void *args[] = {&x, &wide};

	LAUNCH(_Z7softmaxPfi, start_by_helper, args);
}

/* ---------------------------------------------------------------- their callers:
 * kernel<<<...>>>(...) */

#define FAKE_DATA ((float *)0x1234567000)

static void configure(unsigned int grid, unsigned int block, cudaStream_t stream)
{
	__cudaPushCallConfiguration((struct dim3){grid, 1, 1}, (struct dim3){block, 1, 1}, 0,
				    stream);
}

#define CALLER(name, call)                                                                         \
	int fakekernels_##name FAKEKERNELS_ARGS                                                    \
	{                                                                                          \
		for (unsigned int i = 0; i < count; i++) {                                         \
			configure(grid, block, stream);                                            \
			call;                                                                      \
		}                                                                                  \
		return cudaGetLastError();                                                         \
	}

CALLER(vector_add, _Z9vectorAddPKfS0_Pfi(FAKE_DATA, FAKE_DATA + 1, FAKE_DATA + 2, (int)i))
CALLER(matmul,
       _ZN4fake6matmulIfLi16EEEvPKT_S3_PS1_i(FAKE_DATA, FAKE_DATA + 1, FAKE_DATA + 2, (int)i))
CALLER(nms, _ZN4fakeL15nms_kernel_implEPKfi(FAKE_DATA, (int)i))
CALLER(reduce_rows, _Z11reduce_rowsPKfPfi(FAKE_DATA, FAKE_DATA + 1, (int)i))
CALLER(softmax, _Z7softmaxPfi(FAKE_DATA, (int)i))

/* ---------------------------------------------------------------- registered when the library is
 * loaded */

static const struct {
	int magic, version;
	const void *data;
	void *unused;
} fatbin __attribute__((section(".nvFatBinSegment"))) = {0x466243b1, 1, "a fake's code", NULL};
static void **binary;

#define REGISTER(stub, name)                                                                       \
	__cudaRegisterFunction(handle, (const char *)(stub), (char *)(uintptr_t)(name), name, -1,  \
			       NULL, NULL, NULL, NULL, NULL)

NOINLINE static void _ZL31__nv_cudaEntityRegisterCallbackPPv(void **handle)
{
	REGISTER(_Z9vectorAddPKfS0_Pfi, "_Z9vectorAddPKfS0_Pfi");
	REGISTER(_ZN4fake6matmulIfLi16EEEvPKT_S3_PS1_i, "_ZN4fake6matmulIfLi16EEEvPKT_S3_PS1_i");
	REGISTER(_ZN4fakeL15nms_kernel_implEPKfi, "_ZN4fake15nms_kernel_implEPKfi");
	REGISTER(_Z11reduce_rowsPKfPfi, "_Z11reduce_rowsPKfPfi");
	REGISTER(_Z7softmaxPfi, "_Z7softmaxPfi");
}

static void _ZL26__cudaUnregisterBinaryUtilv(void)
{
	__cudaUnregisterFatBinary(binary);
}

__attribute__((constructor)) static void _ZL24__sti____cudaRegisterAllv(void)
{
	binary = __cudaRegisterFatBinary((void *)(uintptr_t)&fatbin);
	_ZL31__nv_cudaEntityRegisterCallbackPPv(binary);
	__cudaRegisterFatBinaryEnd(binary);
	atexit(_ZL26__cudaUnregisterBinaryUtilv);
}
