/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
#ifndef LIBSCI_THREADS_INTERPOSE_H
#define LIBSCI_THREADS_INTERPOSE_H

#include "libsci/threads/threads.h"

/*
 * Start the other nodes, for the first thread that the program creates. Return false if the
 * program stays on one node.
 */
bool threads_span(void);

/* Start the program's main thread, on a stack in global memory. Return: 0, or errno. */
int thread_main_start(void *(*fn)(void *arg));
/*
 * Start a thread of the program in this process, from a service thread, also if all slots for
 * stacks are in use. Return: 0, or errno.
 */
int thread_start_local(void *(*fn)(void *arg), void *arg);
struct thread *thread_find(pthread_t t);

/* Replace stdin, stdout and stderr by streams in global memory. */
void stdio_replace(void);
/* Forget the values of the calling thread's keys. @call: call the destructors before. */
void keys_destroy(bool call);

pid_t getpid_real(void);

#endif
