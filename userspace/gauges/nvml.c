/* SPDX-License-Identifier: BSD-2-Clause */
/* Layouts and numbers are those of nvml.h of CUDA 12 and 13. */
#include "gauges/nvml.h"

#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#define SUCCESS 0
#define SENSOR_GPU 0 /* NVML_TEMPERATURE_GPU */
#define CLOCK_SM 1   /* NVML_CLOCK_SM */
#define CLOCK_MEMORY 2
#define MIB_BYTES 1048576.0
#define DEVICE_PROCESSES_MAX 1024U /* of one GPU */
#ifdef __x86_64__
#define MULTIARCH "x86_64-linux-gnu"
#else
#define MULTIARCH "aarch64-linux-gnu"
#endif

typedef struct nvmlDevice_st *nvml_device;
typedef struct nvmlGpmSample_st *nvml_gpm_sample;

struct nvml_rates {
	unsigned int gpu, memory; /* percent */
};
struct nvml_memory {
	unsigned long long total, free, used;
};
struct nvml_memory_v2 {
	unsigned int version;
	unsigned long long total, reserved, free, used;
};
#define MEMORY_V2 (sizeof(struct nvml_memory_v2) | 2U << 24)
struct nvml_process {
	unsigned int pid;
	unsigned long long bytes; /* all ones: not known */
	unsigned int gpu_instance, compute_instance;
};
_Static_assert(sizeof(struct nvml_process) == 24, "nvmlProcessInfo_t");
struct nvml_process_sample {
	unsigned int pid;
	unsigned long long time_us;
	unsigned int sm, memory, encoder, decoder; /* percent */
};
_Static_assert(sizeof(struct nvml_process_sample) == 32, "nvmlProcessUtilizationSample_t");
struct nvml_gpm_metric {
	unsigned int id;
	int result;
	double value;
	const char *short_name, *long_name, *unit;
};
_Static_assert(sizeof(struct nvml_gpm_metric) == 40, "nvmlGpmMetric_t");
struct nvml_gpm_support {
	unsigned int version, is_supported;
};
#define GPM_VERSION 1U

/* GPM's metrics; those with a factor come in MiB/s, the others in percent.  Source: nvml.h,
 * nvmlGpmMetricId_t. */
static const struct {
	unsigned int id;
	enum gpu_gauge gauge;
} gpm_metrics[] = {
	{2, GPU_SM_ACTIVE}, {3, GPU_SM_OCCUPANCY}, {5, GPU_TENSOR_ACTIVE}, {10, GPU_DRAM_ACTIVE},
	{20, GPU_PCIE_TX},  {21, GPU_PCIE_RX},	   {61, GPU_NVLINK_TX},	   {60, GPU_NVLINK_RX},
};
#define GPM_METRICS ARRAY_SIZE(gpm_metrics)

struct nvml_gpm_metrics {
	unsigned int version, count;
	nvml_gpm_sample before, now;
	struct nvml_gpm_metric metric[GPM_METRICS]; /* the library reads `count` of them */
};

/* Functions may be missing: an older library, or half of one. */
struct functions {
	int (*init)(void);
	int (*count)(unsigned int *ret_count);
	int (*handle)(unsigned int index, nvml_device *ret_device);
	int (*uuid)(nvml_device device, char *ret_uuid, unsigned int size);
	int (*name)(nvml_device device, char *ret_name, unsigned int size);
	int (*rates)(nvml_device device, struct nvml_rates *ret_rates);
	int (*memory)(nvml_device device, struct nvml_memory *ret_memory);
	int (*memory_v2)(nvml_device device, struct nvml_memory_v2 *memory);
	int (*power)(nvml_device device, unsigned int *ret_mw);
	int (*power_limit)(nvml_device device, unsigned int *ret_mw);
	int (*temperature)(nvml_device device, int sensor, unsigned int *ret_celsius);
	int (*clock)(nvml_device device, int type, unsigned int *ret_mhz);
	int (*reasons)(nvml_device device, unsigned long long *ret_reasons);
	int (*processes)(nvml_device device, unsigned int *count, struct nvml_process *ret_rows);
	int (*process_samples)(nvml_device device, struct nvml_process_sample *ret_rows,
			       unsigned int *count, unsigned long long since_us);
	int (*gpm_support)(nvml_device device, struct nvml_gpm_support *support);
	int (*gpm_alloc)(nvml_gpm_sample *ret_sample);
	int (*gpm_sample)(nvml_device device, nvml_gpm_sample sample);
	int (*gpm_metrics)(struct nvml_gpm_metrics *metrics);
};

