/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: peers on other machines
 *
 * With SCI_TEST_PEERS="8=10.1.0.8,12=10.1.0.12" each node is a machine that runs
 * selftests/cluster/agent. For a peer on another node, the agent starts the same program with the
 * same address space, and the program calls the peer's function:
 *
 *	test	  stub	~~~ TCP ~~~  agent  server   peer
 *	  peer_send() -> frame			 -> peer_expect()
 *
 * The stub is a child of the test, as a local peer would be. It sends messages and signals to the
 * server, prints the peer's output, and ends with the status of the peer. When the stub ends, the
 * agent ends the server and the peer.
 *
 * The server copies the memory behind @arg of peer_spawn() to another address. Pointers in it are
 * valid only if they point to functions and constants. Variables have their initial values.
 */
#ifndef SELFTESTS_REMOTE_H
#define SELFTESTS_REMOTE_H

#include <stdbool.h>
#include <sys/types.h>

struct peer;
typedef void peer_fn(struct peer *self, void *arg);

/* Return whether each node is a machine. */
bool remote_machines(void);

/* Return the address of a node's machine, or NULL if the node has no machine. */
const char *remote_address(unsigned int node);

/* Return whether @p points to memory that differs between machines. */
bool remote_variable(const void *p);

/*
 * remote_main() - the first call of main()
 *
 * Disables address randomization if nodes are machines. Returns true if an agent has started the
 * program: then main() must call remote_serve() and return.
 */
bool remote_main(char **argv);
int remote_serve(const char *what);

/*
 * remote_stub() - represent a peer on another machine
 * @fd: the peer's end of the connection to the test
 * @orders: signals for the peer, one byte each. The stub confirms SIGSTOP and SIGCONT by the
 *	same byte.
 */
__attribute__((noreturn))
void remote_stub(unsigned int node, peer_fn *fn, void *arg, int fd, int orders);

/* Count the objects of the kernel modules of all other machines. */
unsigned int remote_objects(void);

/* In a forked test: close the runner's connections. */
void remote_forget(void);

/* Functions of harness.c: */

__attribute__((noreturn))
void harness_peer(unsigned int node, pid_t parent, int fd, peer_fn *fn,
		  void *arg);
pid_t harness_pid(const struct peer *p);	/* of the stub, if the peer is remote */
/* Return whether a peer of @node is on another machine. Skip a test that cannot have such a peer. */
bool harness_is_remote(unsigned int node);
unsigned int harness_objects(void);
void harness_fail(void);
bool harness_failed(void);
void harness_skip(const char *reason);
const char *harness_skipped(void);	/* "" if the test is not skipped */
void harness_begin(void);

#endif
