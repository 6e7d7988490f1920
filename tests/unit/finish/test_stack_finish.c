/* SPDX-License-Identifier: BSD-2-Clause */
/* Real stacks of this process are compared with glibc's backtrace(); test_stack_finish_rules.c has
 * what a sane program does not do. */
#include "finish/stack_finish.h"

#include <cmocka.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <ucontext.h>

#include "base/io.h"
#include "elf/elf_image.h"
#include "unwind/cfi.h"

#define MAX_FRAMES 128
#define MAX_MODULES 32

struct module {
	struct elf_image *context;
	struct cfi *cfi;
	uint64_t bias;
};

struct process {
	struct module module[MAX_MODULES];
	uint32_t count;
	uint64_t jit_low, jit_high;
	/* the walk */
	uint64_t pc[MAX_FRAMES]; /* looked up: pc - 1 for callers */
	uint64_t low[MAX_FRAMES], cfa[MAX_FRAMES];
	size_t frames;
};

static int add_module(struct dl_phdr_info *info, size_t size, void *context)
{
	struct process *process = context;
	struct module *module = &process->module[process->count];
	const char *path = *info->dlpi_name ? info->dlpi_name : "/proc/self/exe";
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	(void)size;
	if (fd < 0)
		return 0; /* the vDSO */
	assert_true(process->count < MAX_MODULES);
	assert_int_equal(elf_image_open(fd, &module->context), 0);
	close(fd);
	if (cfi_open(module->context, &module->cfi)) {
		elf_image_free(module->context);
		return 0;
	}
	module->bias = info->dlpi_addr;
	process->count++;
	return 0;
}

static void open_process(struct process *process)
{
	memset(process, 0, sizeof(*process));
	dl_iterate_phdr(add_module, process);
}

static void close_process(struct process *process)
{
	for (uint32_t i = 0; i < process->count; i++) {
		cfi_free(process->module[i].cfi);
		elf_image_free(process->module[i].context);
	}
}

static int find(void *context, uint64_t pc, uint32_t *ret_file, uint64_t *ret_vaddr,
		struct pp_rule *ret_rule)
{
	struct process *process = context;

	if (pc >= process->jit_low && pc < process->jit_high) {
		*ret_file = PP_FILE_ANONYMOUS;
		*ret_vaddr = pc;
		return 0;
	}
	for (uint32_t i = 0; i < process->count; i++) {
		struct module *module = &process->module[i];
		uint64_t vaddr = pc - module->bias;

		for (size_t s = 0; s < module->context->segment_count; s++) {
			const struct elf_segment *segment = &module->context->segment[s];

			if (!segment->executable || vaddr < segment->vaddr ||
			    vaddr - segment->vaddr >= segment->memory_size)
				continue;
			*ret_file = PP_FILE_FIRST + i;
			*ret_vaddr = vaddr;
			return cfi_rule_at(module->cfi, vaddr, ret_rule);
		}
	}
	return -ENOENT;
}

static int read_self(void *context, uint64_t address, void *buffer, size_t size)
{
	(void)context;
	return process_read(getpid(), address, buffer, size);
}

static bool take_frame(void *context, uint32_t file, uint64_t vaddr, uint64_t low, uint64_t cfa)
{
	struct process *process = context;

	if (process->frames == MAX_FRAMES)
		return false;
	process->pc[process->frames] =
		vaddr +
		(file == PP_FILE_ANONYMOUS ? 0 : process->module[file - PP_FILE_FIRST].bias);
	process->low[process->frames] = low;
	process->cfa[process->frames++] = cfa;
	return true;
}

static void take_registers(const ucontext_t *context, struct finish_state *state)
{
	memset(state, 0, sizeof(*state));
#if defined(__aarch64__)
	memcpy(state->registers, context->uc_mcontext.regs, 31 * 8);
	state->registers[31] = context->uc_mcontext.sp;
	state->pc = context->uc_mcontext.pc;
#else
	static const int greg[PP_REG_COUNT] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
					       REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
					       REG_R12, REG_R13, REG_R14, REG_R15};

	for (int i = 0; i < PP_REG_COUNT; i++)
		state->registers[i] = (uint64_t)context->uc_mcontext.gregs[greg[i]];
	state->pc = (uint64_t)context->uc_mcontext.gregs[REG_RIP];
