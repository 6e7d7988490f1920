/* SPDX-License-Identifier: BSD-2-Clause */
#include "files/opening.h"

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "discover/proc_maps.h"
#include "files/opener.h"
#include "files/vouch.h"
#include "here.h"

static struct opener *opener;

/* Opens a mapping's file in the child, which is a part of this program. */
static int file_open(uint32_t tgid, const struct mapping *mapping, int *ret_fd)
{
	struct opened_file opened;
	int err = opener_open_mapped(opener, tgid, 0, mapping, &opened);

	if (!err)
		*ret_fd = opened.fd;
	return err;
}

/* A directory for one test, and the one mapping that the test looks for. */
struct fixture {
	char directory[64];
	char path[128];
	struct mapping mapping;
	char mapping_path[512];
	const char *wanted; /* end of its path */
};

static int find_wanted(void *context, const struct mapping *mapping)
{
	struct fixture *fixture = context;
	size_t size = strlen(mapping->path), wanted = strlen(fixture->wanted);

	if (size < wanted || strcmp(mapping->path + size - wanted, fixture->wanted) != 0)
		return 0;
	fixture->mapping = *mapping;
	snprintf(fixture->mapping_path, sizeof(fixture->mapping_path), "%s", mapping->path);
	fixture->mapping.path = fixture->mapping_path;
	return 0;
}

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0755);

	assert_true(fd >= 0);
	assert_int_equal(write_full(fd, text, strlen(text)), 0);
	assert_int_equal(ftruncate(fd, 4096), 0);
	close(fd);
}

static void start(struct fixture *fixture, const char *text)
{
	memset(fixture, 0, sizeof(*fixture));
	snprintf(fixture->directory, sizeof(fixture->directory), "/tmp/file_open_XXXXXX");
	assert_non_null(mkdtemp(fixture->directory));
	snprintf(fixture->path, sizeof(fixture->path), "%s/lib.so", fixture->directory);
	fixture->wanted = "/lib.so";
	write_file(fixture->path, text);
}

static void finish(struct fixture *fixture)
{
	unlink(fixture->path);
	assert_int_equal(rmdir(fixture->directory), 0);
}

static void *map_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *memory = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);

	close(fd);
	if (memory == MAP_FAILED) {
		print_message("skipped: /tmp is mounted noexec\n");
		skip();
	}
	return memory;
}

