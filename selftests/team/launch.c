// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * `sci run -n`: placement, input, output, signals, exit status, and no process remains. Ranks
 * are shells, or this program with LAUNCH_RANK in its environment. LAUNCH_MARK is in the
 * environment of all processes of a job.
 *
 * Tests of silent machines and of a slow reader wait for limits of whole seconds, 55 s in all.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sci/team.h>

#include "libsci/team/boot.h"
#include "selftests/harness.h"
#include "libsci/tools/launch_job.c"	/* NOLINT(bugprone-suspicious-include) */

static bool memory_ends;		/* no memory for output */

static int output_reserve(struct boot_bytes *b, size_t n)
{
	return memory_ends ? -ENOMEM : boot_bytes_reserve(b, n);
}

#define boot_bytes_reserve output_reserve
#include "libsci/tools/launch_output.c"	/* NOLINT(bugprone-suspicious-include) */
#undef boot_bytes_reserve

#define TEXT_MAX	(4u << 20)
#define ARGS_MAX	32
#define MPIRUN		"mpirun.openmpi"
/* isolated: the machine may have no remote shell, which Open MPI looks for */
#define MPIRUN_WORDS	MPIRUN, "--allow-run-as-root", "--oversubscribe", "--mca", "plm", "isolated"

static char program[PATH_MAX], sci[PATH_MAX], mark[64];

#if TEST_ASAN
/* libpmix never frees memory of its initialization. */
const char *__lsan_default_suppressions(void);
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void)
{
	return "leak:libpmix\n";
}
#endif

/* ---- this program as a rank ---- */

static struct sci_boot *join(void)
{
	struct sci_boot *boot;

	if (sci_boot_open(&boot, NULL)) {
		fprintf(stderr, "cannot join\n");
		exit(99);
	}
	return boot;
}

static void rank_places(void)
{
	struct sci_boot *boot = join();
	const struct sci_boot_info *info = sci_boot_info(boot);
	unsigned int all[64];

	if (sci_boot_gather(boot, &info->rank, all, sizeof(all[0])))
		exit(98);
	for (unsigned int i = 0; i < info->size; i++)
		if (all[i] != i)
			exit(97);
	printf("%u/%u local %u/%u node %u env %s\n", info->rank, info->size,
	       info->local_rank, info->local_size, info->nodes[info->rank],
	       getenv("SCI_NODE"));
	fflush(stdout);
	sci_boot_close(boot);
	exit(0);
}

/* Print half a line, meet at a barrier, and print the other half. */
static void rank_halves(void)
{
	struct sci_boot *boot = join();
	unsigned int rank = sci_boot_info(boot)->rank;

	for (unsigned int i = 0; i < 20; i++) {
		printf("rank %u begins", rank);
		fflush(stdout);
		sci_boot_barrier(boot);
		printf(" and ends %u\n", rank);
		fflush(stdout);
	}
	printf("last of %u", rank);
	fflush(stdout);
	sci_boot_close(boot);
	exit(0);
}

/* Rank 1 dies; the other ranks get a report and continue. */
static void rank_keep(void)
{
	struct sci_boot *boot = join();
	unsigned int dead;

	sci_boot_barrier(boot);
	if (sci_boot_info(boot)->rank == 1)
		raise(SIGKILL);
	if (sci_boot_barrier(boot) != -ECONNRESET || sci_boot_died(boot, &dead) || dead != 1)
		exit(96);
	printf("%u lives\n", sci_boot_info(boot)->rank);
	fflush(stdout);
	sci_boot_close(boot);
	exit(0);
}

/* Rank 1 waits until its machine is lost; the other ranks get a report and continue. */
static void rank_lost(void)
{
	struct sci_boot *boot = join();
	unsigned int dead;

	sci_boot_barrier(boot);
	while (sci_boot_info(boot)->rank == 1)
		pause();
	printf("ready\n");
	fflush(stdout);
	if (sci_boot_barrier(boot) != -ECONNRESET || sci_boot_died(boot, &dead) || dead != 1)
		exit(83);
	printf("lives\n");
	fflush(stdout);
	sci_boot_close(boot);
	exit(0);
}

/* Rank 1 sends a frame before it has joined. All ranks wait for their end. */
static void rank_rude(void)
{
	const struct boot_frame f = { .type = BOOT_GATHER };

	if (!strcmp(getenv("SCI_RANK"), "1"))
		CHECK_EQ(write(atoi(getenv("SCI_BOOT")), &f, sizeof(f)), sizeof(f));
	for (;;)
		pause();
}

/* Ranks wait for values of other ranks, and join several times. */
static void rank_values(void)
{
	for (unsigned int k = 0; k < 3; k++) {
		struct sci_boot *boot = join();
		unsigned int rank = sci_boot_info(boot)->rank, n = sci_boot_info(boot)->size;
		unsigned int got, all[64], mine = 100 * k + rank;
		size_t len = sizeof(got);

		if (rank && (sci_boot_get(boot, rank - 1, "v", &got, &len) ||
			     len != sizeof(got) || got != mine - 1))
			exit(93);
		if (sci_boot_publish(boot, "v", &mine, sizeof(mine)))
			exit(92);
		len = sizeof(got);
		if (sci_boot_get(boot, n - 1, "v", &got, &len) || got != 100 * k + n - 1)
			exit(91);
		for (unsigned int i = 0; i < 20; i++) {
			mine = i + rank;
			if (sci_boot_gather(boot, &mine, all, sizeof(mine)))
				exit(90);
			for (unsigned int r = 0; r < n; r++)
				if (all[r] != i + r)
					exit(89);
		}
		if (sci_boot_barrier(boot))
			exit(88);
		sci_boot_close(boot);
	}
	printf("values\n");
	fflush(stdout);
	exit(0);
}

static void leave(int sig)
{
	(void)sig;
	_exit(0);
}

static void rank_abort(void)
{
	struct sci_boot *boot = join();

	signal(SIGTERM, leave);
	sci_boot_barrier(boot);
	if (sci_boot_info(boot)->rank == 2)
		sci_boot_abort(boot, 33);
	pause();
}

static volatile sig_atomic_t told_to_end;

static void end_note(int sig)
{
	(void)sig;
	told_to_end = 1;
}

/* Write lines until SIGTERM. LAUNCH_FD is a file that counts the bytes. */
static void rank_flood(void)
{
	const struct sigaction sa = { .sa_handler = end_note };
	_Atomic uint64_t *written = mmap(NULL, sizeof(*written), PROT_READ | PROT_WRITE,
					 MAP_SHARED, atoi(getenv("LAUNCH_FD")), 0);
	char lines[4096];	/* a pipe takes this many bytes, or none */

	if (written == MAP_FAILED || sigaction(SIGTERM, &sa, NULL))
		exit(75);
	for (size_t i = 0; i < sizeof(lines); i++)
		lines[i] = i % 96 == 95 ? '\n' : 'x';
	while (!told_to_end)
		if (write(1, lines, sizeof(lines)) == sizeof(lines))
			atomic_fetch_add(written, sizeof(lines));
	_exit(0);
}

/* Start a child that waits, and a process that leaves the process group and its parent. */
static void rank_tree(void)
{
	struct sci_boot *boot;

	if (!fork()) {
		pause();
		_exit(0);
	}
	if (!fork()) {
		setsid();
		signal(SIGTERM, SIG_IGN);
		signal(SIGHUP, SIG_IGN);
		if (fork())
			_exit(0);
		pause();
		_exit(0);
	}
	boot = join();
	sci_boot_barrier(boot);
	for (;;)
		pause();
}

