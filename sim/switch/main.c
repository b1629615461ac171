// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sim/switch/answer.h"
#include "sim/switch/conn.h"
#include "sim/switch/control.h"
#include "sim/switch/ctl.h"
#include "sim/switch/fabric.h"

static const char usage[] =
	"usage: sci-switch [-t TOPOLOGY-FILE] [-c CONTROL-SOCKET] [-s SEED] [-v] SOCKET\n"
	"       sci-switch ctl CONTROL-SOCKET COMMAND...\n";

struct options {
	const char *topology, *control, *socket;
	uint64_t seed;
	bool verbose;
};

static bool options_parse(struct options *o, int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "+t:c:s:v")) != -1) {
		switch (c) {
		case 't':
			o->topology = optarg;
			break;
		case 'c':
			o->control = optarg;
			break;
		case 's':
			if (!parse_number(optarg, UINT64_MAX, &o->seed)) {
				fabric_warn("%s: not a number", optarg);
				return false;
			}
			break;
		case 'v':
			o->verbose = true;
			break;
		default:
			return false;
		}
	}
	if (argc - optind != 1)
		return false;
	o->socket = argv[optind];
	return true;
}

static void signal_handle(struct watch *w, uint32_t events)
{
	struct signals *s = container_of(w, struct signals, watch);

	(void)events;
	s->loop->stop = true;
}

/* Let SIGTERM and SIGINT end the loop. */
static int signals_watch(struct fabric *f)
{
	sigset_t set;

	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	f->signals.loop = &f->loop;
	f->signals.watch.ready = signal_handle;
	f->signals.watch.fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (f->signals.watch.fd < 0)
		return -errno;
	return loop_watch(&f->loop, &f->signals.watch, EPOLLIN);
}

/* Raise the limit of descriptors: each node takes one, a direct node takes two. */
static void descriptor_limit_raise(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static bool main_prepare(struct fabric *f, const struct options *o, struct answer *a)
{
	int ret;

	f->seed = o->seed;
	f->verbose = o->verbose;
	ret = fabric_open(f);
	if (!ret)
		ret = signals_watch(f);
	if (ret)
		return answer_fail(a, "%s", strerror(-ret));
	if (o->topology && !topology_read(f, o->topology, a))
		return false;
	if (o->control &&
	    !listener_open(f, &f->controls, o->control, SOCK_STREAM,
			   control_accept, a))
		return false;
	return listener_open(f, &f->adapters, o->socket, SOCK_SEQPACKET,
			     conn_accept, a);
}

static bool main_run(struct fabric *f, struct answer *a)
{
	int ret;

	puts("ready");
	if (fflush(stdout))
		return answer_fail(a, "standard output: %s", strerror(errno));
	ret = loop_run(&f->loop);
	return !ret || answer_fail(a, "epoll: %s", strerror(-ret));
}

int main(int argc, char **argv)
{
	struct options o = { .seed = 1 };
	struct answer a = { 0 };
	struct fabric *f;
	bool ok;

	if (argc > 1 && !strcmp(argv[1], "ctl"))
		return ctl(argc - 2, argv + 2);
	if (!options_parse(&o, argc, argv)) {
		fputs(usage, stderr);
		return 2;
	}
	f = calloc(1, sizeof(*f));
	if (!f) {
		fabric_warn("out of memory");
		return 1;
	}
	descriptor_limit_raise();
	ok = main_prepare(f, &o, &a) && main_run(f, &a);
	if (!ok)
		fabric_warn("%s", a.error);
	answer_free(&a);
	fabric_close(f);
	free(f);
	return !ok;
}
