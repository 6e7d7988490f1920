/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls a function all the time, which always returns.  The function begins with an instruction
 * that the kernel emulates, so there are as many calls as can be. */
#include <stdio.h>

__attribute__((noinline)) unsigned int returns(unsigned int number)
{
	__asm__ volatile("nop");
	return number + 1;
}

int main(void)
{
	puts("ready");
	fflush(stdout);
	for (volatile unsigned int i = 0;;)
		i = returns(i);
}