/* Put a word into the next rank, and gather the words of all ranks. */
static void rank_team(void)
{
	struct sci_team *team;
	struct sci_ep *ep[2];
	int *got, all[16], mine, next;
	void *addr;

	if (sci_team_open(&team, NULL) || sci_team_alloc(team, sizeof(*got), 0, &addr))
		exit(96);
	got = addr;
	mine = sci_team_rank(team);
	next = (mine + 1) % sci_team_size(team);
	*got = -1;
	if (sci_team_barrier(team) || sci_team_put(team, got, &mine, sizeof(mine), next) ||
	    sci_team_quiet(team) || sci_team_barrier(team) ||
	    sci_team_allgather(team, got, sizeof(*got), all))
		exit(95);
	for (int i = 0; i < sci_team_size(team); i++)
		if (all[(i + 1) % sci_team_size(team)] != i)
			exit(94);
	printf("%d is %s rank 0\n", mine, sci_team_ptr(team, got, 0) ? "beside" : "beyond");
	fflush(stdout);
	/* endpoints in addition to the team's, as front-ends open them */
	if (sci_ep_open(&ep[0], 0, 0) || sci_ep_open(&ep[1], 0, 0) ||
	    sci_team_barrier(team) || sci_ep_close(ep[0]) || sci_ep_close(ep[1]))
		exit(92);
	exit(sci_team_close(team) ? 93 : 0);
}

/* Return the address of rank @to's endpoint. */
static struct sci_addr address_of(struct sci_boot *boot, struct sci_ep *ep, unsigned int to)
{
	struct sci_addr mine, all[8];

	if (sci_ep_addr(ep, &mine) || sci_boot_gather(boot, &mine, all, sizeof(mine)))
		exit(82);
	return all[to];
}

/* Rank 0 ends. Ranks 1 and 2 see that, and then connect and exchange messages. */
static void rank_outlive(void)
{
	struct sci_boot *boot = join();
	unsigned int rank = sci_boot_info(boot)->rank;
	int pid = getpid(), all[8], in = 0;
	struct sci_peer *peer;
	struct sci_status st;
	struct sci_addr to;
	struct sci_ep *ep;

	if (sci_ep_open(&ep, 0, 0))
		exit(81);
	to = address_of(boot, ep, 2);
	if (sci_boot_gather(boot, &pid, all, sizeof(pid)))
		exit(80);
	sci_boot_close(boot);
	if (!rank)
		exit(sci_ep_close(ep) ? 79 : 0);
	while (!kill(all[0], 0))
		test_pause();
	if (rank == 1 ? sci_connect(ep, &to, TEST_WAIT_MS, &peer) :
			sci_accept(ep, TEST_WAIT_MS, &peer))
		exit(78);
	for (int i = 0; i < 200; i++)
		if ((rank == 1 && sci_tsend(peer, 1, 1, &i, sizeof(i))) ||
		    sci_trecv(ep, peer, 1, 1, 0, &in, sizeof(in), &st) || in != i ||
		    (rank == 2 && sci_tsend(peer, 1, 1, &i, sizeof(i))))
			exit(77);
	printf("exchanged\n");
	fflush(stdout);
	exit(sci_ep_close(ep) ? 76 : 0);
}

/*
 * Call Open MPI without its headers, by the names of its binary interface. The library is
 * loaded and not linked: the other tests do not need it.
 */
static void rank_mpi(void)
{
	void *lib = dlopen("libmpi.so.40", RTLD_NOW | RTLD_GLOBAL);
	int (*init)(int *, char ***), (*finalize)(void), (*rank)(void *, int *);
	int (*allreduce)(const void *, void *, int, void *, void *, void *), (*barrier)(void *);
	int mine = -1, sum = -1;
	void *world;

	if (!lib)
		exit(87);
	*(void **)&init = dlsym(lib, "MPI_Init");
	*(void **)&rank = dlsym(lib, "MPI_Comm_rank");
	*(void **)&allreduce = dlsym(lib, "MPI_Allreduce");
	*(void **)&barrier = dlsym(lib, "MPI_Barrier");
	*(void **)&finalize = dlsym(lib, "MPI_Finalize");
	world = dlsym(lib, "ompi_mpi_comm_world");
	if (init(NULL, NULL) || rank(world, &mine) ||
	    allreduce(&mine, &sum, 1, dlsym(lib, "ompi_mpi_int"), dlsym(lib, "ompi_mpi_op_sum"),
		      world))
		exit(86);
	printf("%d has %d\n", mine, sum);
	fflush(stdout);
	if (barrier(world))
		exit(85);
	if (getenv("MPI_KILL") && mine == atoi(getenv("MPI_KILL")))
		raise(SIGKILL);
	if (barrier(world) || finalize())
		exit(84);
	_exit(0);
}

static const struct {
	const char *name;
	void (*fn)(void);
} ranks[] = {
	{ "places", rank_places },
	{ "halves", rank_halves },
	{ "keep", rank_keep },
	{ "lost", rank_lost },
	{ "rude", rank_rude },
	{ "values", rank_values },
	{ "abort", rank_abort },
	{ "tree", rank_tree },
	{ "team", rank_team },
	{ "outlive", rank_outlive },
	{ "flood", rank_flood },
	{ "mpi", rank_mpi },
};

__attribute__((constructor)) static void as_rank(void)
{
	const char *name = getenv("LAUNCH_RANK");

	for (size_t i = 0; name && i < ARRAY_LEN(ranks); i++)
		if (!strcmp(ranks[i].name, name))
			ranks[i].fn();
}

/* ---- running `sci run` ---- */

static char out[TEXT_MAX], err[TEXT_MAX];
static int status;
static bool ignore_children;		/* start the command with SIGCHLD ignored */
static const char *output_file;		/* standard output of the command; NULL: a pipe */

/* Set the paths of build/selftests/team/launch and build/sci. */
static void paths(void)
{
	ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 1);

	CHECK(n > 0);
	program[n] = '\0';
	strcpy(sci, program);
	for (int i = 0; i < 3; i++)
		*strrchr(sci, '/') = '\0';
	strcat(sci, "/sci");
	snprintf(mark, sizeof(mark), "%d.%llu", getpid(), (unsigned long long)test_now_ms());
	setenv("LAUNCH_MARK", mark, 1);
}

struct job {
	pid_t pid;
	int in, out, err;
};

/*
 * Start a job. @words: arguments of `sci run`, and NULL. If the first word is MPIRUN, start
 * that launcher instead. "@NAME" stands for this program as rank function NAME.
 */
static struct job start(const char *const *words)
{
	char *argv[ARGS_MAX] = { sci, (char *)(uintptr_t)"run" };
	int in[2], o[2], e[2];
	unsigned int n = 2;
	struct job j;

	if (!*sci)
		paths();
	if (!strcmp(*words, MPIRUN))
		n = 0;
	for (; *words; words++) {
		const char *w = **words == '@' ? program : *words;

		if (**words == '@')
			setenv("LAUNCH_RANK", *words + 1, 1);
		argv[n++] = (char *)(uintptr_t)w;
	}
	CHECK_EQ(pipe2(in, O_CLOEXEC), 0);
	CHECK_EQ(pipe2(o, O_CLOEXEC), 0);
	CHECK_EQ(pipe2(e, O_CLOEXEC), 0);
	j = (struct job){ fork(), in[1], o[0], e[0] };
	CHECK(j.pid >= 0);
	if (!j.pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		/* a shell lets programs in the background ignore it */
		signal(SIGINT, SIG_DFL);
		signal(SIGCHLD, ignore_children ? SIG_IGN : SIG_DFL);
		dup2(in[0], 0);
		dup2(output_file ? open(output_file, O_WRONLY) : o[1], 1);
		dup2(e[1], 2);
		execvp(argv[0], argv);
		_exit(95);
	}
	close(in[0]);
	close(o[1]);
	close(e[1]);
	return j;
}

/* Read until @text has arrived, or to the end. */
static void read_until(int fd, char *buf, const char *text)
{
	size_t len = strlen(buf);
	struct pollfd p = { .fd = fd, .events = POLLIN };
	ssize_t n;

	while (!text || !strstr(buf, text)) {
		CHECK_EQ(poll(&p, 1, TEST_WAIT_MS), 1);
		n = read(fd, buf + len, TEXT_MAX - 1 - len);
		CHECK(n >= 0);
		if (!n)
			break;
		len += (size_t)n;
		buf[len] = '\0';
	}
}