static void expect_text(int fd, const char *text)
{
	char bytes[64] = {0};

	assert_int_equal(pread_full(fd, bytes, strlen(text), 0), 0);
	assert_string_equal(bytes, text);
	assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	assert_int_equal(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
	close(fd);
}

static void skip_without_map_files(struct fixture *fixture)
{
	char path[128];

	snprintf(path, sizeof(path), "/proc/self/map_files/%lx-%lx",
		 (unsigned long)fixture->mapping.start, (unsigned long)fixture->mapping.end);
	if (access(path, R_OK) != 0) {
		finish(fixture);
		print_message("skipped: not allowed to follow /proc/PID/map_files\n");
		skip();
	}
}

static void file_open__mapped_file_and_its_key(void **state)
{
	struct fixture fixture;
	struct file_key key;
	struct stat status;
	void *memory;
	int fd = -1;

	(void)state;
	start(&fixture, "first");
	memory = map_file(fixture.path);
	assert_int_equal(proc_maps_read((uint32_t)getpid(), find_wanted, &fixture, NULL), 0);
	assert_int_equal(file_open((uint32_t)getpid(), &fixture.mapping, &fd), 0);
	assert_int_equal(stat(fixture.path, &status), 0);
	assert_int_equal(file_key_from_fd(fd, &key), 0);
	assert_int_equal(key.inode, status.st_ino);
	assert_true(file_key_is_of_mapping(&key, &fixture.mapping.key));
	expect_text(fd, "first");
	munmap(memory, 4096);
	finish(&fixture);
}

static void file_open__deleted_and_replaced_file_is_the_mapped_one(void **state)
{
	struct fixture fixture;
	void *memory;
	int fd = -1;

	(void)state;
	start(&fixture, "first");
	memory = map_file(fixture.path);
	unlink(fixture.path);
	write_file(fixture.path, "second");
	assert_int_equal(proc_maps_read((uint32_t)getpid(), find_wanted, &fixture, NULL), 0);
	skip_without_map_files(&fixture);
	assert_int_equal(file_open((uint32_t)getpid(), &fixture.mapping, &fd), 0);
	expect_text(fd, "first");
	/* Unmapped: only the name is left, which leads to another file. */
	munmap(memory, 4096);
	assert_int_equal(file_open((uint32_t)getpid(), &fixture.mapping, &fd), -ESTALE);
	unlink(fixture.path);
	assert_int_equal(file_open((uint32_t)getpid(), &fixture.mapping, &fd), -ENOENT);
	write_file(fixture.path, "");
	finish(&fixture);
}

static void file_open__by_name_when_the_range_has_changed(void **state)
{
	struct fixture fixture;
	int fd = -1;

	(void)state;
	start(&fixture, "first");
	fixture.mapping = (struct mapping){.start = 4096, .end = 8192, .path = fixture.path};
	assert_int_equal(file_open((uint32_t)getpid(), &fixture.mapping, &fd), 0);
	expect_text(fd, "first");
	fixture.mapping.key.inode = 1;
	assert_int_equal(file_open((uint32_t)getpid(), &fixture.mapping, &fd), -ESTALE);
	finish(&fixture);
}

static void file_open__what_is_no_file_is_refused_without_waiting(void **state)
{
	struct mapping mapping = {.start = 4096, .end = 8192};
	struct fixture fixture;
	int fd = 77;

	(void)state;
	start(&fixture, "");
	unlink(fixture.path);
	assert_int_equal(mkfifo(fixture.path, 0600), 0);
	mapping.path = fixture.path;
	assert_int_equal(file_open((uint32_t)getpid(), &mapping, &fd), -EINVAL);
	mapping.path = "/dev/null";
	assert_int_equal(file_open((uint32_t)getpid(), &mapping, &fd), -EINVAL);
	mapping.path = "/tmp";
	assert_int_equal(file_open((uint32_t)getpid(), &mapping, &fd), -EINVAL);
	mapping.path = "";
	assert_int_equal(file_open((uint32_t)getpid(), &mapping, &fd), -ENOENT);
	mapping.path = "[vdso]";
	assert_int_equal(file_open((uint32_t)getpid(), &mapping, &fd), -ENOENT);
	mapping.path = "//toolong";
	assert_int_equal(file_open((uint32_t)getpid(), &mapping, &fd), -ENOENT);
	mapping.path = "/bin/sh";
	assert_int_equal(file_open(4194305, &mapping, &fd), -ESRCH);
	assert_int_equal(fd, 77);
	finish(&fixture);
}

/* A child with its root elsewhere; a link there that would lead out of it must not. */
static void file_open__names_are_those_of_the_process_root(void **state)
{
	struct mapping mapping = {.start = 4096, .end = 8192};
	struct fixture fixture;
	char link_path[128];
	int ready[2], fd = -1;
	char byte = 0;
	pid_t pid;

	(void)state;
	start(&fixture, "inside");
	snprintf(link_path, sizeof(link_path), "%s/link", fixture.directory);
	assert_int_equal(symlink("/lib.so", link_path), 0);
	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		byte = chroot(fixture.directory) == 0 ? 'y' : 'n';
		if (write(ready[1], &byte, 1) == 1)
			for (;;)
				pause();
		_exit(1);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	if (byte == 'y') {
		mapping.path = "/lib.so";
		assert_int_equal(file_open((uint32_t)pid, &mapping, &fd), 0);
		expect_text(fd, "inside");
		mapping.path = "/link";
		assert_int_equal(file_open((uint32_t)pid, &mapping, &fd), 0);
		expect_text(fd, "inside");
		mapping.path = "/../../../../bin/sh";
		assert_int_equal(file_open((uint32_t)pid, &mapping, &fd), -ENOENT);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(ready[0]);
	close(ready[1]);
	unlink(link_path);
	finish(&fixture);
	if (byte != 'y') {
		print_message("skipped: not allowed to chroot\n");
		skip();
	}
}

/* In a mount namespace of its own a child mounts an overlay and maps a file of it, as containers
 * do; /proc then shows another device than stat. */
static bool map_overlay_file(const struct fixture *fixture)
{
	char path[256];

	if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
		return false;
	snprintf(path, sizeof(path), "%s/x", fixture->directory);
	if (mkdir(path, 0700) != 0 || mount("none", path, "tmpfs", 0, NULL) != 0 ||
	    chdir(path) != 0 || mkdir("lower", 0755) != 0 || mkdir("upper", 0755) != 0 ||
	    mkdir("work", 0755) != 0 || mkdir("merged", 0755) != 0)
		return false;
	write_file("lower/over.so", "overlaid");
	if (mount("overlay", "merged", "overlay", 0,
		  "lowerdir=lower,upperdir=upper,workdir=work") != 0)
		return false;
	map_file("merged/over.so");
	return true;
}

static void file_open__overlay_of_another_mount_namespace(void **state)
{
	struct fixture fixture;
	char directory[128];
	int ready[2], fd = -1;
	char byte = 0;
	pid_t pid;

	(void)state;
	start(&fixture, "");
	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		byte = map_overlay_file(&fixture) ? 'y' : 'n';
		if (write(ready[1], &byte, 1) == 1)
			for (;;)
				pause();
		_exit(1);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	if (byte == 'y') {
		fixture.wanted = "/merged/over.so";
		assert_int_equal(proc_maps_read((uint32_t)pid, find_wanted, &fixture, NULL), 0);
		assert_non_null(fixture.mapping.path);
		assert_int_equal(file_open((uint32_t)pid, &fixture.mapping, &fd), 0);
		expect_text(fd, "overlaid");
		/* And by its name alone. */
		fixture.mapping.start = 4096;
		fixture.mapping.end = 8192;
		assert_int_equal(file_open((uint32_t)pid, &fixture.mapping, &fd), 0);
		expect_text(fd, "overlaid");
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(ready[0]);
	close(ready[1]);
	snprintf(directory, sizeof(directory), "%s/x", fixture.directory);
	rmdir(directory);
	finish(&fixture);
	if (byte != 'y') {
		print_message("skipped: not allowed to mount an overlay\n");
		skip();
	}
}

static void file_key_is_of_mapping__layers_and_generations(void **state)
{
	const struct file_key mapping = {.major = 8, .minor = 1, .inode = 7, .inode_generation = 3};
	struct file_key file = mapping;

	(void)state;
	assert_true(file_key_is_of_mapping(&file, &mapping));
	file.inode_generation = 4;
	assert_false(file_key_is_of_mapping(&file, &mapping));
	file.inode_generation = 0;
	assert_true(file_key_is_of_mapping(&file, &mapping));
	file.inode = (1ULL << 63) | 7;
	assert_false(file_key_is_of_mapping(&file, &mapping));
	file.minor = 2;
	assert_true(file_key_is_of_mapping(&file, &mapping));
	file.inode = 8;
	assert_false(file_key_is_of_mapping(&file, &mapping));
	assert_true(file_key_is_of_mapping(&file, &(struct file_key){0}));
}

/* ---- between open files ---- */

static struct opener_file opened_of(int fd)
{
	return (struct opener_file){.child = opener_child(opener), .fd = fd, .number = 1};
}

static int memory_file(const char *bytes, size_t size)
{
	int fd = memfd_create("opening", MFD_CLOEXEC);

	assert_true(fd > CHILD_PEER_FD);
	assert_int_equal(write_full(fd, bytes, size), 0);
	return fd;
}

static void opener_is_equal__is_by_bytes_of_this_child(void **state)
{
	static char bytes[200000];
	struct opener_file a = opened_of(memory_file(bytes, sizeof(bytes))), b, c;

	(void)state;
	b = opened_of(memory_file(bytes, sizeof(bytes)));
	bytes[150000] = 1;
	c = opened_of(memory_file(bytes, sizeof(bytes)));
	assert_true(opener_is_equal(opener, &a, &b, sizeof(bytes)));
	assert_false(opener_is_equal(opener, &a, &c, sizeof(bytes)));
	assert_true(opener_is_equal(opener, &a, &c, 150000));
	a.child++;
	assert_false(opener_is_equal(opener, &a, &b, sizeof(bytes)));
	a.child--;
	opener_close(opener, &a);
	assert_int_equal(a.fd, -1);
	opener_close_many(opener, (struct opener_file *[]){&b, &c}, 2);
	assert_int_equal(b.fd & c.fd, -1);
}

static void opener_give__only_what_the_kernel_answers_for(void **state)
{
	struct opener_file file = opened_of(memory_file("x", 1));
	OWNED_FD int fd = -1;

	(void)state;
	assert_int_equal(opener_give(opener, &file, getpid(), &fd), 0);
	assert_int_not_equal(fd, file.fd);
	opener_close(opener, &file);
	file = opened_of(open("/proc/self/maps", O_RDONLY | O_CLOEXEC));
	close_owned_fd(&fd);
	fd = -1;
	assert_int_equal(opener_give(opener, &file, getpid(), &fd), -EREMOTE);
	assert_int_equal(fd, -1);
	opener_close(opener, &file);
	assert_int_equal(opener_give(opener, &file, getpid(), &fd), -ESTALE);
}

static void opener_open_path__leads_to_the_file_behind_links(void **state)
{
	struct opened_file opened;
	struct opener_file file;
	struct fixture fixture;
	char link_path[128];

	(void)state;
	start(&fixture, "text");
	snprintf(link_path, sizeof(link_path), "%s/link", fixture.directory);
	assert_int_equal(symlink("lib.so", link_path), 0);
	assert_int_equal(opener_open_path(opener, link_path, &opened, &file), 0);
	assert_string_equal(opened.path, fixture.path);
	assert_int_equal(opened.is_executable, 1);
	expect_text(file.fd, "text");
	assert_int_equal(opener_open_path(opener, "/dev/null", &opened, &file), -EINVAL);
	assert_int_equal(opener_open_path(opener, "/nothing", &opened, &file), -ENOENT);
	unlink(link_path);
	finish(&fixture);
}

/* ---- who answers for a file system ---- */

static const char mounts[] =
	"27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard\n"
	"30 27 0:40 / /home rw - nfs server:/home rw,addr=1.2.3.4\n"
	"31 27 0:41 / /over rw shared:3 - overlay overlay "
	"rw,lowerdir=/a\\040b:/c\\:d::l/X,upperdir=/up,workdir=/w,context=u:o:t\n"
	"32 27 0:42 / /none rw - fuse.sshfs me@there:/ rw\n";

static void mountinfo_type__is_that_of_the_device(void **state)
{
	char type[16];

	(void)state;
	assert_true(mountinfo_type(mounts, 254, 0, type, sizeof(type)));
	assert_string_equal(type, "ext4");
	assert_true(file_system_name_is_local(type));
	assert_true(mountinfo_type(mounts, 0, 41, type, sizeof(type)));
	assert_true(file_system_name_is_local(type));
	assert_true(mountinfo_type(mounts, 0, 42, type, sizeof(type)));
	assert_false(file_system_name_is_local(type));
	assert_true(mountinfo_type(mounts, 0, 40, type, sizeof(type)));
	assert_false(file_system_name_is_local(type));
	assert_false(mountinfo_type(mounts, 254, 1, type, sizeof(type)));
	assert_false(mountinfo_type("", 0, 0, type, sizeof(type)));
}

static void mount_options_next_layer__layers_are_decoded(void **state)
{
	static const char *const wanted[] = {"/a b", "/c:d", "l/X", "/up", "o", "t"};
	char path[32];
	size_t bytes, at = 0;
	const char *options = mountinfo_options(mounts, 31, &bytes);

	(void)state;
	assert_non_null(options);
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
		assert_true(mount_options_next_layer(options, bytes, &at, path, sizeof(path)));
		assert_string_equal(path, wanted[i]);
	}
	assert_false(mount_options_next_layer(options, bytes, &at, path, sizeof(path)));
	assert_null(mountinfo_options(mounts, 3, &bytes));
	assert_null(mountinfo_options("31 27 0:41 / /over rw\n", 31, &bytes));
}

static void file_system_is_local__programs_and_networks_are_not(void **state)
{
	(void)state;
	assert_true(file_system_is_local(EXT4_SUPER_MAGIC));
	assert_true(file_system_is_local(TMPFS_MAGIC));
	assert_false(file_system_is_local(FUSE_SUPER_MAGIC));
	assert_false(file_system_is_local(NFS_SUPER_MAGIC));
	assert_false(file_system_is_local(OVERLAYFS_SUPER_MAGIC));
	assert_false(file_system_is_local(V9FS_MAGIC));
}

/* ---- the protocol ---- */

static void opening_request_is_sound__what_cannot_be_is_refused(void **state)
{
	struct opening_request request = {
		.kind = OPENING_MAPPED, .tid = 7, .path = "/a", .fd_count = 0};
	const size_t size = opening_request_bytes(&request);

	(void)state;
	assert_true(opening_request_is_sound(&request, size));
	assert_false(opening_request_is_sound(&request, size - 1));
	assert_false(opening_request_is_sound(&request, 20));
	request.tid = 0;
	assert_false(opening_request_is_sound(&request, size));
	request.kind = OPENING_COMPARE;
	request.fd[0] = request.fd[1] = CHILD_PEER_FD + 1;
	request.fd_count = 1;
	assert_false(opening_request_is_sound(&request, size));
	request.fd_count = 2;
	assert_true(opening_request_is_sound(&request, size));
	request.fd[1] = CHILD_PEER_FD;
	assert_false(opening_request_is_sound(&request, size));
	request.fd[1]++;
	request.identity.is_fuse = 2;
	assert_false(opening_request_is_sound(&request, size));
	request.identity.is_fuse = 0;
	request.kind = OPENING_KINDS;
	assert_false(opening_request_is_sound(&request, size));
}

static int setup(void **state)
{
	(void)state;
	return opener_new("", &opener);
}

static int teardown(void **state)
{
	(void)state;
	opener_free(opener);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(file_open__mapped_file_and_its_key),
		cmocka_unit_test(file_open__deleted_and_replaced_file_is_the_mapped_one),
		cmocka_unit_test(file_open__by_name_when_the_range_has_changed),
		cmocka_unit_test(file_open__what_is_no_file_is_refused_without_waiting),
		cmocka_unit_test(file_open__names_are_those_of_the_process_root),
		cmocka_unit_test(file_open__overlay_of_another_mount_namespace),
		cmocka_unit_test(file_key_is_of_mapping__layers_and_generations),
		cmocka_unit_test(opener_is_equal__is_by_bytes_of_this_child),
		cmocka_unit_test(opener_give__only_what_the_kernel_answers_for),
		cmocka_unit_test(opener_open_path__leads_to_the_file_behind_links),
		cmocka_unit_test(mountinfo_type__is_that_of_the_device),
		cmocka_unit_test(mount_options_next_layer__layers_are_decoded),
		cmocka_unit_test(file_system_is_local__programs_and_networks_are_not),
		cmocka_unit_test(opening_request_is_sound__what_cannot_be_is_refused),
	};

	return cmocka_run_group_tests_name("files/opening", tests, setup, teardown);
}
