// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * The environment variables SCI_NET, SCI_NET_PEERS, SCI_NET_KEY and SCI_NET_RETRY.
 *
 *	SCI_NET=tcp[:HOST[:PORT]][+SLOTS]	HOST: address, name, interface or prefix
 *	SCI_NET=unix:PATH[+SLOTS]		a PATH that begins with @ is abstract
 *	SCI_NET=vsock:CID:PORT[+SLOTS]
 *	SCI_NET=sci				no sockets
 *	SCI_NET_PEERS=NODE=ADDRESS,...		or the path of a file with one a line
 *	ADDRESS may also be via:GATEWAY, with the node ID of a gateway, or sci: the fabric
 *	of the process
 */

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/vm_sockets.h>
#include <net/if.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "libsci/fabric/net/net.h"

#define RETRY_SECONDS	5u
#define RETRY_MAX	86400u
#define ADDRESS_MAX	256u

static const char want_net[] =
	"want sci, tcp[:HOST[:PORT]][+PORTS], unix:PATH or vsock:CID:PORT; see sci_net(7)";
static const char want_peers[] =
	"want NODE=ADDRESS,... or the path of a file with one of these a line";
static const char want_key[] =
	"want the path of a file of 16 to 256 bytes that only its owner can read, or hex:DIGITS";

/* ---- parsing an address ---- */

static bool number_parse(const char *text, unsigned int max, unsigned int *value)
{
	char *end;
	unsigned long v;

	if (!isdigit((unsigned char)*text))
		return false;
	v = strtoul(text, &end, 10);
	*value = (unsigned int)v;
	return !*end && v <= max;
}

static int unix_address(const char *path, struct net_addr *a)
{
	struct sockaddr_un *un = (struct sockaddr_un *)&a->sa;
	size_t len = strlen(path);

	if (!len || len + sizeof(".1023") > sizeof(un->sun_path))
		return -EINVAL;
	un->sun_family = AF_UNIX;
	memcpy(un->sun_path, path, len);
	if (*path == '@')
		un->sun_path[0] = '\0';
	a->len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
	return 0;
}

static int vsock_address(char *text, struct net_addr *a)
{
	struct sockaddr_vm *vm = (struct sockaddr_vm *)&a->sa;
	char *colon = strchr(text, ':');
	unsigned int cid, port;

	if (!colon)
		return -EINVAL;
	*colon = '\0';
	if (!*text || !strcmp(text, "any"))
		cid = VMADDR_CID_ANY;
	else if (!number_parse(text, UINT32_MAX - 1, &cid))
		return -EINVAL;
	/* messages of a handshake have 16 bits for the port */
	if (!number_parse(colon + 1, UINT16_MAX - NET_SLOTS_MAX, &port) || !port)
		return -EINVAL;
	vm->svm_family = AF_VSOCK;
	vm->svm_cid = cid;
	vm->svm_port = port;
	a->len = sizeof(*vm);
	return 0;
}

static bool addr_in_prefix(const struct sockaddr *sa, int family, const uint8_t *prefix,
			   unsigned int bits)
{
	const uint8_t *at = family == AF_INET ?
		(const uint8_t *)&((const struct sockaddr_in *)sa)->sin_addr :
		(const uint8_t *)&((const struct sockaddr_in6 *)sa)->sin6_addr;
	unsigned int mask = 0xff00u >> bits % 8 & 0xff;

	return !memcmp(at, prefix, bits / 8) &&
	       (!(bits % 8) || !((at[bits / 8] ^ prefix[bits / 8]) & mask));
}

