/* SPDX-License-Identifier: BSD-2-Clause */
/* cuInit, devices, and which context a thread has. */
#include "driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONTEXT_STACK 16U

struct driver driver;
static pthread_mutex_t init_lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local struct context *current[CONTEXT_STACK];
static _Thread_local unsigned int current_count;

/* The slow way into an entry point: not initialized, or a test has set something.  Returns the
 * error. */
CUresult api_refuse(enum api api)
{
	struct api_row *row = &truth.api[api];
	uint64_t delay_ns = get(&row->delay_ns);
	unsigned int left = row->errors_left;

	if (driver.state != DRIVER_READY)
		return api_fail(api, CUDA_ERROR_NOT_INITIALIZED);
	if (delay_ns)
		sleep_until(now_ns() + delay_ns);
	while (left && !atomic_compare_exchange_weak(&row->errors_left, &left, left - 1))
		;
	if (!left)
		return CUDA_SUCCESS;
	if (left == 1)
		row->is_special = delay_ns != 0;
	return api_fail(api, row->next_error);
}

/* The driver does not live on in a child, as CUDA's does not.  What the child counts is its own. */
static void forked(void)
{
	if (driver.state != DRIVER_READY)
		return;
	driver.state = DRIVER_FORKED;
	truth_zero();
}

static uint64_t environment_number(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text && *text ? strtoull(text, NULL, 0) : otherwise;
}

/* Fills the devices that can be seen, up to the first number that is none, as CUDA does. */
static void find_devices(void)
{
	unsigned int there = (unsigned int)environment_number("FAKE_CUDA_DEVICES", 2);
	const char *visible = getenv("CUDA_VISIBLE_DEVICES");
	char *end;

	if (there > DRIVER_DEVICES)
		there = DRIVER_DEVICES;
	for (unsigned int i = 0; i < there; i++)
		driver.device[i] = (struct context){.device = (CUdevice)i, .physical = i};
	driver.device_count = there;
	if (!visible)
		return;
	driver.device_count = 0;
	while (driver.device_count < DRIVER_DEVICES) {
		unsigned long number = strtoul(visible, &end, 10);

		if (end == visible || number >= there)
			return;
		driver.device[driver.device_count].physical = (unsigned int)number;
		driver.device[driver.device_count].device = (CUdevice)driver.device_count;
		driver.device_count++;
		visible = *end == ',' ? end + 1 : end;
	}
}

CUresult cuInit(unsigned int flags)
{
	add(&truth.api[API_cuInit].calls, 1);
	if (flags)
		return api_fail(API_cuInit, CUDA_ERROR_INVALID_VALUE);
	if (driver.state == DRIVER_FORKED)
		return api_fail(API_cuInit, CUDA_ERROR_NOT_INITIALIZED);
	pthread_mutex_lock(&init_lock);
	if (driver.state == DRIVER_NEW) {
		truth.default_kernel_ns = environment_number("FAKE_CUDA_KERNEL_NS", 0);
		find_devices();
		pthread_atfork(NULL, NULL, forked);
		atomic_store(&driver.state, DRIVER_READY);
	}
	pthread_mutex_unlock(&init_lock);
	if (!driver.device_count)
		return api_fail(API_cuInit, CUDA_ERROR_NO_DEVICE);
	return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int *ret_version)
{
	add(&truth.api[API_cuDriverGetVersion].calls, 1);
	*ret_version = 13000;
	return CUDA_SUCCESS;
}

/* ---------------------------------------------------------------- devices */

static CUresult enter_device(enum api api, CUdevice device)
{
	CUresult error = api_enter(api);

	if (error)
		return error;
	if (device < 0 || (unsigned int)device >= driver.device_count)
		return api_fail(api, CUDA_ERROR_INVALID_DEVICE);
	return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *ret_device, int ordinal)
{
	CUresult error = enter_device(API_cuDeviceGet, ordinal);

	if (!error)
		*ret_device = ordinal;
	return error;
}

CUresult cuDeviceGetCount(int *ret_count)
{
	CUresult error = api_enter(API_cuDeviceGetCount);

	if (!error)
		*ret_count = (int)driver.device_count;
	return error;
}

CUresult cuDeviceGetName(char *ret_name, int size, CUdevice device)
{
	CUresult error = enter_device(API_cuDeviceGetName, device);

	if (!error && size > 0)
		snprintf(ret_name, (size_t)size, "Fake GPU %u", driver.device[device].physical);
	return error;
}

