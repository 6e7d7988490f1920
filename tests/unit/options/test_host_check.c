/* SPDX-License-Identifier: BSD-2-Clause */
#include "options/host_check.h"

#include <cmocka.h>
#include <errno.h>
#include <ftw.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/io.h"

/* A host made of files. */
struct host_tree {
	char directory[32];
	char proc[64], btf[64], lockdown[64], cgroup[64];
	struct host_paths paths;
	struct options options;
	char output[96];
	char why[HOST_WHY_BYTES];
};

/* Every capability but CAP_SYS_RESOURCE (24). */
#define STATUS_ROOT                                                                                \
	"Name:\tpyprofd\nUid:\t0\t0\t0\t0\nCapPrm:\t000001ffffffffff\nCapEff:\t000001fffeffffff\n"

static void put(const char *directory, const char *name, const char *text)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(path, 0755);
		*slash = '/';
	}
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static int setup(void **state)
{
	struct host_tree *tree = calloc(1, sizeof(*tree));

	assert_non_null(tree);
	strncpy(tree->directory, "/tmp/pyprofd-test-XXXXXX", sizeof(tree->directory) - 1);
	assert_non_null(mkdtemp(tree->directory));
	snprintf(tree->proc, sizeof(tree->proc), "%s/proc", tree->directory);
	snprintf(tree->btf, sizeof(tree->btf), "%s/btf", tree->directory);
	snprintf(tree->lockdown, sizeof(tree->lockdown), "%s/lockdown", tree->directory);
	snprintf(tree->cgroup, sizeof(tree->cgroup), "%s/cgroup", tree->directory);
	snprintf(tree->output, sizeof(tree->output), "%s/out.pb.gz", tree->directory);
	tree->paths = (struct host_paths){.proc = tree->proc,
					  .btf = tree->btf,
					  .lockdown = tree->lockdown,
					  .cgroup = tree->cgroup,
					  .release = "6.1.0-56-amd64"};
	tree->options = (struct options){
		.hz = 99, .output = tree->output, .output_kind = OPTIONS_OUTPUT_PPROF};
	put(tree->directory, "btf", "BTF");
	put(tree->proc, "self/status", STATUS_ROOT);
	put(tree->proc, "self/uid_map", "         0          0 4294967295\n");
	put(tree->proc, "sys/kernel/perf_event_max_sample_rate", "100000\n");
	*state = tree;
	return 0;
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *ftw)
{
	(void)status;
	(void)type;
	(void)ftw;
	return remove(path);
}