/* The name, an older one of the same layout, and whether nothing works without it. */
static const struct {
	size_t at;
	const char *name, *older;
	bool is_needed;
} names[] = {
#define NAME(field, ...) {offsetof(struct functions, field), __VA_ARGS__}
	NAME(init, "nvmlInit_v2", NULL, true),
	NAME(count, "nvmlDeviceGetCount_v2", NULL, true),
	NAME(handle, "nvmlDeviceGetHandleByIndex_v2", NULL, true),
	NAME(uuid, "nvmlDeviceGetUUID", NULL, false),
	NAME(name, "nvmlDeviceGetName", NULL, false),
	NAME(rates, "nvmlDeviceGetUtilizationRates", NULL, false),
	NAME(memory, "nvmlDeviceGetMemoryInfo", NULL, false),
	NAME(memory_v2, "nvmlDeviceGetMemoryInfo_v2", NULL, false),
	NAME(power, "nvmlDeviceGetPowerUsage", NULL, false),
	NAME(power_limit, "nvmlDeviceGetEnforcedPowerLimit", NULL, false),
	NAME(temperature, "nvmlDeviceGetTemperature", NULL, false),
	NAME(clock, "nvmlDeviceGetClockInfo", NULL, false),
	NAME(reasons, "nvmlDeviceGetCurrentClocksEventReasons",
	     "nvmlDeviceGetCurrentClocksThrottleReasons", false),
	NAME(processes, "nvmlDeviceGetComputeRunningProcesses_v3",
	     "nvmlDeviceGetComputeRunningProcesses_v2", false),
	NAME(process_samples, "nvmlDeviceGetProcessUtilization", NULL, false),
	NAME(gpm_support, "nvmlGpmQueryDeviceSupport", NULL, false),
	NAME(gpm_alloc, "nvmlGpmSampleAlloc", NULL, false),
	NAME(gpm_sample, "nvmlGpmSampleGet", NULL, false),
	NAME(gpm_metrics, "nvmlGpmMetricsGet", NULL, false),
};

/* What is kept of a GPU from one second to the next. */
struct kept {
	nvml_device device; /* whose samples these are */
	bool has_gpm, has_before;
	nvml_gpm_sample before, now; /* NULL: none could be had */
	unsigned long long seen_us;  /* of processes' samples */
};

struct nvml {
	struct functions call;
	struct kept kept[GAUGES_DEVICES_MAX];
	struct kept *last; /* the GPU that was read last */
	struct nvml_process process[DEVICE_PROCESSES_MAX];
	struct nvml_process_sample sample[DEVICE_PROCESSES_MAX];
};

/* ---- the library ---- */

/* Also where the loader's own search does not lead: drivers of containers' hosts, NixOS, WSL. */
static void *open_library(void)
{
	static const char *const paths[] = {
		"libnvidia-ml.so.1",
		"libnvidia-ml.so",
		"/usr/lib/" MULTIARCH "/nvidia/current/libnvidia-ml.so.1",
		"/usr/local/nvidia/lib64/libnvidia-ml.so.1",
		"/run/nvidia/driver/usr/lib/" MULTIARCH "/libnvidia-ml.so.1",
		"/run/nvidia/driver/usr/lib64/libnvidia-ml.so.1",
		"/run/opengl-driver/lib/libnvidia-ml.so.1",
		"/usr/lib/wsl/lib/libnvidia-ml.so.1",
	};
	void *library = NULL;

	for (size_t i = 0; !library && i < ARRAY_SIZE(paths); i++)
		library = dlopen(paths[i], RTLD_NOW | RTLD_LOCAL);
	return library;
}

