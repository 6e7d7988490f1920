/* SPDX-License-Identifier: BSD-2-Clause */
/* Computes in one function, whose name the compiler's command line gives: -DWORK=name. */
__attribute__((noinline)) static void WORK(unsigned long count)
{
	volatile unsigned long sum = 0;

	while (count--)
		sum += count;
}

int main(void)
{
	for (;;)
		WORK(1000000);
}