static int teardown(void **state)
{
	struct host_tree *tree = *state;

	nftw(tree->directory, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	free(tree);
	return 0;
}

static int check(struct host_tree *tree)
{
	memset(tree->why, 'x', sizeof(tree->why));
	return host_check(&tree->paths, &tree->options, tree->why, sizeof(tree->why));
}

static void assert_refused(struct host_tree *tree, int err, const char *why)
{
	assert_int_equal(check(tree), err);
	assert_string_equal(tree->why, why);
}

/* The same where the text names a file of the tree: `start`, the directory, `end`. */
static void assert_refused_at(struct host_tree *tree, int err, const char *start, const char *end)
{
	char why[HOST_WHY_BYTES];

	snprintf(why, sizeof(why), "%s%s%s", start, tree->directory, end);
	assert_refused(tree, err, why);
}

/* Sanitizers have an allocator of their own. */
#if !defined(__SANITIZE_ADDRESS__)
void *__libc_malloc(size_t size);
void *__libc_realloc(void *old, size_t size);

static unsigned int allocations_left = -1U;

static bool has_memory(void)
{
	if (allocations_left != -1U && !allocations_left)
		return false;
	allocations_left -= allocations_left != -1U;
	return true;
}

void *malloc(size_t size)
{
	return has_memory() ? __libc_malloc(size) : NULL;
}

void *realloc(void *old, size_t size)
{
	return has_memory() ? __libc_realloc(old, size) : NULL;
}

/* Memory ends at each allocation in turn. */
static void host_check__every_error_has_words(void **state)
{
	struct host_tree *tree = *state;
	unsigned int refusals = 0;
	int err = -ENOMEM;

	for (unsigned int left = 0; left < 100 && err; left++) {
		allocations_left = left;
		err = check(tree);
		allocations_left = -1U;
		if (err)
			assert_true(strlen(tree->why) > 20);
		refusals += !!err;
	}
	assert_in_range(refusals, 3, 50);
}
#endif

static void host_check__all_well_says_nothing(void **state)
{
	struct host_tree *tree = *state;

	assert_refused(tree, 0, "");
}

static void host_check__old_kernel_is_named(void **state)
{
	struct host_tree *tree = *state;

	tree->paths.release = "5.4.0-200-generic";
	assert_refused(tree, -ENOSYS,
		       "kernel 5.4.0-200-generic is too old: pyprofd needs Linux 5.10 or later");
	tree->paths.release = "4.18.0-553.el8";
	assert_int_equal(check(tree), -ENOSYS);
	tree->paths.release = "5.10.0-46";
	assert_int_equal(check(tree), 0);
	tree->paths.release = "7.2.13";
	assert_int_equal(check(tree), 0);
}

static void host_check__old_name_with_new_features_is_accepted(void **state)
{
	static const char btf[] = "BTF\0BPF_FUNC_unspec\0BPF_FUNC_copy_from_user";
	struct host_tree *tree = *state;
	FILE *file = fopen(tree->btf, "w");

	assert_non_null(file);
	assert_int_equal(fwrite(btf, 1, sizeof(btf), file), sizeof(btf));
	fclose(file);
	tree->paths.release = "4.18.0-553.el8";
	assert_int_equal(check(tree), 0);
}

static void host_check__no_btf_names_the_config(void **state)
{
	struct host_tree *tree = *state;

	assert_int_equal(unlink(tree->btf), 0);
	assert_refused_at(tree, -ENOENT, "the kernel has no BTF (",
			  "/btf: No such file or directory): boot one built with "
			  "CONFIG_DEBUG_INFO_BTF=y");
}

static void host_check__lockdown_confidentiality_is_refused_integrity_is_not(void **state)
{
	struct host_tree *tree = *state;

	put(tree->directory, "lockdown", "none [integrity] confidentiality\n");
	assert_int_equal(check(tree), 0);
	put(tree->directory, "lockdown", "none integrity [confidentiality]\n");
	assert_refused_at(tree, -EPERM, "the kernel is locked down (",
			  "/lockdown: confidentiality): BPF may not read memory; boot with "
			  "lockdown=integrity or none");
}

static void host_check__user_lacks_all_six_by_name(void **state)
{
	struct host_tree *tree = *state;

	put(tree->proc, "self/status", "Uid:\t1000\t1000\t1000\t1000\nCapEff:\t0000000000000000\n");
	assert_refused(
		tree, -EPERM,
		"not root and lacks CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE, CAP_SYSLOG, "
		"CAP_DAC_READ_SEARCH, CAP_CHECKPOINT_RESTORE: run it with sudo, or grant what is "
		"missing");
	tree->options.no_kernel = true;
	assert_int_equal(check(tree), -EPERM);
	assert_null(strstr(tree->why, "CAP_SYSLOG"));
}

static void host_check__one_missing_capability_is_named_alone(void **state)
{
	/* linux/capability.h: the number of the bit that is cleared below. */
	static const struct {
		unsigned int cleared[2];
		const char *name;
	} cases[] = {
		{{39, 21}, "CAP_BPF"},		 {{38, 21}, "CAP_PERFMON"},
		{{19, 19}, "CAP_SYS_PTRACE"},	 {{34, 34}, "CAP_SYSLOG"},
		{{2, 1}, "CAP_DAC_READ_SEARCH"}, {{40, 21}, "CAP_CHECKPOINT_RESTORE"},
	};
	struct host_tree *tree = *state;
	char status[128], why[HOST_WHY_BYTES];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		unsigned long long held = 0x1ffffffffffULL & ~(1ULL << cases[i].cleared[0]) &
					  ~(1ULL << cases[i].cleared[1]);

		snprintf(status, sizeof(status), "Uid:\t0\t0\t0\t0\nCapEff:\t%016llx\n", held);
		put(tree->proc, "self/status", status);
		snprintf(why, sizeof(why),
			 "root lacks %s: the container or service that pyprofd runs in must grant "
			 "it",
			 cases[i].name);
		assert_refused(tree, -EPERM, why);
	}
}

static void host_check__sys_admin_stands_in_for_bpf_perfmon_and_restore(void **state)
{
	struct host_tree *tree = *state;

	/* All but 38, 39 and 40. */
	put(tree->proc, "self/status", "Uid:\t0\t0\t0\t0\nCapEff:\t0000003fffffffff\n");
	assert_int_equal(check(tree), 0);
}

