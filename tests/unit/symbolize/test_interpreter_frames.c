/* SPDX-License-Identifier: BSD-2-Clause */
#include "symbolize/symbolizer.h"

#include <stdio.h>

#include <cmocka.h>

#include "base/cleanup.h"

static void assert_all(const char *const *names, size_t count, bool expected)
{
	for (size_t i = 0; i < count; i++)
		if (interpreter_frame_is_machinery(names[i]) != expected)
			fail_msg("%s", names[i]);
}

static void machinery__calls_and_evaluation_are(void **state)
{
	static const char *const names[] = {
		"_PyEval_EvalFrameDefault",
		"_PyEval_Vector",
		"PyEval_EvalCode",
		"_PyEval_EvalFrameDefault.cold",
		"_PyFunction_Vectorcall.localalias",
		"_PyEval_EvalCodeWithName",
		"PyObject_Vectorcall",
		"_PyObject_MakeTpCall",
		"call_function.constprop.0",
		"slot_tp_init",
		"gen_send_ex",
		"pymain_run_python",
		"Py_RunMain",
		"_TAIL_CALL_CALL_PY_EXACT_ARGS",
	};

	(void)state;
	assert_all(names, ARRAY_SIZE(names), true);
}

static void machinery__functions_that_do_work_are_not(void **state)
{
	static const char *const names[] = {
		"list_sort",
		"dict_subscript",
		"gc_collect_main",
		"PyDict_GetItem",
		"long_add",
		"_PyBytes_FromSize",
		"PyUnicode_Join",
		"take_gil",
		"_Py_Dealloc",
		"main",
		"",
		"[python3.12]",
		/* A beginning must be at the beginning. */
		"my_PyEval_Vector",
	};

	(void)state;
	assert_all(names, ARRAY_SIZE(names), false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(machinery__calls_and_evaluation_are),
		cmocka_unit_test(machinery__functions_that_do_work_are_not),
	};

	return cmocka_run_group_tests_name("symbolize/interpreter_frames", tests, NULL, NULL);
}
