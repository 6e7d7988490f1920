/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/probe_links.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "attach/mapping_locks.h"
#include "base/cleanup.h"
#include "base/io.h"

/* A small program for one site of a user probe, where the kernel has no attach cookies (before
 * 5.15): it notes the site's number for its CPU and jumps to the program of all probes.  There
 * programs of user probes run with preemption off, so nothing comes in between.  No state. */

#define CONTEXT BPF_REG_6 /* survives calls */
#define KEY_OFFSET (-4)	  /* on the stack: a __u32 */

#define MOVE(to, from) {.code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = (to), .src_reg = (from)}
#define MOVE_VALUE(to, value) {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = (to), .imm = (value)}
#define CALL(helper) {.code = BPF_JMP | BPF_CALL, .imm = (helper)}
#define STORE(to, at, value)                                                                       \
	{.code = BPF_ST | BPF_MEM | BPF_W, .dst_reg = (to), .off = (at), .imm = (value)}
/* Two instructions: the second one has the upper half. */
#define MOVE_MAP(to, map)                                                                          \
	{.code = BPF_LD | BPF_IMM | BPF_DW,                                                        \
	 .dst_reg = (to),                                                                          \
	 .src_reg = BPF_PSEUDO_MAP_FD,                                                             \
	 .imm = (map)},                                                                            \
	{                                                                                          \
	}
#define SKIP_IF_NULL(what, count)                                                                  \
	{.code = BPF_JMP | BPF_JEQ | BPF_K, .dst_reg = (what), .off = (count)}

int probe_stub_load(uint32_t site, int site_now, int programs, int program, int *ret_stub)
{
	const struct bpf_insn code[] = {
		MOVE(CONTEXT, BPF_REG_1),
		/* *site_now = site */
		STORE(BPF_REG_10, KEY_OFFSET, 0),
		MOVE(BPF_REG_2, BPF_REG_10),
		{.code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = BPF_REG_2, .imm = KEY_OFFSET},
		MOVE_MAP(BPF_REG_1, site_now),
		CALL(BPF_FUNC_map_lookup_elem),
		SKIP_IF_NULL(BPF_REG_0, 6),
		STORE(BPF_REG_0, 0, (int32_t)site),
		/* programs[0](ctx) */
		MOVE(BPF_REG_1, CONTEXT),
		MOVE_MAP(BPF_REG_2, programs),
		MOVE_VALUE(BPF_REG_3, 0),
		CALL(BPF_FUNC_tail_call),
		MOVE_VALUE(BPF_REG_0, 0),
		{.code = BPF_JMP | BPF_EXIT},
	};
	const uint32_t first = 0;
	int err = bpf_map_update_elem(programs, &first, &program, BPF_ANY);
	int fd;

	if (err)
		return err;
	fd = bpf_prog_load(BPF_PROG_TYPE_KPROBE, "pp_stub", "GPL", code, ARRAY_SIZE(code), NULL);
	if (fd < 0)
		return fd;
	*ret_stub = fd;
	return 0;
}

/* ---- links ---- */

#define UPROBE_DIRECTORY "/sys/bus/event_source/devices/uprobe/"
#define SEMAPHORE_SHIFT 32 /* linux/trace_events.h: PERF_UPROBE_REF_CTR_OFFSET_SHIFT */
#define MULTI_RETURN 1U	   /* BPF_F_UPROBE_MULTI_RETURN */
#define PERF_EVENT_LINK 41 /* BPF_PERF_EVENT, 5.15 */

/* The parts of union bpf_attr that this needs, by include/uapi/linux/bpf.h of Linux 6.6 and 6.10:
 * those of Debian 12 lack them. */
struct link_attributes {
	uint32_t program, target;
	uint32_t type;
	uint32_t flags;
	union {
		struct {
			uint64_t path, offsets, semaphores, cookies;
			uint32_t count, flags, pid, unused;
		} multi;
		uint64_t perf_cookie;
	};
};
struct tracepoint_attributes {
	uint64_t name;
	uint32_t program, unused;
	uint64_t cookie;
};

static int call_bpf(int command, const void *attributes, size_t size)
{
	long fd = syscall(SYS_bpf, command, attributes, size);

	return fd < 0 ? -errno : (int)fd;
}

bool probe_links_have_cookies(void)
{
	return libbpf_probe_bpf_helper(BPF_PROG_TYPE_KPROBE, BPF_FUNC_get_attach_cookie, NULL) == 1;
}

/* ---- many sites by one link ---- */