static void host_check__effective_user_decides_who_is_root(void **state)
{
	struct host_tree *tree = *state;

	put(tree->proc, "self/status", "Uid:\t1000\t0\t0\t0\nCapEff:\t0\n");
	assert_int_equal(check(tree), -EPERM);
	assert_memory_equal(tree->why, "root lacks", 10);
}

static void host_check__unreadable_status_is_refused(void **state)
{
	struct host_tree *tree = *state;

	put(tree->proc, "self/status", "Name:\tx\nNotCapEff:\t1ffffffffff\n");
	assert_int_equal(check(tree), -EPERM);
	put(tree->proc, "self/status", "");
	assert_int_equal(check(tree), -EPERM);
}

static void host_check__user_namespace_is_named(void **state)
{
	struct host_tree *tree = *state;

	put(tree->proc, "self/uid_map", "         0       1000          1\n");
	assert_refused(
		tree, -EPERM,
		"in a user namespace (rootless container): root here may not use BPF; run pyprofd "
		"on the host");
}

static void host_check__pid_namespace_other_than_the_first_is_named(void **state)
{
	struct host_tree *tree = *state;
	char link[PATH_MAX];

	snprintf(link, sizeof(link), "%s/self/ns/pid", tree->proc);
	put(tree->proc, "self/ns/user", "");
	assert_int_equal(symlink("pid:[4026531836]", link), 0);
	assert_int_equal(check(tree), 0);
	assert_int_equal(unlink(link), 0);
	assert_int_equal(symlink("pid:[4026532561]", link), 0);
	assert_refused_at(tree, -EPERM, "in a pid namespace (",
			  "/proc/self/ns/pid): the container must see the host's processes: docker "
			  "run --pid=host, Kubernetes hostPID: true");
}

/* Later it would look like any other error, or end in a profile with half of its names.  A hard
 * limit cannot be raised again, so a child lowers it. */