static bool ended(pid_t pid)
{
	int s;

	if (waitpid(pid, &s, WNOHANG) != pid)
		return false;
	status = WIFEXITED(s) ? WEXITSTATUS(s) : -WTERMSIG(s);
	return true;
}

static void finish(struct job *j)
{
	if (j->in >= 0)
		close(j->in);
	read_until(j->out, out, NULL);
	read_until(j->err, err, NULL);
	WAIT_UNTIL(ended(j->pid), TEST_WAIT_MS);
	close(j->out);
	close(j->err);
}

static unsigned int marked(void);

#define RUN(...)							\
	do {								\
		struct job job_;					\
									\
		out[0] = err[0] = '\0';					\
		job_ = start((const char *const[]){ __VA_ARGS__, NULL });	\
		finish(&job_);						\
		test_note("status %d, %.200s", status, err);		\
		CHECK_EQ(marked(), 0);					\
	} while (0)

#define START(...)	(out[0] = err[0] = '\0',			\
			 start((const char *const[]){ __VA_ARGS__, NULL }))

/* ---- processes with LAUNCH_MARK ---- */

static bool has_mark(const char *pid)
{
	static char env[65536];
	char path[300], want[96];
	ssize_t n = 0, more;
	int fd;

	snprintf(path, sizeof(path), "/proc/%s/environ", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	while ((more = read(fd, env + n, sizeof(env) - (size_t)n)) > 0)
		n += more;
	close(fd);
	snprintf(want, sizeof(want), "LAUNCH_MARK=%s", mark);
	return memmem(env, (size_t)n, want, strlen(want) + 1) != NULL;
}

/* Count the marked processes. A zombie has no environment. */
static unsigned int marked(void)
{
	DIR *d = opendir("/proc");
	unsigned int n = 0;
	struct dirent *e;

	CHECK(d);
	while ((e = readdir(d)))
		if (*e->d_name >= '0' && *e->d_name <= '9' && atoi(e->d_name) != getpid())
			n += has_mark(e->d_name);
	closedir(d);
	return n;
}

static unsigned int count(const char *text)
{
	unsigned int n = 0;

	for (const char *p = out; (p = strstr(p, text)); p++)
		n++;
	return n;
}

/*
 * Skip a test whose hosts are virtual clusters or nodes of this machine: adapters of this machine
 * belong to one host.
 */
static void needs_virtual_hosts(void)
{
	if (!*test_cluster())
		SKIP("adapters belong to one host");
}

/* ---- placement ---- */

TEST(ranks_are_spread_over_nodes)
{
	RUN("-n", "6", "--nodes", "3", "@places");
	CHECK_EQ(status, 0);
	CHECK_EQ(err[0], 0);
	CHECK(strstr(out, "0/6 local 0/6 node 4 env 4\n"));
	CHECK(strstr(out, "1/6 local 1/6 node 4 env 4\n"));
	CHECK(strstr(out, "3/6 local 3/6 node 8 env 8\n"));
	CHECK(strstr(out, "5/6 local 5/6 node 12 env 12\n"));
	RUN("-n", "2", "--nodes", "3", "true");
	CHECK_EQ(status, 2);
	RUN("-n", "0", "true");
	CHECK_EQ(status, 2);
}

TEST(ranks_of_several_nodes_make_a_team)
{
	setenv("SCI_TEAM_MEMORY", "node", 1);
	RUN("-n", "7", "--nodes", "3", "@team");
	CHECK_EQ(status, 0);
	CHECK_EQ(count("is beside rank 0"), 3);
	CHECK_EQ(count("is beyond rank 0"), 4);
}

TEST(many_ranks)
{
	RUN("-n", "48", "@places");
	CHECK_EQ(status, 0);
	CHECK_EQ(count("/48 local"), 48);
}

TEST(programs_after_one_another_are_the_same_rank)
{
	char line[3 * PATH_MAX + 64];

	paths();
	setenv("LAUNCH_RANK", "places", 1);
	snprintf(line, sizeof(line), "%s && %s && %s", program, program, program);
	RUN("-n", "3", "sh", "-c", line);
	CHECK_EQ(status, 0);
	CHECK_EQ(count("/3 local"), 9);
}

TEST(a_job_has_a_cluster_of_its_own)
{
	char first[65536];

	unsetenv("SCI_FABRIC");
	RUN("-n", "1", "sh", "-c", "echo $SCI_FABRIC");
	if (!strncmp(out, "\n", 1))
		SKIP("there are adapters");
	CHECK(!strncmp(out, "shm:job-", 8));
	snprintf(first, sizeof(first), "%.1000s", out);
	RUN("-n", "1", "sh", "-c", "echo $SCI_FABRIC");
	CHECK(strcmp(out, first) != 0);
	RUN("-n", "1", "--cluster", "abc", "sh", "-c", "echo $SCI_FABRIC");
	CHECK(!strcmp(out, "shm:abc\n"));
}

TEST(names_of_clusters_are_not_cut)
{
	char name[96], want[128];

	needs_virtual_hosts();
	snprintf(name, sizeof(name), "%s-0123456789abcdef0123456789abcdef", test_cluster());
	name[32] = '\0';
	snprintf(want, sizeof(want), "shm:%s\n", name);
	unsetenv("SCI_FABRIC");
	RUN("-n", "1", "--cluster", name, "printenv", "SCI_FABRIC");
	CHECK_EQ(status, 0);
	CHECK(!strcmp(out, want));
	RUN("-n", "2", "--clusters", "2", "--net", "tcp", "--cluster", name, "true");
	CHECK_EQ(status, 1);
	CHECK(strstr(err, "want a name of 1 to 30 characters"));
	strcpy(strchr(want, '\n') - 2, "-1\n");
	name[30] = '\0';
	RUN("-n", "2", "--clusters", "2", "--net", "tcp", "--cluster", name, "printenv",
	    "SCI_FABRIC");
	CHECK_EQ(status, 0);
	CHECK(strstr(out, want));
}

TEST(a_rank_is_bound_to_one_core)
{
	RUN("-n", "2", "--bind", "core", "sh", "-c",
	    "grep Cpus_allowed_list /proc/self/status");
	CHECK_EQ(status, 0);
	CHECK_EQ(count("Cpus_allowed_list"), 2);
	CHECK(!strpbrk(out, ",-"));
	RUN("-n", "1", "--bind", "socket", "true");
	CHECK_EQ(status, 2);
}

/* ---- input and output ---- */

TEST(input_goes_to_rank_0_and_output_comes_whole)
{
	static char data[1 << 20];
	struct job j = START("-n", "3", "sh", "-c", "exec cat");
	pid_t writer;

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = i % 100 == 99 ? '\n' : (char)('a' + i % 26);
	writer = fork();
	if (!writer) {
		for (size_t done = 0; done < sizeof(data);)
			done += (size_t)write(j.in, data + done, sizeof(data) - done);
		_exit(0);
	}
	finish(&j);
	waitpid(writer, NULL, 0);
	CHECK_EQ(status, 0);
	CHECK_EQ(strlen(out), sizeof(data));
	CHECK(!memcmp(out, data, sizeof(data)));
}

TEST(lines_of_ranks_do_not_mix)
{
	static char copy[TEXT_MAX];
	char *line, *rest = copy;
	unsigned int n = 0, a, b;

	RUN("-n", "4", "@halves");
	CHECK_EQ(status, 0);
	CHECK_EQ(count(" begins"), 80);
	strcpy(copy, out);
	while ((line = strsep(&rest, "\n")))
		if (sscanf(line, "rank %u begins and ends %u", &a, &b) == 2) {
			CHECK_EQ(a, b);
			n++;
		}
	CHECK_EQ(n, 80);
	CHECK_EQ(count("last of "), 4);
	CHECK_EQ(count("last of 0rank") + count("last of 1rank") + count("last of 2rank") +
		 count("last of 3rank"), 0);
}

TEST(lines_have_tags)
{
	RUN("-n", "2", "--tag-output", "sh", "-c",
	    "printf 'a\\nb'; printf 'e\\n' >&2");
	CHECK_EQ(status, 0);
	CHECK_EQ(count("[0] a\n"), 1);
	CHECK_EQ(count("[1] b\n"), 1);
	CHECK(strstr(err, "[0] e\n") && strstr(err, "[1] e\n"));
}

TEST(output_that_nobody_reads_does_not_stop_the_job)
{
	struct job j = START("-n", "2", "sh", "-c", "seq 100000");

	close(j.out);
	j.out = open("/dev/null", O_RDONLY | O_CLOEXEC);
	finish(&j);
	CHECK_EQ(status, 0);
	CHECK_EQ(marked(), 0);
}

/*
 * Create a file that counts the output of rank_flood(), and let the ranks inherit it. Return its
 * first word.
 */
static _Atomic uint64_t *flood_counter(void)
{
	int fd = memfd_create("flood", 0);
	char text[16];
	void *p;

	CHECK(fd >= 0);
	CHECK_EQ(ftruncate(fd, 4096), 0);
	p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(p != MAP_FAILED);
	snprintf(text, sizeof(text), "%d", fd);
	setenv("LAUNCH_FD", text, 1);
	return p;
}

/* Wait until a rank has filled all pipes and queues: its output does not grow any more. */
static void flood_wait(_Atomic uint64_t *written)
{
	uint64_t last = 0;

	for (unsigned int same = 0; same < 1000; test_pause()) {
		same = last && atomic_load(written) == last ? same + 1 : 0;
		last = atomic_load(written);
	}
}

/* The reader is slower than the 13 s after which the front gives up an agent. */
TEST(output_of_a_job_that_ends_waits_for_its_reader)
{
	_Atomic uint64_t *written = flood_counter();
	struct job j = START("-n", "1", "@flood");
	struct pollfd p = { .fd = j.err, .events = POLLIN };

	flood_wait(written);
	CHECK_EQ(kill(j.pid, SIGTERM), 0);
	poll(&p, 1, 15000);
	finish(&j);
	CHECK_EQ(status, 128 + SIGTERM);
	CHECK_EQ(err[0], 0);
	CHECK_EQ(strlen(out), atomic_load(written));
}

TEST(output_that_cannot_be_written_is_an_error)
{
	output_file = "/dev/full";
	RUN("-n", "1", "echo", "x");
	CHECK_EQ(status, 1);
	CHECK(strstr(err, "cannot write the output: No space left on device"));
}

/* `sci run` reports this error as it reports those of write(). */
TEST(output_without_memory_is_an_error)
{
	struct outlets o;

	for (unsigned int tag = 0; tag < 2; tag++) {
		outlets_init(&o, tag);
		CHECK_EQ(outlet_add(o.of[1], 0, "x\n", 2), 0);
		CHECK(outlets_queued(&o));
		memory_ends = true;
		CHECK_EQ(outlet_add(o.of[1], 0, "x\n", 2), -ENOMEM);
		memory_ends = false;
		CHECK_EQ(outlets_queued(&o), 0);
		CHECK_EQ(outlet_add(o.of[1], 0, "x\n", 2), 0);
		CHECK_EQ(outlets_queued(&o), 0);
		outlets_free(&o);
	}
}

/* ---- exit status ---- */

TEST(the_first_that_fails_gives_the_status)
{
	RUN("-n", "3", "sh", "-c", "[ $SCI_RANK != 1 ] || exit 7; exec sleep 1000");
	CHECK_EQ(status, 7);
	CHECK(strstr(err, "rank 1 ended with status 7"));
	RUN("-n", "3", "sh", "-c", "[ $SCI_RANK != 2 ] || kill -KILL $$; exec sleep 1000");
	CHECK_EQ(status, 128 + SIGKILL);
	CHECK(strstr(err, "rank 2 was ended by signal 9"));
	RUN("-n", "4", "@abort");
	CHECK_EQ(status, 33);
	CHECK(strstr(err, "rank 2 aborts the job with status 33"));
}

TEST(a_program_that_cannot_be_run_is_named)
{
	RUN("-n", "2", "/no/such/program");
	CHECK_EQ(status, 127);
	CHECK(strstr(err, "cannot run /no/such/program: No such file"));
	RUN("-n", "2", "/etc/passwd");
	CHECK_EQ(status, 126);
	CHECK(strstr(err, "/etc/passwd: Permission denied"));
}

TEST(others_live_on_with_keep)
{
	RUN("-n", "4", "--keep", "@keep");
	CHECK_EQ(status, 128 + SIGKILL);
	CHECK_EQ(count(" lives"), 3);
}

TEST(what_ranks_leave_behind_is_ended)
{
	RUN("-n", "2", "sh", "-c", "setsid sleep 1000 & sleep 1000 & exit 0");
	CHECK_EQ(status, 0);
}

TEST(a_rank_that_ignores_SIGTERM_is_killed)
{
	RUN("-n", "2", "sh", "-c",
	    "[ $SCI_RANK = 0 ] && exit 5; trap '' TERM; while :; do sleep 0.1; done");
	CHECK_EQ(status, 5);
}

/* ---- signals ---- */

TEST(signals_are_forwarded)
{
	static const struct {
		const char *name;
		int sig, status;
	} s[] = {
		{ "USR1", SIGUSR1, 41 }, { "USR2", SIGUSR2, 41 }, { "INT", SIGINT, 41 },
		{ "TERM", SIGTERM, 128 + SIGTERM },
	};

	for (size_t i = 0; i < ARRAY_LEN(s); i++) {
		char line[128];
		struct job j;

		/* no child in the loop: bash may run the trap in a child before its exec, too */
		snprintf(line, sizeof(line), "exec 3<> <(:); trap 'echo got; exit 41' %s; "
			 "echo ready; while :; do read -t 0.02 -u 3; done", s[i].name);
		j = START("-n", "2", "--keep", "bash", "-c", line);
		while (count("ready") < 2)
			read_until(j.out, out, out[0] ? "ready\nready" : "ready");
		CHECK_EQ(kill(j.pid, s[i].sig), 0);
		finish(&j);
		CHECK_EQ(status, s[i].status);
		CHECK_EQ(count("got"), 2);
		CHECK_EQ(marked(), 0);
	}
}

TEST(a_job_stops_and_goes_on)
{
	struct job j = START("-n", "1", "sh", "-c", "echo $$; read x; echo went on $x");
	pid_t rank;

	read_until(j.out, out, "\n");
	rank = atoi(out);
	CHECK_EQ(kill(j.pid, SIGTSTP), 0);
	WAIT_UNTIL(test_process(rank).state == 'T', TEST_WAIT_MS);
	WAIT_UNTIL(test_process(j.pid).state == 'T', TEST_WAIT_MS);
	CHECK_EQ(kill(j.pid, SIGCONT), 0);
	WAIT_UNTIL(test_process(rank).state != 'T', TEST_WAIT_MS);
	CHECK_EQ(write(j.in, "x\n", 2), 2);
	finish(&j);
	CHECK(strstr(out, "went on x"));
	CHECK_EQ(status, 0);
}

/* Return whether @out, which is /proc/self/status, says that a signal is ignored. */
static bool signal_is_ignored(int sig)
{
	const char *mask = strstr(out, "SigIgn:\t");

	return mask && strtoull(mask + 8, NULL, 16) & 1u << (sig - 1);
}

/* Some programs start their children with SIGCHLD ignored. The ranks inherit that. */
TEST(a_job_with_SIGCHLD_ignored_ends)
{
	ignore_children = true;
	RUN("-n", "2", "sh", "-c", "exit 7");
	CHECK_EQ(status, 7);
	RUN("-n", "1", "cat", "/proc/self/status");
	CHECK_EQ(status, 0);
	CHECK(signal_is_ignored(SIGCHLD));
}

/* Options that would have no effect are errors, and the program does not run. */
TEST(options_without_effect_are_refused)
{
	static const struct {
		const char *words[8];
		const char *error;
	} wrong[] = {
		{ { "--hosts", "a,b", "--net", "tcp", "8", "echo", "ran" }, "--hosts is for a job" },
		{ { "8", "--net", "tcp", "echo", "ran" }, "--net is for a job" },
		{ { "8", "--failover", "echo", "ran" }, "--failover is for a job" },
		{ { "8", "--clusters", "2", "echo", "ran" }, "--clusters is for a job" },
		{ { "8", "--gateways", "1", "echo", "ran" }, "--gateways is for a job" },
		{ { "8", "--nodes", "2", "echo", "ran" }, "--nodes is for a job" },
		{ { "8", "--bind", "core", "echo", "ran" }, "--bind is for a job" },
		{ { "8", "--tag-output", "echo", "ran" }, "--tag-output is for a job" },
		{ { "8", "--keep", "echo", "ran" }, "--keep is for a job" },
		{ { "8", "--pmix", "echo", "ran" }, "--pmix is for a job" },
		{ { "8", "-n", "4", "echo", "ran" }, "a node id or -n" },
		{ { "--threads", "-n", "2", "--net", "tcp", "echo", "ran" }, "with --net" },
		{ { "--threads", "-n", "2", "--failover", "echo", "ran" }, "with --failover" },
		{ { "--threads", "-n", "2", "--gateways", "1", "echo", "ran" }, "with --gateways" },
		{ { "--threads", "-n", "2", "--nodes", "2", "echo", "ran" }, "with --nodes" },
		{ { "--threads", "-n", "2", "--cluster", "c", "echo", "ran" }, "with --cluster" },
	};

	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		const char *const *w = wrong[i].words;

		RUN(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7]);
		CHECK_EQ(status, 2);
		CHECK_EQ(out[0], 0);
		CHECK(strstr(err, wrong[i].error));
	}
}

