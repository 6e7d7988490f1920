/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls a function a thousand times a second, which returns every second time and else leaves by
 * longjmp(). */
#include <setjmp.h>
#include <stdio.h>
#include <unistd.h>

static jmp_buf back;

__attribute__((noinline)) void jumps(unsigned int number)
{
	__asm__ volatile("");
	if (number % 2)
		longjmp(back, 1);
}

int main(void)
{
	puts("ready");
	fflush(stdout);
	for (volatile unsigned int i = 0;; i++) {
		if (!setjmp(back))
			jumps(i);
		usleep(1000);
	}
}
