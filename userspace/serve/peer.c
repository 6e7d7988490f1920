/* SPDX-License-Identifier: BSD-2-Clause */
#include "serve/peer.h"

#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "base/cleanup.h"

#define ANSWER_MS 200 /* the kernel answers in the same call */

union address {
	struct sockaddr any;
	struct sockaddr_in four;
	struct sockaddr_in6 six;
	struct sockaddr_storage room;
};

struct question {
	struct nlmsghdr head;
	struct inet_diag_req_v2 body;
};

static int unix_uid(int fd, uid_t *ret_uid)
{
	struct ucred who;
	socklen_t size = sizeof(who);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size))
		return -errno;
	*ret_uid = who.uid;
	return 0;
}

static bool is_loopback(const union address *address)
{
	if (address->any.sa_family == AF_INET)
		return ntohl(address->four.sin_addr.s_addr) >> 24 == 127;
	return address->any.sa_family == AF_INET6 &&
	       IN6_IS_ADDR_LOOPBACK(&address->six.sin6_addr);
}

/* A socket of all addresses shows those of IPv4 as ::ffff:127.0.0.1, and the other end's is one of
 * IPv4. */
static void unmap(union address *address)
{
	const struct sockaddr_in6 six = address->six;

	if (address->any.sa_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&six.sin6_addr))
		return;
	memset(address, 0, sizeof(*address));
	address->four = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = six.sin6_port};
	memcpy(&address->four.sin_addr, six.sin6_addr.s6_addr + 12, sizeof(struct in_addr));
}

static void put_address(const union address *address, __be16 *port, __be32 *bytes)
{
	if (address->any.sa_family == AF_INET) {
		*port = address->four.sin_port;
		memcpy(bytes, &address->four.sin_addr, sizeof(address->four.sin_addr));
	} else {
		*port = address->six.sin6_port;
		memcpy(bytes, &address->six.sin6_addr, sizeof(address->six.sin6_addr));
	}
}

static int take_answer(int netlink, struct inet_diag_msg *ret_socket)
{
	union {
		struct nlmsghdr head;
		char bytes[4096];
	} answer;
	ssize_t size = recv(netlink, &answer, sizeof(answer), 0);

	if (size < 0)
		return -errno;
	if (!NLMSG_OK(&answer.head, (unsigned int)size))
		return -EPROTO;
	if (answer.head.nlmsg_type != SOCK_DIAG_BY_FAMILY)
		return -ENOTCONN; /* NLMSG_ERROR: there is no such socket */
	if (answer.head.nlmsg_len < NLMSG_LENGTH(sizeof(*ret_socket)))
		return -EPROTO;
	memcpy(ret_socket, NLMSG_DATA(&answer.head), sizeof(*ret_socket));
	return 0;
}

/* Asks for the other end's socket: its own address is our peer's.  A socket that was closed belongs
 * to nobody, and the kernel says uid 0. */
static int ask(int netlink, const union address *own, const union address *peer, uid_t *ret_uid)
{
	struct question question = {
		.head = {.nlmsg_len = sizeof(question),
			 .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			 .nlmsg_flags = NLM_F_REQUEST},
		.body = {.sdiag_family = (__u8)peer->any.sa_family,
			 .sdiag_protocol = IPPROTO_TCP,
			 .idiag_states = UINT32_MAX,
			 .id.idiag_cookie = {INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE}}};
	struct inet_diag_msg socket;
	int err;

	put_address(peer, &question.body.id.idiag_sport, question.body.id.idiag_src);
	put_address(own, &question.body.id.idiag_dport, question.body.id.idiag_dst);
	if (send(netlink, &question, sizeof(question), 0) != (ssize_t)sizeof(question))
		return -errno;
	err = take_answer(netlink, &socket);
	if (err)
		return err;
	if (socket.idiag_state != TCP_ESTABLISHED || !socket.idiag_inode)
		return -ENOTCONN;
	*ret_uid = socket.idiag_uid;
	return 0;
}

static int tcp_uid(const union address *own, const union address *peer, uid_t *ret_uid)
{
	const struct timeval patience = {.tv_usec = ANSWER_MS * 1000};
	OWNED_FD int netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	uid_t uid, again;
	int err;

	if (netlink < 0 ||
	    setsockopt(netlink, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)))
		return -errno;
	/* The kernel reads state and owner one after the other.  Who closes in between has no owner
	 * at the second time: only what both times say is true. */
	err = ask(netlink, own, peer, &uid);
	if (!err)
		err = ask(netlink, own, peer, &again);
	if (err)
		return err;
	if (uid != again)
		return -ENOTCONN;
	*ret_uid = uid;
	return 0;
}

int peer_uid(int fd, uid_t *ret_uid)
{
	union address own, peer;
	socklen_t own_size = sizeof(own), peer_size = sizeof(peer);

	memset(&own, 0, sizeof(own));
	memset(&peer, 0, sizeof(peer));
	if (getsockname(fd, &own.any, &own_size) || getpeername(fd, &peer.any, &peer_size))
		return -errno;
	if (own.any.sa_family == AF_UNIX)
		return unix_uid(fd, ret_uid);
	unmap(&own);
	unmap(&peer);
	/* Both ends: a packet from outside may say that it comes from 127.0.0.1. */
	if (!is_loopback(&own) || !is_loopback(&peer))
		return -EREMOTE;
	return tcp_uid(&own, &peer, ret_uid);
}
