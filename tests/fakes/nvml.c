/* SPDX-License-Identifier: BSD-2-Clause */
/* A fake libnvidia-ml.so.1.  What it says stands in the file $FAKE_NVML, or else in the file
 * libnvidia-ml.values beside this one, for programs that get no such variable.  It is read at each
 * call, so that a test may change it; without the file there are two idle devices.  Its lines are
 * `KEY VALUE`:
 *
 *   devices 2                         driver 580.1
 *   0.name H100                       0.uuid GPU-...
 *   0.utilization 97 40 (gpu, memory) 0.memory TOTAL USED (bytes)
 *   0.power 350000 (mW)               0.power_limit 700000                0.temperature 45
 *   0.clock 1980 (MHz)                0.reasons 0x4 (clocks event reasons)
 *   0.process PID BYTES SM_PERCENT    once for each
 *   0.gpm.2 35.5                      GPM metric 2; 0.gpm none: no GPM
 *   error.nvmlDeviceGetPowerUsage 3   that function returns 3
 *   0.error.nvmlDeviceGetPowerUsage 3 for this device
 *   hang.nvmlDeviceGetPowerUsage 1    that function does not return
 *
 * Lines of other text are left alone.  The layouts are nvml.h's, of 12 and 13. */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEVICES 16U
#define FILE_BYTES 65536U

enum {
	NVML_SUCCESS = 0,
	NVML_ERROR_UNINITIALIZED = 1,
	NVML_ERROR_INVALID_ARGUMENT = 2,
	NVML_ERROR_NOT_SUPPORTED = 3,
	NVML_ERROR_NOT_FOUND = 6,
	NVML_ERROR_INSUFFICIENT_SIZE = 7,
};

typedef struct device *nvmlDevice_t;
struct device {
	unsigned int number;
};
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
_Static_assert(sizeof(struct nvml_process) == 24, "nvmlProcessInfo_t");
struct nvml_process_sample {
	unsigned int pid;
	unsigned long long time_us;
	unsigned int sm, memory, encoder, decoder;
};
_Static_assert(sizeof(struct nvml_process_sample) == 32, "nvmlProcessUtilizationSample_t");

/* Of what nvmlGpmSampleGet saw only the device matters: values are those of the file. */
typedef struct gpm_sample {
	nvmlDevice_t device;
} *nvmlGpmSample_t;
struct nvml_gpm_metric {
	unsigned int id;
	int result;
	double value;
	const char *short_name, *long_name, *unit;
};
_Static_assert(sizeof(struct nvml_gpm_metric) == 40, "nvmlGpmMetric_t");
struct nvml_gpm_metrics {
	unsigned int version, count;
	nvmlGpmSample_t sample1, sample2;
	struct nvml_gpm_metric metric[]; /* as many as the caller's header has */
};
struct nvml_gpm_support {
	unsigned int version, is_supported;
};

int nvmlInit_v2(void);
int nvmlInitWithFlags(unsigned int flags);
int nvmlShutdown(void);
const char *nvmlErrorString(int result);
int nvmlSystemGetDriverVersion(char *ret_version, unsigned int size);
int nvmlDeviceGetCount_v2(unsigned int *ret_count);
int nvmlDeviceGetHandleByIndex_v2(unsigned int number, nvmlDevice_t *ret_device);
int nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *ret_device);
int nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int *ret_number);
int nvmlDeviceGetUUID(nvmlDevice_t device, char *ret_uuid, unsigned int size);
int nvmlDeviceGetName(nvmlDevice_t device, char *ret_name, unsigned int size);
int nvmlDeviceGetUtilizationRates(nvmlDevice_t device, struct nvml_utilization *ret_rates);
int nvmlDeviceGetMemoryInfo(nvmlDevice_t device, struct nvml_memory *ret_memory);
int nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, struct nvml_memory_v2 *memory);
int nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned int *ret_mw);
int nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t device, unsigned int *ret_mw);
int nvmlDeviceGetTemperature(nvmlDevice_t device, int sensor, unsigned int *ret_celsius);
int nvmlDeviceGetClockInfo(nvmlDevice_t device, int type, unsigned int *ret_mhz);
int nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t device, unsigned long long *ret_reasons);
int nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t device, unsigned long long *ret_reasons);
int nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int *count,
					    struct nvml_process *ret_rows);