TEST(a_node_has_its_host_name_with_SIGCHLD_ignored)
{
	RUN("8", "uname", "-n");
	CHECK_EQ(status, 0);
	if (strcmp(out, "node8\n"))
		SKIP("the system forbids namespaces");
	ignore_children = true;
	RUN("8", "uname", "-n");
	CHECK_EQ(status, 0);
	CHECK(!strcmp(out, "node8\n"));
	RUN("8", "cat", "/proc/self/status");
	CHECK(signal_is_ignored(SIGCHLD));
}

/* With fewer descriptors allowed than it polls, the next poll() of the launcher fails. */
TEST(a_launcher_that_cannot_poll_says_so)
{
	struct job j;

	/* the search for leaks would need descriptors */
	setenv("ASAN_OPTIONS", "detect_leaks=0", 1);
	j = START("-n", "1", "sh", "-c", "echo ready; while :; do sleep 1; done");
	read_until(j.out, out, "ready");
	CHECK_EQ(prlimit(j.pid, RLIMIT_NOFILE, &(struct rlimit){ 2, 2 }, NULL), 0);
	CHECK_EQ(kill(j.pid, SIGUSR1), 0);
	finish(&j);
	CHECK(strstr(err, "poll: "));
	CHECK_EQ(status, 1);
	WAIT_UNTIL(!marked(), TEST_WAIT_MS);
}

