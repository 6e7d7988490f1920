/* SPDX-License-Identifier: BSD-2-Clause */
/* The fake libcudart's state: pointers into the driver, registered kernels, threads' devices. */
#include "cudart.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define FUNCTION_ROWS 16384U
#define DEVICES 16U

struct binary {
	void *image;
	CUlibrary _Atomic library; /* loaded when a kernel of it is asked for */
};

struct registered {
	const void *_Atomic host_function;
	const char *device_name;
	struct binary *binary;
	CUkernel _Atomic kernel;
	CUfunction _Atomic of_device[DEVICES];
};

struct cudart_slots cudart_slots, cudart_slots_ptsz;
static pthread_once_t loaded = PTHREAD_ONCE_INIT;
static cudaError_t load_error;
static struct registered registered[FUNCTION_ROWS];
static pthread_mutex_t register_lock = PTHREAD_MUTEX_INITIALIZER;

static _Thread_local struct {
	int is_ready, device;
	cudaError_t last_error;
	struct dim3 grid, block;
	size_t smem;
	cudaStream_t stream;
} thread;

/* ---------------------------------------------------------------- the driver */

static void load_driver(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
	__typeof__(cuGetProcAddress_v2) *find;

	load_error = cudaErrorInsufficientDriver;
	if (!driver)
		return;
	find = (__typeof__(find))dlsym(driver, "cuGetProcAddress_v2");
	if (!find)
		return;
#define SLOT(function, name)                                                                       \
	if (find(name, (void **)&cudart_slots.function, CUDART_MAJOR * 1000, 0, NULL))             \
		return;                                                                            \
	if (find(name, (void **)&cudart_slots_ptsz.function, CUDART_MAJOR * 1000, 2, NULL))        \
		return;
	CUDART_SLOTS(SLOT)
#undef SLOT
	load_error = cudart_slots.cuInit(0);
}

static cudaError_t use_device(int device)
{
	CUcontext context;
	cudaError_t error = cudart_slots.cuDevicePrimaryCtxRetain(&context, device);

	if (!error)
		error = cudart_slots.cuCtxSetCurrent(context);
	if (error)
		return error;
	thread.device = device;
	thread.is_ready = 1;
	return 0;
}

cudaError_t cudart_ready(void)
{
	if (thread.is_ready)
		return 0;
	pthread_once(&loaded, load_driver);
	return load_error ? load_error : use_device(thread.device);
}

cudaError_t cudart_remember(cudaError_t error)
{
	if (error && error != CUDA_ERROR_NOT_READY)
		thread.last_error = error;
	return error;
}

cudaError_t cudaGetLastError(void)
{
	cudaError_t error = thread.last_error;

	thread.last_error = 0;
	return error;
}

cudaError_t cudaPeekAtLastError(void)
{
	return thread.last_error;
}

const char *cudaGetErrorString(cudaError_t error)
{
	return error ? "a fake's error" : "no error";
}

cudaError_t cudaRuntimeGetVersion(int *ret_version)
{
	*ret_version = CUDART_MAJOR * 1000;
	return 0;
}

cudaError_t cudaDriverGetVersion(int *ret_version)
{
	pthread_once(&loaded, load_driver);
	*ret_version = 0;
	return load_error ? 0 : cudart_slots.cuDriverGetVersion(ret_version);
}

cudaError_t cudaGetDeviceCount(int *ret_count)
{
	pthread_once(&loaded, load_driver);
	return cudart_remember(load_error ? load_error : cudart_slots.cuDeviceGetCount(ret_count));
}

cudaError_t cudaSetDevice(int device)
{
	pthread_once(&loaded, load_driver);
	return cudart_remember(load_error ? load_error : use_device(device));
}

cudaError_t cudaGetDevice(int *ret_device)
{
	*ret_device = thread.device;
	return 0;
}

/* ---------------------------------------------------------------- registered kernels */

void **__cudaRegisterFatBinary(void *image)
{
	struct binary *binary = calloc(1, sizeof(*binary));

	if (!binary)
		abort();
	binary->image = image;
	return (void **)binary;
}

