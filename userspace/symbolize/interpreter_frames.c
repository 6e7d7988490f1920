/* SPDX-License-Identifier: BSD-2-Clause */
#include "symbolize/interpreter_frames.h"

#include <stddef.h>
#include <string.h>

#include "base/cleanup.h"

/* Prefixes, so that compilers' suffixes (.constprop.0, .cold) match too.
 * Sources: CPython 2.7-3.15 Python/ceval.c, Objects/call.c, Objects/descrobject.c,
 * Objects/methodobject.c, Objects/typeobject.c (slot_*), Modules/main.c, Python/pythonrun.c. */
static const char *const machinery[] = {
	"_PyEval_",
	"PyEval_EvalCode",
	"PyEval_EvalFrame",
	"_PyFunction_Vectorcall",
	"_PyFunction_FastCall",
	"function_code_fastcall",
	"call_function",
	"fast_function",
	"do_call_core",
	"PyObject_Call",
	"_PyObject_Call",
	"_PyObject_Vectorcall",
	"PyObject_Vectorcall",
	"_PyObject_MakeTpCall",
	"_PyObject_FastCall",
	"PyVectorcall_Call",
	"_PyVectorcall_Call",
	"object_vacall",
	"_PyStack_",
	"method_vectorcall",
	"method_call",
	"cfunction_vectorcall",
	"cfunction_call",
	"_PyCFunction_FastCall",
	"_PyMethodDef_RawFastCall",
	"PyCFunction_Call",
	"_PyCFunction_FastCallDict",
	"slot_tp_call",
	"slot_tp_init",
	"slot_tp_new",
	"type_call",
	"instancemethod_call",
	"function_call",
	"instance_call",
	"vectorcall_method",
	"vectorcall_maybe",
	"vectorcall_unbound",
	"call_method",
	"lookup_maybe_method",
	"call_unbound",
	"_TAIL_CALL_",
	"_PyObject_FunctionStr",
	"gen_send_ex",
	"gen_iternext",
	"gen_send",
	"_PyGen_Send",
	"PyGen_Send",
	"async_gen_asend",
	"Py_RunMain",
	"Py_BytesMain",
	"Py_Main",
	"pymain_",
	"_Py_UnixMain",
	"_PyRun_",
	"PyRun_",
	"pyrun_",
	"run_mod",
	"run_eval_code_obj",
	"run_pyc_file",
	"run_file",
	"builtin_exec",
	"builtin_eval",
	"py_trampoline_evaluator",
	"_Py_HandlePending",
	"bytecode_",
};

bool interpreter_frame_is_machinery(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(machinery); i++)
		if (!strncmp(name, machinery[i], strlen(machinery[i])))
			return true;
	return false;
}
