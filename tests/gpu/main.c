/* SPDX-License-Identifier: BSD-2-Clause */
/* gpu_check WHAT   Asks the CUDA driver of this machine.  One line an answer, its fields set apart
 * by tabs:
 *   head        library, version of CUDA, device
 *   functions   each function that pyprofd knows: whether it and its twin are exported, where
 *               cuGetProcAddress leads, how it begins
 *   kernel      how long our kernel of 1 ms takes
 *   calls WAY   1,000 calls and more of each function, once there are probes; WAY: name, twin,
 *               address, address-twin
 *   truth       known kernels, copies, waits and a graph, once there are probes
 *   drained     the same for times in which nothing is queued
 * The last three print `ready PID` when probes may come, `done` when they may go, and then whether
 * the driver's code is as it was.  Exit status 77: it cannot be asked here, for the reason given.
 */
#include "gpu.h"

#include <err.h>
#include <string.h>

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "head"))
		return gpu_head();
	if (!strcmp(what, "functions"))
		return gpu_functions();
	if (!strcmp(what, "kernel"))
		return gpu_kernel();
	if (!strcmp(what, "calls") && argc > 2)
		return gpu_calls(argv[2]);
	if (!strcmp(what, "truth"))
		return gpu_truth();
	if (!strcmp(what, "drained"))
		return gpu_drained();
	errx(2, "usage: gpu_check head|functions|kernel|calls WAY|truth|drained");
}
