/* SPDX-License-Identifier: BSD-2-Clause */
#include "serve/peer.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"

#define ANSWER_MS 200 /* the kernel answers in the same call */
#define READ_BYTES 65536U
#define LINE_BYTES 512U /* of a table */

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
	return address->any.sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&address->six.sin6_addr);
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

/* Returns 0; what the kernel says instead of a socket: -ENOENT, there is none such, or none of
 * TCP is known at all; -EPROTO; -errno. */
static int take_answer(int netlink, struct inet_diag_msg *ret_socket)
{
	union {
		struct nlmsghdr head;
		char bytes[4096];
	} answer;
	ssize_t size = recv(netlink, &answer, sizeof(answer), 0);
	struct nlmsgerr error;

	if (size < 0)
		return -errno;
	if (!NLMSG_OK(&answer.head, (unsigned int)size))
		return -EPROTO;
	if (answer.head.nlmsg_type == NLMSG_ERROR &&
	    answer.head.nlmsg_len >= NLMSG_LENGTH(sizeof(error))) {
		memcpy(&error, NLMSG_DATA(&answer.head), sizeof(error));
		return error.error < 0 ? error.error : -EPROTO;
	}
	if (answer.head.nlmsg_type != SOCK_DIAG_BY_FAMILY ||
	    answer.head.nlmsg_len < NLMSG_LENGTH(sizeof(*ret_socket)))
		return -EPROTO;
	memcpy(ret_socket, NLMSG_DATA(&answer.head), sizeof(*ret_socket));
	return 0;
}

static int open_netlink(int *ret_fd)
{
	const struct timeval patience = {.tv_usec = ANSWER_MS * 1000};
	OWNED_FD int netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);

	if (netlink < 0 ||
	    setsockopt(netlink, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)))
		return -errno;
	*ret_fd = TAKE_FD(netlink);
	return 0;
}

/* Asks for the socket whose own address is `end`, and its peer's `other`. */
static int ask(int netlink, const union address *end, const union address *other,
	       struct inet_diag_msg *ret_socket)
{
	struct question question = {
		.head = {.nlmsg_len = sizeof(question),
			 .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			 .nlmsg_flags = NLM_F_REQUEST},
		.body = {.sdiag_family = (__u8)end->any.sa_family,
			 .sdiag_protocol = IPPROTO_TCP,
			 .idiag_states = UINT32_MAX,
			 .id.idiag_cookie = {INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE}}};

	put_address(end, &question.body.id.idiag_sport, question.body.id.idiag_src);
	put_address(other, &question.body.id.idiag_dport, question.body.id.idiag_dst);
	if (send(netlink, &question, sizeof(question), 0) != (ssize_t)sizeof(question))
		return -errno;
	return take_answer(netlink, ret_socket);
}

static int ask_diag(const union address *own, const union address *peer,
		    struct socket_owner *ret_owner)
{
	OWNED_FD int netlink = -1;
	struct inet_diag_msg socket;
	int err = open_netlink(&netlink);

	if (!err)
		err = ask(netlink, peer, own, &socket);
	if (err)
		return err;
	ret_owner->is_open = socket.idiag_state == TCP_ESTABLISHED && socket.idiag_inode;
	ret_owner->uid = socket.idiag_uid;
	return 0;
}

/* Writes an address as the tables do: a number of the host's for each word of it.  is_six: one of
 * IPv4 as the address of IPv6 that stands for it (RFC 4291, section 2.5.5.2). */
static size_t put_end(const union address *address, bool is_six, char *text, size_t size)
{
	__be32 word[4] = {0};
	__be16 port;

	put_address(address, &port, word);
	if (!is_six)
		return (size_t)snprintf(text, size, " %08X:%04X", word[0], ntohs(port));
	if (address->any.sa_family == AF_INET) {
		word[3] = word[0];
		word[2] = htonl(0xffff);
		word[0] = 0;
	}
	return (size_t)snprintf(text, size, " %08X%08X%08X%08X:%04X", word[0], word[1], word[2],
				word[3], ntohs(port));
}

