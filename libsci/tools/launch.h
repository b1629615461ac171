/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: `sci run -n`: the processes of a job
 *
 *	sci run -n		the front: places ranks, serves boot.h, prints
 *	  guard			`sci run --agent`, one on each machine
 *	    agent		starts ranks, forwards frames
 *	      rank ...		each the leader of a process group
 *
 * The front starts the guard of this machine; a remote shell starts the guard of another.
 * In both cases standard input and output of the guard, which the agent inherits, carry
 * the frames below and those of boot_wire.h.
 *
 * Ends of processes: guard and agent are subreapers: processes that a rank leaves behind become
 * their children.  The agent kills all of its descendants when the connection to the
 * front ends, when the guard dies (PR_SET_PDEATHSIG), and at the end of the job.  The
 * guard does the same when the agent dies, and removes the files of the PMIx server.  The
 * kernel kills the ranks when the agent dies (PR_SET_PDEATHSIG).
 *
 * Lost machines: a remote shell may stay open and silent when its machine has lost power or the
 * network. So the front and the agents of other machines send keep-alive frames every second
 * (KEEPALIVE_NS), and count the seconds in which no byte arrives:
 *
 *	front	after SCI_HOSTS_TIMEOUT seconds (default HOST_TIMEOUT) the host is lost, and its ranks
 *		are dead. The default is twice the time for which descendants_kill() may block an
 *		agent, and long enough for a busy machine.
 *	agent	after AGENT_PATIENCE times as many seconds the front is lost, and the agent kills its
 *		descendants. The front has then reported the ranks as dead long ago.
 *
 * While an agent handles AGENT_START it has AGENT_PATIENCE times as many seconds for each rank: a
 * file system may delay execve(). Each side counts ticks of its own loop: after a stop or a delay
 * of its own process it reads the bytes that have arrived, and then counts one second. Before
 * SIGTSTP stops the front, AGENT_PING with arg 0 tells the agents to wait without a limit.
 */
#ifndef LIBSCI_TOOLS_LAUNCH_H
#define LIBSCI_TOOLS_LAUNCH_H

#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "libsci/team/boot_server.h"
#include "libsci/team/boot_wire.h"
#include "tool.h"

/* Exit codes of shells. */
#define EXIT_CANNOT_RUN		126
#define EXIT_NOT_FOUND		127

#define AGENT_VERSION		4	/* of the frames between front and agent */

/* Types of frames from BOOT_AGENT on. */
enum agent_type {
	/* frames from the front to an agent */
	AGENT_START = BOOT_AGENT,	/* struct agent_job, packed */
	AGENT_SIGNAL,			/* arg: signal to send to the process group of a rank */
	AGENT_INPUT,			/* standard input of a rank; no bytes: its end */
	/*
	 * arg: ms between SIGTERM and SIGKILL. An agent with gateways also gets it when all ranks
	 * of the job have ended: until then ranks of other hosts may need the gateways.
	 */
	AGENT_END,
	AGENT_CREDIT,			/* arg: bytes of output that were written */
	AGENT_PING,			/* arg: limit of seconds without a byte; 0: none */
	/* frames from an agent to the front */
	AGENT_READY,			/* arg: AGENT_VERSION; node ids of adapters */
	AGENT_ALIVE,			/* arg: 1: AGENT_START has been handled */
	AGENT_ERROR,			/* arg: exit status; text */
	/* arg: 1 or 2, the descriptor; whole lines, or the last bytes */
	AGENT_OUTPUT,
	AGENT_TOOK,			/* arg: bytes of input that were written */
	AGENT_EXIT,			/* arg: status as of waitpid() */
	AGENT_DONE			/* all processes have ended */
};

