/* SPDX-License-Identifier: BSD-2-Clause */
/* Stands in for libcudart.so.12 above cuda_driver.c, which it opens at the first call, as the real
 * one does. */
#include <dlfcn.h>
#include <stddef.h>

static int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
		     void *, void **, void **);

/* 0: there is no driver, and nothing is done. */
int cudaLaunchKernel(void *function)
{
	void *driver;

	if (!launch) {
		driver = dlopen("libcuda.so.1", RTLD_NOW);
		if (driver)
			launch = (__typeof__(launch))dlsym(driver, "cuLaunchKernel");
	}
	return launch ? launch(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL) : 0;
}
