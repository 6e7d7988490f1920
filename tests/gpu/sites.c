/* SPDX-License-Identifier: BSD-2-Clause */
/* The places where pyprofd puts breakpoints, by its own table and its own reader of ELF files.  A
 * breakpoint is in the process's copy of the page, so the process sees whether there is one. */
#include "gpu.h"

#include <dlfcn.h>
#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "elf/probe_sites.h"
#include "probes/cuda_functions.h"

#define SITES 512U
#define LOOK_NS 100000U
#define FIRST_NS 40000000000ULL /* a first link may take so long: programs are verified */
#define FURTHER_NS 2000000000ULL
#define BEGIN_NS 1000000000ULL /* pyprofd's run begins behind its last probe */

static struct gpu_site sites[SITES];
static size_t site_count;

static bool counts_calls(size_t api)
{
	const struct cuda_function *function = cuda_function_get(api);

	return function && function->library == CUDA_DRIVER && function->site.does == PP_CUDA_CALL;
}

static void add_sites(const struct elf_image *image, uintptr_t bias, const size_t *api,
		      const struct probe_wanted *wanted, size_t count)
{
	struct probe_sites found;

	if (probe_sites_find(image, wanted, count, &found))
		errx(1, "the driver's file cannot be read");
	for (size_t i = 0; i < found.site_count && site_count < SITES; i++) {
		struct gpu_site *site = &sites[site_count++];
		const uint8_t *in_file;

		site->code = (const uint8_t *)(bias + found.site[i].vaddr);
		site->api = (uint32_t)api[found.site[i].wanted];
		site->cost = found.site[i].cost;
		in_file = elf_image_at(image, found.site[i].vaddr, sizeof(site->before));
		memcpy(site->before, in_file ? in_file : site->code, sizeof(site->before));
	}
	probe_sites_release(&found);
}

/* The library is mapped at `bias` plus its own addresses. */
static void find_in(const struct elf_image *image, uintptr_t bias)
{
	struct probe_wanted *wanted = calloc(PROBE_WANTED_MAX, sizeof(*wanted));
	size_t api[PROBE_WANTED_MAX], count = 0;

	if (!wanted)
		errx(1, "no memory");
	for (size_t i = 0; i <= cuda_function_count(); i++) {
		if (count == PROBE_WANTED_MAX || i == cuda_function_count()) {
			add_sites(image, bias, api, wanted, count);
			count = 0;
		}
		if (!counts_calls(i))
			continue;
		wanted[count] =
			(struct probe_wanted){.kind = PROBE_WANTED_FUNCTION, .takes_twins = 1};
		snprintf(wanted[count].name, sizeof(wanted[count].name), "%s",
			 cuda_function_get(i)->name);
		api[count++] = i;
	}
	free(wanted);
}

void gpu_sites_find(void)
{
	OWNED(elf_image) struct elf_image *image = NULL;
	struct elf_symbol symbol;
	void *init = gpu_need("cuInit");
	Dl_info file;
	int fd;

	if (site_count)
		return;
	fd = dladdr(init, &file) ? open(file.dli_fname, O_RDONLY | O_CLOEXEC) : -1;
	if (fd < 0 || elf_image_open(fd, &image) || elf_image_symbol(image, "cuInit", &symbol))
		errx(1, "the driver's file cannot be read");
	close(fd);
	find_in(image, (uintptr_t)init - symbol.value);
}

size_t gpu_sites_count(void)
{
	return site_count;
}

const struct gpu_site *gpu_site(size_t number)
{
	return &sites[number];
}

bool gpu_site_is_probed(size_t number)
{
	uint8_t now[sizeof(sites[number].before)];

	/* The compiler is not to know that code does not change. */
	for (size_t i = 0; i < sizeof(now); i++)
		now[i] = ((const volatile uint8_t *)sites[number].code)[i];
	return memcmp(now, sites[number].before, sizeof(now));
}

static size_t count_probed(void)
{
	size_t count = 0;

	for (size_t i = 0; i < site_count; i++)
		count += gpu_site_is_probed(i);
	return count;
}

/* Waits until `wanted` sites are probed.  Returns how many are, and in *ret_ns how long it took
 * from the first change on. */
static size_t await(size_t wanted, uint64_t *ret_ns)
{
	const uint64_t begun_ns = gpu_now_ns();
	size_t before = count_probed(), now = before;
	uint64_t first_ns = 0, last_ns = 0;

	while (now != wanted) {
		const uint64_t at_ns = gpu_now_ns();

		if (at_ns - (last_ns ? last_ns : begun_ns) > (last_ns ? FURTHER_NS : FIRST_NS))
			break;
		gpu_sleep_ns(LOOK_NS);
		now = count_probed();
		if (now == before)
			continue;
		before = now;
		last_ns = gpu_now_ns();
		if (!first_ns)
			first_ns = at_ns;
	}
	*ret_ns = last_ns - first_ns;
	return now;
}

void gpu_sites_await(void)
{
	uint64_t ns;
	size_t count;

	gpu_sites_find();
	if (count_probed())
		errx(1, "another tool has probes on the driver's functions");
	printf("ready\t%d\n", (int)getpid());
	fflush(stdout);
	count = await(site_count, &ns);
	if (!count)
		errx(1, "no breakpoint came into the driver's code");
	gpu_sleep_ns(BEGIN_NS);
	printf("sites\t%zu\t%zu\t%.1f\n", count, site_count, (double)ns / 1e6);
}

void gpu_sites_await_end(void)
{
	uint64_t ns;
	size_t count;

	puts("done");
	fflush(stdout);
	count = await(0, &ns);
	printf("restored\t%zu\t%zu\t%.1f\n", site_count - count, site_count, (double)ns / 1e6);
}