#endif
	state->sp = state->registers[PP_REG_SP];
	state->fp = state->registers[PP_REG_FP];
	state->is_leaf = true;
}

static enum pp_stop walk(struct process *process, const ucontext_t *context)
{
	const struct finish_callbacks callbacks = {
		.context = process, .find = find, .read = read_self, .frame = take_frame};
	struct finish_state state;

	process->frames = 0;
	take_registers(context, &state);
	return stack_finish(&state, &callbacks);
}

/* Ours from `frame` on, which is backtrace()'s from `other` on, against it: glibc gives return
 * addresses. */
static void compare_frames(const struct process *process, size_t frame, void *const *address,
			   size_t count, size_t other)
{
	assert_int_equal(process->frames - frame, count - other);
	for (; frame < process->frames; frame++, other++) {
		uint64_t truth = (uint64_t)address[other];

		if (process->pc[frame] != truth && process->pc[frame] != truth - 1)
			fail_msg("frame %zu: %lx, backtrace() has %lx", frame, process->pc[frame],
				 truth);
	}
}

/* The callers of the function that called backtrace(); sanitizers wrap it in a frame of theirs. */
static size_t first_caller(void *const *address, uint64_t function)
{
	return (uint64_t)address[0] - function < 4096 ? 1 : 2;
}

static struct process *current; /* for signal handlers and callbacks */
static volatile int checks;
static volatile unsigned long sink;

static __attribute__((noinline)) void check_here(void)
{
	void *address[MAX_FRAMES];
	ucontext_t context;
	size_t count;

	getcontext(&context);
	assert_int_equal(walk(current, &context), PP_STOP_ROOT);
	count = (size_t)backtrace(address, MAX_FRAMES);
	assert_true(count > 3);
	compare_frames(current, 1, address, count, first_caller(address, current->pc[0] - 1024));
	for (size_t i = 1; i < current->frames; i++)
		assert_true(current->low[i] == current->cfa[i - 1] ||
			    current->cfa[i - 1] == current->low[i - 1]);
	checks++;
}

static __attribute__((noinline)) int recurse(int depth, size_t size)
{
	volatile char *local = __builtin_alloca(size); /* a frame that needs its frame pointer */

	local[0] = (char)depth;
	if (depth)
		return recurse(depth - 1, size + 40) + local[0];
	check_here();
	return local[0];
}

static int compare_and_check(const void *left, const void *right)
{
	if (checks < 3)
		check_here();
	return *(const int *)left - *(const int *)right;
}

static void stack_finish__own_stack_equals_backtrace(void **state)
{
	int values[] = {3, 1, 2, 5, 4};
	struct process process;

	(void)state;
	open_process(&process);
	current = &process;
	checks = 0;
	check_here();
	recurse(20, 16);
	qsort(values, ARRAY_SIZE(values), sizeof(values[0]), compare_and_check);
	assert_int_equal(checks, 3);
	close_process(&process);
}

static void handle_signal(int number)
{
	(void)number;
	check_here();
}

static void stack_finish__walks_through_a_signal_handler(void **state)
{
	static char other_stack[1 << 16];
	const stack_t alternate = {.ss_sp = other_stack, .ss_size = sizeof(other_stack)};
	struct sigaction action = {.sa_handler = handle_signal};
	struct process process;

	(void)state;
	open_process(&process);
	current = &process;
	checks = 0;
	sigaction(SIGUSR1, &action, NULL);
	raise(SIGUSR1);
	sigaltstack(&alternate, NULL);
	action.sa_flags = SA_ONSTACK;
	sigaction(SIGUSR1, &action, NULL);
	raise(SIGUSR1);
	assert_int_equal(checks, 2);
	close_process(&process);
}

#define INTERRUPTS 300
static struct interrupt {
	ucontext_t context;
	void *address[MAX_FRAMES];
	size_t count;
	enum pp_stop stop;
} interrupted;
static volatile int interrupts, compared;

