/* SPDX-License-Identifier: BSD-2-Clause */
/* Modules, libraries, and the handles of their kernels.  A name has one handle in a module, made
 * when it is asked for.  Handles of what was unloaded are given out again, the last one first.
 *
 * PTX is not run, but a kernel that reads %globaltimer is taken for one that spins: it runs for as
 * many ns as its first parameter says. */
#include "driver.h"

#include <stdlib.h>
#include <string.h>

struct module {
	char *ptx; /* its text; NULL: it was no text, and has whatever is asked for */
	struct function *functions;
	struct module *next;
};

static struct module *modules;
static struct function *unused;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Texts begin so; images of other kinds with bytes that are no text. */
static bool is_text(const char *image)
{
	return image && (*image == '.' || *image == '/' || *image == '\n');
}

static CUresult load(enum api api, struct module **ret_module, const char *image)
{
	CUresult error = api_enter(api);
	struct module *module;

	if (error)
		return error;
	if (is_text(image) && (!strstr(image, ".version ") || !strstr(image, ".target sm_")))
		return api_fail(api, CUDA_ERROR_INVALID_PTX);
	module = calloc(1, sizeof(*module));
	if (module && is_text(image))
		module->ptx = strdup(image);
	if (!module)
		return api_fail(api, CUDA_ERROR_OUT_OF_MEMORY);
	pthread_mutex_lock(&lock);
	module->next = modules;
	modules = module;
	pthread_mutex_unlock(&lock);
	*ret_module = module;
	return CUDA_SUCCESS;
}

CUresult cuModuleLoadData(CUmodule *ret_module, const void *image)
{
	return load(API_cuModuleLoadData, ret_module, image);
}

CUresult cuLibraryLoadData(CUlibrary *ret_library, const void *code, int *jit_options,
			   void **jit_values, unsigned int jit_count, int *options, void **values,
			   unsigned int option_count)
{
	(void)jit_options, (void)jit_values, (void)jit_count;
	(void)options, (void)values, (void)option_count;
	return load(API_cuLibraryLoadData, ret_library, code);
}

static CUresult unload(enum api api, struct module *module)
{
	CUresult error = api_enter(api);
	struct module **at = &modules;

	if (error)
		return error;
	pthread_mutex_lock(&lock);
	while (*at && *at != module)
		at = &(*at)->next;
	if (*at) {
		*at = module->next;
		while (module->functions) {
			struct function *function = module->functions;

			module->functions = function->next;
			memset(function, 0, sizeof(*function));
			function->next = unused;
			unused = function;
		}
		free(module->ptx);
		free(module);
	} else {
		error = CUDA_ERROR_INVALID_HANDLE;
	}
	pthread_mutex_unlock(&lock);
	return error ? api_fail(api, error) : CUDA_SUCCESS;
}

CUresult cuModuleUnload(CUmodule module)
{
	return unload(API_cuModuleUnload, module);
}

CUresult cuLibraryUnload(CUlibrary library)
{
	return unload(API_cuLibraryUnload, library);
}

/* ---------------------------------------------------------------- handles */

/* Called with the lock.  NULL: no memory. */
static struct function *make(struct module *module, struct kernel_row *row, bool is_kernel)
{
	struct function *function = unused;

	if (function)
		unused = function->next;
	else
		function = malloc(sizeof(*function));
	if (!function)
		return NULL;
	*function = (struct function){
		.magic = FUNCTION_MAGIC,
		.is_kernel = is_kernel,
		.row = row,
		.module = module,
		.next = module->functions,
	};
	module->functions = function;
	return function;
}

/* Where the text of a kernel begins, behind its name; NULL: it has none of this name. */
static const char *find_entry(const char *ptx, const char *name)
{
	static const char entry[] = ".entry ";
	const size_t size = strlen(name);

	for (const char *at = strstr(ptx, entry); at; at = strstr(at, entry)) {
		at += strlen(entry);
		if (!strncmp(at, name, size) && strchr(" (\n", at[size]))
			return at + size;
	}
	return NULL;
}

static size_t count_texts(const char *from, const char *to, const char *text)
{
	size_t count = 0;

	for (const char *at = strstr(from, text); at && (!to || at < to); at = strstr(at + 1, text))
		count++;
	return count;
}

