/* SPDX-License-Identifier: BSD-2-Clause */
/* Loads the driver and our kernels. */
#include "gpu.h"

#include <dlfcn.h>
#include <err.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LIBRARY "libcuda.so.1"
#define PTX_BYTES 8192U

static void *library;
static CUcontext context;
static char ptx[PTX_BYTES];
static const char *target;

__attribute__((format(printf, 1, 2), noreturn)) static void not_here(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	exit(GPU_NOT_HERE);
}

void gpu_load(void)
{
	if (library)
		return;
	library = dlopen(LIBRARY, RTLD_NOW);
	if (!library)
		not_here("%s", dlerror());
}

void *gpu_find(const char *name)
{
	return dlsym(library, name);
}

void *gpu_need(const char *name)
{
	void *found = gpu_find(name);

	if (!found)
		not_here("%s has no %s", LIBRARY, name);
	return found;
}

void *gpu_proc_address(const char *name, int version, uint64_t flags)
{
	void *found = NULL;
	int status = 0;

	if (CU(cuGetProcAddress_v2)(name, &found, version, flags, &status) || status)
		return NULL;
	return found;
}

int gpu_version(void)
{
	int version = 0;

	gpu_check(CU(cuDriverGetVersion)(&version), "cuDriverGetVersion");
	return version;
}

void gpu_check(CUresult error, const char *what)
{
	if (error)
		errx(1, "%s: error %d", what, error);
}

void gpu_open(void)
{
	CUdevice device;
	CUresult error;
	int count = 0;

	gpu_load();
	error = CU(cuInit)(0);
	if (error)
		not_here("cuInit: error %d", error);
	error = CU(cuDeviceGetCount)(&count);
	if (error || !count)
		not_here("no device: error %d", error);
	gpu_check(CU(cuDeviceGet)(&device, 0), "cuDeviceGet");
	error = CU(cuDevicePrimaryCtxRetain)(&context, device);
	if (error)
		not_here("cuDevicePrimaryCtxRetain: error %d", error);
	gpu_check(CU(cuCtxSetCurrent)(context), "cuCtxSetCurrent");
}

CUcontext gpu_context(void)
{
	return context;
}

CUstream gpu_stream(void)
{
	CUstream stream;

	gpu_check(CU(cuStreamCreate)(&stream, 1), "cuStreamCreate"); /* not with the legacy one */
	return stream;
}

/* ---------------------------------------------------------------- kernels */

/* Runs for parameter 1, in ns.  Parameter 2, which is 0, keeps a compiler from leaving it out. */
#define SPIN(name)                                                                                 \
	".visible .entry " #name "(.param .u64 " #name "_ns, .param .u64 " #name "_end)\n"         \
	"{\n"                                                                                      \
	"\t.reg .u64 %begin, %now, %ns, %end;\n"                                                   \
	"\t.reg .pred %is;\n"                                                                      \
	"\tmov.u64 %begin, %globaltimer;\n"                                                        \
	"\tld.param.u64 %ns, [" #name "_ns];\n"                                                    \
	"\tld.param.u64 %end, [" #name "_end];\n"                                                  \
	"again:\n"                                                                                 \
	"\tmov.u64 %now, %globaltimer;\n"                                                          \
	"\tsub.u64 %now, %now, %begin;\n"                                                          \
	"\tsetp.lt.u64 %is, %now, %ns;\n"                                                          \
	"\t@%is bra again;\n"                                                                      \
	"\tsetp.eq.u64 %is, %end, 0;\n"                                                            \
	"\t@%is bra done;\n"                                                                       \
	"\tst.global.u64 [%end], %now;\n"                                                          \
	"done:\n"                                                                                  \
	"\tret;\n"                                                                                 \
	"}\n"

/* The oldest first: later devices run it too, as long as drivers take it. */
static const char *const targets[] = {"6.0\n.target sm_50", "6.3\n.target sm_75",
				      "7.8\n.target sm_90", "8.7\n.target sm_100"};

CUmodule gpu_module(void)
{
	static CUmodule module;
	CUresult error = CUDA_SUCCESS;

	for (size_t i = 0; !module && i < sizeof(targets) / sizeof(targets[0]); i++) {
		snprintf(ptx, sizeof(ptx), ".version %s\n.address_size 64\n%s", targets[i],
			 GPU_KERNELS(SPIN));
		error = CU(cuModuleLoadData)(&module, ptx);
		if (!error)
			target = targets[i];
	}
	if (!module)
		not_here("the driver takes none of the PTX: error %d", error);
	return module;
}

const char *gpu_ptx(void)
{
	return ptx;
}

const char *gpu_target(void)
{
	static char text[32];

	snprintf(text, sizeof(text), "%.3s %s", target, strstr(target, "sm_"));
	return text;
}

CUfunction gpu_function(const char *kernel)
{
	CUfunction function;

	gpu_check(CU(cuModuleGetFunction)(&function, gpu_module(), kernel), kernel);
	return function;
}

void gpu_launch(CUfunction function, CUstream stream, uint64_t ns)
{
	static __typeof__(cuLaunchKernel) *launch;
	uint64_t end = 0;
	void *params[] = {&ns, &end};

	if (!launch)
		launch = CU(cuLaunchKernel);
	gpu_check(launch(function, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL), "cuLaunchKernel");
}

void gpu_await(CUstream stream)
{
	CUresult error;

	while ((error = CU(cuStreamQuery)(stream)) == CUDA_ERROR_NOT_READY)
		gpu_sleep_ns(20000);
	gpu_check(error, "cuStreamQuery");
}

uint64_t gpu_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

void gpu_sleep_ns(uint64_t ns)
{
	struct timespec t = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};

	nanosleep(&t, NULL);
}