/* The walk starts at whatever instruction the timer hit. */
static void handle_timer(int number, siginfo_t *info, void *context)
{
	struct interrupt *now = &interrupted;
	uint64_t pc;
	size_t at;

	(void)number;
	(void)info;
	interrupts++;
	now->context = *(ucontext_t *)context;
	now->stop = walk(current, &now->context);
	now->count = (size_t)backtrace(now->address, MAX_FRAMES);
	pc = current->pc[0];
	for (at = 0; at < now->count && (uint64_t)now->address[at] != pc; at++)
		;
	/* Code in the vDSO is in no module here. */
	if (now->stop == PP_STOP_NO_MAPPING && !current->frames)
		return;
	if (now->stop != PP_STOP_ROOT)
		fail_msg("walk from %lx ended with %d after %zu frames", pc, now->stop,
			 current->frames);
	assert_true(at < now->count);
	compare_frames(current, 0, now->address, now->count, at);
	compared++;
}

static __attribute__((noinline)) unsigned long work(unsigned int depth)
{
	char text[64];
	int values[16];

	if (depth)
		return work(depth - 1) + 1;
	for (int i = 0; i < 16; i++)
		values[i] = (int)(sink * 7919 + (unsigned int)i * 31) % 97;
	qsort(values, ARRAY_SIZE(values), sizeof(values[0]), compare_and_check);
	snprintf(text, sizeof(text), "%d %s %f", values[3], "text", (double)values[4]);
	return strlen(text) + strtoul(text, NULL, 10);
}

static void stack_finish__any_interrupted_instruction_equals_backtrace(void **state)
{
	const struct itimerval often = {.it_interval.tv_usec = 1000, .it_value.tv_usec = 1000};
	const struct itimerval never = {.it_value.tv_usec = 0};
	struct sigaction action = {.sa_sigaction = handle_timer, .sa_flags = SA_SIGINFO};
	struct process process;
	void *address[4];

	(void)state;
	backtrace(address, 4); /* loads libgcc, which a handler should not */
	open_process(&process);
	current = &process;
	checks = 3;
	interrupts = compared = 0;
	sigaction(SIGPROF, &action, NULL);
	setitimer(ITIMER_PROF, &often, NULL);
	while (interrupts < INTERRUPTS)
		sink += work(3);
	setitimer(ITIMER_PROF, &never, NULL);
	print_message("%d interrupts, %d compared\n", interrupts, compared);
	assert_true(compared > INTERRUPTS / 2);
	close_process(&process);
}

static __attribute__((noinline)) void call_check(void)
{
	ucontext_t context;

	getcontext(&context);
	assert_int_equal(walk(current, &context), PP_STOP_ROOT);
}

static void stack_finish__crosses_a_perf_trampoline(void **state)
{
#if defined(__x86_64__)
	/* sub $8,%rsp; call *%rdi; add $8,%rsp; ret */
	static const uint8_t code[] = {0x48, 0x83, 0xec, 8, 0xff, 0xd7, 0x48, 0x83, 0xc4, 8, 0xc3};
	struct process process;
	void *address[MAX_FRAMES];
	size_t count;
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	if (page == MAP_FAILED) {
		print_message("skipped: no memory may be written and executed here\n");
		skip();
	}
	memcpy(page, code, sizeof(code));
	open_process(&process);
	current = &process;
	process.jit_low = (uint64_t)page;
	process.jit_high = process.jit_low + 4096;
	((void (*)(void (*)(void)))page)(call_check);
	count = (size_t)backtrace(address, MAX_FRAMES);
	/* call_check, no frame for the trampoline, this function, then its callers. */
	compare_frames(&process, 2, address, count, first_caller(address, process.pc[1] - 1024));
	close_process(&process);
	munmap(page, 4096);
#else
	(void)state;
	print_message("skipped: only x86-64 has such trampolines\n");
	skip();
#endif
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stack_finish__own_stack_equals_backtrace),
		cmocka_unit_test(stack_finish__walks_through_a_signal_handler),
		cmocka_unit_test(stack_finish__any_interrupted_instruction_equals_backtrace),
		cmocka_unit_test(stack_finish__crosses_a_perf_trampoline),
	};

	return cmocka_run_group_tests_name("unwind/stack_finish", tests, NULL, NULL);
}
