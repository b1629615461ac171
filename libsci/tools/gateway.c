// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* `sci gateway` relays messages between clusters. This file also starts the gateways of a job. */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launch.h"
#include "libsci/fabric/core/fabric.h"
#include "tool.h"

int tool_gateway(const struct tool_command *self, int argc, char **argv)
{
	const char *net = getenv("SCI_NET"), *node_text = getenv("SCI_NODE");
	const struct tool_option options[] = {
		{ .letter = 'n', .name = "node", .kind = TOOL_STRING, .value = &node_text,
		  .arg = "NODE", .help = "the gateway's node id ($SCI_NODE)" },
		{ .name = "net", .kind = TOOL_STRING, .value = &net, .arg = "SCI_NET",
		  .help = "addresses where it listens ($SCI_NET; sci: none)" },
		{ 0 },
	};
	int i = tool_parse(self, argc, argv, options, false), ret, sig;
	struct sci_fabric *gateway;
	unsigned int node;
	sigset_t set;

	if (!node_text || !tool_parse_node(node_text, &node))
		tool_usage(self, "which node?");
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	ret = sci_gateway_open(&gateway, (const char *const *)argv + i,
			       (unsigned int)(argc - i), node, net && *net ? net : "sci");
	if (ret)
		return tool_error("cannot open a gateway on node %u: %s", node,
				  ret == -EEXIST ? "it has one" : strerror(-ret));
	printf("gateway on node %u\n", node);
	fflush(stdout);
	sigwait(&set, &sig);
	gateway->ops->close(gateway);
	return TOOL_OK;
}

/* ---- gateways of a job ---- */

#define WORDS_MAX	32u

/* Execute `sci gateway`. @text has the words NODE SCI_NET SCI_NET_PEERS FABRIC... */
static noreturn void gateway_exec(const struct agent_job *job, char *text, int out,
			 const struct proc_origin *origin)
{
	const char *argv[WORDS_MAX] = { "sci", "gateway", "--node", "", "--net", "", NULL };
	char *word, *save = NULL;
	unsigned int n = 0;

	for (char **e = job->env; *e; e++)
		putenv(*e);
	for (word = strtok_r(text, " ", &save); word && n + 5 < WORDS_MAX;
	     word = strtok_r(NULL, " ", &save), n++) {
		if (n < 2)
			argv[3 + 2 * n] = word;
		else if (n == 2)
			setenv("SCI_NET_PEERS", strcmp(word, "-") ? word : "", 1);
		else
			argv[n + 3] = word;
	}
	dup2(out, 1);
	proc_origin_restore(origin);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	execv("/proc/self/exe", (char **)argv);
	_exit(EXIT_NOT_FOUND);
}

/* Start a gateway, and return when the gateway is open. */
static int gateway_start(const struct agent_job *job, char *text,
			 const struct proc_origin *origin)
{
	int fds[2];
	char c;
	ssize_t got;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	pid = fork();
	if (!pid)
		gateway_exec(job, text, fds[1], origin);
	close(fds[1]);
	do {
		got = pid > 0 ? read(fds[0], &c, 1) : -1;
	} while (got < 0 && pid > 0 && errno == EINTR);
	close(fds[0]);
	if (pid < 0)
		return -EAGAIN;
	return got == 1 ? 0 : -ENODEV;
}

int gateways_start(const struct agent_job *job, const struct proc_origin *origin)
{
	int ret = 0;

	for (char **g = job->gateways; g && *g && !ret; g++)
		ret = gateway_start(job, *g, origin);
	return ret;
}
