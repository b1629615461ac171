// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Tests mad-run: the commands that it starts, the errors that it reports, the sockets' key. */
#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "selftests/madeleine/files.h"

/* Get the path of mad-run, which is beside the folder of the tests. */
static void command_path(char path[PATH_MAX])
{
	ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);
	char *end;

	CHECK(n > 0);
	path[n] = '\0';
	end = strstr(path, "/selftests/");
	CHECK(end);
	strcpy(end, "/mad-run");
}

/* Run mad-run with @arguments. @text gets its output. Return: its exit status. */
static int run(const char *arguments, char text[4096])
{
	char path[PATH_MAX], command[PATH_MAX + 512];
	int status;
	size_t n;
	FILE *f;

	command_path(path);
	if (access(path, X_OK))
		SKIP("%s has not been built", path);
	snprintf(command, sizeof(command), "'%s' %s 2>&1", path, arguments);
	/* NOLINTNEXTLINE(cert-env33-c): our own arguments */
	f = popen(command, "r");
	CHECK(f);
	n = fread(text, 1, 4095, f);
	text[n] = '\0';
	status = pclose(f);
	CHECK(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void session(const char *name, const char *hosts, char file[64])
{
	char nets[64], text[512];

	test_file("networks : { name : n; dev : sisci; };", nets);
	snprintf(text, sizeof(text), "application : { %s networks : { include : \"%s\";"
		 " channels : { name : c; net : n; hosts : (%s); }; }; };", name, nets, hosts);
	test_file(text, file);
}

static void expect(const char *hosts, const char *line)
{
	char file[64], arguments[128], text[4096];

	session("name : prog;", hosts, file);
	snprintf(arguments, sizeof(arguments), "-n %s a -n", file);
	CHECK_EQ(run(arguments, text), 0);
	test_note("%s", text);
	CHECK(strstr(text, line));
}

TEST(sessions_become_ranks_on_nodes)
{
	expect("a, b, d", "sci run -n 3 --nodes 3 -- prog a -n\n");
	expect("a[0..3]", "sci run -n 4 --nodes 1 -- prog a -n\n");
	expect("a[0..1], b[5, 7]", "sci run -n 4 --nodes 2 -- prog a -n\n");
	expect("a[0..1], b", "sci run -n 3 --nodes 3 -- prog a -n\n");
	expect("a, b, a[1]", "sci run -n 3 --nodes 3 -- prog a -n\n");
	expect("a, b[0..1], d", "process 2: b[1]\n");
}

TEST(the_program_may_be_another)
{
	char file[64], arguments[128], text[4096];

	session("", "a", file);
	snprintf(arguments, sizeof(arguments), "-n %s", file);
	CHECK_EQ(run(arguments, text), 2);
	snprintf(arguments, sizeof(arguments), "-n --appli=./other --flavor=x %s y", file);
	CHECK_EQ(run(arguments, text), 0);
	CHECK(strstr(text, "-- ./other y\n"));
}

TEST(what_is_wrong_is_refused)
{
	char text[4096];

	CHECK_EQ(run("", text), 2);
	CHECK(strstr(text, "usage: mad-run"));
	CHECK_EQ(run("--what file", text), 2);
	CHECK_EQ(run("-n /dev/null", text), 2);
	CHECK_EQ(run("-n /does/not/exist", text), 2);
	CHECK(strstr(text, "/does/not/exist: No such file"));
	CHECK_EQ(run("--help", text), 0);
}

TEST(the_name_of_the_session_file_may_have_a_comma)
{
	char name[PATH_MAX], file[64], arguments[PATH_MAX + 64], text[4096];
	int ret;

	session("", "a", file);
	snprintf(name, sizeof(name), "%s/a,b", test_dir());
	CHECK_EQ(symlink(file, name), 0);
	snprintf(arguments, sizeof(arguments), "--appli=printenv '%s' MAD_SESSION", name);
	ret = run(arguments, text);
	test_note("%s", text);
	CHECK_EQ(ret, 0);
	CHECK_EQ(strncmp(text, name, strlen(name)), 0);
	CHECK(!strcmp(text + strlen(name), "\n"));
}

/* ---- the key of sockets ---- */

#define KEY_DIGITS	64

/* A process of a session on one network prints its SCI_NET_KEY. Return: the exit status. */
static int key_print(const char *dev, char text[4096])
{
	char nets[64], session[512], file[64], arguments[128];

	snprintf(session, sizeof(session), "networks : { name : n; dev : %s; };", dev);
	test_file(session, nets);
	snprintf(session, sizeof(session), "application : { networks : { include : \"%s\";"
		 " channels : { name : c; net : n; hosts : a; }; }; };", nets);
	test_file(session, file);
	snprintf(arguments, sizeof(arguments), "--appli=printenv %s SCI_NET_KEY", file);
	return run(arguments, text);
}

static bool is_fresh_key(const char *text)
{
	const char *c = text + strlen("hex:");

	if (strncmp(text, "hex:", strlen("hex:")))
		return false;
	for (int i = 0; i < KEY_DIGITS; i++)
		if (!isxdigit((unsigned char)*c++))
			return false;
	return !strcmp(c, "\n");
}

TEST(each_session_with_sockets_has_a_key_of_its_own)
{
	char first[4096], second[4096];

	unsetenv("SCI_NET_KEY");
	CHECK_EQ(key_print("tcp", first), 0);
	CHECK_EQ(key_print("udp", second), 0);
	test_note("%s", first);
	CHECK(is_fresh_key(first) && is_fresh_key(second));
	CHECK(strcmp(first, second));
}

TEST(a_key_of_the_user_stays)
{
	char text[4096];

	setenv("SCI_NET_KEY", "hex:00112233445566778899aabbccddeeff", 1);
	CHECK_EQ(key_print("tcp", text), 0);
	CHECK(!strcmp(text, "hex:00112233445566778899aabbccddeeff\n"));
}

TEST(a_session_without_sockets_has_no_key)
{
	char text[4096];

	unsetenv("SCI_NET_KEY");
	CHECK_EQ(key_print("sisci", text), 1);
	CHECK(!strstr(text, "hex:"));
}
