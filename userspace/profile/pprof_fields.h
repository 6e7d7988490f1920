/* SPDX-License-Identifier: BSD-2-Clause */
/* Field numbers of profile.proto's Profile that are written one element at a time. */
#ifndef PROFILE_PPROF_FIELDS_H
#define PROFILE_PPROF_FIELDS_H

#define PPROF_PROFILE_SAMPLE_TYPE 1U
#define PPROF_PROFILE_SAMPLE 2U
#define PPROF_PROFILE_MAPPING 3U
#define PPROF_PROFILE_LOCATION 4U
#define PPROF_PROFILE_FUNCTION 5U
#define PPROF_PROFILE_STRING_TABLE 6U

#endif