/* bytes of output that may be sent without credit */
#define AGENT_OUTPUT_WINDOW	(256 << 10)
#define AGENT_INPUT_WINDOW	(64 << 10)
#define AGENT_LINE_MAX		(64 << 10)	/* longer lines are cut */
#define AGENT_GRACE_MS		3000		/* ms between SIGTERM and SIGKILL */
#define KEEPALIVE_NS		1000000000u	/* ns between two keep-alive frames */
#define HOST_TIMEOUT		10u		/* seconds without a byte from an agent */
#define HOST_TIMEOUT_MIN	2u		/* the two clocks are not in step */
#define HOST_TIMEOUT_MAX	86400u
#define AGENT_PATIENCE		3u		/* limit of the agents in limits of the front */

/* The ranks of one machine (agent_rank), and the program that they run (agent_job). */
struct agent_rank {
	uint32_t rank;
	uint32_t node;			/* 0: do not set SCI_NODE */
};

struct agent_job {
	uint32_t size;			/* ranks of the job */
	uint32_t nranks;		/* ranks of this machine */
	uint32_t bind;			/* bind each rank to a core */
	uint32_t interactive;		/* send output of rank 0 at once, not in lines */
	uint32_t keep;			/* other ranks continue when a rank dies */
	uint32_t pmix;			/* give the ranks a PMIx server */
	struct agent_rank *ranks;
	char *cwd;			/* working directory; "": unchanged */
	char **argv;
	char **env;			/* NAME=VALUE to set */
	char **gateways;		/* words of each gateway: see gateway_exec() */
};

/* Pack and unpack a job; job_free() frees it. job_unpack(): -EPROTO, -ENOMEM. */
int job_pack(const struct agent_job *job, char **data, size_t *len);
int job_unpack(struct agent_job *job, const void *data, size_t len);
void job_free(struct agent_job *job);
/* Free a vector of strings and the strings; NULL is ignored. */
void strings_free(char **s);

/* ---- processes (launch_process.c) ---- */

/* An output stream of a rank, with the last line until its newline has arrived. */
struct proc_output {
	int fd;				/* -1: ended */
	size_t len;
	char *line;			/* AGENT_LINE_MAX */
};

struct proc {
	struct agent_rank who;
	pid_t pid;			/* 0: not started, or ended */
	struct boot_stream boot;
	struct proc_output output[2];
	int input;			/* -1: none, or ended */
	bool input_end;			/* no more bytes follow */
	struct boot_bytes in;		/* bytes that the rank has not read yet */
};

/* State of the process at the start of the command, restored in its children. */
struct proc_origin {
	sigset_t mask;
	struct sigaction pipe, child;
	unsigned long nofile;
	pid_t parent;
};

/*
 * Save the state, then ignore SIGPIPE, stop ignoring SIGCHLD, and raise the limit of descriptors.
 * While SIGCHLD is ignored, waitid() does not report children.
 */
void proc_origin_save(struct proc_origin *o);
/* Restore the state, in a child before execve(). */
void proc_origin_restore(const struct proc_origin *o);

/**
 * proc_start() - start a rank
 * @local: number of the rank on this machine
 * @env: additional variables of the rank; NULL: none
 *
 * Return: 0, or -errno of the failed call, which may be execve().
 */
int proc_start(struct proc *p, const struct agent_job *job, unsigned int local,
	       char *const *env, const struct proc_origin *origin);

/*
 * Kill all descendants of this process, repeatedly until there are none, for 5 seconds at most.
 * Context: this process is a subreaper.
 */
void descendants_kill(void);

/*
 * Start a PMIx server for the ranks of @job, which are all on this machine. (launch_pmix.c)
 * @dir: receives the directory of the server's files, if the directory was created
 * Return: NULL, or the text of an error.
 */
const char *pmix_start(const struct agent_job *job, char dir[PATH_MAX]);
/* Add the variables by which a rank finds the server to *@env, a vector from malloc(). */
int pmix_rank_environment(unsigned int rank, char ***env);
/*
 * Remove the files that the ranks have registered with the server, if there is a server. Context:
 * all ranks have ended.
 */
void pmix_stop(void);
void pmix_directory_remove(const char *dir);

/* Start the gateways of this machine, and return when all are open. (gateway.c) */
int gateways_start(const struct agent_job *job, const struct proc_origin *origin);

