/* SPDX-License-Identifier: BSD-2-Clause */
/* A library whose functions are probed, and which counts and times its calls itself.  Built with
 * gcc -O2: no function begins with a frame pointer. */
#include <pthread.h>
#include <stdint.h>
#include <time.h>

#define APART __attribute__((noinline, noclone, noipa))
#define AFTER_IT() __asm__ volatile("" ::: "memory") /* no call is the function's last act */

/* Read by the program by name. */
uint64_t probed_recursions, probed_leaves, probed_timed, probed_timed_ns, probed_picked;

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;

static uint64_t now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

APART int probed_spin(uint64_t ns)
{
	const uint64_t end = now_ns(CLOCK_THREAD_CPUTIME_ID) + ns;

	while (now_ns(CLOCK_THREAD_CPUTIME_ID) < end)
		continue;
	AFTER_IT();
	return 1;
}

APART int probed_sleep(uint64_t ns)
{
	const struct timespec time = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};

	nanosleep(&time, NULL);
	AFTER_IT();
	return 1;
}

/* The mutex is never free. */
APART int probed_lock(uint64_t ns)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += (long)ns;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_mutex_timedlock(&held, &until);
	AFTER_IT();
	return 1;
}

void probed_init(void)
{
	pthread_mutex_lock(&held);
}

/* how: 's'pin, s'l'eep, l'o'ck */
APART int probed_recurse(int depth, int how, uint64_t ns)
{
	int result;

	__atomic_fetch_add(&probed_recursions, 1, __ATOMIC_RELAXED);
	if (depth > 0)
		result = probed_recurse(depth - 1, how, ns);
	else if (how == 's')
		result = probed_spin(ns);
	else if (how == 'l')
		result = probed_sleep(ns);
	else
		result = probed_lock(ns);
	AFTER_IT();
	return result + 1;
}

APART int probed_leaf(int number)
{
	__atomic_fetch_add(&probed_leaves, 1, __ATOMIC_RELAXED);
	AFTER_IT();
	return number + 1;
}

void probed_leaf_times(int count)
{
	for (int i = 0; i < count; i++)
		probed_leaf(i);
}

/* Some of its time on the CPU and some not. */
APART int probed_time(uint64_t ns)
{
	const uint64_t begin = now_ns(CLOCK_MONOTONIC);

	__atomic_fetch_add(&probed_timed, 1, __ATOMIC_RELAXED);
	probed_sleep(ns / 2);
	probed_spin(ns / 2);
	__atomic_fetch_add(&probed_timed_ns, now_ns(CLOCK_MONOTONIC) - begin, __ATOMIC_RELAXED);
	AFTER_IT();
	return 1;
}

/* Calls back, so that the caller can do anything in mid-call. */
APART int probed_call(int (*function)(int))
{
	int result = function(1);

	AFTER_IT();
	return result;
}

/* A function that the linker picks: nothing may be attached to the resolver. */
static int picked(int number)
{
	probed_picked++;
	return number;
}
static int (*pick(void))(int)
{
	return picked;
}
int probed_ifunc(int number) __attribute__((ifunc("pick")));

/* What breakpoints meet that stand on the first instructions of functions: one that the kernel
 * emulates and that moves the stack pointer, one that it steps, one that it makes a call of. */
#if defined(__x86_64__)
#define TIGHT(name, first, last)                                                                   \
	__asm__(".text\n.globl " name "\n.type " name ", @function\n" name ":\n"                  \
		".cfi_startproc\n" first "addl $1, %edi\nmovl %edi, %eax\n" last "ret\n"           \
		".cfi_endproc\n.size " name ", .-" name "\n")

TIGHT("probed_push", "pushq %rbx\n.cfi_adjust_cfa_offset 8\n.cfi_rel_offset %rbx, 0\n",
      "popq %rbx\n.cfi_adjust_cfa_offset -8\n");
TIGHT("probed_step", "subq $24, %rsp\n.cfi_adjust_cfa_offset 24\n",
      "addq $24, %rsp\n.cfi_adjust_cfa_offset -24\n");
TIGHT("probed_nop5",
      ".byte 0x0f, 0x1f, 0x44, 0, 0\nsubq $24, %rsp\n.cfi_adjust_cfa_offset 24\n",
      "addq $24, %rsp\n.cfi_adjust_cfa_offset -24\n");
int probed_push(int number), probed_step(int number), probed_nop5(int number);
#else
APART int probed_push(int number)
{
	AFTER_IT();
	return number + 1;
}
APART int probed_step(int number)
{
	AFTER_IT();
	return number + 1;
}
APART int probed_nop5(int number)
{
	AFTER_IT();
	return number + 1;
}
#endif

APART int probed_tight(int (*function)(int), int count)
{
	int result = 0;

	for (int i = 0; i < count; i++)
		result += function(i);
	return result;
}