int nvmlDeviceGetProcessUtilization(nvmlDevice_t device, struct nvml_process_sample *ret_rows,
				    unsigned int *count, unsigned long long since_us);
int nvmlGpmSampleAlloc(nvmlGpmSample_t *ret_sample);
int nvmlGpmSampleFree(nvmlGpmSample_t sample);
int nvmlGpmSampleGet(nvmlDevice_t device, nvmlGpmSample_t sample);
int nvmlGpmMetricsGet(struct nvml_gpm_metrics *metrics);
int nvmlGpmQueryDeviceSupport(nvmlDevice_t device, struct nvml_gpm_support *support);
/* How often NVML was called since the process began. */
uint64_t fake_nvml_calls(void);

static struct device devices[DEVICES];
static _Atomic unsigned int users;
static _Atomic uint64_t calls;

uint64_t fake_nvml_calls(void)
{
	return calls;
}

/* ---------------------------------------------------------------- the file */

static FILE *open_file(void)
{
	const char *path = getenv("FAKE_NVML"), *slash;
	char beside[4096];
	Dl_info own;

	if (path)
		return fopen(path, "re");
	slash = dladdr(&devices, &own) ? strrchr(own.dli_fname, '/') : NULL;
	if (!slash)
		return NULL;
	snprintf(beside, sizeof(beside), "%.*s/libnvidia-ml.values", (int)(slash - own.dli_fname),
		 own.dli_fname);
	return fopen(beside, "re");
}

/* Reads it into text; empty when there is none. */
static void read_file(char text[FILE_BYTES])
{
	FILE *file = open_file();
	size_t length = 0;

	if (file) {
		length = fread(text, 1, FILE_BYTES - 1, file);
		fclose(file);
	}
	text[length] = '\0';
}

/* The value of the number-th line with this key, to the end of its line.  0; -1: none. */
static int find_line(const char *text, const char *key, unsigned int number, char *ret_value,
		     size_t size)
{
	size_t length = strlen(key);

	for (; *text; text += strcspn(text, "\n"), text += *text == '\n') {
		if (strncmp(text, key, length) || text[length] != ' ' || number--)
			continue;
		snprintf(ret_value, size, "%.*s", (int)strcspn(text + length + 1, "\n"),
			 text + length + 1);
		return 0;
	}
	return -1;
}

static int find(const char *key, unsigned int number, char *ret_value, size_t size)
{
	char text[FILE_BYTES];

	read_file(text);
	return find_line(text, key, number, ret_value, size);
}

static int find_of(nvmlDevice_t device, const char *key, unsigned int number, char *ret_value,
		   size_t size)
{
	char whole[160];

	snprintf(whole, sizeof(whole), "%u.%s", device->number, key);
	return find(whole, number, ret_value, size);
}

static unsigned long long number_of(nvmlDevice_t device, const char *key,
				    unsigned long long otherwise)
{
	char value[128];

	return find_of(device, key, 0, value, sizeof(value)) ? otherwise : strtoull(value, NULL, 0);
}

static unsigned int device_count(void)
{
	char value[32];
	unsigned long count = 2;

	if (!find("devices", 0, value, sizeof(value)))
		count = strtoul(value, NULL, 10);
	return count < DEVICES ? (unsigned int)count : DEVICES;
}