/* Loads a program that does nothing.  Returns a descriptor or -errno. */
static int load_empty(enum bpf_attach_type type)
{
	const struct bpf_insn nothing[] = {MOVE_VALUE(BPF_REG_0, 0), {.code = BPF_JMP | BPF_EXIT}};
	LIBBPF_OPTS(bpf_prog_load_opts, options, .expected_attach_type = type);
	int program = bpf_prog_load(BPF_PROG_TYPE_KPROBE, "pp_trial", "GPL", nothing,
				    ARRAY_SIZE(nothing), &options);

	return program < 0 ? -errno : program;
}

int probe_trial_load_empty(bool is_shared)
{
	return load_empty(is_shared ? (enum bpf_attach_type)PROBE_LINKS_ATTACH_TYPE : 0);
}

/* Returns whether the kernel makes such links. */
static bool can_link(enum bpf_attach_type type)
{
	OWNED_FD int program = load_empty(type);
	const uint64_t offset = 0;
	const struct link_attributes attributes = {
		.program = (uint32_t)program,
		.type = (uint32_t)type,
		.multi = {.path = (uintptr_t)"/", .offsets = (uintptr_t)&offset, .count = 1}};

	/* A directory is no file: only a kernel that knows such links comes so far. */
	return program >= 0 && call_bpf(BPF_LINK_CREATE, &attributes, sizeof(attributes)) == -EBADF;
}

bool probe_links_can_share(void)
{
	return can_link((enum bpf_attach_type)PROBE_LINKS_ATTACH_TYPE);
}

bool probe_links_have_sessions(void)
{
	return can_link((enum bpf_attach_type)PROBE_LINKS_SESSION_TYPE);
}

/* The words of each site in the arrays that the kernel wants. */
struct site_words {
	uint64_t *offset, *semaphore, *cookie; /* into one allocation, which `offset` owns */
	bool has_semaphores;
};

static int split_sites(const struct probe_links_options *options, struct site_words *ret_words)
{
	uint64_t *words = calloc(options->count, 3 * sizeof(*words));

	if (!words)
		return -ENOMEM;
	*ret_words = (struct site_words){words, words + options->count, words + 2 * options->count,
					 false};
	for (size_t i = 0; i < options->count; i++) {
		ret_words->offset[i] = options->site[i].offset;
		ret_words->semaphore[i] = options->site[i].semaphore;
		ret_words->cookie[i] = options->site[i].cookie;
		ret_words->has_semaphores |= options->site[i].semaphore != 0;
	}
	return 0;
}

/* The name under which the kernel finds a file that is open here. */
#define FD_PATH_BYTES 40U
static void fd_path(int fd, char ret_path[FD_PATH_BYTES])
{
	snprintf(ret_path, FD_PATH_BYTES, "/proc/self/fd/%d", fd);
}

static int attach_shared(const struct probe_links_options *options, int *ret_fd)
{
	struct link_attributes attributes = {.program = (uint32_t)options->program,
					     .type = options->is_session ? PROBE_LINKS_SESSION_TYPE
									 : PROBE_LINKS_ATTACH_TYPE};
	struct site_words words;
	char path[FD_PATH_BYTES];
	int fd, err = split_sites(options, &words);

	if (err)
		return err;
	fd_path(options->file, path);
	attributes.multi.path = (uintptr_t)path;
	attributes.multi.offsets = (uintptr_t)words.offset;
	attributes.multi.semaphores = words.has_semaphores ? (uintptr_t)words.semaphore : 0;
	attributes.multi.cookies = (uintptr_t)words.cookie;
	attributes.multi.count = (uint32_t)options->count;
	attributes.multi.flags = options->is_return ? MULTI_RETURN : 0;
	attributes.multi.pid = (uint32_t)options->pid;
	fd = call_bpf(BPF_LINK_CREATE, &attributes, sizeof(attributes));
	free(words.offset);
	if (fd < 0)
		return fd;
	*ret_fd = fd;
	return 0;
}

/* ---- a perf event for each site ---- */

static int read_number(const char *name, const char *format, uint32_t *ret_number)
{
	OWNED_MEM char *text = NULL;
	char path[128];
	int err;

	snprintf(path, sizeof(path), UPROBE_DIRECTORY "%s", name);
	err = read_file(path, 64, &text, NULL);
	if (err)
		return err;
	/* The format is one of two literals below. */
	return sscanf(text, format[0] == 'c' ? "config:%u" : "%u", ret_number) == 1 ? 0 : -EBADMSG;
}

