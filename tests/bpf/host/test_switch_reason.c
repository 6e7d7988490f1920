/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* bpf/lib/wait_reason.bpf.h: why a thread is switched out. */
#include "switch.h"

#include <sys/stat.h>

#define NO_CALL ((unsigned long)-1) /* orig_rax of a fault or an interrupt */

/* Leaves with this system call and first argument; a site of its own each time. */
static enum pp_wait reason(uint32_t task_state, unsigned long call, unsigned long argument)
{
	uint64_t at_ns = host->now_ns + MS - START_NS;

	switch_in(&one, at_ns);
	one.regs.orig_rax = call;
	one.regs.rdi = argument;
	one.regs.rsp += 16;
	one.task.__state = task_state;
	switch_at(at_ns + MS, false, &one, NULL);
	return wait_site_reason(wait_site_of(&one));
}

static int reason_setup(void **state)
{
	switch_setup(state);
	set_time(0);
	return 0;
}

static void reason__by_the_system_call_alone(void **state)
{
	static const struct {
		unsigned long call;
		enum pp_wait wait;
	} row[] = {
		{__NR_nanosleep, PP_WAIT_SLEEP},
		{__NR_clock_nanosleep, PP_WAIT_SLEEP},
		{__NR_pause, PP_WAIT_SLEEP},
		{__NR_rt_sigsuspend, PP_WAIT_SLEEP},
		{__NR_rt_sigtimedwait, PP_WAIT_SLEEP},
		{__NR_futex, PP_WAIT_LOCK},
		{449 /* futex_waitv */, PP_WAIT_LOCK},
		{455 /* futex_wait */, PP_WAIT_LOCK},
		{__NR_flock, PP_WAIT_LOCK},
		{__NR_semop, PP_WAIT_LOCK},
		{__NR_semtimedop, PP_WAIT_LOCK},
		{__NR_epoll_wait, PP_WAIT_POLL},
		{__NR_epoll_pwait, PP_WAIT_POLL},
		{441 /* epoll_pwait2 */, PP_WAIT_POLL},
		{__NR_poll, PP_WAIT_POLL},
		{__NR_ppoll, PP_WAIT_POLL},
		{__NR_select, PP_WAIT_POLL},
		{__NR_pselect6, PP_WAIT_POLL},
		{__NR_wait4, PP_WAIT_CHILD},
		{__NR_waitid, PP_WAIT_CHILD},
		{__NR_vfork, PP_WAIT_CHILD},
		{__NR_clone, PP_WAIT_CHILD},
		{435 /* clone3 */, PP_WAIT_CHILD},
		{426 /* io_uring_enter */, PP_WAIT_IO_URING},
		{__NR_mmap, PP_WAIT_KERNEL},
		{__NR_openat, PP_WAIT_KERNEL},
		{99999, PP_WAIT_KERNEL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		if (reason(INTERRUPTIBLE, row[i].call, 3) != row[i].wait)
			fail_msg("system call %lu: %d", row[i].call,
				 wait_site_reason(wait_site_of(&one)));
		assert_int_equal(reason(UNINTERRUPTIBLE, row[i].call, 3), row[i].wait);
	}
}

/* time.sleep() up to 3.10.  Its other arguments do not matter. */
static void reason__select_of_no_descriptors_is_sleep(void **state)
{
	(void)state;
	assert_int_equal(reason(INTERRUPTIBLE, __NR_select, 0), PP_WAIT_SLEEP);
	assert_int_equal(reason(INTERRUPTIBLE, __NR_pselect6, 0), PP_WAIT_SLEEP);
	assert_int_equal(reason(INTERRUPTIBLE, __NR_select, 1), PP_WAIT_POLL);
	assert_int_equal(reason(INTERRUPTIBLE, __NR_poll, 0), PP_WAIT_POLL);
}

/* A signal or a tracer stops a thread in any call; 0x100: TASK_WAKEKILL. */
static void reason__stopped_or_traced_before_all_else(void **state)
{
	(void)state;
	assert_int_equal(reason(0x104, __NR_nanosleep, 0), PP_WAIT_STOPPED);
	assert_int_equal(reason(0x108, __NR_nanosleep, 0), PP_WAIT_STOPPED);
	assert_int_equal(reason(0x008, NO_CALL, 0), PP_WAIT_STOPPED);
}

static void reason__no_system_call_is_a_page_fault(void **state)
{
	(void)state;
	assert_int_equal(reason(UNINTERRUPTIBLE, NO_CALL, 0), PP_WAIT_FAULT);
	assert_int_equal(reason(INTERRUPTIBLE, NO_CALL, 0), PP_WAIT_FAULT); /* userfaultfd */
}

static void reason__call_of_a_path_that_waits_for_a_device_is_disk(void **state)
{
	(void)state;
	one.task.in_iowait = 1;
	assert_int_equal(reason(UNINTERRUPTIBLE, __NR_openat, 3), PP_WAIT_DISK);
	assert_int_equal(reason(UNINTERRUPTIBLE, __NR_newfstatat, 3), PP_WAIT_DISK);
	assert_int_equal(reason(INTERRUPTIBLE, __NR_nanosleep, 3), PP_WAIT_SLEEP);
	one.task.in_iowait = 0;
	assert_int_equal(reason(UNINTERRUPTIBLE, __NR_openat, 3), PP_WAIT_KERNEL);
}

static void reason__kernels_before_5_14_have_another_state(void **state)
{
	(void)state;
	/* In the old struct it is the first word, a long: here that is `stack`. */
	host->missing_field[0] = NULL;
	one.task.stack = (void *)0x108L;
	assert_int_equal(reason(0, __NR_nanosleep, 0), PP_WAIT_STOPPED);
	one.task.stack = NULL;
	assert_int_equal(reason(INTERRUPTIBLE, __NR_nanosleep, 0), PP_WAIT_RUN_QUEUE);
}

static void reason__groups_of_the_ledger_get_its_time(void **state)
{
	uint64_t before_ns;

	(void)state;
	reason(INTERRUPTIBLE, __NR_futex, 0);
	before_ns = host->now_ns - START_NS;
	switch_in(&one, before_ns + 5 * MS);
	assert_int_equal(slot_of(&one)->total_ns[PP_LEDGER_LOCK], 5 * MS);
	reason(UNINTERRUPTIBLE, NO_CALL, 0);
	switch_in(&one, host->now_ns - START_NS + 6 * MS);
	assert_int_equal(slot_of(&one)->total_ns[PP_LEDGER_FAULT], 6 * MS);
	reason(INTERRUPTIBLE, __NR_poll, 0);
	switch_in(&one, host->now_ns - START_NS + 7 * MS);
	assert_int_equal(slot_of(&one)->total_ns[PP_LEDGER_NET], 7 * MS);
}

/* ---- descriptors ---- */

#define DESCRIPTORS 12U

static struct {
	struct super_block disk, anonymous;
	struct inode inode[DESCRIPTORS];
	struct file file[DESCRIPTORS];
	struct socket socket[DESCRIPTORS];
	struct sock sock[DESCRIPTORS];
	struct file *table[DESCRIPTORS];
	struct fdtable fdtable;
	struct files_struct files;
} descriptors;

static void put_file(uint32_t fd, unsigned short mode, struct super_block *super_block)
{
	descriptors.inode[fd] = (struct inode){.i_mode = mode, .i_sb = super_block};
	descriptors.file[fd] = (struct file){.f_inode = &descriptors.inode[fd]};
	descriptors.table[fd] = &descriptors.file[fd];
}

static void put_socket(uint32_t fd, unsigned short family, uint16_t protocol)
{
	put_file(fd, S_IFSOCK | 0777, &descriptors.disk);
	descriptors.sock[fd] = (struct sock){.__sk_common = {.skc_family = family},
					     .sk_protocol = protocol};
	descriptors.socket[fd] = (struct socket){.sk = &descriptors.sock[fd]};
	descriptors.file[fd].private_data = &descriptors.socket[fd];
}

static int descriptors_setup(void **state)
{
	reason_setup(state);
	memset(&descriptors, 0, sizeof(descriptors));
	descriptors.disk.s_magic = 0xef53; /* ext4 */
	descriptors.anonymous.s_magic = ANON_INODE_MAGIC;
	descriptors.fdtable =
		(struct fdtable){.max_fds = DESCRIPTORS, .fd = descriptors.table};
	descriptors.files = (struct files_struct){.fdt = &descriptors.fdtable};
	one.task.files = &descriptors.files;
	return 0;
}

static void descriptor__kinds(void **state)
{
	static const enum pp_wait expected[] = {
		PP_WAIT_FILE, PP_WAIT_FILE,   PP_WAIT_PIPE,	PP_WAIT_TERMINAL,
		PP_WAIT_UNIX, PP_WAIT_TCP,    PP_WAIT_TCP,	PP_WAIT_UDP,
		PP_WAIT_SOCKET /* netlink */, PP_WAIT_SOCKET /* raw */,
	};

	(void)state;
	put_file(0, S_IFREG | 0644, &descriptors.disk);
	put_file(1, S_IFDIR | 0755, &descriptors.disk);
	put_file(2, S_IFIFO | 0600, &descriptors.disk);
	put_file(3, S_IFCHR | 0620, &descriptors.disk);
	put_socket(4, 1, 0);
	put_socket(5, 2, 6);
	put_socket(6, 10, 6);
	put_socket(7, 10, 17);
	put_socket(8, 16, 0);
	put_socket(9, 2, 255);
	for (uint32_t fd = 0; fd < sizeof(expected) / sizeof(expected[0]); fd++)
		if (reason(INTERRUPTIBLE, __NR_read, fd) != expected[fd])
			fail_msg("descriptor %u: %d", fd, wait_site_reason(wait_site_of(&one)));
}

/* eventfd, timerfd, inotify, ...: without a type before 6.16, a regular file since. */
static void descriptor__anonymous_inode_is_an_eventfd(void **state)
{
	(void)state;
	put_file(0, 0600, &descriptors.anonymous);
	put_file(1, S_IFREG | 0600, &descriptors.anonymous);
	assert_int_equal(reason(INTERRUPTIBLE, __NR_read, 0), PP_WAIT_EVENTFD);
	assert_int_equal(reason(INTERRUPTIBLE, __NR_read, 1), PP_WAIT_EVENTFD);
}

static void descriptor__that_is_not_there_is_other(void **state)
{
	(void)state;
	assert_int_equal(reason(INTERRUPTIBLE, __NR_read, 11), PP_WAIT_OTHER); /* closed */
	assert_int_equal(reason(INTERRUPTIBLE, __NR_read, DESCRIPTORS), PP_WAIT_OTHER);
	assert_int_equal(reason(INTERRUPTIBLE, __NR_read, 0xffffffff), PP_WAIT_OTHER);
	one.task.files = NULL; /* on its way out */
	assert_int_equal(reason(INTERRUPTIBLE, __NR_read, 0), PP_WAIT_OTHER);
}

/* Calls whose first argument is one. */
static void descriptor__of_each_call(void **state)
{
	static const unsigned long call[] = {
		__NR_read,	__NR_write,	__NR_pread64,	__NR_pwrite64,	__NR_readv,
		__NR_writev,	__NR_recvfrom,	__NR_recvmsg,	__NR_recvmmsg,	__NR_sendto,
		__NR_sendmsg,	__NR_sendmmsg,	__NR_accept,	__NR_accept4,	__NR_connect,
		__NR_sendfile,	__NR_splice,	__NR_fsync,	__NR_fdatasync, __NR_fallocate,
		__NR_ftruncate, __NR_getdents64, __NR_ioctl,	__NR_fcntl,	__NR_lseek,
	};

	(void)state;
	put_socket(5, 2, 6);
	for (size_t i = 0; i < sizeof(call) / sizeof(call[0]); i++)
		if (reason(INTERRUPTIBLE, call[i], 5) != PP_WAIT_TCP)
			fail_msg("system call %lu: %d", call[i],
				 wait_site_reason(wait_site_of(&one)));
}

#define reason_test(test) cmocka_unit_test_setup_teardown(test, reason_setup, switch_teardown)
#define descriptor_test(test)                                                                      \
	cmocka_unit_test_setup_teardown(test, descriptors_setup, switch_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		reason_test(reason__by_the_system_call_alone),
		reason_test(reason__select_of_no_descriptors_is_sleep),
		reason_test(reason__stopped_or_traced_before_all_else),
		reason_test(reason__no_system_call_is_a_page_fault),
		reason_test(reason__call_of_a_path_that_waits_for_a_device_is_disk),
		reason_test(reason__kernels_before_5_14_have_another_state),
		reason_test(reason__groups_of_the_ledger_get_its_time),
		descriptor_test(descriptor__kinds),
		descriptor_test(descriptor__anonymous_inode_is_an_eventfd),
		descriptor_test(descriptor__that_is_not_there_is_other),
		descriptor_test(descriptor__of_each_call),
	};

	return cmocka_run_group_tests_name("bpf/switch_reason", tests, NULL, NULL);
}
