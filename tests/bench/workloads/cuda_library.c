/* SPDX-License-Identifier: BSD-2-Clause */
/* A libcuda.so.1 whose cuLaunchKernel does nothing: all that a launch takes is what observes it.
 * It begins as the driver's functions do, with an instruction that the kernel need not step. */
__asm__(".text\n"
	".globl cuLaunchKernel\n"
	".type cuLaunchKernel, %function\n"
	"cuLaunchKernel:\n"
#if defined(__x86_64__)
	"	push %rbp\n"
	"	pop %rbp\n"
	"	xor %eax, %eax\n"
#else
	"	nop\n"
	"	mov w0, #0\n"
#endif
	"	ret\n"
	".size cuLaunchKernel, . - cuLaunchKernel\n");
