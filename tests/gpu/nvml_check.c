/* SPDX-License-Identifier: BSD-2-Clause */
/* nvml_check [UID]   Asks libnvidia-ml.so.1, as this user or as another one, about device 0.  It
 * prints lines of fields set apart by tabs:
 *   driver VERSION · devices COUNT · device NAME
 *   ask FUNCTION RESULT US VALUE    RESULT 0: it answers; us of a call, the mean of some
 *   gpm METRIC RESULT VALUE
 * Exit status 77: there is no such library, or it does not start, for the reason given. */
#include <dlfcn.h>
#include <err.h>
#include <grp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define LIBRARY "libnvidia-ml.so.1"
#define NOT_HERE 77
#define NOT_THERE (-1) /* a RESULT: the library has no such function */
#define CALLS 20U
#define PROCESSES 256U
#define GPM_PAUSE_NS 200000000

/* nvml.h of CUDA 12 and 13. */
typedef struct nvml_device *nvmlDevice_t;
typedef struct nvml_sample *nvmlGpmSample_t;
struct nvml_utilization {
	unsigned int gpu, memory;
};
struct nvml_memory {
	unsigned long long total, free, used;
};
struct nvml_memory_v2 {
	unsigned int version;
	unsigned long long total, reserved, free, used;
};
struct nvml_process {
	unsigned int pid;
	unsigned long long bytes;
	unsigned int gpu_instance, compute_instance;
};
struct nvml_process_sample {
	unsigned int pid;
	unsigned long long time_us;
	unsigned int sm, memory, encoder, decoder;
};
struct nvml_gpm_metric {
	unsigned int id;
	int result;
	double value;
	const char *short_name, *long_name, *unit;
};
/* Those that pyprofd would show: nvmlGpmMetricId_t. */
static const unsigned int metrics[] = {1, 2, 3, 5, 7, 10, 11, 12, 13, 20, 21, 60, 61};
#define METRICS (sizeof(metrics) / sizeof(metrics[0]))
struct nvml_gpm_metrics {
	unsigned int version, count;
	nvmlGpmSample_t before, now;
	struct nvml_gpm_metric metric[METRICS];
};
struct nvml_gpm_support {
	unsigned int version, is_supported;
};

static void *library;
static nvmlDevice_t device;
/* Where answers go. */
static unsigned int number;
static unsigned long long big;
static struct nvml_utilization rates;
static struct nvml_memory memory;
static struct nvml_memory_v2 memory_v2 = {.version = sizeof(struct nvml_memory_v2) | 2U << 24};
static struct nvml_process processes[PROCESSES];
static struct nvml_process_sample process_samples[PROCESSES];
static struct nvml_gpm_support support = {.version = 1};
static nvmlGpmSample_t samples[2];

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* X(function, arguments, types of them, what to show of the answer) */
#define QUESTIONS(X)                                                                               \
	X(nvmlDeviceGetUtilizationRates, (device, &rates),                                         \
	  (nvmlDevice_t, struct nvml_utilization *), rates.gpu)                                    \
	X(nvmlDeviceGetMemoryInfo, (device, &memory), (nvmlDevice_t, struct nvml_memory *),        \
	  memory.used)                                                                             \
	X(nvmlDeviceGetMemoryInfo_v2, (device, &memory_v2),                                        \
	  (nvmlDevice_t, struct nvml_memory_v2 *), memory_v2.used)                                 \
	X(nvmlDeviceGetPowerUsage, (device, &number), (nvmlDevice_t, unsigned int *), number)      \
	X(nvmlDeviceGetEnforcedPowerLimit, (device, &number), (nvmlDevice_t, unsigned int *),      \
	  number)                                                                                  \
	X(nvmlDeviceGetTemperature, (device, 0, &number), (nvmlDevice_t, int, unsigned int *),     \
	  number)                                                                                  \
	X(nvmlDeviceGetClockInfo, (device, 1, &number), (nvmlDevice_t, int, unsigned int *),       \
	  number)                                                                                  \
	X(nvmlDeviceGetCurrentClocksEventReasons, (device, &big),                                  \
	  (nvmlDevice_t, unsigned long long *), big)                                               \
	X(nvmlDeviceGetComputeRunningProcesses_v3, (device, room(), processes),                    \
	  (nvmlDevice_t, unsigned int *, struct nvml_process *), number)                           \
	X(nvmlDeviceGetProcessUtilization, (device, process_samples, room(), 0),                   \
	  (nvmlDevice_t, struct nvml_process_sample *, unsigned int *, unsigned long long),        \
	  number)                                                                                  \
	X(nvmlGpmQueryDeviceSupport, (device, &support),                                           \
	  (nvmlDevice_t, struct nvml_gpm_support *), support.is_supported)                         \
	X(nvmlGpmSampleGet, (device, samples[1]), (nvmlDevice_t, nvmlGpmSample_t), 1U)