/* Returns whether what every NVML has is there. */
static bool find_functions(void *library, struct functions *ret_call)
{
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		void *found = dlsym(library, names[i].name);

		if (!found && names[i].older)
			found = dlsym(library, names[i].older);
		if (!found && names[i].is_needed)
			return false;
		memcpy((char *)ret_call + names[i].at, &found, sizeof(found));
	}
	return true;
}

static int fail(enum gauges_failure failure, int code, enum gauges_failure *ret_failure,
		int *ret_code)
{
	*ret_failure = failure;
	*ret_code = code;
	return -ENODEV;
}

int nvml_open(struct nvml **ret_nvml, enum gauges_failure *ret_failure, int *ret_code)
{
	OWNED(nvml) struct nvml *nvml = calloc(1, sizeof(*nvml));
	void *library;
	int code;

	if (!nvml)
		return -ENOMEM;
	library = open_library();
	if (!library)
		return fail(GAUGES_NO_LIBRARY, 0, ret_failure, ret_code);
	/* It stays: a driver's library is not made to be unloaded. */
	if (!find_functions(library, &nvml->call))
		return fail(GAUGES_HALF_LIBRARY, 0, ret_failure, ret_code);
	code = nvml->call.init();
	if (code != SUCCESS)
		return fail(GAUGES_NO_DRIVER, code, ret_failure, ret_code);
	if (!nvml_count(nvml))
		return fail(GAUGES_NO_DEVICE, 0, ret_failure, ret_code);
	*ret_nvml = TAKE(nvml);
	return 0;
}

void nvml_free(struct nvml *nvml)
{
	free(nvml);
}

uint32_t nvml_count(struct nvml *nvml)
{
	unsigned int count = 0;

	if (nvml->call.count(&count) != SUCCESS)
		return 0;
	return count < GAUGES_DEVICES_MAX ? count : GAUGES_DEVICES_MAX;
}

/* ---- one GPU ---- */

static void set(struct gauges_device *gpu, enum gpu_gauge gauge, uint64_t value)
{
	gpu->has |= 1ULL << gauge;
	gpu->value[gauge] = value < GAUGES_VALUE_MAX ? value : GAUGES_VALUE_MAX;
}

static uint64_t tenths(unsigned int percent)
{
	return percent < 100 ? percent * 10ULL : GPU_SHARE_MAX;
}

/* Makes a text what a line of a profile may have. */
static void clean(char *text, size_t size, char lowest)
{
	text[size - 1] = '\0';
	for (; *text; text++)
		if (*text < lowest || *text > '~')
			*text = '?';
}

static void read_names(const struct functions *call, nvml_device device, struct gauges_device *gpu)
{
	if (!call->uuid || call->uuid(device, gpu->uuid, sizeof(gpu->uuid)) != SUCCESS)
		gpu->uuid[0] = '\0';
	if (!call->name || call->name(device, gpu->name, sizeof(gpu->name)) != SUCCESS)
		gpu->name[0] = '\0';
	clean(gpu->uuid, sizeof(gpu->uuid), '!');
	clean(gpu->name, sizeof(gpu->name), ' ');
}

/* The older function counts as used what the driver keeps for itself. */
static void read_memory(const struct functions *call, nvml_device device, struct gauges_device *gpu)
{
	struct nvml_memory_v2 newer = {.version = MEMORY_V2};
	struct nvml_memory older;

	if (call->memory_v2 && call->memory_v2(device, &newer) == SUCCESS)
		older = (struct nvml_memory){newer.total, newer.free, newer.used};
	else if (!call->memory || call->memory(device, &older) != SUCCESS)
		return;
	set(gpu, GPU_MEMORY_TOTAL, older.total);
	set(gpu, GPU_MEMORY_USED, older.used);
}