/* The fake NVML makes the same: "FAKE", zeros, the number. */
CUresult cuDeviceGetUuid(struct cu_uuid *ret_uuid, CUdevice device)
{
	CUresult error = enter_device(API_cuDeviceGetUuid, device);

	if (error)
		return error;
	memset(ret_uuid, 0, sizeof(*ret_uuid));
	memcpy(ret_uuid->bytes, "FAKE", 4);
	ret_uuid->bytes[15] = (unsigned char)driver.device[device].physical;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid_v2(struct cu_uuid *ret_uuid, CUdevice device)
	__attribute__((alias("cuDeviceGetUuid")));

/* ---------------------------------------------------------------- contexts */

struct context *context_current(void)
{
	return current_count ? current[current_count - 1] : NULL;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *ret_context, CUdevice device)
{
	CUresult error = enter_device(API_cuDevicePrimaryCtxRetain, device);
	struct context *context = &driver.device[device < 0 ? 0 : device];

	if (error)
		return error;
	pthread_mutex_lock(&init_lock);
	if (!context->legacy) {
		context->legacy = stream_new(context);
		if (context->legacy)
			context->legacy->is_legacy = true;
	}
	if (context->legacy)
		context->users++;
	pthread_mutex_unlock(&init_lock);
	if (!context->legacy)
		return api_fail(API_cuDevicePrimaryCtxRetain, CUDA_ERROR_OUT_OF_MEMORY);
	*ret_context = context;
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
	CUresult error = enter_device(API_cuDevicePrimaryCtxRelease_v2, device);

	if (error)
		return error;
	pthread_mutex_lock(&init_lock);
	if (driver.device[device].users)
		driver.device[device].users--;
	else
		error = CUDA_ERROR_INVALID_CONTEXT;
	pthread_mutex_unlock(&init_lock);
	return error ? api_fail(API_cuDevicePrimaryCtxRelease_v2, error) : CUDA_SUCCESS;
}

CUresult context_push(struct context *context)
{
	if (!context || current_count == CONTEXT_STACK)
		return CUDA_ERROR_INVALID_VALUE;
	current[current_count++] = context;
	return CUDA_SUCCESS;
}

/* A context of its own, beside the device's primary one. */
static CUresult create_context(enum api api, CUcontext *ret_context, CUdevice device)
{
	CUresult error = enter_device(api, device);
	struct context *context;

	if (error)
		return error;
	context = calloc(1, sizeof(*context));
	if (context) {
		context->device = device;
		context->physical = driver.device[device].physical;
		context->legacy = stream_new(context);
	}
	if (!context || !context->legacy) {
		free(context);
		return api_fail(api, CUDA_ERROR_OUT_OF_MEMORY);
	}
	context->legacy->is_legacy = true;
	error = context_push(context);
	if (error)
		return api_fail(api, error);
	*ret_context = context;
	return CUDA_SUCCESS;
}

CUresult cuCtxCreate_v2(CUcontext *ret_context, unsigned int flags, CUdevice device)
{
	(void)flags;
	return create_context(API_cuCtxCreate_v2, ret_context, device);
}

CUresult cuCtxCreate_v4(CUcontext *ret_context, const void *params, unsigned int flags,
			CUdevice device)
{
	(void)params, (void)flags;
	return create_context(API_cuCtxCreate_v4, ret_context, device);
}

/* The struct stays: works may still name it. */
CUresult cuCtxDestroy_v2(CUcontext context)
{
	CUresult error = api_enter(API_cuCtxDestroy_v2);

	if (error)
		return error;
	if (!context || context == &driver.device[context->device])
		return api_fail(API_cuCtxDestroy_v2, CUDA_ERROR_INVALID_CONTEXT);
	if (context_current() == context)
		current_count--;
	memory_drop(context);
	return CUDA_SUCCESS;
}

/* Of all that the context has, memory alone is given back. */
CUresult cuDevicePrimaryCtxReset_v2(CUdevice device)
{
	CUresult error = enter_device(API_cuDevicePrimaryCtxReset_v2, device);

	if (!error)
		memory_drop(&driver.device[device]);
	return error;
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned int flags)
{
	CUresult error = enter_device(API_cuDevicePrimaryCtxSetFlags_v2, device);

	if (!error)
		atomic_store(&driver.device[device].flags, flags);
	return error;
}

CUresult cuCtxSetCurrent(CUcontext context)
{
	CUresult error = api_enter(API_cuCtxSetCurrent);

	if (error)
		return error;
	if (!context)
		current_count -= current_count != 0;
	else if (current_count)
		current[current_count - 1] = context;
	else
		current[current_count++] = context;
	return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext context)
{
	CUresult error = api_enter(API_cuCtxPushCurrent_v2);

	if (error)
		return error;
	error = context_push(context);
	return error ? api_fail(API_cuCtxPushCurrent_v2, error) : CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent_v2(CUcontext *ret_context)
{
	CUresult error = api_enter(API_cuCtxPopCurrent_v2);

	if (error)
		return error;
	if (!current_count)
		return api_fail(API_cuCtxPopCurrent_v2, CUDA_ERROR_INVALID_CONTEXT);
	current_count--;
	if (ret_context)
		*ret_context = current[current_count];
	return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *ret_context)
{
	CUresult error = api_enter(API_cuCtxGetCurrent);

	if (!error)
		*ret_context = context_current();
	return error;
}

CUresult cuCtxGetDevice(CUdevice *ret_device)
{
	CUresult error = api_enter(API_cuCtxGetDevice);

	if (error)
		return error;
	if (!context_current())
		return api_fail(API_cuCtxGetDevice, CUDA_ERROR_INVALID_CONTEXT);
	*ret_device = context_current()->device;
	return CUDA_SUCCESS;
}
