/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: agent/cuda_functions.c */
#include "agent/cuda_functions.h"

#include <cmocka.h>
#include <string.h>

static const struct cuda_function *find(const char *name)
{
	for (size_t i = 0; i < cuda_function_count(); i++)
		if (!strcmp(cuda_function_get(i)->name, name))
			return cuda_function_get(i);
	fail_msg("%s is missing", name);
	return NULL;
}

static void functions__parameters_are_where_cuda_h_has_them(void **state)
{
	(void)state;
	assert_int_equal(find("cuLaunchKernel")->site.ident, 1);
	assert_int_equal(find("cuLaunchKernelEx")->site.ident, 2);
	assert_int_equal(find("cudaLaunchKernelExC")->site.ident, 2);
	assert_int_equal(find("cuMemcpyHtoDAsync_v2")->site.bytes[0], 3);
	assert_int_equal(find("cuMemcpyHtoDAsync_v2")->site.direction, PP_CUDA_HTOD);
	assert_int_equal(find("cuMemcpyPeerAsync")->site.bytes[0], 5);
	assert_int_equal(find("cudaMemcpy")->site.kind, 4);
	assert_int_equal(find("cudaMemcpy2D")->site.kind, 7);
	assert_int_equal(find("cuMemsetD32Async")->site.bytes_shift, 2);
	assert_int_equal(find("cuMemAlloc_v2")->site.bytes[0], 2);
	assert_int_equal(find("cuModuleGetFunction")->site.text, 3);
	assert_int_equal(find("cuLibraryGetKernel")->site.out, 1);
	assert_int_equal(find("cuKernelGetFunction")->site.ident, 2);
}

/* What waits has an end; what is timed without is an allocation. */
static void functions__that_wait_have_an_end(void **state)
{
	(void)state;
	for (size_t i = 0; i < cuda_function_count(); i++) {
		const struct cuda_function *function = cuda_function_get(i);

		assert_true(!function->site.waits || function->site.has_end);
		assert_true(!function->has_kernel || function->site.ident);
		assert_int_equal(function->is_runtime, !strncmp(function->name, "cuda", 4));
		assert_int_not_equal(function->site.does, 0);
	}
	assert_true(find("cuStreamSynchronize")->site.waits);
	assert_true(find("cuMemcpyDtoH_v2")->site.waits);
	assert_false(find("cuMemAlloc_v2")->site.waits);
	assert_false(find("cuLaunchKernel")->site.has_end);
	assert_null(cuda_function_get(cuda_function_count()));
}

static void label__has_no_version(void **state)
{
	char text[64];

	(void)state;
	for (size_t i = 0; i < cuda_function_count(); i++)
		assert_null(strstr(cuda_function_label(i, text), "_v"));
	assert_string_equal(cuda_function_label(0, text), "cuLaunchKernel");
	assert_string_equal(cuda_function_label(cuda_function_count(), text), "");
}

static void libraries__are_known_by_their_names(void **state)
{
	(void)state;
	assert_true(cuda_is_driver("/usr/lib/x86_64-linux-gnu/libcuda.so.580.65.06"));
	assert_true(cuda_is_driver("libcuda.so.1"));
	assert_false(cuda_is_driver("/usr/lib/libcuda.so"));
	assert_false(cuda_is_driver("/libcuda.so.1/x"));
	assert_false(cuda_is_driver("/usr/lib/libcudart.so.12"));
	assert_false(cuda_is_driver(NULL));
	assert_true(cuda_is_runtime("/a/libcudart.so.13"));
	assert_true(cuda_is_runtime("/torchvision.libs/libcudart.faf08d9a.so.13"));
	assert_true(cuda_is_runtime("libcudart-d0da41ae.so.11.0"));
	assert_false(cuda_is_runtime("libcudart_static.a"));
	assert_false(cuda_is_runtime("libcudartx.so.1"));
	assert_false(cuda_is_runtime("libcudart.a"));
	assert_false(cuda_is_runtime(NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions__parameters_are_where_cuda_h_has_them),
		cmocka_unit_test(functions__that_wait_have_an_end),
		cmocka_unit_test(label__has_no_version),
		cmocka_unit_test(libraries__are_known_by_their_names),
	};

	return cmocka_run_group_tests_name("agent/cuda_functions", tests, NULL, NULL);
}