static int open_event(const struct probe_links_options *options, const struct probe_link_site *site,
		      int *ret_fd)
{
	struct perf_event_attr attributes = {.size = sizeof(attributes)};
	uint32_t type, return_bit;
	char path[FD_PATH_BYTES];
	int err = read_number("type", "%u", &type);
	long fd;

	if (!err)
		err = read_number("format/retprobe", "config:%u", &return_bit);
	if (err)
		return err;
	fd_path(options->file, path);
	attributes.type = type;
	attributes.config = site->semaphore << SEMAPHORE_SHIFT;
	if (options->is_return)
		attributes.config |= 1ULL << (return_bit & 31);
	attributes.uprobe_path = (uintptr_t)path;
	attributes.probe_offset = site->offset;
	/* Without a process one event of any CPU is hit on all of them. */
	fd = syscall(SYS_perf_event_open, &attributes, options->pid ? options->pid : -1,
		     options->pid ? -1 : 0, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return -errno;
	*ret_fd = (int)fd;
	return 0;
}

/* Kernels before 5.15 have no cookies: there each site has a program that tells. */
static int attach_stub(const struct probe_links_options *options,
		       const struct probe_link_site *site, int event)
{
	OWNED_FD int stub = -1;
	int err;

	if (!options->site_now)
		return ioctl(event, PERF_EVENT_IOC_SET_BPF, options->program) ? -errno : 0;
	err = options->site_now < 0 ? -ENOTSUP
				    : probe_stub_load((uint32_t)site->cookie, options->site_now,
						      options->programs, options->program, &stub);
	if (err)
		return err;
	return ioctl(event, PERF_EVENT_IOC_SET_BPF, stub) ? -errno : 0;
}

/* *ret_link is -1 where the event itself has the program. */
static int link_event(const struct probe_links_options *options, const struct probe_link_site *site,
		      int event, int *ret_link)
{
	const struct link_attributes attributes = {.program = (uint32_t)options->program,
						   .target = (uint32_t)event,
						   .type = PERF_EVENT_LINK,
						   .perf_cookie = site->cookie};
	int link = call_bpf(BPF_LINK_CREATE, &attributes, sizeof(attributes)), err = 0;

	*ret_link = -1;
	if (link >= 0)
		*ret_link = link;
	else
		err = link == -EINVAL ? attach_stub(options, site, event) : link;
	if (err)
		return err;
	return ioctl(event, PERF_EVENT_IOC_ENABLE, 0) ? -errno : 0;
}

static int attach_one(const struct probe_links_options *options, const struct probe_link_site *site,
		      int ret_fd[2])
{
	OWNED_FD int event = -1;
	OWNED_FD int link = -1;
	int err = open_event(options, site, &event);

	if (!err)
		err = link_event(options, site, event, &link);
	if (err)
		return err;
	ret_fd[0] = TAKE_FD(link); /* given back before the event that it is on */
	ret_fd[1] = TAKE_FD(event);
	return 0;
}

/* ---- both ---- */

void probe_links_release(struct probe_links *links)
{
	for (size_t i = 0; i < links->count; i++)
		if (links->fd[i] >= 0)
			close(links->fd[i]);
	free(links->fd);
	*links = (struct probe_links){};
}

int probe_links_attach(const struct probe_links_options *options, struct probe_links *ret_links)
{
	CLEANUP(probe_links_release) struct probe_links links = {};
	int err = 0;

	if (mapping_locks_holder(options->locks))
		return -EAGAIN;
	links.fd = calloc(options->count, 2 * sizeof(*links.fd));
	if (!links.fd)
		return -ENOMEM;
	if (options->is_shared) {
		err = attach_shared(options, &links.fd[0]);
		links.count = !err;
	}
	for (size_t i = 0; i < options->count && !err && !options->is_shared; i++) {
		err = attach_one(options, &options->site[i], &links.fd[links.count]);
		if (!err)
			links.count += 2;
	}
	if (err)
		return err;
	*ret_links = links;
	links = (struct probe_links){};
	return 0;
}

int probe_links_tracepoint(int program, const char *name, uint64_t cookie, int *ret_fd)
{
	const struct tracepoint_attributes attributes = {
		.name = (uintptr_t)name, .program = (uint32_t)program, .cookie = cookie};
	/* Older kernels refuse attributes that are longer than theirs, unless the rest is 0. */
	int fd = call_bpf(BPF_RAW_TRACEPOINT_OPEN, &attributes, sizeof(attributes));

	if (fd == -E2BIG || (fd == -EINVAL && cookie))
		return -ENOTSUP;
	if (fd < 0)
		return fd;
	*ret_fd = fd;
	return 0;
}