static void read_clocks(const struct functions *call, nvml_device device, struct gauges_device *gpu)
{
	unsigned long long reasons;
	unsigned int mhz;

	if (call->clock && call->clock(device, CLOCK_SM, &mhz) == SUCCESS)
		set(gpu, GPU_SM_CLOCK, 10ULL * mhz);
	if (call->clock && call->clock(device, CLOCK_MEMORY, &mhz) == SUCCESS)
		set(gpu, GPU_MEMORY_CLOCK, 10ULL * mhz);
	if (call->reasons && call->reasons(device, &reasons) == SUCCESS) {
		gpu->has_reasons = 1;
		gpu->reasons = reasons;
	}
}

static void read_plain(const struct functions *call, nvml_device device, struct gauges_device *gpu)
{
	struct nvml_rates rates;
	unsigned int value;

	if (call->rates && call->rates(device, &rates) == SUCCESS) {
		set(gpu, GPU_UTILIZATION, tenths(rates.gpu));
		set(gpu, GPU_MEMORY_UTILIZATION, tenths(rates.memory));
	}
	if (call->power && call->power(device, &value) == SUCCESS)
		set(gpu, GPU_POWER, (value + 50ULL) / 100);
	if (call->power_limit && call->power_limit(device, &value) == SUCCESS)
		set(gpu, GPU_POWER_LIMIT, (value + 50ULL) / 100);
	if (call->temperature && call->temperature(device, SENSOR_GPU, &value) == SUCCESS)
		set(gpu, GPU_TEMPERATURE, 10ULL * value);
}

/* ---- GPM: Hopper and later ---- */

static bool supports_gpm(const struct functions *call, nvml_device device)
{
	struct nvml_gpm_support support = {.version = GPM_VERSION};

	return call->gpm_support && call->gpm_alloc && call->gpm_sample && call->gpm_metrics &&
	       call->gpm_support(device, &support) == SUCCESS && support.is_supported;
}

/* Begins with a GPU, or with another one under the same index. */
static void keep(const struct functions *call, nvml_device device, struct kept *kept)
{
	if (kept->device == device)
		return;
	kept->device = device;
	kept->has_before = false;
	kept->seen_us = 0;
	kept->has_gpm = supports_gpm(call, device);
	if (kept->has_gpm && !kept->before)
		kept->has_gpm = call->gpm_alloc(&kept->before) == SUCCESS &&
				call->gpm_alloc(&kept->now) == SUCCESS;
}

static void take_metric(const struct nvml_gpm_metric *metric, enum gpu_gauge gauge,
			struct gauges_device *gpu)
{
	const bool is_share = gauge <= GPU_DRAM_ACTIVE;
	const double value = is_share ? metric->value * 10 : metric->value * MIB_BYTES;
	const double most = is_share ? GPU_SHARE_MAX : (double)GAUGES_VALUE_MAX;

	if (metric->result != SUCCESS || !(value >= 0)) /* NaN is not known, either */
		return;
	set(gpu, gauge, (uint64_t)((value < most ? value : most) + 0.5));
}

/* Two samples make the metrics of the time between them. */
static void read_gpm(const struct functions *call, struct kept *kept, struct gauges_device *gpu)
{
	struct nvml_gpm_metrics metrics = {.version = GPM_VERSION,
					   .count = GPM_METRICS,
					   .before = kept->before,
					   .now = kept->now};
	nvml_gpm_sample before = kept->before;

	if (!kept->has_gpm)
		return;
	if (call->gpm_sample(kept->device, kept->now) != SUCCESS) {
		kept->has_before = false;
		return;
	}
	for (size_t i = 0; i < GPM_METRICS; i++)
		metrics.metric[i].id = gpm_metrics[i].id;
	if (kept->has_before && call->gpm_metrics(&metrics) == SUCCESS)
		for (size_t i = 0; i < GPM_METRICS; i++)
			take_metric(&metrics.metric[i], gpm_metrics[i].gauge, gpu);
	kept->before = kept->now;
	kept->now = before;
	kept->has_before = true;
}