TEST(a_rank_that_breaks_the_protocol_is_killed)
{
	RUN("-n", "2", "@rude");
	CHECK_EQ(status, 128 + SIGKILL);
	CHECK(strstr(err, "rank 1 breaks the start-up protocol"));
}

/* With --keep the job goes on, but not the processes of a failed rank. */
TEST(processes_of_a_failed_rank_end_at_once)
{
	struct job j = START("-n", "2", "--keep", "sh", "-c",
			     ("[ $SCI_RANK = 1 ] || { read x; exit 0; }; "
			      "sleep 1000 >/dev/null 2>&1 & echo $!; exit 3"));
	pid_t pid;

	read_until(j.out, out, "\n");
	pid = atoi(out);
	CHECK(pid > 0);
	WAIT_UNTIL(kill(pid, 0) && errno == ESRCH, TEST_WAIT_MS);
	finish(&j);
	CHECK_EQ(status, 3);
}

/* ---- machines ---- */

/*
 * Create a remote shell for which each machine is this one. It exports MACHINE. The agent on "dies"
 * sends $READY. The agent on "late" waits for a frame, sends $READY and $DONE, and counts the bytes
 * that it gets after that. "words" gives a shell the command as one line, as ssh does. The
 * processes that connect "far" are a process group, to which the agent does not belong. They are
 * tee, because busybox' cat keeps data until more arrives. "slow", "deaf" and "mute" start no agent:
 * "slow" waits for a child, "mute" closes its output first, and "deaf" also ignores SIGTERM.
 */
static void make_rsh(void)
{
	static char path[96];
	const char *tmp = getenv("TMPDIR");
	FILE *f;

	snprintf(path, sizeof(path), "%.60s/sci-rsh.%d", tmp ? tmp : "/tmp", getpid());
	f = fopen(path, "w");
	CHECK(f);
	fprintf(f, "#!/bin/sh\n[ $1 != gone ] || exit 255\n[ $1 != chatty ] || echo Welcome\n"
		"[ $1 != dies ] || exec printf \"$READY\"\n"
		"[ $1 != late ] || { head -c %zu >/dev/null; printf \"$READY$DONE\"; "
		"echo late got $(wc -c) bytes >&2; exit; }\n"
		"MACHINE=$1\nexport MACHINE\nshift\ncd /\n"
		"[ $MACHINE != words ] || exec sh -c \"$*\"\n"
		"[ $MACHINE != slow ] || { trap : TERM; "
		"sh -c 'echo slow waits >&2; exec sleep 1000'; exit; }\n"
		"[ $MACHINE != deaf ] || { trap '' TERM; exec <&- >&-; sleep 1000; exit; }\n"
		"[ $MACHINE != mute ] || { exec <&- >&-; exec sleep 1000; }\n"
		"[ $MACHINE != far ] || { trap : TERM; tee | \"$@\" | tee; exit; }\n"
		"exec \"$@\"\n",
		sizeof(struct boot_frame));
	CHECK_EQ(fchmod(fileno(f), 0700), 0);
	CHECK_EQ(fclose(f), 0);
	setenv("SCI_RSH", path, 1);
}

static void remove_rsh(void)
{
	unlink(getenv("SCI_RSH"));
}

TEST(ranks_on_other_machines)
{
	char here[PATH_MAX];

	needs_virtual_hosts();
	make_rsh();
	setenv("HANDED_ON", "yes and no", 1);
	RUN("-n", "4", "--hosts", "one,two", "-t", "sh", "-c",
	    "echo $MACHINE $SCI_NODE $SCI_LOCAL_RANK $HANDED_ON; pwd");
	CHECK_EQ(status, 0);
	CHECK(strstr(out, "[0] one 4 0 yes and no\n"));
	CHECK(strstr(out, "[1] one 4 1 yes and no\n"));
	CHECK(strstr(out, "[2] two 8 0 yes and no\n"));
	CHECK(strstr(out, "[3] two 8 1 yes and no\n"));
	CHECK(getcwd(here, sizeof(here)));
	CHECK_EQ(count(here), 4);
	RUN("-n", "6", "--hosts", "one:2,two:4", "--nodes", "2", "@places");
	CHECK_EQ(status, 0);
	CHECK(strstr(out, "1/6 local 1/2 node 8 env 8"));
	CHECK(strstr(out, "5/6 local 3/4 node 16 env 16"));
	CHECK_EQ(gethostname(here, sizeof(here) - 16), 0);
	strcat(here, ":1,localhost");
	RUN("-n", "2", "--hosts", here, "@places");
	CHECK(strstr(out, "1/2 local 1/2 node 4"));
	RUN("-n", "4", "--hosts", "one,one,two:2", "@places");
	CHECK_EQ(status, 0);
	CHECK(strstr(out, "1/4 local 1/2 node 4"));
	CHECK(strstr(out, "2/4 local 0/2 node 8"));
	RUN("-n", "3", "--hosts", "one:1,two", "true");
	CHECK_EQ(status, 1);
	CHECK(strstr(err, "3 ranks, but the hosts have 2 slots"));
	remove_rsh();
}