/* The words behind the ends: state, queues, timer, retransmissions, user, timeout, inode. */
static int parse_rest(const char *text, struct socket_owner *ret_owner)
{
	unsigned int state;
	int64_t uid, inode;

	if (sscanf(text, "%x %*s %*s %*s %" SCNd64 " %*u %" SCNd64, &state, &uid, &inode) != 3 ||
	    uid < 0 || uid > UINT32_MAX)
		return -EBADMSG;
	ret_owner->is_open = state == TCP_ESTABLISHED && inode;
	ret_owner->uid = (uid_t)uid;
	return 0;
}

int socket_table_find(const char *path, const char *ends, struct socket_owner *ret_owner)
{
	char line[LINE_BYTES];
	OWNED_FILE FILE *file = fopen(path, "re");
	const char *found;

	if (!file)
		return -errno;
	setvbuf(file, NULL, _IOFBF, READ_BYTES);
	for (size_t all = 0; all < SOCKET_TABLE_MAX_BYTES; all += strlen(line)) {
		if (!fgets(line, sizeof(line), file))
			return ferror(file) ? -EIO : -ENOENT;
		if (!strchr(line, '\n'))
			return -EBADMSG; /* that is no such table */
		found = strstr(line, ends);
		if (found)
			return parse_rest(found + strlen(ends), ret_owner);
	}
	return -EFBIG;
}

static int find_in(const char *path, bool is_six, const union address *own,
		   const union address *peer, struct socket_owner *ret_owner)
{
	char ends[SOCKET_ENDS_CHARS];
	const size_t size = put_end(peer, is_six, ends, sizeof(ends));

	put_end(own, is_six, ends + size, sizeof(ends) - size);
	return socket_table_find(path, ends, ret_owner);
}

static int read_table(const union address *own, const union address *peer,
		      struct socket_owner *ret_owner)
{
	const bool is_four = peer->any.sa_family == AF_INET;
	int err = is_four ? find_in("/proc/self/net/tcp", false, own, peer, ret_owner) : -ENOENT;

	/* A client's socket of IPv6, as Java's are, has connected to ::ffff:127.0.0.1. */
	return err == -ENOENT ? find_in("/proc/self/net/tcp6", true, own, peer, ret_owner) : err;
}

static int tcp_uid(const union address *own, const union address *peer, enum peer_source source,
		   uid_t *ret_uid)
{
	int (*const find_owner)(const union address *, const union address *,
				struct socket_owner *) =
		source == PEER_PROC ? read_table : ask_diag;
	struct socket_owner first, again;
	int err = find_owner(own, peer, &first);

	/* The kernel reads state and owner one after the other.  Who closes in between has no owner
	 * at the second time: only what both times say is true. */
	if (!err)
		err = find_owner(own, peer, &again);
	if (err)
		return err == -ENOENT ? -ENOTCONN : err;
	if (!first.is_open || !again.is_open || first.uid != again.uid)
		return -ENOTCONN;
	*ret_uid = first.uid;
	return 0;
}

enum peer_source peer_find_source(void)
{
	union address own = {
		.four = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}};
	const union address nobody = {.four.sin_family = AF_INET};
	OWNED_FD int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), netlink = -1;
	socklen_t size = sizeof(own);
	struct inet_diag_msg found;

	/* A host without IPv4 on loopback: nothing can be found out. */
	if (listener < 0 || bind(listener, &own.any, sizeof(own.four)) || listen(listener, 1) ||
	    getsockname(listener, &own.any, &size))
		return PEER_SOCK_DIAG;
	return open_netlink(&netlink) || ask(netlink, &own, &nobody, &found) ? PEER_PROC
									     : PEER_SOCK_DIAG;
}

int peer_uid(int fd, enum peer_source source, uid_t *ret_uid)
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
	return tcp_uid(&own, &peer, source, ret_uid);
}