/* What each function does first: its error by the file.  device NULL: of none. */
static int enter(const char *function, nvmlDevice_t device)
{
	char key[128], value[32];

	calls++;
	if (!users)
		return NVML_ERROR_UNINITIALIZED;
	snprintf(key, sizeof(key), "hang.%s", function);
	while (!find(key, 0, value, sizeof(value)))
		sleep(3600);
	snprintf(key, sizeof(key), "error.%s", function);
	if (!find(key, 0, value, sizeof(value)))
		return atoi(value);
	if (!device)
		return NVML_SUCCESS;
	if (device < devices || device >= devices + DEVICES)
		return NVML_ERROR_INVALID_ARGUMENT;
	return find_of(device, key, 0, value, sizeof(value)) ? NVML_SUCCESS : atoi(value);
}

/* ---------------------------------------------------------------- the library, devices */

int nvmlInit_v2(void)
{
	char value[32];

	calls++;
	for (unsigned int i = 0; i < DEVICES; i++)
		devices[i].number = i;
	if (!find("error.nvmlInit_v2", 0, value, sizeof(value)))
		return atoi(value);
	users++;
	return NVML_SUCCESS;
}

int nvmlInitWithFlags(unsigned int flags)
{
	(void)flags;
	return nvmlInit_v2();
}

int nvmlShutdown(void)
{
	int error = enter("nvmlShutdown", NULL);

	if (!error)
		users--;
	return error;
}

const char *nvmlErrorString(int result)
{
	return result ? "a fake's error" : "Success";
}

static int copy_text(const char *text, char *ret_text, unsigned int size)
{
	if (strlen(text) >= size)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	memcpy(ret_text, text, strlen(text) + 1);
	return NVML_SUCCESS;
}

int nvmlSystemGetDriverVersion(char *ret_version, unsigned int size)
{
	int error = enter("nvmlSystemGetDriverVersion", NULL);
	char value[64] = "580.95.05";

	if (error)
		return error;
	find("driver", 0, value, sizeof(value));
	return copy_text(value, ret_version, size);
}

int nvmlDeviceGetCount_v2(unsigned int *ret_count)
{
	int error = enter("nvmlDeviceGetCount_v2", NULL);

	if (!error)
		*ret_count = device_count();
	return error;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned int number, nvmlDevice_t *ret_device)
{
	int error = enter("nvmlDeviceGetHandleByIndex_v2", NULL);

	if (error)
		return error;
	if (number >= device_count())
		return NVML_ERROR_INVALID_ARGUMENT;
	*ret_device = &devices[number];
	return NVML_SUCCESS;
}

/* The fake driver's bytes: "FAKE", zeros, the number. */
static void uuid_of(nvmlDevice_t device, char *ret_uuid, size_t size)
{
	if (find_of(device, "uuid", 0, ret_uuid, size))
		snprintf(ret_uuid, size, "GPU-46414b45-0000-0000-0000-0000000000%02x",
			 device->number);
}

int nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *ret_device)
{
	int error = enter("nvmlDeviceGetHandleByUUID", NULL);
	char its[128];

	for (unsigned int i = 0; !error && i < device_count(); i++) {
		uuid_of(&devices[i], its, sizeof(its));
		if (!strcmp(its, uuid)) {
			*ret_device = &devices[i];
			return NVML_SUCCESS;
		}
	}
	return error ? error : NVML_ERROR_NOT_FOUND;
}

int nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int *ret_number)
{
	int error = enter("nvmlDeviceGetIndex", device);

	if (!error)
		*ret_number = device->number;
	return error;
}

int nvmlDeviceGetUUID(nvmlDevice_t device, char *ret_uuid, unsigned int size)
{
	int error = enter("nvmlDeviceGetUUID", device);
	char uuid[128];

	if (error)
		return error;
	uuid_of(device, uuid, sizeof(uuid));
	return copy_text(uuid, ret_uuid, size);
}

