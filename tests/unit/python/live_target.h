/* SPDX-License-Identifier: BSD-2-Clause */
/* A live Python with a known set of threads, and the kernel side's steps with python_info repeated
 * in user space, written from the description in include/pyprofd/python.h. */
#ifndef TESTS_UNIT_PYTHON_LIVE_TARGET_H
#define TESTS_UNIT_PYTHON_LIVE_TARGET_H

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "elf/elf_image.h"
#include "python/python_info.h"
#include "python/python_process.h"

#define TARGET_MAX_THREADS 8U

struct target_thread {
	char name[16];
	uint64_t ident, native_id;
};

/* The ELF address of what a mapping with this file offset begins with, which is code.  The loader
 * maps whole pages, so that the mapping may begin before its segment. */
static inline bool code_vaddr(const struct elf_image *image, uint64_t offset, uint64_t *ret_vaddr)
{
	for (size_t i = 0; i < image->segment_count; i++) {
		const struct elf_segment *segment = &image->segment[i];

		if (segment->executable && offset >= (segment->offset & ~4095ULL) &&
		    offset < segment->offset + segment->file_size) {
			*ret_vaddr = segment->vaddr + offset - segment->offset;
			return true;
		}
	}
	return false;
}

struct target {
	pid_t pid;
	int input, output; /* pipes: closing `input` ends it */
	unsigned long version_hex;
	struct target_thread thread[TARGET_MAX_THREADS];
	size_t thread_count;
	/* The file with the interpreter. */
	char path[512];
	struct elf_image *image;
	uint64_t bias;
};

/* Python 2.7 to 3.15.  Says each thread's own ident and native id, then waits for its stdin to
 * end. */
static const char target_script[] =
	"import sys, os, time, threading, gc\n"
	"ident = getattr(threading, 'get_ident', None) or __import__('thread').get_ident\n"
	"native = getattr(threading, 'get_native_id', lambda: 0)\n"
	"lock = threading.Lock()\n"
	"lock.acquire()\n"
	"started = threading.Semaphore(0)\n"
	"def say(name):\n"
	"    os.write(1, ('%s %d %d\\n' % (name, ident(), native())).encode())\n"
	"    started.release()\n"
	"def spin():\n"
	"    say('spin')\n"
	"    n = 0\n"
	"    while True:\n"
	"        n += 1\n"
	"def sleep_long():\n"
	"    say('sleep')\n"
	"    time.sleep(10000)\n"
	"def wait_for_lock():\n"
	"    say('wait')\n"
	"    lock.acquire()\n"
	"def collect():\n"
	"    keep = [[i] for i in range(200000)]\n"
	"    say('collect')\n"
	"    while keep:\n"
	"        gc.collect()\n"
	"        time.sleep(0.001)\n" /* in 2.7 nobody else gets the GIL otherwise */
	"os.write(1, ('version %d 0\\n' % sys.hexversion).encode())\n"
	"say('main')\n"
	"started.acquire()\n"
	"for f in [globals()[name] for name in sys.argv[1:]]:\n"
	"    t = threading.Thread(target=f)\n"
	"    t.daemon = True\n"
	"    t.start()\n"
	"    started.acquire()\n"
	"os.write(1, b'ready 0 0\\n')\n"
	"os.read(0, 1)\n"
	"os._exit(0)\n";

static inline void target_release(struct target *target)
{
	elf_image_free(target->image);
	close(target->input);
	close(target->output);
	if (target->pid > 0) {
		kill(target->pid, SIGKILL);
		waitpid(target->pid, NULL, 0);
	}
}

static inline int target_read_threads(struct target *target)
{
	OWNED_FILE FILE *lines = fdopen(dup(target->output), "r");
	char line[128];

	while (lines && fgets(line, sizeof(line), lines)) {
		struct target_thread thread = {0};

		if (sscanf(line, "%15s %lu %lu", thread.name, &thread.ident, &thread.native_id) !=
		    3)
			return -EPROTO;
		if (!strcmp(thread.name, "ready"))
			return 0;
		if (!strcmp(thread.name, "version"))
			target->version_hex = thread.ident;
		else if (target->thread_count < TARGET_MAX_THREADS)
			target->thread[target->thread_count++] = thread;
	}
	return -EPIPE;
}

