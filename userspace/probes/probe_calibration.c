/* SPDX-License-Identifier: BSD-2-Clause */
#include "probes/probe_calibration.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "attach/probe_links.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/task.h"

#define ROUNDS 21U /* the least counts: what else the machine does only adds to it */
#define CALLS_A_ROUND 64U

/* One function for each enum probe_cost, whose first instruction is of that class. */
void probe_calibration_emulated(void);
void probe_calibration_long_nop(void);
void probe_calibration_single_step(void);
#if defined(__aarch64__)
#define EMULATED "b 1f\n1:\n"
#define LONG_NOP "nop\n"
#define SINGLE_STEP "mov x9, x9\n"
#else
#define EMULATED "nop\n"
#define LONG_NOP ".byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n" /* nopl 0(%rax,%rax) */
#define SINGLE_STEP "mov %rdi, %rdi\n"
#endif
#define SITE(name, instruction) OWN_CODE(name, instruction "ret\n")
__asm__(".pushsection .text, \"ax\"\n" SITE(probe_calibration_emulated, EMULATED)
		SITE(probe_calibration_long_nop, LONG_NOP)
			SITE(probe_calibration_single_step, SINGLE_STEP) ".popsection\n");

static void (*const functions[PROBE_COSTS])(void) = {
	[PROBE_COST_EMULATED] = probe_calibration_emulated,
	[PROBE_COST_LONG_NOP] = probe_calibration_long_nop,
	[PROBE_COST_SINGLE_STEP] = probe_calibration_single_step,
};

struct probe_prices probe_prices_typical(void)
{
	return (struct probe_prices){.hit_ns = {[PROBE_COST_EMULATED] = 500,
						[PROBE_COST_LONG_NOP] = 220,
						[PROBE_COST_SINGLE_STEP] = 16500},
				     .return_ns = 270};
}

/* Returns the CPU time of a call, in picoseconds: without a probe it takes a nanosecond. */
static uint64_t time_call(void (*function)(void))
{
	uint64_t least_ns = UINT64_MAX;

	for (unsigned int round = 0; round < ROUNDS; round++) {
		const uint64_t before_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		uint64_t ns;

		for (unsigned int i = 0; i < CALLS_A_ROUND; i++)
			function();
		ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - before_ns;
		least_ns = ns < least_ns ? ns : least_ns;
	}
	return least_ns * 1000 / CALLS_A_ROUND;
}

static uint64_t since(uint64_t before_ps, uint64_t after_ps)
{
	return after_ps > before_ps ? (after_ps - before_ps + 500) / 1000 : 0;
}

/* All entries at first, then the return of the function whose entry is emulated besides: the price
 * of a return does not depend on an instruction. */
static int measure(const struct probe_links_options *options, struct probe_prices *ret_prices)
{
	struct probe_links_options at_return = *options;
	CLEANUP(probe_links_release) struct probe_links entry = {};
	CLEANUP(probe_links_release) struct probe_links returned = {};
	struct probe_prices prices = {.is_measured = true};
	uint64_t plain_ps[PROBE_COSTS], hit_ps[PROBE_COSTS];
	int err;

	for (unsigned int i = 0; i < PROBE_COSTS; i++)
		plain_ps[i] = time_call(functions[i]);
	err = probe_links_attach(options, &entry);
	if (err)
		return err;
	for (unsigned int i = 0; i < PROBE_COSTS; i++) {
		hit_ps[i] = time_call(functions[i]);
		prices.hit_ns[i] = since(plain_ps[i], hit_ps[i]);
	}
	at_return.is_return = true;
	at_return.site = &options->site[PROBE_COST_EMULATED];
	at_return.count = 1;
	at_return.locks = -1; /* one look goes for both */
	err = probe_links_attach(&at_return, &returned);
	if (err)
		return err;
	prices.return_ns =
		since(hit_ps[PROBE_COST_EMULATED], time_call(functions[PROBE_COST_EMULATED]));
	*ret_prices = prices;
	return 0;
}

int probe_calibrate(const struct probe_calibration *calibration, struct probe_prices *ret_prices)
{
	const bool is_shared = probe_links_can_share();
	OWNED_FD int nothing = -1;
	OWNED_FD int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct probe_link_site site[PROBE_COSTS] = {};
	int err = file < 0 ? -errno : 0;

	for (unsigned int i = 0; i < PROBE_COSTS && !err; i++) {
		site[i].cookie = calibration->cookie;
		err = own_code_offset((const void *)functions[i], &site[i].offset);
	}
	if (!err && calibration->program < 0) {
		nothing = probe_trial_load_empty(is_shared);
		err = nothing < 0 ? nothing : 0;
	}
	if (err)
		return err;
	return measure(&(struct probe_links_options){.program = calibration->program < 0
									? nothing
									: calibration->program,
						     .file = file,
						     .locks = calibration->locks,
						     /* A perf event is a thread's. */
						     .pid = is_shared ? getpid() : gettid(),
						     .is_shared = is_shared,
						     .site = site,
						     .count = PROBE_COSTS},
		       ret_prices);
}
