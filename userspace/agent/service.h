/* SPDX-License-Identifier: BSD-2-Clause */
/* Tells the service manager how the agent does, by datagrams to the socket that NOTIFY_SOCKET names
 * (sd_notify(3)): READY=1 once samples are taken, WATCHDOG=1 while the loop turns, STOPPING=1 at
 * the end.  Nothing blocks: a message that finds no room is sent again at the next tick. */
#ifndef AGENT_SERVICE_H
#define AGENT_SERVICE_H

#include <stdbool.h>
#include <stdint.h>

struct service {
	int socket;		       /* -1: nobody wants to know */
	uint64_t watchdog_ns, next_ns; /* between two signs of life, 0: none is wanted; the next */
	bool is_ready, is_ready_told;
};

/* Connects to the service manager's socket, if there is one, and takes it out of the environment:
 * the agent's command must not speak for the agent.  Returns 0 or -errno; service_close() either
 * way. */
int service_open(struct service *ret_service);
void service_close(struct service *service);

/* Samples are taken from now on. */
void service_ready(struct service *service, uint64_t now_ns);
/* The loop's tick: it gives the sign of life when half of the time that the manager allows has
 * passed. */
void service_tick(struct service *service, uint64_t now_ns);
/* The configuration is being read again, since now_ns (CLOCK_MONOTONIC); it has been. */
void service_reloading(const struct service *service, uint64_t now_ns);
void service_reloaded(struct service *service, uint64_t now_ns);
/* No more samples are taken; what is left to do is to write. */
void service_stopping(const struct service *service);

#endif
