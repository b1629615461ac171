// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Message authentication codes: HMAC-SHA-256 of libcrypto, which is loaded when it is needed. */

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "libsci/fabric/net/net.h"

/* Function types of libcrypto, so that a build of libsci does not need libcrypto's headers. */
typedef const void *(*digest_fn)(void);
typedef unsigned char *(*hmac_fn)(const void *digest, const void *key, int key_len,
				  const unsigned char *data, size_t len,
				  unsigned char *mac, unsigned int *mac_len);

static struct {
	digest_fn sha256;
	hmac_fn hmac;
} crypto;

static void auth_load(void)
{
	static const char *const names[] = { "libcrypto.so.3", "libcrypto.so.1.1" };
	void *lib = NULL;

	for (size_t i = 0; i < 2 && !lib; i++)
		lib = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
	if (!lib)
		return;
	crypto.sha256 = (digest_fn)dlsym(lib, "EVP_sha256");
	crypto.hmac = (hmac_fn)dlsym(lib, "HMAC");
}

/* Load libcrypto. Return: 0; -ENOSYS, after a message: libcrypto is not installed. */
int net_auth_init(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, auth_load);
	if (crypto.sha256 && crypto.hmac)
		return 0;
	fprintf(stderr, "libsci: SCI_NET needs libcrypto.so.3, which is not there (install Debian's libssl3)\n");
	return -ENOSYS;
}

int net_random(void *buf, size_t len)
{
	return getrandom(buf, len, 0) == (ssize_t)len ? 0 : -EIO;
}

/* Room for all messages of a handshake together. */
#define TEXT_MAX	512u

void net_mac(const struct net *net, const char *role, const struct iovec *parts,
	     size_t n, uint8_t mac[NET_MAC])
{
	uint8_t text[TEXT_MAX];
	size_t len = strlen(role);
	unsigned int mac_len = NET_MAC;

	/* NOLINTNEXTLINE(bugprone-not-null-terminated-result): its length is known */
	memcpy(text, role, len);
	for (size_t i = 0; i < n; i++) {
		memcpy(text + len, parts[i].iov_base, parts[i].iov_len);
		len += parts[i].iov_len;
	}
	/* after an error of HMAC(), make a code that the other side does not accept */
	if (!crypto.hmac(crypto.sha256(), net->key, (int)net->key_len, text, len, mac,
			 &mac_len) && net_random(mac, NET_MAC))
		memset(mac, 0, NET_MAC);
}

/* Compare in a time that does not depend on the position of a difference. */
bool net_mac_equal(const uint8_t *a, const uint8_t *b)
{
	unsigned int differ = 0;

	for (size_t i = 0; i < NET_MAC; i++)
		differ |= a[i] ^ b[i];
	return !differ;
}