/* Find an address of this host on the interface @host, or in the prefix "@host/bits". */
static int own_address(char *host, struct net_addr *a)
{
	char *slash = strchr(host, '/');
	uint8_t prefix[16];
	unsigned int bits = 0;
	int family = strchr(host, ':') ? AF_INET6 : AF_INET;
	struct ifaddrs *all, *i;
	int ret = -EADDRNOTAVAIL;

	if (slash) {
		*slash = '\0';
		if (!number_parse(slash + 1, family == AF_INET ? 32 : 128, &bits) ||
		    inet_pton(family, host, prefix) != 1)
			return -EINVAL;
	}
	if (getifaddrs(&all))
		return -errno;
	for (i = all; i && ret; i = i->ifa_next) {
		int have = i->ifa_addr ? i->ifa_addr->sa_family : AF_UNSPEC;

		if (slash ? have != family || !addr_in_prefix(i->ifa_addr, family, prefix, bits) :
		    (have != AF_INET && have != AF_INET6) ||
		    strcmp(i->ifa_name, host))
			continue;
		a->len = have == AF_INET ? sizeof(struct sockaddr_in) :
					   sizeof(struct sockaddr_in6);
		memcpy(&a->sa, i->ifa_addr, a->len);
		ret = 0;
	}
	freeifaddrs(all);
	return ret;
}

static int host_address(char *host, struct net_addr *a)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	struct addrinfo *found;

	if (strchr(host, '/') || if_nametoindex(host))
		return own_address(host, a);
	if (getaddrinfo(host, NULL, &hints, &found))
		return -EADDRNOTAVAIL;
	memcpy(&a->sa, found->ai_addr, found->ai_addrlen);
	a->len = found->ai_addrlen;
	freeaddrinfo(found);
	return 0;
}

/* Parse HOST, HOST:PORT or [HOST]:PORT. A HOST with colons needs the brackets. */
static int tcp_address(char *text, struct net_addr *a)
{
	char *host = text, *port = NULL;
	unsigned int number = NET_PORT;
	int ret;

	if (*text == '[') {
		char *end = strchr(text, ']');

		if (!end || (end[1] && end[1] != ':'))
			return -EINVAL;
		host = text + 1;
		port = end[1] ? end + 2 : NULL;
		*end = '\0';
	} else if ((port = strchr(text, ':'))) {
		*port++ = '\0';
	}
	if (port && (!number_parse(port, UINT16_MAX, &number) || !number))
		return -EINVAL;
	ret = host_address(host, a);
	if (!ret)
		net_addr_set_port(a, (uint16_t)number);
	return ret;
}

static bool word_matches(const char **text, const char *word)
{
	size_t len = strlen(word);

	if (strncmp(*text, word, len))
		return false;
	*text += len;
	return true;
}

static int address_parse(const char *text, struct net_addr *a)
{
	char copy[ADDRESS_MAX], *plus;

	if (strlen(text) >= sizeof(copy))
		return -EINVAL;
	a->slots = NET_SLOTS;
	strcpy(copy, text);
	plus = strrchr(copy, '+');
	if (plus && (!number_parse(plus + 1, NET_SLOTS_MAX, &a->slots) || !a->slots))
		return -EINVAL;
	if (plus)
		*plus = '\0';
	text = copy;
	if (word_matches(&text, "unix:"))
		return unix_address(text, a);
	if (word_matches(&text, "vsock:"))
		return vsock_address(copy + (text - copy), a);
	word_matches(&text, "tcp:");
	return tcp_address(copy + (text - copy), a);
}

void net_addr_set_port(struct net_addr *a, uint16_t port)
{
	if (a->sa.ss_family == AF_INET)
		((struct sockaddr_in *)&a->sa)->sin_port = htons(port);
	else if (a->sa.ss_family == AF_INET6)
		((struct sockaddr_in6 *)&a->sa)->sin6_port = htons(port);
	else if (a->sa.ss_family == AF_VSOCK)
		((struct sockaddr_vm *)&a->sa)->svm_port = port;
}