void __cudaRegisterFatBinaryEnd(void **binary)
{
	(void)binary;
}

/* Called when a library is unloaded or the process ends: the driver may be gone by then. */
void __cudaUnregisterFatBinary(void **binary)
{
	(void)binary;
}

static struct registered *row_of(const void *host_function, int is_new)
{
	uintptr_t at = ((uintptr_t)host_function >> 4) * 0x9e3779b1U;

	for (unsigned int i = 0; i < FUNCTION_ROWS; i++, at++) {
		struct registered *row = &registered[at % FUNCTION_ROWS];
		const void *there = atomic_load(&row->host_function);

		if (there == host_function || (is_new && !there))
			return row;
		if (!there)
			return NULL;
	}
	return NULL;
}

void __cudaRegisterFunction(void **binary, const char *host_function, char *device_function,
			    const char *device_name, int thread_limit, void *tid, void *bid,
			    struct dim3 *block, struct dim3 *grid, int *warp_size)
{
	struct registered *row;

	(void)device_function, (void)thread_limit, (void)tid, (void)bid;
	(void)block, (void)grid, (void)warp_size;
	pthread_mutex_lock(&register_lock);
	row = row_of(host_function, 1);
	if (!row)
		abort();
	row->device_name = device_name;
	row->binary = (struct binary *)binary;
	atomic_store(&row->host_function, host_function);
	pthread_mutex_unlock(&register_lock);
}

static cudaError_t load_kernel(struct registered *row)
{
	cudaError_t error = 0;
	CUlibrary library;
	CUkernel kernel;

	pthread_mutex_lock(&register_lock);
	library = row->binary->library;
	if (!library) {
		error = cudart_slots.cuLibraryLoadData(&library, row->binary->image, NULL, NULL, 0,
						       NULL, NULL, 0);
		if (!error)
			row->binary->library = library;
	}
	if (!error && !row->kernel) {
		error = cudart_slots.cuLibraryGetKernel(&kernel, library, row->device_name);
		if (!error)
			row->kernel = kernel;
	}
	pthread_mutex_unlock(&register_lock);
	return error;
}

/* The host function first, the handle over it when there is one. */
cudaError_t __cudaGetKernel(cudaKernel_t *ret_kernel, const void *host_function)
{
	struct registered *row = row_of(host_function, 0);
	cudaError_t error;

	*ret_kernel = (cudaKernel_t)(uintptr_t)host_function;
	if (!row)
		return cudart_remember(cudaErrorInvalidDeviceFunction);
	error = cudart_ready();
	if (!error && !row->kernel)
		error = load_kernel(row);
	if (error)
		return cudart_remember(error);
	*ret_kernel = row->kernel;
	return 0;
}

cudaError_t cudart_function(const void *func, CUfunction *ret_function)
{
	struct registered *row = row_of(func, 0);
	CUfunction function;
	cudaError_t error = 0;

	/* A handle: the driver takes a CUkernel, too. */
	if (!row) {
		*ret_function = (CUfunction)(uintptr_t)func;
		return 0;
	}
	function = row->of_device[thread.device];
	if (!function) {
		if (!row->kernel)
			error = load_kernel(row);
		if (!error)
			error = cudart_slots.cuKernelGetFunction(&function, row->kernel);
		if (error)
			return error;
		row->of_device[thread.device] = function;
	}
	*ret_function = function;
	return 0;
}

/* ---------------------------------------------------------------- kernel<<<...>>> */

unsigned int __cudaPushCallConfiguration(struct dim3 grid, struct dim3 block, size_t smem,
					 cudaStream_t stream)
{
	thread.grid = grid;
	thread.block = block;
	thread.smem = smem;
	thread.stream = stream;
	return 0;
}

cudaError_t __cudaPopCallConfiguration(struct dim3 *ret_grid, struct dim3 *ret_block,
				       size_t *ret_smem, void *ret_stream)
{
	*ret_grid = thread.grid;
	*ret_block = thread.block;
	*ret_smem = thread.smem;
	memcpy(ret_stream, &thread.stream, sizeof(thread.stream));
	return 0;
}