/* Bind this process to the core for rank number @local of a machine. */
void cpu_bind(unsigned int local);

/* ---- output (launch_output.c) ---- */

struct outlet {
	int fd;				/* -1: writing has failed */
	struct boot_bytes bytes;
	bool tag;
	bool open;			/* the last line of @rank has no newline yet */
	unsigned int rank;
};

struct outlets {
	struct outlet outlet[2];
	/* the outlets of descriptors 1 and 2; one outlet if both are the same file */
	struct outlet *of[3];
};

void outlets_init(struct outlets *o, bool tag);
void outlets_free(struct outlets *o);
/* Queue output of a rank; each line gets its tag. Return: 0, or -ENOMEM: all output is lost. */
int outlet_add(struct outlet *o, unsigned int rank, const char *data, size_t len);
/*
 * Write queued output, after poll() has reported that a write does not block. Return: 0, or -errno
 * if the output is lost. A reader that has closed the pipe wants no output: 0.
 */
int outlet_write(struct outlet *o);
size_t outlets_queued(const struct outlets *o);

/* ---- the front (launch_front.c) ---- */

struct launch_host {
	const char *name;		/* NULL: this machine, no remote shell */
	unsigned int slots;		/* 0: not given */
	unsigned int nranks;
	unsigned int running;		/* ranks that have not ended */
	pid_t pid;			/* guard or remote shell; 0: has ended */
	struct boot_stream stream;
	bool ready, done;
	bool starting;			/* the agent has not handled AGENT_START yet */
	unsigned int silent;		/* keep-alive ticks since the last byte */
	/* number of @nodes, the node ids of the host's adapters; 0: no adapter */
	unsigned int nnodes;
	unsigned int *nodes;
	unsigned int owed;		/* bytes of received output without credit */
};

#define NET_PORT_FIRST	16384u		/* ports of --net are below those of clients */
#define NET_PORTS	8192u
#define NET_PORTS_MAX	1024u		/* limit of ports on one machine */
#define NET_ENDPOINTS	4u		/* of a rank: for its team and front-ends */

struct launch {
	struct launch_host *hosts;
	unsigned int nhosts;
	unsigned int size;
	unsigned int nodes;		/* nodes of each host */
	bool slots_given;
	bool tag, keep, bind, pmix;
	const char *cluster;		/* NULL: not given */
	const char *net;		/* SCI_NET of the hosts; NULL: none */
	unsigned int gateways;		/* number on each host; without @net, in all */
	const char *preload;		/* the ranks are nodes of --threads; NULL: they are not */
	bool failover;			/* with @net: the fabric is a way, too */
	unsigned int timeout;		/* seconds after which a silent host is lost; 0: never */
	bool clusters;			/* hosts are clusters of this machine */
	char net_key[65];		/* key of the job, in hex */
	unsigned int net_port;
	char **argv;
	struct boot_place *places;
	char own_cluster[TOOL_CLUSTER_MAX + 1];	/* "": leave SCI_FABRIC as it is */
	unsigned int cluster_nodes;	/* SCI_NODES to set; 0: none */
};

/* Set l->places and l->hosts[].nranks. Return: 0, or -1 after a message. */
int launch_place(struct launch *l);

/* ---- addresses between hosts (launch_net.c) ---- */

/* Generate the key of the job, and choose the ports of its processes. Return: 0 or -1. */
int net_prepare(struct launch *l);
/* Append variables to @env, which has *@n variables already. Return: 0 or -ENOMEM. */
int net_environment(const struct launch *l, const struct launch_host *h, char **env,
		    unsigned int *n);
#define NET_ENVIRONMENT		4u	/* variables that net_environment() adds */
/* Return the gateways of @h, for struct agent_job; NULL: no memory. */
char **net_gateways(const struct launch *l, const struct launch_host *h);

/* Run the job. Return: its exit status. */
int launch_front(struct launch *l);

int launch_agent(void);

#endif