int nvmlDeviceGetName(nvmlDevice_t device, char *ret_name, unsigned int size)
{
	int error = enter("nvmlDeviceGetName", device);
	char name[128];

	if (error)
		return error;
	if (find_of(device, "name", 0, name, sizeof(name)))
		snprintf(name, sizeof(name), "Fake GPU %u", device->number);
	return copy_text(name, ret_name, size);
}

/* ---------------------------------------------------------------- gauges */

static void two_of(nvmlDevice_t device, const char *key, unsigned long long ret_values[2])
{
	char value[128], *end;

	if (find_of(device, key, 0, value, sizeof(value)))
		return;
	ret_values[0] = strtoull(value, &end, 0);
	ret_values[1] = strtoull(end, NULL, 0);
}

int nvmlDeviceGetUtilizationRates(nvmlDevice_t device, struct nvml_utilization *ret_rates)
{
	int error = enter("nvmlDeviceGetUtilizationRates", device);
	unsigned long long percent[2] = {0, 0};

	if (error)
		return error;
	two_of(device, "utilization", percent);
	ret_rates->gpu = (unsigned int)percent[0];
	ret_rates->memory = (unsigned int)percent[1];
	return NVML_SUCCESS;
}

int nvmlDeviceGetMemoryInfo(nvmlDevice_t device, struct nvml_memory *ret_memory)
{
	int error = enter("nvmlDeviceGetMemoryInfo", device);
	unsigned long long bytes[2] = {80ULL << 30, 0};

	if (error)
		return error;
	two_of(device, "memory", bytes);
	*ret_memory = (struct nvml_memory){bytes[0], bytes[0] - bytes[1], bytes[1]};
	return NVML_SUCCESS;
}

int nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, struct nvml_memory_v2 *memory)
{
	int error = enter("nvmlDeviceGetMemoryInfo_v2", device);
	unsigned long long bytes[2] = {80ULL << 30, 0};

	if (error)
		return error;
	if (memory->version != (sizeof(*memory) | 2U << 24))
		return NVML_ERROR_INVALID_ARGUMENT;
	two_of(device, "memory", bytes);
	memory->total = bytes[0];
	memory->reserved = 0;
	memory->free = bytes[0] - bytes[1];
	memory->used = bytes[1];
	return NVML_SUCCESS;
}

static int gauge(const char *function, nvmlDevice_t device, const char *key,
		 unsigned long long otherwise, unsigned int *ret_value)
{
	int error = enter(function, device);

	if (!error)
		*ret_value = (unsigned int)number_of(device, key, otherwise);
	return error;
}

int nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned int *ret_mw)
{
	return gauge("nvmlDeviceGetPowerUsage", device, "power", 70000, ret_mw);
}

int nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t device, unsigned int *ret_mw)
{
	return gauge("nvmlDeviceGetEnforcedPowerLimit", device, "power_limit", 700000, ret_mw);
}

int nvmlDeviceGetTemperature(nvmlDevice_t device, int sensor, unsigned int *ret_celsius)
{
	(void)sensor;
	return gauge("nvmlDeviceGetTemperature", device, "temperature", 30, ret_celsius);
}

int nvmlDeviceGetClockInfo(nvmlDevice_t device, int type, unsigned int *ret_mhz)
{
	(void)type;
	return gauge("nvmlDeviceGetClockInfo", device, "clock", 1980, ret_mhz);
}

int nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t device, unsigned long long *ret_reasons)
{
	int error = enter("nvmlDeviceGetCurrentClocksEventReasons", device);

	if (!error)
		*ret_reasons = number_of(device, "reasons", 1);
	return error;
}

int nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t device, unsigned long long *ret_reasons)
	__attribute__((alias("nvmlDeviceGetCurrentClocksEventReasons")));

/* ---------------------------------------------------------------- processes */