/* Return the port of the address, or 0 for AF_UNIX, which has no ports. */
uint16_t net_addr_port(const struct net_addr *a)
{
	if (a->sa.ss_family == AF_INET)
		return ntohs(((const struct sockaddr_in *)&a->sa)->sin_port);
	if (a->sa.ss_family == AF_INET6)
		return ntohs(((const struct sockaddr_in6 *)&a->sa)->sin6_port);
	if (a->sa.ss_family == AF_VSOCK)
		return (uint16_t)((const struct sockaddr_vm *)&a->sa)->svm_port;
	return 0;
}

bool net_addr_known(const struct net_addr *a)
{
	return a->len || a->via || a->below;
}

/* Set *@to to the address of the process in @slot. Return false if there is no such slot. */
bool net_addr_slot(const struct net_addr *from, unsigned int slot, struct net_addr *to)
{
	unsigned int port = net_addr_port(from) + slot;
	struct sockaddr_un *un = (struct sockaddr_un *)&to->sa;

	*to = *from;
	to->slots = 1;
	to->slot = slot;
	if (from->via || from->below)
		return slot <= NET_SLOTS_MAX;
	if (slot >= from->slots || port > UINT16_MAX)
		return false;
	if (from->sa.ss_family == AF_UNIX) {
		size_t at = from->len - offsetof(struct sockaddr_un, sun_path);

		to->len += (socklen_t)snprintf(un->sun_path + at,
					       sizeof(un->sun_path) - at, ".%u", slot);
	} else {
		net_addr_set_port(to, (uint16_t)port);
	}
	return true;
}

/* ---- peers ---- */

static bool node_id_parse(const char *text, unsigned int *node)
{
	return number_parse(text, SCI_NODE_MAX, node) && *node && *node % SCI_NODE_STEP == 0;
}

/* Parse via:GATEWAY: the node is behind a gateway. */
static int via_address(const char *text, struct net_route *r)
{
	r->addr.node = r->node;
	return node_id_parse(text, &r->addr.via) && r->addr.via != r->node ? 0 : -EINVAL;
}

static int route_add(struct net *net, char *text)
{
	char *equals = strchr(text, '=');
	const char *way;
	struct net_route *r;
	int ret = 0;

	if (!equals)
		return -EINVAL;
	way = equals + 1;
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	list_add_tail(&r->link, &net->routes);
	*equals = '\0';
	if (!node_id_parse(text, &r->node))
		return -EINVAL;
	if (!strcmp(way, "sci"))
		r->addr = (struct net_addr){ .node = r->node, .below = true };
	else
		ret = word_matches(&way, "via:") ? via_address(way, r) :
						   address_parse(way, &r->addr);
	*equals = '=';
	return ret;
}

static int routes_read_file(struct net *net, const char *path)
{
	char line[ADDRESS_MAX + 16];
	FILE *f = fopen(path, "re");
	int ret = 0;

	if (!f)
		return -errno;
	while (!ret && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "# \t\n")] = '\0';
		if (*line)
			ret = route_add(net, line);
		if (ret)
			sci_env_bad("SCI_NET_PEERS", line, want_peers);
	}
	fclose(f);
	return ret;
}

static int routes_read(struct net *net, const char *env)
{
	char *copy, *save, *word;
	int ret = 0;

	if (!env || !*env)
		return 0;
	if (!strchr(env, '=')) {
		ret = routes_read_file(net, env);
		return ret ? sci_env_bad("SCI_NET_PEERS", env, want_peers) : 0;
	}
	copy = strdup(env);
	if (!copy)
		return -ENOMEM;
	for (word = strtok_r(copy, ",", &save); word && !ret;
	     word = strtok_r(NULL, ",", &save)) {
		ret = route_add(net, word);
		if (ret && ret != -ENOMEM)
			ret = sci_env_bad("SCI_NET_PEERS", word, want_peers);
	}
	free(copy);
	return ret;
}

struct net_route *net_route_find(struct net *net, unsigned int node)
{
	struct list *pos, *n;

	list_for_each_safe(pos, n, &net->routes) {
		struct net_route *r = container_of(pos, struct net_route, link);

		if (r->node == node)
			return r;
	}
	return NULL;
}