/* The first mapped file that python_info_read() takes for an interpreter, or knows as one. */
static inline int target_find_interpreter(struct target *target)
{
	char path[64], line[1024];
	OWNED_FILE FILE *maps = NULL;

	snprintf(path, sizeof(path), "/proc/%d/maps", target->pid);
	maps = fopen(path, "r");
	while (maps && fgets(line, sizeof(line), maps)) {
		OWNED(elf_image) struct elf_image *image = NULL;
		OWNED(python_info) struct python_info *info = NULL;
		char permissions[8], file[512], link[96];
		OWNED_FD int fd = -1;
		unsigned long start, end, offset;
		const char *reason;
		uint64_t vaddr;
		int err;

		if (sscanf(line, "%lx-%lx %7s %lx %*s %*s %511s", &start, &end, permissions,
			   &offset, file) != 5 ||
		    permissions[2] != 'x' || file[0] != '/')
			continue;
		snprintf(link, sizeof(link), "/proc/%d/map_files/%lx-%lx", target->pid, start, end);
		fd = open(link, O_RDONLY | O_CLOEXEC);
		/* Without CAP_CHECKPOINT_RESTORE. */
		if (fd < 0)
			fd = open(file, O_RDONLY | O_CLOEXEC);
		if (fd < 0 || elf_image_open(fd, &image))
			continue;
		err = python_info_read(image, &info, &reason);
		if ((err && err != -ENOTSUP) || !code_vaddr(image, offset, &vaddr))
			continue;
		target->bias = start - vaddr;
		snprintf(target->path, sizeof(target->path), "%.511s", file);
		target->image = TAKE(image);
		return 0;
	}
	return -ENOENT;
}

/* command: for a shell.  threads: names of functions of the script, separated by blanks. */
static inline int target_start(const char *command, const char *threads, struct target *target)
{
	int input[2], output[2], err;
	char shell[1024];

	*target = (struct target){.pid = -1, .input = -1, .output = -1};
	snprintf(shell, sizeof(shell), "exec %s -c \"$SCRIPT\" %s", command, threads);
	if (pipe2(input, O_CLOEXEC))
		return -errno;
	target->input = input[1];
	if (pipe2(output, O_CLOEXEC)) {
		close(input[0]);
		return -errno;
	}
	target->output = output[0];
	target->pid = fork();
	if (!target->pid) {
		dup2(input[0], 0);
		dup2(output[1], 1);
		setenv("SCRIPT", target_script, 1);
		execl("/bin/sh", "sh", "-c", shell, (char *)NULL);
		_exit(127);
	}
	close(input[0]);
	close(output[1]);
	err = target_read_threads(target);
	return err ? err : target_find_interpreter(target);
}

static inline const struct target_thread *target_thread(const struct target *target,
							const char *name)
{
	for (size_t i = 0; i < target->thread_count; i++)
		if (!strcmp(target->thread[i].name, name))
			return &target->thread[i];
	return NULL;
}

/* 8 bytes of the target, 0 when they are not there. */
static inline uint64_t peek(pid_t pid, uint64_t address)
{
	uint64_t value = 0;

	return process_read(pid, address, &value, sizeof(value)) ? 0 : value;
}

/* The thread state that one source gives to the thread with this thread pointer. */
static inline uint64_t tls_value(pid_t pid, uint64_t tp, const struct pp_tls *tls)
{
	uint64_t module, key;

	switch (tls->mode) {
	case PP_TLS_THREAD_OFFSET:
		return peek(pid, tp + (uint64_t)(int64_t)tls->offset);
	case PP_TLS_DTV:
		module = peek(pid, tls->address);
		return peek(pid, peek(pid, peek(pid, tp + 8) + 16 * module) +
					 (uint64_t)(int64_t)tls->offset);
	case PP_TLS_PTHREAD_KEY:
		key = (uint32_t)peek(pid, tls->address);
		if (key < 32)
			return peek(pid, tp + 0x310 + 16 * key + 8);
		return peek(pid, peek(pid, tp + 0x510 + 8 * (key / 32)) + 16 * (key % 32) + 8);
	case PP_TLS_GLOBAL:
		return peek(pid, tls->address);
	default:
		return 0;
	}
}

#endif
