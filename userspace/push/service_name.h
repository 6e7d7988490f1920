/* SPDX-License-Identifier: BSD-2-Clause */
/* The service that a sample belongs to.  No state. */
#ifndef PUSH_SERVICE_NAME_H
#define PUSH_SERVICE_NAME_H

#include <stdint.h>

struct profile;

/* The labels that a service's name is made of, in this order; NULL at the end. */
#define PUSH_SERVICE_NAME "service_name"
#define PUSH_SERVICE_LABELS PUSH_SERVICE_NAME, "app", "container", "comm"
#define PUSH_SERVICE_UNKNOWN "unknown_service"

/* Returns the id, in the profile's strings, of the first of PUSH_SERVICE_LABELS that the label set
 * has; 0 (""): none. */
uint32_t push_service_name(const struct profile *profile, uint32_t label_set);

#endif