/* What PTX tells of a kernel.  Returns whether it is there. */
static bool take_from_ptx(const char *ptx, const char *name, struct kernel_row *row)
{
	const char *begin = find_entry(ptx, name), *body = begin ? strchr(begin, '{') : NULL;

	if (!body)
		return false;
	row->param_count = (unsigned int)count_texts(begin, body, ".param ");
	row->spins = count_texts(body, strstr(body, ".entry "), "%globaltimer") != 0;
	return true;
}

/* Kernels whose names begin with "missing" are not there. */
static CUresult look_up(enum api api, struct function **ret_function, struct module *module,
			const char *name)
{
	CUresult error = api_enter(api);
	bool is_kernel = api == API_cuLibraryGetKernel;
	struct kernel_row *row;
	struct function *function;

	if (error)
		return error;
	if (!module || !name)
		return api_fail(api, CUDA_ERROR_INVALID_HANDLE);
	if (!strncmp(name, "missing", strlen("missing")))
		return api_fail(api, CUDA_ERROR_NOT_FOUND);
	row = truth_kernel(name);
	if (!row)
		return api_fail(api, CUDA_ERROR_OUT_OF_MEMORY);
	if (module->ptx && !take_from_ptx(module->ptx, name, row))
		return api_fail(api, CUDA_ERROR_NOT_FOUND);
	pthread_mutex_lock(&lock);
	for (function = module->functions; function; function = function->next)
		if (function->row == row && function->is_kernel == is_kernel)
			break;
	if (!function)
		function = make(module, row, is_kernel);
	pthread_mutex_unlock(&lock);
	if (!function)
		return api_fail(api, CUDA_ERROR_OUT_OF_MEMORY);
	*ret_function = function;
	return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction *ret_function, CUmodule module, const char *name)
{
	return look_up(API_cuModuleGetFunction, ret_function, module, name);
}

CUresult cuLibraryGetKernel(CUkernel *ret_kernel, CUlibrary library, const char *name)
{
	return look_up(API_cuLibraryGetKernel, ret_kernel, library, name);
}

/* One for each device. */
CUresult cuKernelGetFunction(CUfunction *ret_function, CUkernel kernel)
{
	CUresult error = api_enter(API_cuKernelGetFunction);
	struct context *context = context_current();
	struct function **function;

	if (error)
		return error;
	if (!kernel || kernel->magic != FUNCTION_MAGIC || !kernel->is_kernel)
		return api_fail(API_cuKernelGetFunction, CUDA_ERROR_INVALID_HANDLE);
	if (!context)
		return api_fail(API_cuKernelGetFunction, CUDA_ERROR_INVALID_CONTEXT);
	function = &kernel->of_device[context->device];
	pthread_mutex_lock(&lock);
	if (!*function)
		*function = make(kernel->module, kernel->row, false);
	pthread_mutex_unlock(&lock);
	if (!*function)
		return api_fail(API_cuKernelGetFunction, CUDA_ERROR_OUT_OF_MEMORY);
	*ret_function = *function;
	return CUDA_SUCCESS;
}

static CUresult name_of(enum api api, const char **ret_name, const struct function *function)
{
	CUresult error = api_enter(api);

	if (error)
		return error;
	if (!function || function->magic != FUNCTION_MAGIC)
		return api_fail(api, CUDA_ERROR_INVALID_HANDLE);
	*ret_name = function->row->name;
	return CUDA_SUCCESS;
}

CUresult cuKernelGetName(const char **ret_name, CUkernel kernel)
{
	return name_of(API_cuKernelGetName, ret_name, kernel);
}

CUresult cuFuncGetName(const char **ret_name, CUfunction function)
{
	return name_of(API_cuFuncGetName, ret_name, function);
}

void handles_print(FILE *file)
{
	const char *comma = "";

	fputs("\"handles\": {", file);
	for (struct module *m = modules; m; m = m->next)
		for (struct function *f = m->functions; f; f = f->next) {
			fprintf(file, "%s\n  \"%p\": \"%s\"", comma, (void *)f, f->row->name);
			comma = ",";
		}
	fputs("},\n", file);
}
