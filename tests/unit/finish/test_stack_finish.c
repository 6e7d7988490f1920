/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: finish/stack_finish.c unwind/cfi.c unwind/cfi_program.c unwind/cfi_rule.c elf/elf_image.c base/io.c */
/* Real stacks of this process are compared with glibc's backtrace(); synthetic ones cover what a
 * sane program does not do. */
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
	struct elf_image *image;
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
	assert_int_equal(elf_image_open(fd, &module->image), 0);
	close(fd);
	if (cfi_open(module->image, &module->cfi)) {
		elf_image_free(module->image);
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
		elf_image_free(process->module[i].image);
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

		for (size_t s = 0; s < module->image->segment_count; s++) {
			const struct elf_segment *segment = &module->image->segment[s];

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

/* ---- made-up stacks ---- */

/* Code: 0x1000…0x10ff are 16 functions of 16 bytes, rule[] says which rule each has; 0x2000… is
 * anonymous.  Stack: word[i] lies at 0x7000 + 8 * i. */
#define STACK 0x7000ULL
struct model {
	struct pp_rule rule[16];
	uint64_t word[64];
	uint64_t seen[64];
	size_t count, max;
};

static int model_find(void *context, uint64_t pc, uint32_t *ret_file, uint64_t *ret_vaddr,
		      struct pp_rule *ret_rule)
{
	struct model *model = context;

	if (pc < 0x1000 || pc >= 0x3000 || (pc >= 0x1100 && pc < 0x2000))
		return -ENOENT;
	*ret_vaddr = pc;
	*ret_file = PP_FILE_FIRST;
	if (pc >= 0x2000)
		*ret_file = PP_FILE_ANONYMOUS;
	else
		*ret_rule = model->rule[(pc - 0x1000) / 16];
	return 0;
}

static int model_read(void *context, uint64_t address, void *buffer, size_t size)
{
	struct model *model = context;

	if (address < STACK || address + size > STACK + sizeof(model->word))
		return -EFAULT;
	memcpy(buffer, (uint8_t *)model->word + (address - STACK), size);
	return 0;
}

static bool model_frame(void *context, uint32_t file, uint64_t vaddr, uint64_t low, uint64_t cfa)
{
	struct model *model = context;

	(void)file;
	(void)low;
	(void)cfa;
	if (model->count == model->max)
		return false;
	if (model->count < ARRAY_SIZE(model->seen))
		model->seen[model->count] = vaddr;
	model->count++;
	return true;
}

static enum pp_stop finish_model(struct model *model, struct finish_state *state)
{
	const struct finish_callbacks callbacks = {
		.context = model, .find = model_find, .read = model_read, .frame = model_frame};

	if (!model->max)
		model->max = SIZE_MAX;
	return stack_finish(state, &callbacks);
}

static const struct pp_rule sp_8 = {.kind = PP_RULE_CFA_SP, .cfa_offset = 8, .ra_offset = -8};

static void stack_finish__caller_is_looked_up_one_byte_before(void **state)
{
	struct model model = {.rule = {sp_8, sp_8}, .word = {0x1020, 0}};
	struct finish_state at = {.pc = 0x1000, .sp = STACK, .is_leaf = true};

	(void)state;
	/* 0x1020 is the first byte of a function without information; the call is in the one before */
	assert_int_equal(finish_model(&model, &at), PP_STOP_ROOT);
	assert_int_equal(model.count, 2);
	assert_int_equal(model.seen[0], 0x1000);
	assert_int_equal(model.seen[1], 0x101f);
}

static void stack_finish__stops_say_why(void **state)
{
	const struct pp_rule r10 = {
		.kind = PP_RULE_CFA_REGISTER, .cfa_register = 10, .ra_offset = -8};
	const struct pp_rule zero = {.kind = PP_RULE_CFA_SP, .ra_offset = -8};
	struct model model = {.rule = {sp_8, {.kind = PP_RULE_STOP}, r10, zero}};
	static const struct {
		uint64_t return_address;
		enum pp_stop stop;
		size_t frames;
	} expected[] = {
		{0, PP_STOP_ROOT, 1},
		{0x1011, PP_STOP_ROOT, 2},
		{0x1021, PP_STOP_BAD_RULE, 2},
		{0x1031, PP_STOP_NOT_MOVING, 2},
		{0x9000, PP_STOP_NO_MAPPING, 1},
		{0x1041, PP_STOP_NO_INFO, 2},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
		struct finish_state at = {.pc = 0x1000, .sp = STACK, .is_leaf = true};

		model.word[0] = expected[i].return_address;
		model.count = 0;
		assert_int_equal(finish_model(&model, &at), expected[i].stop);
		assert_int_equal(model.count, expected[i].frames);
	}
}

static void stack_finish__unreadable_stack_is_a_fault_and_keeps_the_state(void **state)
{
	struct model model = {.rule = {sp_8}};
	struct finish_state at = {.pc = 0x1005, .sp = 0x100, .fp = 7, .is_leaf = true};

	(void)state;
	assert_int_equal(finish_model(&model, &at), PP_STOP_READ_FAULT);
	assert_int_equal(model.count, 1);
	assert_int_equal(at.pc, 0x1005);
	assert_int_equal(at.sp, 0x100);
	assert_int_equal(at.fp, 7);
	assert_true(at.is_leaf);
}

static void stack_finish__leaf_may_use_any_register(void **state)
{
	const struct pp_rule r10 = {.kind = PP_RULE_CFA_REGISTER,
				    .cfa_register = 10,
				    .cfa_offset = 16,
				    .ra_offset = -8};
	const struct pp_rule deref = {.kind = PP_RULE_CFA_DEREF,
				      .cfa_register = PP_REG_FP,
				      .cfa_offset = -8,
				      .cfa_add = 8,
				      .fp_kind = PP_FP_AT_FP,
				      .ra_offset = -8};
	struct model model = {.rule = {r10, deref, sp_8}};
	struct finish_state at = {.pc = 0x1000, .sp = STACK, .fp = STACK + 40, .is_leaf = true};

	(void)state;
	at.registers[10] = STACK + 8;
	model.word[2] = 0x1011;	    /* CFA = r10 + 16 = STACK + 24 */
	model.word[4] = STACK + 56; /* CFA = *(fp - 8) + 8 = STACK + 64 */
	model.word[5] = 0xabcd;	    /* *(fp) */
	model.word[7] = 0x1021;
	model.word[8] = 0;
	assert_int_equal(finish_model(&model, &at), PP_STOP_ROOT);
	assert_int_equal(model.count, 3);
	assert_int_equal(at.fp, 0xabcd);
}

/* vfork pops its return address into rdi. */
static void stack_finish__return_address_may_be_in_a_register_at_the_leaf(void **state)
{
	const struct pp_rule rdi = {
		.kind = PP_RULE_CFA_SP, .ra_kind = PP_RA_REGISTER, .ra_offset = 5};
	struct model model = {.rule = {rdi, {.kind = PP_RULE_STOP}, sp_8}};
	struct finish_state at = {.pc = 0x1000, .sp = STACK, .is_leaf = true};

	(void)state;
	at.registers[5] = 0x1011;
	assert_int_equal(finish_model(&model, &at), PP_STOP_ROOT);
	assert_int_equal(model.count, 2);
	assert_int_equal(at.sp, STACK);
	model.count = 0;
	model.word[0] = 0x1001;
	at = (struct finish_state){.pc = 0x1020, .sp = STACK, .is_leaf = true};
	assert_int_equal(finish_model(&model, &at), PP_STOP_BAD_RULE);
	model.rule[0].ra_offset = 16;
	at = (struct finish_state){.pc = 0x1000, .sp = STACK, .is_leaf = true};
	assert_int_equal(finish_model(&model, &at), PP_STOP_BAD_RULE);
}

static void stack_finish__plt_entry_counts_its_push(void **state)
{
	const struct pp_rule plt = {.kind = PP_RULE_PLT, .cfa_offset = 11, .ra_offset = -8};
	struct model model = {.rule = {plt, {.kind = PP_RULE_STOP}}, .word = {0x1011, 0x1015}};

	(void)state;
	for (uint64_t offset = 0; offset < 16; offset++) {
		struct finish_state at = {.pc = 0x1000 + offset, .sp = STACK, .is_leaf = true};

		model.count = 0;
		assert_int_equal(finish_model(&model, &at), PP_STOP_ROOT);
		assert_int_equal(model.seen[1], offset >= 11 ? 0x1014 : 0x1010);
	}
}

static void stack_finish__frame_pointer_is_followed_where_it_is_plausible(void **state)
{
	struct model model = {.rule = {[2] = {.kind = PP_RULE_STOP}}};
	static const struct {
		uint64_t fp;
		uint64_t return_address;
		enum pp_stop stop;
	} expected[] = {
		{STACK + 16, 0x1021, PP_STOP_ROOT},
		{STACK + 16, 0x9000, PP_STOP_NO_INFO}, /* no code there */
		{STACK + 12, 0x1021, PP_STOP_NO_INFO},
		{STACK - 8, 0x1021, PP_STOP_NO_INFO},
		{STACK + (5 << 20), 0x1021, PP_STOP_NO_INFO},
		{STACK + 4096, 0x1021, PP_STOP_NO_INFO}, /* not readable */
	};

	(void)state;
	for (int anonymous = 0; anonymous < 2; anonymous++) {
		for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
			struct finish_state at = {.pc = anonymous ? 0x2000 : 0x1000,
						  .sp = STACK,
						  .fp = expected[i].fp,
						  .is_leaf = true};

			model.count = 0;
			model.word[2] = STACK + 64;
			model.word[3] = expected[i].return_address;
			assert_int_equal(finish_model(&model, &at), expected[i].stop);
			assert_int_equal(model.count, 1 + (expected[i].stop == PP_STOP_ROOT));
			if (expected[i].stop == PP_STOP_ROOT) {
				assert_int_equal(at.fp, STACK + 64);
				assert_int_equal(at.sp, STACK + 32);
			}
		}
	}
}

static void stack_finish__code_without_information_at_the_stacks_end_is_the_root(void **state)
{
	struct model model = {.rule = {sp_8}, .word = {0x1041}};
	static const struct {
		uint64_t first_word, thread_pointer; /* the caller's sp is STACK + 8 */
		enum pp_stop stop;
	} expected[] = {
		{STACK + 8, 0, PP_STOP_ROOT},
		{STACK + 8 + 256, 0, PP_STOP_ROOT},
		{STACK + 8 + 257, 0, PP_STOP_NO_INFO},
		{STACK + 7, 0, PP_STOP_NO_INFO},
		{0, STACK + 8 + 1024, PP_STOP_ROOT},
		{0, STACK + 8 + 1025, PP_STOP_NO_INFO},
		{0, STACK, PP_STOP_NO_INFO},
		{0, 0, PP_STOP_NO_INFO},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
		struct finish_state at = {.pc = 0x1000, .sp = STACK, .is_leaf = true,
					  .first_word = expected[i].first_word,
					  .thread_pointer = expected[i].thread_pointer};

		model.count = 0;
		assert_int_equal(finish_model(&model, &at), expected[i].stop);
		assert_int_equal(model.count, 2);
	}
}

/* A leaf has not called anybody: it is the entry point itself, or anything. */
static void stack_finish__leaf_is_the_root_only_beside_the_first_word(void **state)
{
	struct model model = {.count = 0};
	struct finish_state at = {.pc = 0x1041, .sp = STACK, .is_leaf = true};

	(void)state;
	at.first_word = STACK + 32;
	assert_int_equal(finish_model(&model, &at), PP_STOP_ROOT);
	at.first_word = STACK + 40;
	at.thread_pointer = STACK + 40;
	assert_int_equal(finish_model(&model, &at), PP_STOP_NO_INFO);
}

static void stack_finish__frame_pointer_of_0_ends_a_chain_of_them(void **state)
{
	struct model model = {.rule = {[2] = {.kind = PP_RULE_NO_INFO}}};
	struct finish_state at = {.pc = 0x1000, .sp = STACK, .fp = STACK + 16, .is_leaf = true};

	(void)state;
	model.word[3] = 0x1021;
	assert_int_equal(finish_model(&model, &at), PP_STOP_ROOT);
	assert_int_equal(model.count, 2);
	/* At the leaf it is any register. */
	model.count = 0;
	at = (struct finish_state){.pc = 0x1000, .sp = STACK, .is_leaf = true};
	assert_int_equal(finish_model(&model, &at), PP_STOP_NO_INFO);
	assert_int_equal(model.count, 1);
}

static void stack_finish__forged_signal_frames_end_at_the_bound(void **state)
{
	struct model model = {.rule = {{.kind = PP_RULE_SIGNAL}}};
	struct finish_state at = {.pc = 0x1001, .sp = STACK};

	(void)state;
#if defined(__aarch64__)
	print_message("skipped: the frame below is x86-64's\n");
	skip();
#endif
	model.word[5 + 15] = STACK;  /* rsp: this very frame again */
	model.word[5 + 16] = 0x1001; /* rip */
	model.word[5 + 2] = 0x1010;  /* r10 */
	assert_int_equal(finish_model(&model, &at), PP_STOP_MAX_STEPS);
	assert_int_equal(model.count, PP_MAX_STEPS);
	assert_int_equal(model.seen[0], 0x1000);
	assert_int_equal(model.seen[1], 0x1001); /* exact after a signal */
	assert_int_equal(at.registers[10], 0x1010);
	assert_true(at.is_leaf);
}

static void stack_finish__frame_callback_can_end_the_walk(void **state)
{
	struct model model = {.rule = {sp_8}, .max = 3};
	struct finish_state at = {.pc = 0x1000, .sp = STACK, .is_leaf = true};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(model.word); i++)
		model.word[i] = 0x1008;
	assert_int_equal(finish_model(&model, &at), PP_STOP_MAX_STEPS);
	assert_int_equal(model.count, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stack_finish__own_stack_equals_backtrace),
		cmocka_unit_test(stack_finish__walks_through_a_signal_handler),
		cmocka_unit_test(stack_finish__any_interrupted_instruction_equals_backtrace),
		cmocka_unit_test(stack_finish__crosses_a_perf_trampoline),
		cmocka_unit_test(stack_finish__caller_is_looked_up_one_byte_before),
		cmocka_unit_test(stack_finish__stops_say_why),
		cmocka_unit_test(stack_finish__unreadable_stack_is_a_fault_and_keeps_the_state),
		cmocka_unit_test(stack_finish__leaf_may_use_any_register),
		cmocka_unit_test(stack_finish__return_address_may_be_in_a_register_at_the_leaf),
		cmocka_unit_test(stack_finish__plt_entry_counts_its_push),
		cmocka_unit_test(stack_finish__frame_pointer_is_followed_where_it_is_plausible),
		cmocka_unit_test(stack_finish__code_without_information_at_the_stacks_end_is_the_root),
		cmocka_unit_test(stack_finish__leaf_is_the_root_only_beside_the_first_word),
		cmocka_unit_test(stack_finish__frame_pointer_of_0_ends_a_chain_of_them),
		cmocka_unit_test(stack_finish__forged_signal_frames_end_at_the_bound),
		cmocka_unit_test(stack_finish__frame_callback_can_end_the_walk),
	};

	return cmocka_run_group_tests_name("unwind/stack_finish", tests, NULL, NULL);
}
