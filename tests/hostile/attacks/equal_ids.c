/* SPDX-License-Identifier: BSD-2-Clause */
/* equal_ids COUNT: starts so many processes that sleep; says "there" then. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	const int count = argc > 1 ? atoi(argv[1]) : 0;

	for (int i = 0; i < count; i++) {
		const pid_t pid = fork();

		if (pid < 0)
			break;
		if (!pid)
			for (;;)
				pause();
		usleep(200); /* others fork, too */
	}
	printf("there\n");
	fflush(stdout);
	pause();
	return 0;
}
