/* SPDX-License-Identifier: BSD-2-Clause */
#include "doctor/doctor.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/timex.h>

#include "attach/kernel_side.h"
#include "base/io.h"
#include "base/task.h"
#include "child/perf_opener.h"
#include "discover/cpus.h"
#include "doctor/findings.h"
#include "options/host_check.h"
#include "options/options.h"

#define VERSION_BYTES 4096U

struct doctor {
	const struct options *options;
	const char *child_program;
	struct findings findings;
	bool may_look; /* BPF and perf events can be tried */
};

/* ---- what host_check.c knows ---- */

/* Without the capabilities to run, what they are missed for says nothing about the host. */
static void tell_host_check(void *context, const char *name, int err, const char *why)
{
	struct doctor *doctor = context;
	const bool is_right = err == -EPERM || err == -EACCES;

	if (!err)
		findings_add(&doctor->findings, why[0] ? FINDING_WARN : FINDING_OK, name, "%s",
			     why);
	else if (is_right && !doctor->may_look)
		findings_add(&doctor->findings, FINDING_WARN, name, "as user %u: %s", geteuid(),
			     why);
	else
		findings_add(&doctor->findings, FINDING_FAIL, name, "%s", why);
}

/* ---- what the kernel lets pyprofd do ---- */

static void check_kernel_side(struct doctor *doctor)
{
	struct kernel_side_options options = {
		.sizes = {.hz = doctor->options->hz,
			  .interval_ns = doctor->options->interval_ns,
			  .budget_bytes = doctor->options->budget_bytes,
			  .waits = doctor->options->events & PP_CAPTURES_OF_WAITS}};
	OWNED(kernel_side) struct kernel_side *kernel = NULL;
	CLEANUP(cpu_list_release) struct cpu_list online = {};
	char why[HOST_WHY_BYTES] = "";
	int err = cpus_possible_count(&options.sizes.cpu_count);

	if (!err)
		err = cpus_online(&online);
	options.sizes.online_count = (uint32_t)online.count;
	if (!err)
		err = kernel_side_open(&options, why, sizeof(why), &kernel);
	if (err)
		findings_add(&doctor->findings, FINDING_FAIL, "BPF", "%s",
			     why[0] ? why : strerror(-err));
	else
		findings_add(&doctor->findings, FINDING_OK, "BPF",
			     "the kernel takes the programs; their maps have %.1f MiB",
			     (double)kernel_side_map_bytes(kernel) / (1 << 20));
}

static void check_perf(struct doctor *doctor)
{
	const struct perf_event_request request = {.kind = PERF_EVENT_CPU_CLOCK,
						   .hz = doctor->options->hz};
	OWNED(perf_opener) struct perf_opener *opener = NULL;
	char why[HOST_WHY_BYTES];
	OWNED_FD int fd = -1;
	int err = perf_opener_new(doctor->child_program, PERF_PARANOID_PATH, &opener);

	if (!err)
		err = perf_opener_open(opener, &request, &fd);
	if (err) {
		host_explain_perf(&host_paths_real, err, why, sizeof(why));
		findings_add(&doctor->findings, FINDING_FAIL, "perf events", "%s", why);
		return;
	}
	findings_add(&doctor->findings, FINDING_OK, "perf events", "%s",
		     perf_opener_has_child(opener)
			     ? "a child with CAP_SYS_ADMIN opens them: kernel.perf_event_paranoid "
			       "is above 2"
			     : "");
}

static void check_kernel(struct doctor *doctor)
{
	if (doctor->may_look) {
		check_kernel_side(doctor);
		check_perf(doctor);
		return;
	}
	findings_add(&doctor->findings, FINDING_WARN, "BPF",
		     "not tried, and no perf event opened: run it as root");
}

/* ---- what profiles are made better by ---- */

static bool is_file_system(const char *path, long magic)
{
	struct statfs status;

	return !statfs(path, &status) && status.f_type == magic;
}

static void check_tracefs(struct doctor *doctor)
{
	if (is_file_system("/sys/kernel/tracing", TRACEFS_MAGIC) ||
	    is_file_system("/sys/kernel/debug/tracing", TRACEFS_MAGIC))
		findings_add(&doctor->findings, FINDING_OK, "tracefs",
			     "mounted; pyprofd itself does without it");
	else
		findings_add(&doctor->findings, FINDING_OK, "tracefs",
			     "not mounted, or not to be seen; pyprofd does without it");
}

static void check_cgroups(struct doctor *doctor)
{
	const char *root = host_paths_real.cgroup;

	if (is_file_system(root, CGROUP2_SUPER_MAGIC))
		findings_add(&doctor->findings, FINDING_OK, "cgroups", "cgroup 2 at %s", root);
	else if (is_file_system("/sys/fs/cgroup/unified", CGROUP2_SUPER_MAGIC))
		findings_add(&doctor->findings, FINDING_OK, "cgroups",
			     "cgroup 2 beside cgroup 1, at %s/unified", root);
	else
		findings_add(&doctor->findings, FINDING_WARN, "cgroups",
			     "no cgroup 2 at %s: --cgroup and the label cgroup have nothing to go "
			     "by: boot with systemd.unified_cgroup_hierarchy=1",
			     root);
}