static void host_check__too_few_open_files_are_told_with_the_way_out(void **state)
{
	struct host_tree *tree = *state;
	struct rlimit limit;
	int status;
	pid_t child = fork();

	assert_true(child >= 0);
	if (!child) {
		/* The soft limit alone is raised later. */
		bool fine = !getrlimit(RLIMIT_NOFILE, &limit);

		limit.rlim_cur = 20;
		fine &= !setrlimit(RLIMIT_NOFILE, &limit) && !check(tree);
		limit.rlim_max = 63;
		fine &= !setrlimit(RLIMIT_NOFILE, &limit) && check(tree) == -EMFILE &&
			strstr(tree->why, " and may have 63: raise the limit (ulimit -n, ");
		_exit(!fine);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void host_check__rate_above_sysctl_names_it_and_its_value(void **state)
{
	struct host_tree *tree = *state;

	put(tree->proc, "sys/kernel/perf_event_max_sample_rate", "1500\n");
	tree->options.hz = 1500;
	assert_int_equal(check(tree), 0);
	tree->options.hz = 1999;
	assert_refused(
		tree, -ERANGE,
		"--hz 1999 is above kernel.perf_event_max_sample_rate = 1500: lower it, or run "
		"'sysctl kernel.perf_event_max_sample_rate=1999'");
}

static void host_explain_perf__a_kernel_that_wants_sys_admin_is_named(void **state)
{
	struct host_tree *tree = *state;

	put(tree->proc, "sys/kernel/perf_event_paranoid", "3\n");
	host_explain_perf(&tree->paths, -EACCES, tree->why, sizeof(tree->why));
	assert_string_equal(
		tree->why,
		"kernel.perf_event_paranoid = 3: this kernel wants CAP_SYS_ADMIN for perf "
		"events: grant it, or run 'sysctl kernel.perf_event_paranoid=2'");
	host_explain_perf(&tree->paths, -EMFILE, tree->why, sizeof(tree->why));
	assert_string_equal(tree->why,
			    "cannot watch mappings (perf_event_open): Too many open files");
	put(tree->proc, "sys/kernel/perf_event_paranoid", "2\n");
	host_explain_perf(&tree->paths, -EACCES, tree->why, sizeof(tree->why));
	assert_null(strstr(tree->why, "paranoid"));
}

static void host_check__each_pid_must_be_a_living_process(void **state)
{
	struct host_tree *tree = *state;
	pid_t pids[] = {12, 34};

	tree->options.pid = pids;
	tree->options.pid_count = 2;
	put(tree->proc, "12/status", "Name:\tpython3\nState:\tS (sleeping)\nTgid:\t12\nPid:\t12\n");
	assert_refused(tree, -ESRCH, "--pid 34: no such process");
	put(tree->proc, "34/status",
	    "Name:\tpython3\nState:\tZ (zombie)\nTgid:\t34\nPid:\t34\nThreads:\t1\n");
	assert_refused(tree, -ESRCH, "--pid 34: this process has ended");
	put(tree->proc, "34/status",
	    "Name:\tpython3\nState:\tZ (zombie)\nTgid:\t34\nPid:\t34\nThreads:\t2\n");
	assert_refused(tree, 0, "");
	put(tree->proc, "34/status", "Name:\tpython3\nState:\tR (running)\nTgid:\t12\nPid:\t34\n");
	assert_refused(tree, -ESRCH, "--pid 34 is a thread: give its process, --pid 12");
	put(tree->proc, "34/status", "Name:\tpython3\nState:\tR (running)\nTgid:\t34\nPid:\t34\n");
	assert_refused(tree, 0, "");
}

static void host_check__cgroup_is_found_in_each_layout(void **state)
{
	struct host_tree *tree = *state;
	char *path = NULL, want[128];

	tree->options.cgroup = "/system.slice/a.service";
	assert_refused_at(
		tree, -ENOENT,
		"--cgroup '/system.slice/a.service': not found, neither as it stands nor below ",
		"/cgroup");
	put(tree->cgroup, "unified/system.slice/a.service/cgroup.procs", "");
	assert_refused(tree, 0, "");
	assert_int_equal(host_find_cgroup(&tree->paths, "system.slice/a.service", &path), 0);
	snprintf(want, sizeof(want), "%s/unified/system.slice/a.service", tree->cgroup);
	assert_string_equal(path, want);
	free(path);
	assert_int_equal(host_find_cgroup(&tree->paths, want, &path), 0);
	assert_string_equal(path, want);
	free(path);
	tree->options.cgroup = tree->directory;
	assert_refused_at(tree, -ENOENT, "--cgroup '", "' is not a cgroup: it has no cgroup.procs");
}

static void host_check__command_must_be_executable(void **state)
{
	struct host_tree *tree = *state;
	char name[64];
	char *missing[] = {(char *)"no-such-command-here", NULL};
	char *command[] = {name, NULL};
	char *shell[] = {(char *)"sh", NULL};

	tree->options.command = missing;
	assert_refused(tree, -ENOENT, "command 'no-such-command-here' not found in PATH");
	snprintf(name, sizeof(name), "%s/run", tree->directory);
	tree->options.command = command;
	assert_refused_at(tree, -ENOENT, "command '", "/run' not found");
	put(tree->directory, "run", "#!/bin/sh\n");
	assert_refused_at(tree, -EACCES, "command '",
			  "/run' cannot be executed: Permission denied");
	assert_int_equal(chmod(name, 0755), 0);
	assert_int_equal(check(tree), 0);
	snprintf(name, sizeof(name), "%s", tree->directory);
	assert_int_equal(check(tree), -EACCES);
	tree->options.command = shell;
	assert_int_equal(check(tree), 0);
}

static void host_check__output_needs_its_directory(void **state)
{
	struct host_tree *tree = *state;
	char path[96];

	tree->options.output = path;
	snprintf(path, sizeof(path), "%s/no/such/x.pb.gz", tree->directory);
	assert_int_equal(check(tree), -ENOENT);
	assert_non_null(strstr(tree->why, "/no/such' does not exist: create it first"));
	tree->options.output_kind = OPTIONS_OUTPUT_DIRECTORY;
	snprintf(path, sizeof(path), "%s/no/such/", tree->directory);
	assert_int_equal(check(tree), -ENOENT);
	assert_non_null(strstr(tree->why, "/no' does not exist: create it first"));
	/* The last part is created when it is needed. */
	snprintf(path, sizeof(path), "%s/new//", tree->directory);
	assert_refused(tree, 0, "");
	snprintf(path, sizeof(path), "%s", tree->directory);
	assert_refused(tree, 0, "");
	snprintf(path, sizeof(path), "new-here");
	assert_refused(tree, 0, "");
}

static void host_check__output_of_the_wrong_type_is_refused(void **state)
{
	struct host_tree *tree = *state;
	char path[96];

	tree->options.output = "/dev/null";
	assert_refused(
		tree, -EINVAL,
		"--output '/dev/null' is not a regular file: give a file name, or - for standard "
		"output");
	tree->options.output = path;
	snprintf(path, sizeof(path), "%s/btf/x.pb.gz", tree->directory);
	assert_int_equal(check(tree), -ENOTDIR);
	assert_non_null(strstr(tree->why, "/btf' is not a directory"));
	tree->options.output_kind = OPTIONS_OUTPUT_DIRECTORY;
	snprintf(path, sizeof(path), "%s/btf", tree->directory);
	assert_refused_at(tree, -ENOTDIR, "--output '", "/btf' is not a directory");
}

static void host_check__unwritable_directory_is_refused(void **state)
{
	struct host_tree *tree = *state;
	int err;

	assert_int_equal(chmod(tree->directory, 0555), 0);
	/* Root may write everywhere; "nobody" may not. */
	if (!geteuid())
		assert_int_equal(seteuid(65534), 0);
	err = check(tree);
	if (!getuid())
		assert_int_equal(seteuid(0), 0);
	assert_int_equal(chmod(tree->directory, 0755), 0);
	assert_int_equal(err, -EACCES);
	assert_non_null(strstr(tree->why, ": cannot write to '"));
	assert_non_null(strstr(tree->why, "': Permission denied"));
}

static void host_check__memlock_on_5_10_is_only_a_warning(void **state)
{
	struct host_tree *tree = *state;

	tree->paths.release = "5.10.0-46";
	assert_int_equal(check(tree), 0);
	if (*tree->why)
		assert_memory_equal(tree->why, "without CAP_SYS_RESOURCE kernel 5.10 may refuse",
				    46);
	put(tree->proc, "self/status", "Uid:\t0\t0\t0\t0\nCapEff:\t000001ffffffffff\n");
	assert_refused(tree, 0, "");
}

struct told {
	char text[512];
};

static void tell(void *context, const char *name, int err, const char *why)
{
	struct told *told = context;

	if (err || why[0])
		snprintf(strchr(told->text, '\0'), sizeof(told->text) - strlen(told->text),
			 "%s %d|", name, err);
}

static void each__goes_on_after_a_check_that_fails(void **state)
{
	struct host_tree *tree = *state;
	struct told told = {""};

	host_check_each(&tree->paths, &tree->options, tell, &told);
	assert_string_equal(told.text, "");
	tree->paths.release = "5.4.0";
	tree->options.cgroup = "nowhere";
	put(tree->proc, "sys/kernel/perf_event_max_sample_rate", "50\n");
	host_check_each(&tree->paths, &tree->options, tell, &told);
	assert_non_null(strstr(told.text, "kernel -38|"));
	assert_non_null(strstr(told.text, "rate -34|"));
	assert_non_null(strstr(told.text, "cgroup -2|"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
#if !defined(__SANITIZE_ADDRESS__)
		TEST(host_check__every_error_has_words),
#endif
		TEST(host_check__all_well_says_nothing),
		TEST(each__goes_on_after_a_check_that_fails),
		TEST(host_check__old_kernel_is_named),
		TEST(host_check__old_name_with_new_features_is_accepted),
		TEST(host_check__no_btf_names_the_config),
		TEST(host_check__lockdown_confidentiality_is_refused_integrity_is_not),
		TEST(host_check__user_lacks_all_six_by_name),
		TEST(host_check__one_missing_capability_is_named_alone),
		TEST(host_check__sys_admin_stands_in_for_bpf_perfmon_and_restore),
		TEST(host_check__effective_user_decides_who_is_root),
		TEST(host_check__unreadable_status_is_refused),
		TEST(host_check__user_namespace_is_named),
		TEST(host_check__pid_namespace_other_than_the_first_is_named),
		TEST(host_check__too_few_open_files_are_told_with_the_way_out),
		TEST(host_check__rate_above_sysctl_names_it_and_its_value),
		TEST(host_explain_perf__a_kernel_that_wants_sys_admin_is_named),
		TEST(host_check__each_pid_must_be_a_living_process),
		TEST(host_check__cgroup_is_found_in_each_layout),
		TEST(host_check__command_must_be_executable),
		TEST(host_check__output_needs_its_directory),
		TEST(host_check__output_of_the_wrong_type_is_refused),
		TEST(host_check__unwritable_directory_is_refused),
		TEST(host_check__memlock_on_5_10_is_only_a_warning),
	};

	return cmocka_run_group_tests_name("agent/host_check", tests, NULL, NULL);
}
