/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/* Session files of tests, in memory; the processes of a test open them by a name. */
#ifndef SELFTESTS_MADELEINE_FILES_H
#define SELFTESTS_MADELEINE_FILES_H

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "selftests/harness.h"

/* Make a file with @text and get its name. Ranks inherit the file. */
static inline void test_file(const char *text, char name[64])
{
	int fd = memfd_create("session", 0);

	CHECK(fd >= 0);
	CHECK_EQ(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	snprintf(name, 64, "/proc/self/fd/%d", fd);
}

/* Make a session with the channels in the text @channels, on networks of any hosts. */
static inline void test_session(const char *channels)
{
	char text[4096], session[64], nets[64];

	test_file("networks : ({ name : n; dev : sisci; },"
		  " { name : f; dev : sisci; topology : { type : full; }; },"
		  " { name : k; dev : sisci; topology : { type : node; }; },"
		  " { name : e; dev : sisci; topology : { type : empty; }; },"
		  " { name : m; dev : sisci; }, { name : t; dev : tcp; },"
		  " { name : u; dev : tcp; });", nets);
	snprintf(text, sizeof(text), "application : { name : test; networks : { include : "
		 "\"%s\"; %s }; };", nets, channels);
	test_file(text, session);
	setenv("MAD_SESSION", session, 1);
	setenv("SCI_NET_KEY", "hex:000102030405060708090a0b0c0d0e0f", 1);
}

#endif
