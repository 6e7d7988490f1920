/* SPDX-License-Identifier: BSD-2-Clause */
/* What can be asked without probes: the functions of pyprofd's own table, and whether our kernels
 * run as long as they are told. */
#include "gpu.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "elf/probe_sites.h"
#include "probes/cuda_functions.h"

#ifdef __x86_64__
#define MACHINE EM_X86_64
#else
#define MACHINE EM_AARCH64
#endif
#define NAMES 512U

int gpu_head(void)
{
	char name[128] = "";
	CUdevice device;
	Dl_info file;

	gpu_load();
	printf("library\t%s\n",
	       dladdr(gpu_need("cuInit"), &file) ? file.dli_fname : "libcuda.so.1");
	printf("cuda\t%d.%d\n", gpu_version() / 1000, gpu_version() % 1000 / 10);
	gpu_open();
	gpu_check(CU(cuDeviceGet)(&device, 0), "cuDeviceGet");
	gpu_check(CU(cuDeviceGetName)(name, sizeof(name) - 1, device), "cuDeviceGetName");
	printf("device\t%s\n", name);
	return 0;
}

/* ---------------------------------------------------------------- entries */

static const char *const twins[] = {"_ptsz", "_ptds"};
/* All addresses at which pyprofd knows a function, by name. */
static void *known[NAMES * 3];
static size_t known_count;

static void *find_twin(const char *name, const char **ret_suffix)
{
	char twin[160];
	void *found = NULL;

	for (size_t i = 0; !found && i < sizeof(twins) / sizeof(twins[0]); i++) {
		snprintf(twin, sizeof(twin), "%s%s", name, twins[i]);
		found = gpu_find(twin);
		*ret_suffix = found ? twins[i] : "none";
	}
	return found;
}

static void note_known(void)
{
	for (size_t i = 0; i < cuda_function_count() && i < NAMES; i++) {
		const struct cuda_function *function = cuda_function_get(i);
		const char *suffix;

		if (function->library != CUDA_DRIVER)
			continue;
		known[known_count++] = gpu_find(function->name);
		known[known_count++] = find_twin(function->name, &suffix);
	}
}

/* Where an address lies that cuGetProcAddress gives and no known function has. */
static void tell_other(const void *address, char *text, size_t size)
{
	Dl_info at;

	if (!dladdr(address, &at))
		snprintf(text, size, "other:%p", address);
	else if (at.dli_saddr == address)
		snprintf(text, size, "other:%s", at.dli_sname);
	else
		snprintf(text, size, "other:%s+0x%zx", strrchr(at.dli_fname, '/') + 1,
			 (size_t)((const char *)address - (const char *)at.dli_fbase));
}

/* Asks for the versions that runtimes ask for, too: they name the one in which a function came. */
static void compare(const char *base, uint64_t flags, char *text, size_t size)
{
	const int versions[] = {gpu_version(), 12000, flags ? 7000 : 4000};

	snprintf(text, size, "none");
	for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
		const void *found = gpu_proc_address(base, versions[i], flags);
		bool is_known = false;

		for (size_t k = 0; found && k < known_count; k++)
			is_known |= known[k] == found;
		if (found && !is_known) {
			tell_other(found, text, size);
			return;
		}
		if (found)
			snprintf(text, size, "same");
	}
}

static const char *cost_of(const uint8_t *code)
{
	static const char *const names[PROBE_COSTS] = {"emulated", "nop", "stepped"};
	static const uint8_t endbr[] = {0xf3, 0x0f, 0x1e, 0xfa};

	if (MACHINE == EM_X86_64 && !memcmp(code, endbr, sizeof(endbr)))
		code += sizeof(endbr);
	return names[probe_instruction_cost(MACHINE, code, 16)];
}

static void tell_function(size_t api)
{
	const struct cuda_function *function = cuda_function_get(api);
	const uint8_t *code = gpu_find(function->name);
	char base[64], flags0[256] = "none", flags2[256] = "none";
	const char *suffix;

	find_twin(function->name, &suffix);
	cuda_function_label(api, base);
	if (gpu_find("cuGetProcAddress_v2")) {
		compare(base, 0, flags0, sizeof(flags0));
		compare(base, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, flags2,
			sizeof(flags2));
	}
	printf("function\t%s\t%s\t%s\t%s\t%s\t%s\t", function->name, code ? "yes" : "no", suffix,
	       flags0, flags2, code ? cost_of(code) : "none");
	for (size_t i = 0; code && i < 8; i++)
		printf("%02x", code[i]);
	putchar('\n');
}

int gpu_functions(void)
{
	gpu_load();
	note_known();
	for (size_t i = 0; i < cuda_function_count(); i++)
		if (cuda_function_get(i)->library == CUDA_DRIVER)
			tell_function(i);
	return 0;
}

/* ---------------------------------------------------------------- kernels */

#define KERNELS 100U
#define KERNEL_NS 1000000U

int gpu_kernel(void)
{
	CUstream stream;
	CUevent begin, end;
	CUfunction function;
	uint64_t begun_ns;
	float ms = 0;

	gpu_open();
	function = gpu_function("pyprofd_spin");
	stream = gpu_stream();
	gpu_check(CU(cuEventCreate)(&begin, 0), "cuEventCreate");
	gpu_check(CU(cuEventCreate)(&end, 0), "cuEventCreate");
	gpu_launch(function, stream, KERNEL_NS); /* the first one takes longer */
	gpu_check(CU(cuStreamSynchronize)(stream), "cuStreamSynchronize");
	begun_ns = gpu_now_ns();
	gpu_check(CU(cuEventRecord)(begin, stream), "cuEventRecord");
	for (unsigned int i = 0; i < KERNELS; i++)
		gpu_launch(function, stream, KERNEL_NS);
	gpu_check(CU(cuEventRecord)(end, stream), "cuEventRecord");
	gpu_check(CU(cuStreamSynchronize)(stream), "cuStreamSynchronize");
	printf("host_ms\t%.3f\n", (double)(gpu_now_ns() - begun_ns) / 1e6 / KERNELS);
	gpu_check(CU(cuEventElapsedTime)(&ms, begin, end), "cuEventElapsedTime");
	printf("device_ms\t%.3f\n", (double)ms / KERNELS);
	printf("ptx\t%s\n", gpu_target());
	return 0;
}