/*
 * Set *@to to route number @turn to a node. Direct routes come first, then the gateways.
 * Processes of different nodes start with different gateways. Return false if there is no such
 * route.
 */
bool net_route_addr(struct net *net, unsigned int node, unsigned int turn,
		    struct net_addr *to)
{
	unsigned int count[2] = { 0, 0 }, at;
	struct list *pos, *n;
	bool via;

	list_for_each_safe(pos, n, &net->routes) {
		struct net_route *r = container_of(pos, struct net_route, link);

		count[r->addr.via != 0] += r->node == node;
	}
	if (turn >= count[0] + count[1])
		return false;
	via = turn >= count[0];
	at = via ? (turn - count[0] + net->node / SCI_NODE_STEP) % count[1] : turn;
	list_for_each_safe(pos, n, &net->routes) {
		struct net_route *r = container_of(pos, struct net_route, link);

		if (r->node == node && (r->addr.via != 0) == via && !at--) {
			*to = r->addr;
			to->routed = true;
			to->turn = turn;
			break;
		}
	}
	return true;
}

void net_routes_free(struct net *net)
{
	struct list *l;

	while ((l = list_pop(&net->routes)))
		free(container_of(l, struct net_route, link));
}

/* ---- key and retry time ---- */

#define KEY_MIN		16

/* Parse the key from `sci run`. Only processes of the same user can read the environment. */
static int key_parse(struct net *net, const char *hex)
{
	size_t n = strlen(hex) / 2;

	if (strlen(hex) % 2 || n < KEY_MIN || n > sizeof(net->key))
		return -EINVAL;
	for (size_t i = 0; i < n; i++) {
		unsigned int byte;

		if (!isxdigit((unsigned char)hex[2 * i]) ||
		    !isxdigit((unsigned char)hex[2 * i + 1]) ||
		    sscanf(hex + 2 * i, "%2x", &byte) != 1)
			return -EINVAL;
		net->key[i] = (uint8_t)byte;
	}
	net->key_len = n;
	return 0;
}

static int key_read(struct net *net)
{
	const char *path = getenv("SCI_NET_KEY");
	struct stat st;
	ssize_t n = -1;
	int fd;

	if (!path || !*path)
		return sci_env_bad("SCI_NET_KEY", "", want_key);
	if (word_matches(&path, "hex:"))
		return key_parse(net, path) ? sci_env_bad("SCI_NET_KEY", "hex:...", want_key) : 0;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && !fstat(fd, &st) && !(st.st_mode & 077))
		n = read(fd, net->key, sizeof(net->key));
	if (fd >= 0)
		close(fd);
	if (n < KEY_MIN)
		return sci_env_bad("SCI_NET_KEY", path, want_key);
	net->key_len = (size_t)n;
	return 0;
}

/*
 * Read the environment. @spec: the value of SCI_NET; @peers: in place of the value of
 * SCI_NET_PEERS, or NULL
 */
int net_read_environment(struct net *net, const char *spec, const char *peers)
{
	unsigned int retry = RETRY_SECONDS;
	int ret;

	if (strcmp(spec, "tcp") && strcmp(spec, "sci")) {
		const char *rest = spec;

		if (!word_matches(&rest, "tcp:") && !word_matches(&rest, "unix:") &&
		    !word_matches(&rest, "vsock:"))
			return sci_env_bad("SCI_NET", spec, want_net);
		ret = address_parse(spec, &net->listen);
		if (ret)
			return sci_env_bad("SCI_NET", spec, ret == -EADDRNOTAVAIL ?
				"this host has no such address, name or interface" : want_net);
	}
	ret = sci_env_number("SCI_NET_RETRY", &retry, 10, 0, RETRY_MAX,
			     "want seconds from 0 to 86400");
	net->retry_ms = retry * 1000;
	ret = ret ? ret : key_read(net);
	return ret ? ret : routes_read(net, peers ? peers : getenv("SCI_NET_PEERS"));
}