static void check_clock(struct doctor *doctor)
{
	struct timex clock = {0};
	const int state = adjtimex(&clock);

	if (state < 0)
		findings_add(&doctor->findings, FINDING_WARN, "clock", "cannot be read: %s",
			     strerror(errno));
	else if (state == TIME_ERROR || clock.status & STA_UNSYNC)
		findings_add(&doctor->findings, FINDING_WARN, "clock",
			     "not synchronised: windows of several hosts do not lie side by side, "
			     "and collectors may refuse them: start systemd-timesyncd or chrony");
	else
		findings_add(&doctor->findings, FINDING_OK, "clock",
			     "synchronised, off by %.1f ms at most", (double)clock.maxerror / 1000);
}

static const char *find_library(const char *const *paths, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (!access(paths[i], R_OK))
			return paths[i];
	}
	return NULL;
}

static void check_gpu(struct doctor *doctor)
{
	static const char *const cuda[] = {
		"/usr/lib/x86_64-linux-gnu/libcuda.so.1",
		"/usr/lib/aarch64-linux-gnu/libcuda.so.1",
		"/usr/lib64/libcuda.so.1",
		"/usr/lib/libcuda.so.1",
		"/usr/lib/wsl/lib/libcuda.so.1",
		"/usr/local/cuda/compat/libcuda.so.1",
	};
	OWNED_MEM char *version = NULL;
	const char *library = find_library(cuda, ARRAY_SIZE(cuda));

	if (read_file("/proc/driver/nvidia/version", VERSION_BYTES, &version, NULL)) {
		findings_add(&doctor->findings, FINDING_OK, "GPU", "no NVIDIA driver is loaded");
		return;
	}
	version[strcspn(version, "\n")] = '\0';
	if (library)
		findings_add(&doctor->findings, FINDING_OK, "GPU", "%s; %s", version, library);
	else
		findings_add(&doctor->findings, FINDING_WARN, "GPU",
			     "%s; no libcuda.so.1 outside of containers: install the driver's "
			     "libraries to run CUDA programs here",
			     version);
}

static void tell_config(struct doctor *doctor)
{
	const char *path = config_path(doctor->options->config);

	if (config_print(doctor->options->config, doctor->findings.out))
		findings_add(&doctor->findings, FINDING_WARN, "configuration",
			     "cannot be printed whole");
	fputs("\n\n", doctor->findings.out);
	if (path)
		findings_add(&doctor->findings, FINDING_OK, "configuration", "%s", path);
	else if (doctor->options->config_is_missing)
		findings_add(&doctor->findings, FINDING_WARN, "configuration",
			     "%s does not exist: the defaults count", OPTIONS_CONFIG_DEFAULT);
	else
		findings_add(&doctor->findings, FINDING_OK, "configuration",
			     "none was given: the defaults and the command line count");
}

static void tell_sum(const struct doctor *doctor)
{
	const unsigned int *count = doctor->findings.count;

	fprintf(doctor->findings.out, "%u ok, %u warn, %u fail\n", count[FINDING_OK],
		count[FINDING_WARN], count[FINDING_FAIL]);
}

static bool wants_colours(FILE *out)
{
	const char *terminal = getenv("TERM");

	return isatty(fileno(out)) && !getenv("NO_COLOR") && terminal && strcmp(terminal, "dumb");
}

int doctor_run(const struct options *options, const char *child_program, FILE *out)
{
	struct doctor doctor = {
		.options = options,
		.child_program = child_program,
		.findings = {.out = out, .has_colours = wants_colours(out)},
		.may_look = capabilities_are_held(CAPABILITY_BIT(CAP_BPF) |
						  CAPABILITY_BIT(CAP_PERFMON)) ||
			    capabilities_are_held(CAPABILITY_BIT(CAP_SYS_ADMIN)),
	};
	struct probe_prices prices;

	tell_config(&doctor);
	host_check_each(&host_paths_real, options, tell_host_check, &doctor);
	check_kernel(&doctor);
	prices = doctor_probes_kernel(&doctor.findings, doctor.may_look);
	check_tracefs(&doctor);
	check_cgroups(&doctor);
	check_clock(&doctor);
	check_gpu(&doctor);
	doctor_pythons(&doctor.findings, child_program, &prices);
	doctor_sinks(&doctor.findings, options->config);
	tell_sum(&doctor);
	return doctor.findings.count[FINDING_FAIL] ? OPTIONS_EXIT_FAILURE : 0;
}
