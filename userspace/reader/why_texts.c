/* SPDX-License-Identifier: BSD-2-Clause */
#include "reader/why_texts.h"

const struct why_text why_texts[GPU_FINDING_COUNT] = {
	[GPU_FINDING_SYNC] =
		{"the exact time inside synchronisations on the host, divided among threads and "
		 "lines by sampled stacks",
		 "device time: a wait has the kernels in it that were queued before, and they may "
		 "have kept the GPU busy all the while",
		 "Read results back less often: keep losses and masks on the device, and copy them "
		 "every so many steps."},
	[GPU_FINDING_STARVED] =
		{"samples and waits of the launching thread with the label gpu=drained, which the "
		 "process's own calls prove",
		 "whether another process used the GPU meanwhile, and idle gaps between kernels "
		 "that were queued",
		 "Let what the thread did meanwhile run ahead of the GPU: prefetch batches, use "
		 "more loader workers, or do less between launches."},
	[GPU_FINDING_LAUNCH] =
		{"launches counted by probes, the median synchronisation, and samples of the "
		 "launching thread",
		 "device time: that the GPU is idle between launches is concluded from short "
		 "waits; "
		 "time in launch calls has the probe's own cost in it",
		 "Launch fewer and larger kernels: fuse operations (torch.compile), use a CUDA "
		 "graph, or larger batches."},
	[GPU_FINDING_COPY] =
		{"the exact time inside synchronous copies on the host, divided among threads and "
		 "lines by sampled stacks",
		 "device time: a copy's time has in it what was queued before; and whether memory "
		 "was pinned",
		 "Copy asynchronously from pinned memory, and synchronise once where the data is "
		 "needed."},
	[GPU_FINDING_TINY] =
		{"exact numbers of copies and bytes; the median is that of each line's mean size, "
		 "so that a few large copies of a line hide its small ones",
		 "device time: what an asynchronous copy takes there is not measured",
		 "Gather small values into one buffer, and copy that once."},
	[GPU_FINDING_ALLOC] =
		{"exact numbers of cuMemAlloc, cuMemFree and their kind without Async, and their "
		 "time on the host",
		 "device time: for how long a free made the device wait",
		 "Let a caching allocator keep memory: no empty_cache() in the loop, shapes that "
		 "repeat, or cudaMallocAsync."},
	[GPU_FINDING_GRAPH] =
		{"numbers of launches and synchronisations, by window; no graph was launched",
		 "device time, and whether kernels and their arguments are the same each time: "
		 "only how many there are",
		 "Capture what repeats as a CUDA graph: torch.cuda.graph(), or torch.compile() "
		 "with mode=\"reduce-overhead\"."},
	[GPU_FINDING_SMS] =
		{"NVML's gauges of the GPU, of all processes on it, one reading a second",
		 "which kernels they are, and whose: a GPU is the one that NVML counts so, which "
		 "need not be the program's number",
		 "Give each kernel more work: larger batches, fused operations, or several streams "
		 "at once; Nsight Compute tells what limits a kernel."},
};

const char *why_doubt_text(enum gpu_doubt doubt)
{
	switch (doubt) {
	case GPU_DOUBT_SCALED:
		return "numbers of launches are estimates: they were probed for a part of the time "
		       "(--max-slowdown)";
	case GPU_DOUBT_ONE_WINDOW:
		return "whether as many are launched each time: there is one window only";
	case GPU_DOUBT_NO_WAITS:
		return "what the thread did off the CPU: no waits of kind offcpu are beside it";
	default:
		return "how long the program had run before: in its first minute allocations are "
		       "normal";
	}
}
