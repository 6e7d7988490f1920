/* SPDX-License-Identifier: BSD-2-Clause */
#include "serve/peer.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"

/* ---- the kernel's tables of sockets ---- */

#define READ_BYTES 65536U
#define WORD_DIGITS 8U /* of a part of an address: "%08X" */
#define PORT_DIGITS 4U
#define STATE_DIGITS 2U
#define FIELDS_BEFORE_UID 3U /* tx_queue:rx_queue, tr:tm->when, retrnsmt */

struct text {
	const char *at, *end;
};

static void skip_blanks(struct text *text)
{
	while (text->at < text->end && *text->at == ' ')
		text->at++;
}

static void skip_field(struct text *text)
{
	skip_blanks(text);
	while (text->at < text->end && *text->at != ' ')
		text->at++;
}

static bool take_char(struct text *text, char wanted)
{
	if (text->at == text->end || *text->at != wanted)
		return false;
	text->at++;
	return true;
}

/* Takes exactly so many digits of base 16. */
static bool take_hex(struct text *text, unsigned int digits, uint32_t *ret_number)
{
	static const char all[] = "0123456789ABCDEF";
	uint32_t number = 0;

	if ((size_t)(text->end - text->at) < digits)
		return false;
	for (unsigned int i = 0; i < digits; i++) {
		const char *digit = memchr(all, text->at[i], sizeof(all) - 1);

		if (!digit)
			return false;
		number = number << 4 | (uint32_t)(digit - all);
	}
	text->at += digits;
	*ret_number = number;
	return true;
}

static bool take_decimal(struct text *text, uint64_t most, uint64_t *ret_number)
{
	const char *begin;
	uint64_t number = 0;

	skip_blanks(text);
	begin = text->at;
	for (; text->at < text->end && *text->at >= '0' && *text->at <= '9'; text->at++) {
		const uint64_t digit = (uint64_t)(*text->at - '0');

		if (number > (most - digit) / 10)
			return false;
		number = number * 10 + digit;
	}
	*ret_number = number;
	return text->at > begin && (text->at == text->end || *text->at == ' ');
}

/* Takes "0100007F:1F90", or four such words for IPv6.  Each word is printed as a number of the
 * host's, so that its bytes in memory are the address. */
static bool take_end(struct text *text, struct socket_end *ret_end)
{
	struct socket_end end = {.port = 0};
	uint32_t port;

	skip_blanks(text);
	if (!take_hex(text, WORD_DIGITS, &end.address[0]))
		return false;
	if (text->at < text->end && *text->at != ':')
		for (unsigned int i = 1; i < 4; i++)
			if (!take_hex(text, WORD_DIGITS, &end.address[i]))
				return false;
	if (!take_char(text, ':') || !take_hex(text, PORT_DIGITS, &port))
		return false;
	end.port = (uint16_t)port;
	*ret_end = end;
	return true;
}

int socket_table_parse(const char *line, size_t size, struct socket_row *ret_row)
{
	struct text text = {.at = line, .end = memchr(line, '\n', size) ?: line + size};
	struct socket_row row;
	uint64_t number, uid;

	skip_field(&text); /* its number in this reading */
	if (!take_end(&text, &row.own) || !take_end(&text, &row.peer))
		return -EBADMSG;
	skip_blanks(&text);
	if (!take_hex(&text, STATE_DIGITS, &row.state))
		return -EBADMSG;
	for (unsigned int i = 0; i < FIELDS_BEFORE_UID; i++)
		skip_field(&text);
	if (!take_decimal(&text, UINT32_MAX, &uid) || !take_decimal(&text, UINT64_MAX, &number) ||
	    !take_decimal(&text, UINT64_MAX, &row.inode))
		return -EBADMSG;
	row.uid = (uid_t)uid;
	*ret_row = row;
	return 0;
}

static bool is_end(const struct socket_end *a, const struct socket_end *b)
{
	return a->port == b->port && !memcmp(a->address, b->address, sizeof(a->address));
}

struct search {
	const struct socket_end *own, *peer;
	struct socket_row row;
	bool found;
};

/* Looks at all whole lines.  Returns how many bytes these are. */
static size_t look(struct search *search, const char *text, size_t size)
{
	size_t used = 0;

	while (!search->found) {
		const char *end = memchr(text + used, '\n', size - used);

		if (!end)
			break;
		search->found = !socket_table_parse(text + used, (size_t)(end - text) - used,
						    &search->row) &&
				is_end(&search->row.own, search->own) &&
				is_end(&search->row.peer, search->peer);
		used = (size_t)(end - text) + 1;
	}
	return used;
}

int socket_table_find(const char *path, const struct socket_end *own, const struct socket_end *peer,
		      struct socket_row *ret_row)
{
	struct search search = {.own = own, .peer = peer};
	char text[READ_BYTES + SOCKET_TABLE_LINE_BYTES];
	OWNED_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t kept = 0, all = 0;

	if (fd < 0)
		return -errno;
	while (!search.found && all < SOCKET_TABLE_MAX_BYTES) {
		const ssize_t got = read(fd, text + kept, READ_BYTES);
		size_t used;

		if (got < 0)
			return -errno;
		if (!got)
			return -ENOENT;
		all += (size_t)got;
		used = look(&search, text, kept + (size_t)got);
		kept += (size_t)got - used;
		if (!search.found && kept > SOCKET_TABLE_LINE_BYTES)
			return -EBADMSG; /* that is no such table */
		if (!search.found)
			memmove(text, text + used, kept);
	}
	if (!search.found)
		return -EFBIG;
	*ret_row = search.row;
	return 0;
}

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

/* What a table says of the other end's socket. */
struct owner {
	bool is_open; /* connected, and a program has it open: a closed one is shown as uid 0's */
	uid_t uid;
};

static int ask_diag(const union address *own, const union address *peer, struct owner *ret_owner)
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

static void put_end(const union address *address, struct socket_end *ret_end)
{
	struct socket_end end = {.port = 0};
	__be16 port;

	put_address(address, &port, end.address);
	end.port = ntohs(port);
	*ret_end = end;
}

/* The address of IPv6 that stands for one of IPv4: RFC 4291, section 2.5.5.2. */
static void map_end(struct socket_end *end)
{
	end->address[3] = end->address[0];
	end->address[2] = htonl(0xffff);
	end->address[0] = 0;
}

static int read_table(const union address *own, const union address *peer, struct owner *ret_owner)
{
	const bool is_four = peer->any.sa_family == AF_INET;
	struct socket_end own_end, peer_end;
	struct socket_row row;
	int err;

	put_end(own, &own_end);
	put_end(peer, &peer_end);
	err = socket_table_find(is_four ? "/proc/self/net/tcp" : "/proc/self/net/tcp6", &peer_end,
				&own_end, &row);
	/* A client's socket of IPv6, as Java's are, has connected to ::ffff:127.0.0.1. */
	if (err == -ENOENT && is_four) {
		map_end(&own_end);
		map_end(&peer_end);
		err = socket_table_find("/proc/self/net/tcp6", &peer_end, &own_end, &row);
	}
	if (err)
		return err;
	ret_owner->is_open = row.state == TCP_ESTABLISHED && row.inode;
	ret_owner->uid = row.uid;
	return 0;
}

static int tcp_uid(const union address *own, const union address *peer, enum peer_source source,
		   uid_t *ret_uid)
{
	int (*const find_owner)(const union address *, const union address *, struct owner *) =
		source == PEER_PROC ? read_table : ask_diag;
	struct owner first, again;
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
