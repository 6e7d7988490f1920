/* SPDX-License-Identifier: BSD-2-Clause */
/* A profile of kind ledger with rows that a test adds.  Needs profile/record.c. */
#ifndef TEST_LEDGER_ROWS_H
#define TEST_LEDGER_ROWS_H

#include <cmocka.h>
#include <string.h>

#include "base/kinds.h"
#include "profile/profile_data.h"
#include "profile/record.h"
#include "query/machine.h"

#define MS 1000000LL

struct ledger_row {
	uint32_t pid; /* 0: of others */
	const char *comm;
	int64_t python, native, kernel, unsampled; /* ms */
	enum pp_ledger where;
	int64_t waited, also_gil; /* ms */
};

static struct intern *strings;
static struct profile *profile;

static void ledger_rows_put(struct record *record, unsigned int state, int64_t ns)
{
	if (!ns)
		return;
	record_next(record);
	record->sample.value[PP_LEDGER_TIME] = ns;
	assert_int_equal(record_about(record, strings, "state", ledger_state_name(state)), 0);
	assert_int_equal(profile_add_record(profile, record), 0);
}

static void ledger_rows_add(const struct ledger_row *row)
{
	struct record record;

	assert_int_equal(record_begin(&record, strings, PP_PROFILE_LEDGER,
				      (struct pp_process_id){.tgid = row->pid},
				      row->pid ? row->comm : RECORD_OTHERS),
			 0);
	record.sample.value[PP_LEDGER_LIFETIME] = 1;
	assert_int_equal(profile_add_record(profile, &record), 0);
	ledger_rows_put(&record, LEDGER_PYTHON, row->python * MS);
	ledger_rows_put(&record, LEDGER_NATIVE, row->native * MS);
	ledger_rows_put(&record, LEDGER_KERNEL, row->kernel * MS);
	ledger_rows_put(&record, LEDGER_UNSAMPLED, row->unsampled * MS);
	ledger_rows_put(&record, LEDGER_WAIT(row->where), row->waited * MS);
	ledger_rows_put(&record, LEDGER_WAIT(PP_LEDGER_GIL), row->also_gil * MS);
}

static void ledger_rows_open(void)
{
	struct profile_options options = {.kind = "ledger"};

	for (const struct kind_value *value = kind_get(PP_PROFILE_LEDGER)->value; value->type;
	     value++)
		options.value_type[options.value_count++] =
			(struct profile_value_type){value->type, value->unit};
	assert_int_equal(intern_new(&strings), 0);
	assert_int_equal(profile_new(&options, strings, &profile), 0);
}

static void ledger_rows_close(void)
{
	profile_free(profile);
	intern_free(strings);
}

/* Makes a profile of these rows, whose strings the machine borrows until ledger_rows_close(). */
static void ledger_rows_fill(struct machine *machine, const struct ledger_row *row, size_t count,
			     bool by_pid)
{
	ledger_rows_open();
	for (size_t i = 0; i < count; i++)
		ledger_rows_add(&row[i]);
	assert_int_equal(machine_fill(machine, profile, by_pid), 0);
}

#endif