static unsigned int *room(void)
{
	number = PROCESSES;
	return &number;
}

#define ASK(function, arguments, types, shown)                                                     \
	static void ask_##function(void)                                                           \
	{                                                                                          \
		int(*its) types = (int(*) types)dlsym(library, #function);                         \
		int result = its ? its arguments : NOT_THERE;                                      \
		const double begun_us = now_us();                                                  \
                                                                                                   \
		for (unsigned int i = 0; !result && i < CALLS; i++)                                \
			result = its arguments;                                                    \
		printf("ask\t%s\t%d\t%.1f\t%llu\n", #function, result,                             \
		       (now_us() - begun_us) / CALLS, (unsigned long long)(shown));                \
	}
QUESTIONS(ASK)

static void *need(const char *name)
{
	void *found = dlsym(library, name);

	if (found)
		return found;
	fprintf(stderr, "%s has no %s\n", LIBRARY, name);
	exit(NOT_HERE);
}

static void ask_gpm(void)
{
	int (*alloc)(nvmlGpmSample_t *) =
		(int (*)(nvmlGpmSample_t *))dlsym(library, "nvmlGpmSampleAlloc");
	int (*get)(struct nvml_gpm_metrics *) =
		(int (*)(struct nvml_gpm_metrics *))dlsym(library, "nvmlGpmMetricsGet");
	int (*sample)(nvmlDevice_t, nvmlGpmSample_t) =
		(int (*)(nvmlDevice_t, nvmlGpmSample_t))dlsym(library, "nvmlGpmSampleGet");
	struct nvml_gpm_metrics all = {.version = 1, .count = METRICS};
	int result = alloc && get && sample ? 0 : NOT_THERE;

	for (int i = 0; !result && i < 2; i++)
		result = alloc(&samples[i]);
	if (!result)
		result = sample(device, samples[0]);
	nanosleep(&(struct timespec){.tv_nsec = GPM_PAUSE_NS}, NULL);
	if (!result)
		result = sample(device, samples[1]);
	for (size_t i = 0; i < METRICS; i++)
		all.metric[i].id = metrics[i];
	all.before = samples[0];
	all.now = samples[1];
	if (!result)
		result = get(&all);
	for (size_t i = 0; i < METRICS; i++)
		printf("gpm\t%u\t%d\t%.2f\n", metrics[i], result ? result : all.metric[i].result,
		       all.metric[i].value);
}

static void open_library(void)
{
	int (*init)(void);
	int (*get)(unsigned int, nvmlDevice_t *);
	int result;

	library = dlopen(LIBRARY, RTLD_NOW);
	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		exit(NOT_HERE);
	}
	init = (int (*)(void))need("nvmlInit_v2");
	get = (int (*)(unsigned int, nvmlDevice_t *))need("nvmlDeviceGetHandleByIndex_v2");
	result = init();
	if (!result)
		result = get(0, &device);
	if (!result)
		return;
	fprintf(stderr, "%s does not start: error %d\n", LIBRARY, result);
	exit(NOT_HERE);
}

static void tell_names(void)
{
	int (*version)(char *, unsigned int) =
		(int (*)(char *, unsigned int))need("nvmlSystemGetDriverVersion");
	int (*count)(unsigned int *) = (int (*)(unsigned int *))need("nvmlDeviceGetCount_v2");
	int (*name)(nvmlDevice_t, char *, unsigned int) =
		(int (*)(nvmlDevice_t, char *, unsigned int))need("nvmlDeviceGetName");
	char text[96];

	if (!version(text, sizeof(text)))
		printf("driver\t%s\n", text);
	if (!count(&number))
		printf("devices\t%u\n", number);
	if (!name(device, text, sizeof(text)))
		printf("device\t%s\n", text);
}

int main(int argc, char **argv)
{
	const uid_t uid = argc > 1 ? (uid_t)strtoul(argv[1], NULL, 10) : getuid();

	if (argc > 1 &&
	    (setgroups(0, NULL) || setresgid(uid, uid, uid) || setresuid(uid, uid, uid)))
		err(NOT_HERE, "cannot become user %u", uid);
	open_library();
	tell_names();
	ask_gpm();
#define TELL(function, ...) ask_##function();
	QUESTIONS(TELL)
	return 0;
}