/* The gateway joins as many clusters as the command allows. */
TEST(ranks_in_sixteen_clusters)
{
	needs_virtual_hosts();
	RUN("-n", "16", "--clusters", "16", "--gateways", "1", "true");
	CHECK_EQ(status, 0);
	CHECK_EQ(err[0], 0);
}

TEST(ranks_in_clusters_that_a_gateway_connects)
{
	char line[2 * PATH_MAX];

	needs_virtual_hosts();
	unsetenv("SCI_FABRIC");
	RUN("-n", "4", "--clusters", "2", "--gateways", "1", "@team");
	CHECK_EQ(status, 0);
	CHECK_EQ(count("is beside rank 0"), 2);
	CHECK_EQ(count("is beyond rank 0"), 2);
	test_use_cluster("named");
	snprintf(line, sizeof(line), "[ $SCI_FABRIC = %s-$((SCI_RANK / 2)) ] && exec %s",
		 getenv("SCI_FABRIC"), program);
	RUN("-n", "4", "--clusters", "2", "--gateways", "1", "sh", "-c", line);
	CHECK_EQ(status, 0);
	CHECK_EQ(count("is beyond rank 0"), 2);
	RUN("-n", "4", "--clusters", "2", "true");
	CHECK(strstr(err, "--clusters wants"));
	RUN("-n", "4", "--gateways", "2", "true");
	CHECK(strstr(err, "--gateways wants"));
}

/* The agent of the first cluster starts the gateways of all clusters. */
TEST(gateways_outlive_the_ranks_of_their_host)
{
	needs_virtual_hosts();
	unsetenv("SCI_FABRIC");
	RUN("-n", "3", "--clusters", "3", "--gateways", "1", "@outlive");
	CHECK_EQ(status, 0);
	CHECK_EQ(count("exchanged"), 2);
}

TEST(ranks_on_machines_that_sockets_connect)
{
	needs_virtual_hosts();
	make_rsh();
	/* both addresses are this machine's; each has its own cluster */
	unsetenv("SCI_FABRIC");
	RUN("-n", "4", "--hosts", "127.0.0.1,127.0.0.2", "--net", "tcp", "@team");
	CHECK_EQ(status, 0);
	CHECK_EQ(count("is beside rank 0"), 2);
	CHECK_EQ(count("is beyond rank 0"), 2);
	RUN("-n", "4", "--hosts", "127.0.0.1,127.0.0.2", "--net", "tcp", "--gateways", "2",
	    "@team");
	CHECK_EQ(status, 0);
	CHECK_EQ(count("is beyond rank 0"), 2);
	/* in a common cluster: over the fabric, or over sockets while that has no link */
	test_use_cluster("common");
	RUN("-n", "4", "--hosts", "127.0.0.1,127.0.0.2", "--net", "tcp", "--failover", "@team");
	CHECK_EQ(status, 0);
	CHECK_EQ(count("is beyond rank 0"), 2);
	setenv("SCI_FAULT", "linkdown=0", 1);
	RUN("-n", "4", "--hosts", "127.0.0.1,127.0.0.2", "--net", "tcp", "--failover", "@team");
	CHECK_EQ(status, 0);
	unsetenv("SCI_FAULT");
	RUN("-n", "2", "--hosts", "127.0.0.1,127.0.0.2", "--net", "tcp", "--failover", "printenv",
	    "SCI_NET_PEERS");
	CHECK_EQ(count("=sci,"), 2);
	unsetenv("SCI_FABRIC");
	RUN("-n", "2", "--hosts", "127.0.0.1,127.0.0.2", "--net", "tcp", "--failover", "true");
	CHECK(status != 0);
	CHECK(strstr(err, "--failover wants"));
	RUN("-n", "2", "--failover", "true");
	CHECK(status != 0);
	CHECK(strstr(err, "--failover wants"));
	RUN("-n", "2", "--net", "udp", "true");
	CHECK(status != 0);
	CHECK(strstr(err, "--net wants"));
	remove_rsh();
}

TEST(a_machine_that_cannot_be_reached_is_named)
{
	make_rsh();
	RUN("-n", "2", "--hosts", "one,gone", "sleep", "1000");
	CHECK_EQ(status, 1);
	CHECK(strstr(err, "cannot start on gone") && strstr(err, "255"));
	RUN("-n", "2", "--hosts", "chatty", "sleep", "1000");
	CHECK_EQ(status, 1);
	CHECK(strstr(err, "chatty does not speak sci's protocol"));
	setenv("SCI_AGENT", "/no/sci", 1);
	RUN("-n", "2", "--hosts", "one", "sleep", "1000");
	CHECK_EQ(status, 1);
	CHECK(strstr(err, "cannot start on one"));
	remove_rsh();
}

TEST(a_working_directory_that_was_removed_is_an_error)
{
	char dir[] = "/tmp/launch-XXXXXX";

	make_rsh();
	paths();
	CHECK(mkdtemp(dir));
	CHECK_EQ(chdir(dir), 0);
	CHECK_EQ(rmdir(dir), 0);
	RUN("-n", "2", "--hosts", "one,two", "true");
	CHECK_EQ(status, 1);
	CHECK(strstr(err, "cannot get the working directory: No such file"));
	remove_rsh();
}

/*
 * The front may start processes for some of the agents only. It ends these agents at once, while
 * its standard input is open. Root has no limit of processes.
 */
TEST(an_agent_that_cannot_be_started_ends_the_job)
{
	const struct rlimit few = { 8, 8 };
	const uid_t user = 100000 + (uid_t)getpid();
	struct job j;

	if (getuid())
		SKIP("only root can become a user without processes");
	CHECK_EQ(setrlimit(RLIMIT_NPROC, &few), 0);
	CHECK_EQ(setresuid(user, user, user), 0);
	make_rsh();
	j = START("-n", "12", "--hosts", "a,b,c,d,e,f,g,h,i,j,k,l", "true");
	read_until(j.err, err, NULL);
	CHECK(strstr(err, "cannot start an agent"));
	CHECK(!strstr(err, "does not answer"));
	finish(&j);
	CHECK_EQ(status, 1);
	remove_rsh();
}

/* Set a variable to a frame of an agent, as a format of printf(1). */
static void frame_set(const char *name, enum agent_type type, unsigned int arg)
{
	char text[96];

	snprintf(text, sizeof(text), "\\%o\\0\\0\\0\\377\\377\\377\\377\\%o\\0\\0\\0\\0\\0\\0\\0",
		 (unsigned int)type, arg);
	setenv(name, text, 1);
}

/*
 * An agent dies before another one is ready: that one gets a request to end, and no job. It ignores
 * SIGTERM, which ends its shell.
 */
TEST(a_job_that_ends_starts_no_ranks)
{
	make_rsh();
	signal(SIGTERM, SIG_IGN);
	frame_set("READY", AGENT_READY, AGENT_VERSION);
	frame_set("DONE", AGENT_DONE, 0);
	RUN("-n", "2", "--hosts", "dies,late", "true");
	CHECK_EQ(status, 1);
	CHECK(strstr(err, "the agent on dies has died"));
	CHECK(strstr(err, "late got 0 bytes"));
	remove_rsh();
}

/* ---- an agent, whose front is the test ---- */

#define FLOODS		8u		/* ranks, which write at the same time */

static void agent_send(struct boot_stream *s, enum agent_type type, int arg, const void *payload,
		       size_t len)
{
	const struct boot_frame f = { type, BOOT_ALL, arg, (uint32_t)len };

	CHECK_EQ(boot_stream_send(s, &f, payload), 0);
	CHECK_EQ(boot_stream_queued(s), 0);
}

/* Read frames. Return the bytes of output in them; -1: no frame arrives within @ms. */
static int agent_output(struct boot_stream *s, int ms)
{
	struct pollfd p = { .fd = s->in, .events = POLLIN };
	const void *payload;
	struct boot_frame f;
	int n = 0;

	if (poll(&p, 1, ms) != 1)
		return -1;
	CHECK_EQ(boot_stream_fill(s), 0);
	while (!boot_stream_next(s, &f, &payload)) {
		CHECK(f.type == AGENT_READY || f.type == AGENT_OUTPUT || f.type == AGENT_ALIVE);
		n += f.type == AGENT_OUTPUT ? (int)f.len : 0;
	}
	return n;
}

