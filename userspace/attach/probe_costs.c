/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/probe_costs.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "attach/probe_links.h"
#include "attach/probe_side.h"
#include "base/clock.h"
#include "base/cleanup.h"
#include "base/own_code.h"

#define ROUNDS 3U
#define CALLS 400U

/* Functions that begin with an instruction of each kind. */
#if defined(__aarch64__)
#define FIRST_EMULATED "b 1f\n1:"
#define FIRST_NOP "nop"
#define FIRST_STEPPED "mov x9, x9"
#else
#define FIRST_EMULATED "push %rbp\npop %rbp"
#define FIRST_NOP "nopl 0(%rax,%rax,1)"
#define FIRST_STEPPED "lea 0(%rdi), %rax"
#endif
#define FUNCTION(name, first)                                                                      \
	__asm__(".pushsection .text\n.balign 16\n.local " #name "\n.type " #name                   \
		", %function\n" #name ":\n" first "\nret\n.popsection\n");                         \
	extern void name(void) __attribute__((visibility("hidden")))
FUNCTION(probe_costs_emulated, FIRST_EMULATED);
FUNCTION(probe_costs_nop, FIRST_NOP);
FUNCTION(probe_costs_stepped, FIRST_STEPPED);

static uint32_t time_call(void (*function)(void))
{
	uint64_t best_ns = UINT64_MAX;

	for (unsigned int round = 0; round < ROUNDS; round++) {
		const uint64_t begun_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		uint64_t took_ns;

		for (unsigned int i = 0; i < CALLS; i++)
			function();
		took_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - begun_ns;
		best_ns = took_ns < best_ns ? took_ns : best_ns;
	}
	return (uint32_t)(best_ns / CALLS);
}

static int measure(const struct probe_side *side, bool is_shared, void (*function)(void),
		   bool is_return, uint32_t *ret_ns)
{
	const uint32_t without_ns = time_call(function);
	OWNED_FD int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct probe_link_site site = {};
	struct probe_links_options options = {.program = probe_side_probe_program(side),
					      .pid = is_shared ? getpid() : gettid(),
					      .is_return = is_return,
					      .is_shared = is_shared,
					      .site = &site,
					      .count = 1};
	struct probe_links links;
	uint32_t with_ns;
	int err = file < 0 ? -errno : own_code_offset((const void *)function, &site.offset);

	if (err)
		return err;
	options.file = file;
	/* Site 0 is none: the program does nothing. */
	err = probe_links_attach(&options, &links);
	if (err)
		return err;
	with_ns = time_call(function);
	probe_links_release(&links);
	*ret_ns = with_ns > without_ns ? with_ns - without_ns : 1;
	return 0;
}

int probe_costs_measure(const struct probe_side *side, bool is_shared,
			struct probe_hit_costs *ret_costs)
{
	struct probe_hit_costs costs = {};
	int err = measure(side, is_shared, probe_costs_emulated, false, &costs.emulated);

	if (!err)
		err = measure(side, is_shared, probe_costs_nop, false, &costs.long_nop);
	if (!err)
		err = measure(side, is_shared, probe_costs_stepped, false, &costs.single_step);
	if (!err)
		err = measure(side, is_shared, probe_costs_emulated, true, &costs.with_return);
	if (err)
		return err;
	if (!probe_side_has_sessions(side) && costs.with_return > costs.emulated)
		costs.alloc_end = costs.with_return - costs.emulated;
	*ret_costs = costs;
	return 0;
}