int nvml_read_device(struct nvml *nvml, uint32_t index, struct gauges_device *ret_gpu)
{
	const struct functions *call = &nvml->call;
	struct gauges_device gpu = {.has = 0};
	nvml_device device;

	if (call->handle(index, &device) != SUCCESS)
		return -ENODEV;
	nvml->last = &nvml->kept[index];
	keep(call, device, nvml->last);
	read_names(call, device, &gpu);
	read_plain(call, device, &gpu);
	read_memory(call, device, &gpu);
	read_clocks(call, device, &gpu);
	read_gpm(call, nvml->last, &gpu);
	*ret_gpu = gpu;
	return 0;
}

/* ---- its processes ---- */

struct rows {
	struct gauges_process *row;
	uint32_t count, room, left_out;
};

/* Returns the process's row; NULL: there is no room for it. */
static struct gauges_process *row_of(struct rows *rows, uint32_t pid)
{
	for (uint32_t i = 0; i < rows->count; i++)
		if (rows->row[i].pid == pid)
			return &rows->row[i];
	if (rows->count == rows->room || !pid || pid > GAUGES_PID_MAX) {
		rows->left_out++;
		return NULL;
	}
	rows->row[rows->count] = (struct gauges_process){
		.pid = pid, .sm = GAUGES_UNKNOWN_SM, .memory_bytes = GAUGES_UNKNOWN_BYTES};
	return &rows->row[rows->count++];
}

/* On a GPU in parts (MIG) a process may have a row in each. */
static void add_memory(struct rows *rows, const struct nvml_process *process)
{
	struct gauges_process *row = row_of(rows, process->pid);

	if (!row || process->bytes > GAUGES_VALUE_MAX)
		return;
	if (row->memory_bytes == GAUGES_UNKNOWN_BYTES)
		row->memory_bytes = 0;
	row->memory_bytes += process->bytes;
	if (row->memory_bytes > GAUGES_VALUE_MAX)
		row->memory_bytes = GAUGES_VALUE_MAX;
}

/* Samples that came since the last second; of several of a process the last one counts. */
static void add_shares(struct nvml *nvml, struct rows *rows)
{
	unsigned int count = DEVICE_PROCESSES_MAX;
	unsigned long long newest_us = nvml->last->seen_us;

	if (!nvml->call.process_samples ||
	    nvml->call.process_samples(nvml->last->device, nvml->sample, &count, newest_us) !=
		    SUCCESS)
		return;
	for (unsigned int i = 0; i < count && i < DEVICE_PROCESSES_MAX; i++) {
		const struct nvml_process_sample *sample = &nvml->sample[i];
		struct gauges_process *row = sample->pid ? row_of(rows, sample->pid) : NULL;

		if (row)
			row->sm = (uint32_t)tenths(sample->sm);
		if (sample->time_us > newest_us)
			newest_us = sample->time_us;
	}
	nvml->last->seen_us = newest_us;
}

uint32_t nvml_read_processes(struct nvml *nvml, struct gauges_process *process, uint32_t room,
			     uint32_t *ret_left_out)
{
	struct rows rows = {.row = process, .room = room};
	unsigned int count = DEVICE_PROCESSES_MAX;

	*ret_left_out = 0;
	if (!nvml->last)
		return 0;
	if (nvml->call.processes &&
	    nvml->call.processes(nvml->last->device, &count, nvml->process) == SUCCESS)
		for (unsigned int i = 0; i < count && i < DEVICE_PROCESSES_MAX; i++)
			add_memory(&rows, &nvml->process[i]);
	add_shares(nvml, &rows);
	*ret_left_out = rows.left_out;
	return rows.count;
}