static void agent_start_flood(struct boot_stream *s)
{
	char *argv[] = { program, NULL }, *none[] = { NULL }, empty[] = "", *data;
	struct agent_rank rank[FLOODS] = { 0 };
	const struct agent_job job = { .size = FLOODS, .nranks = FLOODS, .ranks = rank,
				       .cwd = empty, .argv = argv, .env = none,
				       .gateways = none };
	size_t len;

	for (uint32_t i = 0; i < FLOODS; i++)
		rank[i].rank = i;
	CHECK_EQ(job_pack(&job, &data, &len), 0);
	agent_send(s, AGENT_START, 0, data, len);
	free(data);
}

/* Give credit for all output, many times: the output without credit has the same limit. */
TEST(an_agent_sends_no_more_than_its_credit)
{
	const int limit = AGENT_OUTPUT_WINDOW + AGENT_LINE_MAX;
	int owed = 0, n;
	struct boot_stream s;
	struct job j;

	flood_counter();
	setenv("LAUNCH_RANK", "flood", 1);
	j = START("--agent");
	s = (struct boot_stream){ .in = j.out, .out = j.in };
	CHECK_EQ(fcntl(j.in, F_SETFL, O_NONBLOCK), 0);
	CHECK_EQ(fcntl(j.out, F_SETFL, O_NONBLOCK), 0);
	agent_start_flood(&s);
	for (unsigned int i = 0; i < 20; i++) {
		while (owed < (int)AGENT_OUTPUT_WINDOW) {
			n = agent_output(&s, TEST_WAIT_MS);
			CHECK(n >= 0);
			owed += n;
		}
		agent_send(&s, AGENT_CREDIT, owed, NULL, 0);
		owed = 0;
	}
	while ((n = agent_output(&s, 200)) >= 0 && owed <= limit)
		owed += n;
	CHECK(owed <= limit);
	boot_stream_free(&s);
	fcntl(j.out, F_SETFL, 0);
	finish(&j);
	CHECK_EQ(marked(), 0);
}

/* ---- lost machines ---- */

static pid_t child_of(pid_t pid, unsigned int n, bool leaders);

/* Stop the shell of the second host: nothing passes, but no connection ends. Return its group. */
static pid_t cut_second_host(const struct job *j)
{
	pid_t shell = child_of(j->pid, 1, false);

	CHECK_EQ(kill(-shell, SIGSTOP), 0);
	WAIT_UNTIL(test_process(shell).state == 'T', TEST_WAIT_MS);
	return shell;
}

static struct job start_lost(const char *keep)
{
	struct job j;

	make_rsh();
	setenv("SCI_HOSTS_TIMEOUT", "2", 1);
	j = START("-n", "2", "--hosts", "one,far", keep, "@lost");
	read_until(j.out, out, "ready\n");
	return j;
}

TEST(a_silent_machine_ends_the_job)
{
	struct job j = start_lost("--bind=none");

	cut_second_host(&j);
	finish(&j);
	CHECK_EQ(status, 1);
	CHECK(strstr(err, "far is lost: its agent has been silent for 2 s"));
	WAIT_UNTIL(!marked(), TEST_WAIT_MS);
	remove_rsh();
}

TEST(a_silent_machine_is_reported_with_keep)
{
	struct job j = start_lost("--keep");

	cut_second_host(&j);
	finish(&j);
	CHECK_EQ(status, 1);
	CHECK(strstr(err, "far is lost"));
	CHECK_EQ(count("lives"), 1);
	WAIT_UNTIL(!marked(), TEST_WAIT_MS);
	remove_rsh();
}

TEST(a_machine_whose_shell_ends_is_reported_with_keep)
{
	struct job j = start_lost("--keep");

	CHECK_EQ(kill(-child_of(j.pid, 1, false), SIGKILL), 0);
	finish(&j);
	CHECK_EQ(status, 1);
	CHECK(strstr(err, "the agent on far has died"));
	CHECK_EQ(count("lives"), 1);
	WAIT_UNTIL(!marked(), TEST_WAIT_MS);
	remove_rsh();
}

/* The front dies, and its machine's end of the connection stays open and silent. */
TEST(an_agent_ends_when_its_front_is_silent)
{
	struct job j = start_lost("--bind=none");
	pid_t shell = cut_second_host(&j);

	CHECK_EQ(kill(j.pid, SIGKILL), 0);
	/* the shell and two processes of cat */
	WAIT_UNTIL(marked() == 3, TEST_WAIT_MS);
	CHECK_EQ(kill(-shell, SIGKILL), 0);
	finish(&j);
	CHECK_EQ(status, -SIGKILL);
	WAIT_UNTIL(!marked(), TEST_WAIT_MS);
	remove_rsh();
}

/* The job stays stopped for longer than front and agents wait for each other, 3 and 9 s. */
TEST(a_job_on_other_machines_stops_and_goes_on)
{
	struct job j;

	make_rsh();
	setenv("SCI_HOSTS_TIMEOUT", "3", 1);
	j = START("-n", "2", "--hosts", "one,far", "sh", "-c",
		  "trap 'echo went on; exit 0' USR1; echo ready; while :; do sleep 0.1; done");
	read_until(j.out, out, "ready\nready\n");
	CHECK_EQ(kill(j.pid, SIGTSTP), 0);
	WAIT_UNTIL(test_process(j.pid).state == 'T', TEST_WAIT_MS);
	for (uint64_t until = test_now_ms() + 12000; test_now_ms() < until;)
		test_pause();
	CHECK_EQ(kill(j.pid, SIGCONT), 0);
	CHECK_EQ(kill(j.pid, SIGUSR1), 0);
	finish(&j);
	CHECK_EQ(status, 0);
	CHECK(!strstr(err, "lost"));
	CHECK_EQ(count("went on"), 2);
	WAIT_UNTIL(!marked(), TEST_WAIT_MS);
	remove_rsh();
}

/* The job is silent for longer than front and agents wait for each other, 3 and 9 s. */
TEST(a_quiet_job_on_other_machines_goes_on)
{
	make_rsh();
	setenv("SCI_HOSTS_TIMEOUT", "3", 1);
	RUN("-n", "2", "--hosts", "one,far", "sleep", "11");
	CHECK_EQ(status, 0);
	CHECK_EQ(err[0], 0);
	remove_rsh();
}

TEST(a_shell_that_closes_its_output_and_runs_on)
{
	make_rsh();
	RUN("-n", "2", "--hosts", "one,mute", "sleep", "1000");
	CHECK_EQ(status, 1);
	CHECK(strstr(err, "cannot start on mute"));
	remove_rsh();
}

TEST(SIGTERM_ends_a_shell_that_waits)
{
	struct job j;

	make_rsh();
	j = START("-n", "2", "--hosts", "one,slow", "true");
	read_until(j.err, err, "slow waits\n");
	CHECK_EQ(kill(j.pid, SIGTERM), 0);
	finish(&j);
	CHECK_EQ(status, 128 + SIGTERM);
	CHECK(!strstr(err, "does not answer"));
	WAIT_UNTIL(!marked(), TEST_WAIT_MS);
	remove_rsh();
}

TEST(SIGKILL_ends_a_shell_that_ignores_SIGTERM)
{
	struct job j;

	make_rsh();
	j = START("-n", "2", "--hosts", "one,deaf", "true");
	finish(&j);
	CHECK_EQ(status, 1);
	WAIT_UNTIL(!marked(), TEST_WAIT_MS);
	remove_rsh();
}

TEST(the_limit_of_silence_is_a_number_of_seconds)
{
	static const char *const wrong[] = { "1", "86401", "-3", "2s", "never" };

	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		setenv("SCI_HOSTS_TIMEOUT", wrong[i], 1);
		RUN("-n", "2", "--hosts", "one,two", "true");
		CHECK_EQ(status, 2);
		CHECK(strstr(err, "SCI_HOSTS_TIMEOUT") && strstr(err, wrong[i]));
	}
	make_rsh();
	setenv("SCI_HOSTS_TIMEOUT", "0", 1);
	RUN("-n", "2", "--hosts", "one,far", "@places");
	CHECK_EQ(status, 0);
	remove_rsh();
}