/* 0, or -1: there is no such line. */
static int process_of(nvmlDevice_t device, unsigned int number, struct nvml_process *ret_process,
		      unsigned int *ret_percent)
{
	char value[128], *end;

	if (find_of(device, "process", number, value, sizeof(value)))
		return -1;
	*ret_process = (struct nvml_process){.gpu_instance = ~0U, .compute_instance = ~0U};
	ret_process->pid = (unsigned int)strtoul(value, &end, 0);
	ret_process->bytes = strtoull(end, &end, 0);
	*ret_percent = (unsigned int)strtoul(end, NULL, 0);
	return 0;
}

int nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int *count,
					    struct nvml_process *ret_rows)
{
	int error = enter("nvmlDeviceGetComputeRunningProcesses_v3", device);
	unsigned int room = *count, there = 0, percent;
	struct nvml_process process;

	if (error)
		return error;
	for (; !process_of(device, there, &process, &percent); there++)
		if (there < room)
			ret_rows[there] = process;
	*count = there;
	return there > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

int nvmlDeviceGetProcessUtilization(nvmlDevice_t device, struct nvml_process_sample *ret_rows,
				    unsigned int *count, unsigned long long since_us)
{
	int error = enter("nvmlDeviceGetProcessUtilization", device);
	unsigned int room = *count, there = 0, percent;
	struct nvml_process process;

	if (error)
		return error;
	for (; !process_of(device, there, &process, &percent); there++)
		if (ret_rows && there < room)
			ret_rows[there] = (struct nvml_process_sample){
				.pid = process.pid, .time_us = since_us + 1, .sm = percent};
	*count = there;
	if (!there)
		return NVML_ERROR_NOT_FOUND;
	return !ret_rows || there > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

/* ---------------------------------------------------------------- GPM */

static int has_gpm(nvmlDevice_t device)
{
	char value[32];

	return find_of(device, "gpm", 0, value, sizeof(value)) || strcmp(value, "none") != 0;
}

int nvmlGpmSampleAlloc(nvmlGpmSample_t *ret_sample)
{
	int error = enter("nvmlGpmSampleAlloc", NULL);

	if (error)
		return error;
	*ret_sample = calloc(1, sizeof(**ret_sample));
	return *ret_sample ? NVML_SUCCESS : 20;
}

int nvmlGpmSampleFree(nvmlGpmSample_t sample)
{
	free(sample);
	return enter("nvmlGpmSampleFree", NULL);
}

int nvmlGpmSampleGet(nvmlDevice_t device, nvmlGpmSample_t sample)
{
	int error = enter("nvmlGpmSampleGet", device);

	if (error)
		return error;
	if (!has_gpm(device))
		return NVML_ERROR_NOT_SUPPORTED;
	sample->device = device;
	return NVML_SUCCESS;
}

int nvmlGpmMetricsGet(struct nvml_gpm_metrics *metrics)
{
	int error = enter("nvmlGpmMetricsGet", NULL);
	char key[32], value[64];

	if (error)
		return error;
	if (metrics->version != 1 || !metrics->sample1 || !metrics->sample2 ||
	    metrics->sample1->device != metrics->sample2->device || !metrics->sample1->device)
		return NVML_ERROR_INVALID_ARGUMENT;
	for (unsigned int i = 0; i < metrics->count; i++) {
		struct nvml_gpm_metric *metric = &metrics->metric[i];

		snprintf(key, sizeof(key), "gpm.%u", metric->id);
		metric->short_name = metric->long_name = metric->unit = "";
		metric->result = NVML_SUCCESS;
		metric->value = 0;
		if (find_of(metrics->sample1->device, key, 0, value, sizeof(value)))
			metric->result = NVML_ERROR_NOT_SUPPORTED;
		else
			metric->value = strtod(value, NULL);
	}
	return NVML_SUCCESS;
}

int nvmlGpmQueryDeviceSupport(nvmlDevice_t device, struct nvml_gpm_support *support)
{
	int error = enter("nvmlGpmQueryDeviceSupport", device);

	if (!error)
		support->is_supported = (unsigned int)has_gpm(device);
	return error;
}
