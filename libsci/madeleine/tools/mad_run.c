// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* mad-run: read a session file and start the session's processes by sci run. */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libsci/madeleine/internal.h"

struct options {
	const char *program;		/* replaces the session file's program */
	const char *nets;
	const char *folder;
	bool pause;
	bool show;			/* print the command, and do not start it */
};

static void help_print(FILE *out)
{
	fputs("usage: mad-run [OPTION...] FILE [ARGUMENT...]\n\n"
	      "start the processes of a Madeleine session\n\n"
	      "     --appli=PROGRAM     this program, not the one that FILE names\n"
	      "     --net=FILE[,FILE]   network files, beside those that FILE includes\n"
	      "     --wd=DIR            in this folder\n"
	      "  -p --p                 wait for a line of input at the end\n"
	      "  -n --dry-run           only print the processes and the command\n"
	      "     --flavor=, --leonie-host=   have no effect\n"
	      "  -h --help              this help\n", out);
}

static int options_read(int argc, char **argv, struct options *o)
{
	static const struct option longs[] = {
		{ "appli", required_argument, NULL, 'a' },
		{ "net", required_argument, NULL, 'N' },
		{ "wd", required_argument, NULL, 'w' },
		{ "flavor", required_argument, NULL, 'f' },
		{ "leonie-host", required_argument, NULL, 'f' },
		{ "p", no_argument, NULL, 'p' },
		{ "dry-run", no_argument, NULL, 'n' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	/* '+': stop at the first argument that is not an option: the program's arguments follow */
	while ((c = getopt_long(argc, argv, "+pnh", longs, NULL)) != -1) {
		switch (c) {
		case 'a':
			o->program = optarg;
			break;
		case 'N':
			o->nets = optarg;
			break;
		case 'w':
			o->folder = optarg;
			break;
		case 'f':
			break;
		case 'p':
			o->pause = true;
			break;
		case 'n':
			o->show = true;
			break;
		case 'h':
			help_print(stdout);
			exit(0);
		default:
			help_print(stderr);
			return 2;
		}
	}
	return 0;
}

/* ---- nodes ---- */

/*
 * Return the number of nodes for sci run, which places equal numbers of consecutive ranks on nodes.
 * If the hosts of the session fit this, each host is a node. Otherwise each process is a node.
 */
static long session_count_nodes(const struct session *s)
{
	long hosts = 0, of_host = 0, each = 0;
	p_ntbx_process_t before = NULL;

	for (p_tbx_slist_element_t e = s->processes->head; e; e = e->next) {
		p_ntbx_process_t p = e->object;

		if (!before || strcmp(before->host, p->host)) {
			if (hosts > 1 && of_host != each)
				return s->processes->length;
			if (hosts == 1)
				each = of_host;
			hosts++;
			of_host = 0;
		}
		of_host++;
		before = p;
	}
	return hosts > 1 && of_host != each ? s->processes->length : hosts;
}

/* ---- start ---- */

/* Append a file as an absolute path, because the program may start in another directory. */
static void path_append(p_tbx_string_t all, const char *file)
{
	char folder[PATH_MAX];

	if (*file != '/') {
		if (!getcwd(folder, sizeof(folder)))
			tbx_failuref("this folder has no name: %s", strerror(errno));
		tbx_string_append_cstring(all, folder);
		tbx_string_append_char(all, '/');
	}
	tbx_string_append_cstring(all, file);
}

static void string_export(const char *name, p_tbx_string_t value)
{
	char *text = tbx_string_to_cstring_and_free(value);

	setenv(name, text, 1);
	free(text);
}

static void session_export(const char *file)
{
	p_tbx_string_t path = tbx_string_init();

	path_append(path, file);
	string_export("MAD_SESSION", path);
}

/* Export the list of network files. */
static void nets_export(const char *paths)
{
	p_tbx_string_t all = tbx_string_init();
	char *copy = tbx_strdup(paths), *rest = copy, *file;

	while ((file = strsep(&rest, ","))) {
		if (tbx_string_length(all))
			tbx_string_append_char(all, ',');
		path_append(all, file);
	}
	free(copy);
	string_export("MAD_NET", all);
}

static void session_print(const struct session *s, char **args)
{
	for (p_tbx_slist_element_t e = s->processes->head; e; e = e->next) {
		p_ntbx_process_t p = e->object;

		printf("process %d: %s[%d]\n", p->global_rank, p->host, p->number);
	}
	for (; *args; args++)
		printf("%s%s", *args, args[1] ? " " : "\n");
}

/* Execute `sci` from the directory of this program, or from PATH. */
static void session_exec(char **args)
{
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 8);

	if (n > 0) {
		path[n] = '\0';
		strcpy(strrchr(path, '/') + 1, "sci");
		execv(path, args);
	}
	execvp("sci", args);
	fprintf(stderr, "mad-run: cannot start sci: %s\n", strerror(errno));
	_exit(127);
}

static int run_and_pause(char **args)
{
	int status, c;
	pid_t pid = fork();

	if (!pid)
		session_exec(args);
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		return 127;
	fputs("mad-run: the session has ended; press return\n", stderr);
	do
		c = getchar();
	while (c != EOF && c != '\n');
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Exit without a core file: the library calls abort() for each error, also in a session file. */
static void failure_exit(int sig)
{
	(void)sig;
	_exit(2);
}

/* Export a key for the sockets of this session, unless the user has chosen one. */
static void key_export(const struct session *s)
{
	unsigned char key[32];
	char text[4 + 2 * sizeof(key) + 1] = "hex:";
	bool sockets = false;

	for (p_tbx_slist_element_t e = s->networks->head; e; e = e->next)
		sockets |= ((const struct network *)e->object)->sockets;
	if (!sockets)
		return;
	if (getrandom(key, sizeof(key), 0) != (ssize_t)sizeof(key))
		tbx_failuref("there are no random numbers: %s", strerror(errno));
	for (size_t i = 0; i < sizeof(key); i++)
		snprintf(text + 4 + 2 * i, 3, "%02x", key[i]);
	setenv("SCI_NET_KEY", text, 0);
}

/* Run the program of session @s, with the arguments that follow @argv's session file. */
static int session_run(struct session *s, struct options *o, int argc, char **argv)
{
	char ranks[24], nodes[24], **args;
	int ret = 0, n = 0;

	if (!o->program)
		o->program = s->program;
	if (!o->program) {
		fprintf(stderr, "mad-run: %s names no program: use --appli\n", argv[0]);
		return 2;
	}
	session_export(argv[0]);
	if (o->nets)
		nets_export(o->nets);
	key_export(s);
	if (o->folder && chdir(o->folder)) {
		fprintf(stderr, "mad-run: %s: %s\n", o->folder, strerror(errno));
		return 2;
	}
	snprintf(ranks, sizeof(ranks), "%ld", s->processes->length);
	snprintf(nodes, sizeof(nodes), "%ld", session_count_nodes(s));
	args = tbx_alloc((size_t)argc + 10, sizeof(char *));
	args[n++] = (char *)"sci";
	args[n++] = (char *)"run";
	args[n++] = (char *)"-n";
	args[n++] = ranks;
	args[n++] = (char *)"--nodes";
	args[n++] = nodes;
	args[n++] = (char *)"--";
	args[n++] = (char *)o->program;
	memcpy(&args[n], &argv[1], (size_t)argc * sizeof(char *));
	if (o->show) {
		session_print(s, args);
	} else {
		fflush(stdout);
		signal(SIGABRT, SIG_DFL);
		if (!o->pause)
			session_exec(args);
		ret = run_and_pause(args);
	}
	free(args);
	return ret;
}

int main(int argc, char **argv)
{
	struct options o = { 0 };
	struct session *s;
	int ret = options_read(argc, argv, &o);

	if (ret)
		return ret;
	if (optind >= argc) {
		help_print(stderr);
		return 2;
	}
	signal(SIGABRT, failure_exit);
	s = mad_session_read(argv[optind], o.nets);
	ret = session_run(s, &o, argc - optind, &argv[optind]);
	mad_session_free(s);
	return ret;
}