/* The default shell, ssh, is a script that prints its arguments. */
TEST(ssh_watches_its_connection)
{
	char dir[] = "/tmp/launch-XXXXXX", path[64], var[PATH_MAX];
	FILE *f;

	CHECK(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/ssh", dir);
	f = fopen(path, "w");
	CHECK(f);
	fputs("#!/bin/sh\necho $* >&2\nexit 7\n", f);
	CHECK_EQ(fchmod(fileno(f), 0700), 0);
	CHECK_EQ(fclose(f), 0);
	snprintf(var, sizeof(var), "%s:%.4000s", dir, getenv("PATH"));
	setenv("PATH", var, 1);
	unsetenv("SCI_RSH");
	RUN("-n", "1", "--hosts", "one", "true");
	unlink(path);
	rmdir(dir);
	CHECK_EQ(status, 1);
	CHECK(strstr(err, "-o ServerAliveInterval=1 -o ServerAliveCountMax=5 one "));
	CHECK(strstr(err, "cannot start on one: ssh ended with status 7"));
}

TEST(the_path_of_sci_is_quoted_for_the_remote_shell)
{
	char dir[] = "/tmp/launch-XXXXXX", path[64];

	make_rsh();
	paths();
	CHECK(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/it's a $(sci)", dir);
	CHECK_EQ(symlink(sci, path), 0);
	setenv("SCI_AGENT", path, 1);
	RUN("-n", "1", "--hosts", "words", "true");
	unlink(path);
	rmdir(dir);
	remove_rsh();
	CHECK_EQ(status, 0);
}

/* ---- PMIx ---- */

static void needs_mpirun(void)
{
	/* NOLINTNEXTLINE(cert-env33-c,concurrency-mt-unsafe): no user's words */
	if (system("command -v " MPIRUN " >/dev/null"))
		SKIP("there is no " MPIRUN);
}

TEST(mpirun_starts_ranks)
{
	needs_mpirun();
	RUN(MPIRUN_WORDS, "-n", "4", "@places");
	CHECK_EQ(status, 0);
	for (unsigned int i = 0; i < 4; i++) {
		char line[64];

		snprintf(line, sizeof(line), "%u/4 local %u/4 node 0", i, i);
		CHECK_EQ(count(line), 1);
	}
	RUN(MPIRUN_WORDS, "-n", "3", "@values");
	CHECK_EQ(status, 0);
	CHECK_EQ(count("values"), 3);
	RUN(MPIRUN_WORDS, "-n", "3", "@abort");
	CHECK_EQ(status, 33);
}

/* The only directory for files of Open MPI and of the PMIx server. */
static char mpi_dir[] = "/tmp/launch-XXXXXX";

static void mpi_begin(void)
{
	needs_mpirun();
	strcpy(mpi_dir + strlen(mpi_dir) - 6, "XXXXXX");
	CHECK(mkdtemp(mpi_dir));
	setenv("TMPDIR", mpi_dir, 1);
	setenv("OMPI_MCA_btl_vader_backing_directory", mpi_dir, 1);
}

static int file_note(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	test_note("left: %s", path);
	return 0;
}

/* Remove the directory. This fails if it contains a file. */
static void mpi_end(void)
{
	if (rmdir(mpi_dir)) {
		nftw(mpi_dir, file_note, 16, FTW_PHYS);
		FAIL("MPI's files are left");
	}
	unsetenv("TMPDIR");
	unsetenv("OMPI_MCA_btl_vader_backing_directory");
}

TEST(MPI_programs_start_without_mpirun)
{
	mpi_begin();
	RUN("-n", "4", "--pmix", "@mpi");
	CHECK_EQ(status, 0);
	for (int i = 0; i < 4; i++) {
		char line[32];

		snprintf(line, sizeof(line), "%d has 6\n", i);
		CHECK_EQ(count(line), 1);
	}
	mpi_end();
	RUN("-n", "2", "--pmix", "--hosts", "one,two", "@mpi");
	CHECK_EQ(status, 2);
}

TEST(SIGKILL_of_a_rank_of_an_MPI_program)
{
	mpi_begin();
	setenv("MPI_KILL", "1", 1);
	RUN("-n", "4", "--pmix", "@mpi");
	unsetenv("MPI_KILL");
	CHECK_EQ(status, 128 + SIGKILL);
	CHECK_EQ(count(" has 6\n"), 4);
	mpi_end();
}

TEST(values_by_sci_run)
{
	RUN("-n", "3", "@values");
	CHECK_EQ(status, 0);
	CHECK_EQ(count("values"), 3);
}

/* ---- death at any time ---- */

static uint64_t longest_ms;	/* from a SIGKILL to the end of all processes of the job */

/*
 * Return child @n, modulo their number, of @pid; 0: it has no children. With @leaders only
 * leaders of a process group count: ranks, but not processes that ranks have left behind.
 */
static pid_t child_of(pid_t pid, unsigned int n, bool leaders)
{
	char path[64];
	pid_t list[16];
	unsigned int k = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
	f = fopen(path, "r");
	while (f && k < ARRAY_LEN(list) && fscanf(f, "%d", &list[k]) == 1)
		k += !leaders || getpgid(list[k]) == list[k];
	if (f)
		fclose(f);
	return k ? list[n % k] : 0;
}

/* Return the front, a guard, an agent or a rank: the deepest of these that exists. */
static pid_t victim_of(pid_t front, unsigned int depth, unsigned int seed)
{
	pid_t pid = front, next;

	for (unsigned int i = 0; i < depth; i++) {
		next = child_of(pid, seed, i == 2);
		if (!next)
			break;
		pid = next;
	}
	return pid;
}

static void killed_at(struct job *j, unsigned int delay, unsigned int depth, unsigned int seed)
{
	uint64_t begun, taken;
	pid_t victim;

	for (uint64_t until = test_now_ms() + delay; test_now_ms() < until;)
		test_pause();
	victim = victim_of(j->pid, depth, seed);
	begun = test_now_ms();
	kill(victim, SIGKILL);
	finish(j);
	test_at(NULL);
	if (victim == j->pid)
		CHECK_EQ(status, -SIGKILL);
	else
		CHECK(status > 0);
	WAIT_UNTIL(!marked(), TEST_WAIT_MS);
	taken = test_now_ms() - begun;
	longest_ms = taken > longest_ms ? taken : longest_ms;
}

static void longest_note(void)
{
	test_note("longest time from SIGKILL to the end: %llu ms", (unsigned long long)longest_ms);
}

static void kill_many(const char *hosts)
{
	const char *n = getenv("LAUNCH_KILLS");
	unsigned int times = test_calls(n ? (unsigned int)atoi(n) : 50), seed = 1;

	for (unsigned int i = 0; i < times; i++) {
		struct job j = START("-n", "4", "--hosts", hosts, "@tree");

		seed = seed * 1103515245 + 12345;
		killed_at(&j, seed / 65536 % (TEST_ASAN ? 120 : 30), i % 4, seed >> 8);
	}
	longest_note();
}

/* SIGKILL with the PMIx server for MPI programs. */
TEST(SIGKILL_of_any_process_of_a_job_with_PMIx)
{
	unsigned int times = test_calls(20), seed = 7;

	mpi_begin();
	for (unsigned int i = 0; i < times; i++) {
		struct job j = START("-n", "4", "--pmix", "@tree");

		seed = seed * 1103515245 + 12345;
		killed_at(&j, seed / 65536 % (TEST_ASAN ? 400 : 100), i % 4, seed >> 8);
	}
	longest_note();
	mpi_end();
}

TEST(SIGKILL_of_any_process_of_a_job)
{
	kill_many("localhost");
}

TEST(SIGKILL_of_any_process_of_a_job_on_two_machines)
{
	make_rsh();
	kill_many("one,two");
	remove_rsh();
}
