/* SPDX-License-Identifier: BSD-2-Clause */
/* probe_thinned   Calls a function of libc without pause. */
#include <unistd.h>

/* Without its header, which has it inline. */
unsigned long gnu_dev_makedev(unsigned int high, unsigned int low);

int main(void)
{
	volatile unsigned int device = 1;

	alarm(30);
	for (;;)
		device = (unsigned int)gnu_dev_makedev(device, 2);
}
