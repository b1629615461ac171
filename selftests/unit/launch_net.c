// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Tests the ports of a job of `sci run --net`. The program includes the source file. */
#include "selftests/harness.h"

#include "libsci/tools/launch_net.c"	/* NOLINT(bugprone-suspicious-include) */

#define CLIENT_PORT_FIRST	32768u	/* of Linux, by default */
#define HOSTS_MAX		64

int tool_error(const char *fmt, ...)
{
	(void)fmt;
	return TOOL_FAILED;
}

/* Get the ports on which the ranks of @h listen. */
static void ports_get(const struct launch *l, const struct launch_host *h, unsigned int *first,
		      unsigned int *count)
{
	char *env[NET_ENVIRONMENT];
	unsigned int n = 0;

	CHECK_EQ(net_environment(l, h, env, &n), 0);
	CHECK_EQ(n, 3);
	CHECK_EQ(sscanf(env[1], "SCI_NET=tcp:host:%u+%u", first, count), 2);
	for (unsigned int i = 0; i < n; i++)
		free(env[i]);
}

/* Check the ports of a job with @ranks on each of @hosts, for some first ports of the job. */
static void job_check(unsigned int hosts, unsigned int ranks)
{
	struct launch_host host[HOSTS_MAX] = { 0 };
	struct launch l = { .net = "tcp", .hosts = host, .nhosts = hosts, .size = hosts * ranks };
	struct boot_place *places = calloc(l.size, sizeof(*places));
	unsigned int first[HOSTS_MAX], count[HOSTS_MAX];

	CHECK(places);
	l.places = places;
	for (unsigned int i = 0; i < l.size; i++)
		places[i] = (struct boot_place){ .host = i / ranks, .node = 4 * (1 + i / ranks) };
	for (unsigned int i = 0; i < hosts; i++)
		host[i] = (struct launch_host){ .name = "host", .nranks = ranks };
	for (unsigned int at = 0; at < 4; at++) {
		l.net_port = NET_PORT_FIRST + at * (NET_PORTS - 1) / 3;
		for (unsigned int i = 0; i < hosts; i++) {
			ports_get(&l, &host[i], &first[i], &count[i]);
			CHECK(first[i] >= NET_PORT_FIRST);
			CHECK(first[i] + count[i] <= CLIENT_PORT_FIRST);
			CHECK(count[i] >= ranks * NET_ENDPOINTS || count[i] == NET_PORTS_MAX);
		}
		for (unsigned int i = 0; i < hosts; i++)
			for (unsigned int k = 0; k < i; k++)
				CHECK(first[i] + count[i] <= first[k] ||
				      first[k] + count[k] <= first[i]);
	}
	free(places);
}

TEST(hosts_have_different_ports_below_those_of_clients)
{
	job_check(2, 1);
	job_check(9, 28);
	job_check(16, 16);
	job_check(64, 32);
	job_check(8, 256);
	job_check(8, 1000);
}
