/* SPDX-License-Identifier: BSD-2-Clause */
/* A row of a kind of records (include/pyprofd/kinds.h: PP_RECORDS): what a process or a device had,
 * did or used, under labels.  Whoever measures fills it; readers find its values by their names, as
 * a file of another kind may have them behind its own. */
#ifndef PROFILE_RECORD_H
#define PROFILE_RECORD_H

#include <stdbool.h>

#include <pyprofd/kinds.h>
#include <pyprofd/process.h>

#include "profile/profile.h"

/* The most processes of a kind with rows of their own in one window.  The rows of the others are
 * summed up: their label comm is RECORD_OTHERS, and they have no pid. */
#define RECORD_PROCESSES_MAX 256U
#define RECORD_OTHERS "[others]"
#define RESIDENT_UNREAD "[unread]" /* of kind resident: processes whose memory was not read */

struct record {
	enum pp_profile kind;
	struct pp_process_id id;      /* of whom it is; tgid 0: of several, or of a device */
	bool is_of_device;	      /* of no process: everybody may see it */
	struct profile_sample sample; /* without its stack, which is `frame` alone */
	size_t own_labels;	      /* of the sample: the first ones, which say whose it is */
	struct frame frame;	      /* what the row is about, or the process's name */
	uint32_t name;		      /* of the process: a string */
};

/* Begins the rows of a process: labels pid and comm ("": none).  Whose further labels there are is
 * for the caller, who then sets own_labels.  Returns 0 or -ENOMEM. */
int record_begin(struct record *record, struct intern *strings, enum pp_profile kind,
		 struct pp_process_id id, const char *comm);
/* Begins the next row of the same process: no values, no other labels. */
void record_next(struct record *record);
/* Adds a label; "" and a label too many are left out.  Returns 0 or -ENOMEM. */
int record_label(struct record *record, struct intern *strings, const char *key, const char *text);
/* Adds a label, whose text is also the frame of the row.  Returns 0 or -ENOMEM. */
int record_about(struct record *record, struct intern *strings, const char *key, const char *text);
/* Makes it a row of the others.  Returns 0 or -ENOMEM. */
int record_make_other(struct record *record, struct intern *strings);

/* Adds the row to a profile that has values of its kind; to another one it adds nothing.  Returns 0
 * or -ENOMEM. */
int profile_add_record(struct profile *profile, const struct record *record);

/* Puts the values and rows of a profile of a kind of records behind those of another one.  Keys of
 * labels are borrowed.  Returns 0 or an error of profile_add_values(). */
int profile_append_records(struct profile *profile, enum pp_profile kind,
			   const struct profile *records);

/* ---- reading ---- */

/* Returns where the first value of a kind is among the profile's, which the others follow;
 * -ENOENT: it has none. */
int record_values_at(const struct profile *profile, enum pp_profile kind);
/* Return a label's text, "" where there is none; its number, 0 where there is none. */
const char *record_text(const struct profile *profile, uint32_t row, const char *key);
int64_t record_number(const struct profile *profile, uint32_t row, const char *key);

#endif
