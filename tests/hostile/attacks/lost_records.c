/* SPDX-License-Identifier: BSD-2-Clause */
/* lost_records SECONDS   In a program of 60,000 mappings, makes a page executable and not in turns,
 * 10,000 times every 50 ms: each turn is a record of the side-band, most of which are lost. */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096UL
#define MAPPINGS 60000UL
#define TURNS 10000
#define PAUSE_US 40000

int main(int argc, char **argv)
{
	char *const memory =
		mmap(NULL, MAPPINGS * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (argc != 2 || memory == MAP_FAILED)
		return 1;
	alarm((unsigned int)atoi(argv[1]));
	for (unsigned long i = 0; i < MAPPINGS; i += 2)
		mprotect(memory + i * PAGE, PAGE, PROT_NONE);
	if (write(1, "1", 1) != 1)
		return 1;
	for (;; usleep(PAUSE_US))
		for (int i = 0; i < TURNS; i++) {
			mprotect(memory, PAGE, PROT_READ | PROT_EXEC);
			mprotect(memory, PAGE, PROT_NONE);
		}
}
