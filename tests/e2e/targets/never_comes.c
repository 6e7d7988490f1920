/* SPDX-License-Identifier: BSD-2-Clause */
/* never_comes PYTHON ADDRESS   Maps a CPython's file as the loader would, with memory in the place
 * of _PyRuntime (ADDRESS, as in the file) whose pages never come: whoever reads them, by whatever
 * system call, waits.  Needs root, as userfaultfd does. */
#include <elf.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE 4096UL
#define BASE 0x7e0000000000UL
#define RUNTIME_BYTES (64 * PAGE)

static void fail(const char *what)
{
	perror(what);
	exit(77);
}

static unsigned long map_file(const char *path)
{
	int fd = open(path, O_RDONLY);
	Elf64_Ehdr header;
	Elf64_Phdr program;
	unsigned long base;

	if (fd < 0 || pread(fd, &header, sizeof(header), 0) != sizeof(header))
		fail(path);
	base = header.e_type == ET_EXEC ? 0 : BASE;
	for (int i = 0; i < header.e_phnum; i++) {
		unsigned long before;

		if (pread(fd, &program, sizeof(program),
			  (off_t)(header.e_phoff + i * sizeof(program))) != sizeof(program))
			fail(path);
		before = program.p_vaddr % PAGE;
		if (program.p_type == PT_LOAD &&
		    mmap((void *)(base + program.p_vaddr - before), program.p_filesz + before,
			 PROT_READ | (program.p_flags & PF_X ? PROT_EXEC : 0),
			 MAP_PRIVATE | MAP_FIXED, fd,
			 (off_t)(program.p_offset - before)) == MAP_FAILED)
			fail("mmap");
	}
	return base;
}

int main(int argc, char **argv)
{
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register range = {.mode = UFFDIO_REGISTER_MODE_MISSING};
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	unsigned long at;

	if (argc != 3 || fd < 0 || ioctl(fd, UFFDIO_API, &api))
		fail("userfaultfd");
	at = map_file(argv[1]) + (strtoul(argv[2], NULL, 0) & ~(PAGE - 1));
	if (mmap((void *)at, RUNTIME_BYTES, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
		fail("mmap");
	range.range.start = at;
	range.range.len = RUNTIME_BYTES;
	if (ioctl(fd, UFFDIO_REGISTER, &range))
		fail("UFFDIO_REGISTER");
	printf("ready\n");
	fflush(stdout);
	for (volatile unsigned long i = 0;; i++)
		;
}
