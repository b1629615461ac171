/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: peers on other machines
 *
 * With SCI_TEST_PEERS="8=10.1.0.8,12=10.1.0.12" nodes are machines: each runs
 * selftests/cluster/agent, which starts what a connection asks it to start.  A
 * peer of another node is this same program over there, with the same address
 * space, in which the same function is called:
 *
 *	test	  stub	~~~ TCP ~~~  agent  server   peer
 *	  peer_send() -> frame			 -> peer_expect()
 *
 * The stub is a child of the test as a local peer would be.  It carries messages
 * and signals to the server and what the peer prints back, and ends the way the
 * peer ended.  When the stub is gone the agent ends the server and the peer.
 *
 * What @arg of peer_spawn() points at goes along, at another address: pointers in
 * it are good for what does not change, functions and constants.  Variables are
 * those of a program that has just begun.
 */
#ifndef SELFTESTS_REMOTE_H
#define SELFTESTS_REMOTE_H

#include <stdbool.h>
#include <sys/types.h>

struct peer;
typedef void peer_fn(struct peer *self, void *arg);

/* Whether nodes are machines. */
bool remote_machines(void);

/* The address of a node's machine; NULL: it has none. */
const char *remote_address(unsigned int node);

/*
 * remote_main() - called first by main()
 *
 * Gives the program the address space that it has everywhere.  Returns whether it
 * has been started by an agent: then remote_serve() is main().
 */
bool remote_main(char **argv);
int remote_serve(const char *what);

/*
 * remote_stub() - be the peer's representative
 * @fd: the peer's end of the connection to the test
 * @orders: signals for it, as one byte each, answered by the same byte
 */
__attribute__((noreturn))
void remote_stub(unsigned int node, peer_fn *fn, void *arg, int fd, int orders);

/* Objects of the kernel modules of all other machines. */
unsigned int remote_objects(void);

/* A forked test does not hold the runner's connections. */
void remote_forget(void);

/* Of harness.c: */

__attribute__((noreturn))
void harness_peer(unsigned int node, pid_t parent, int fd, peer_fn *fn,
		  void *arg);
unsigned int harness_objects(void);
void harness_fail(void);
bool harness_failed(void);
void harness_skip(const char *reason);
const char *harness_skipped(void);	/* "": not */
void harness_begin(void);

#endif
