// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Tests start and end, arguments, ranks, queries, files, deaths, and Fortran names. */

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "selftests/smi/start.h"

/* ---- arguments ---- */

static void check_args(const char *const *in, int n, const char *const *out, int left)
{
	char *args[16], **argv = args;
	int argc = n;

	for (int i = 0; i < n; i++)
		args[i] = (char *)(uintptr_t)in[i];
	args[n] = NULL;
	optind = 7;
	CHECK_SMI(SMI_Init(&argc, &argv));
	CHECK_EQ(argc, left);
	for (int i = 0; i < left; i++)
		CHECK(!strcmp(argv[i], out[i]));
	CHECK(!argv[left]);
	CHECK_EQ(optind, 1);
	CHECK_SMI(SMI_Init(&argc, &argv));
	CHECK_EQ(argc, left);
	CHECK_SMI(SMI_Finalize());
}

TEST(arguments_of_a_launcher_are_removed)
{
	static const char *const in[] = { "prog", "-r", "0", "-n", "1", "-h", "host", "-m",
					  "4711", "-w", "-v", "--", "-x", "--", "y" };
	static const char *const out[] = { "prog", "-x", "--", "y" };

	check_args(in, 15, out, 4);
}

TEST(an_argument_switches_signals_off)
{
	static const char *const in[] = { "prog", "-r", "0", "-n", "1", "-h", "host", "-m",
					  "4711", "-g", "-s", "-l", "--", NULL };
	char *args[14], **argv = args;
	int argc = 13, n = 1;

	for (int i = 0; i < 14; i++)
		args[i] = (char *)(uintptr_t)in[i];
	CHECK_SMI(SMI_Init(&argc, &argv));
	CHECK_EQ(argc, 1);
	CHECK_SMI(SMI_Query(SMI_Q_SMI_SIGNALS_AVAILABLE, 0, &n));
	CHECK_EQ(n, 0);
	CHECK_EQ(SMI_Signal_send(0), SMI_ERR_NOTIMPL);
	CHECK_EQ(SMI_Signal_wait(0), SMI_ERR_NOTIMPL);
	CHECK_SMI(SMI_Finalize());
}

TEST(arguments_of_the_program_stay)
{
	static const char *const in[] = { "prog", "-n", "5", "file", "--", "-v" };

	check_args(in, 6, in, 6);
}

TEST(without_arguments_it_starts_alone)
{
	int n = 0;

	CHECK_EQ(SMI_Barrier(), SMI_ERR_NOINIT);
	CHECK_EQ(SMI_Proc_rank(&n), SMI_ERR_NOINIT);
	CHECK_SMI(SMI_Query(SMI_Q_SMI_INITIALIZED, 0, &n));
	CHECK_EQ(n, 0);
	smi_start();
	CHECK_EQ(size, 1);
	CHECK_SMI(SMI_Query(SMI_Q_SMI_INITIALIZED, 0, &n));
	CHECK_EQ(n, 1);
	smi_stop();
	CHECK_EQ(SMI_Barrier(), SMI_ERR_NOINIT);
	CHECK_EQ(SMI_Finalize(), SMI_ERR_NOINIT);
}

/* ---- ranks and queries ---- */

static void ranks(void)
{
	int n, first, local, most, count = 0;
	char name[300];
	size_t len = 1;

	smi_start();
	for (int i = 0; i < size; i++) {
		CHECK_SMI(SMI_Proc_to_node(i, &n));
		CHECK_SMI(SMI_First_proc_on_node(n, &first));
		CHECK(first <= i);
		if (i == rank)
			CHECK_EQ(n, node);
		if (n == node)
			count++;
	}
	CHECK_SMI(SMI_Local_proc_size(&n));
	CHECK_EQ(n, count);
	CHECK_SMI(SMI_Max_local_proc_size(&most));
	CHECK(most >= n);
	CHECK_SMI(SMI_Local_proc_rank(&local));
	CHECK_SMI(SMI_First_proc_on_node(node, &first));
	CHECK_EQ(first + local, rank);
	CHECK_EQ(SMI_Proc_to_node(size, &n), SMI_ERR_PARAM);
	CHECK_EQ(SMI_First_proc_on_node(nodes, &n), SMI_ERR_PARAM);
	CHECK_EQ(SMI_Proc_rank(NULL), SMI_ERR_PARAM);
	CHECK_EQ(SMI_Get_node_name(name, &len), SMI_ERR_OTHER);
	len = sizeof(name);
	CHECK_SMI(SMI_Get_node_name(name, &len));
	CHECK_EQ(len, strlen(name));
	CHECK_SMI(SMI_Page_size(&n));
	CHECK_EQ(n, sysconf(_SC_PAGESIZE));
	smi_stop();
}

TEST_SIZES(ranks, ranks)

static void queries(void)
{
	static const int numbers[] = {
		SMI_Q_SCI_STREAMBUFSIZE, SMI_Q_SCI_NBRSTREAMBUFS, SMI_Q_SCI_NBRADAPTERS,
		SMI_Q_SCI_ID, SMI_Q_SCI_PACKETSIZE, SMI_Q_SCI_DMA_SIZE_ALIGN,
		SMI_Q_SCI_DMA_OFFSET_ALIGN, SMI_Q_SCI_DMA_MAXSIZE, SMI_Q_SCI_NBR_PHYS_DIMS,
		SMI_Q_SCI_PHYS_DIM_EXTENT, SMI_Q_SCI_PROC_ID, SMI_Q_SYS_NBRCPUS,
		SMI_Q_SYS_PAGESIZE, SMI_Q_SYS_PID, SMI_Q_SYS_TICK_DURATION,
		SMI_Q_SYS_CPU_CACHELINELEN, SMI_Q_SMI_NBR_APP_DIMS,
		SMI_Q_SMI_APP_DIM_EXTENT, SMI_Q_SMI_SIGNALS_AVAILABLE,
	};
	char version[8];
	size_t bytes = 0;
	int n;

	smi_start();
	for (unsigned int i = 0; i < ARRAY_LEN(numbers); i++) {
		n = -4711;
		CHECK_SMI(SMI_Query(numbers[i], 0, &n));
		CHECK(n > 0);
	}
	CHECK_SMI(SMI_Query(SMI_Q_SYS_PID, rank, &n));
	CHECK_EQ(n, getpid());
	CHECK_SMI(SMI_Query(SMI_Q_SCI_VALIDADAPTER, 0, &n));
	CHECK_EQ(n, 1);
	CHECK_SMI(SMI_Query(SMI_Q_SCI_VALIDADAPTER, 9, &n));
	CHECK_EQ(n, 0);
	CHECK_EQ(SMI_Query(SMI_Q_SCI_STREAMBUFSIZE, 9, &n), SMI_ERR_PARAM);
	CHECK_SMI(SMI_Query(SMI_Q_SCI_CONNECTION_STATE, 0, &n));
	CHECK_EQ(n, SMI_SUCCESS);
	CHECK_SMI(SMI_Query(SMI_Q_SCI_API_VERSION, sizeof(version), version));
	CHECK(strlen(version) < sizeof(version));
	CHECK_EQ(SMI_Query((smi_query_t)999, 0, &n), SMI_ERR_PARAM);
	CHECK_EQ(SMI_Query((smi_query_t)1, 0, &n), SMI_ERR_PARAM);
	CHECK_EQ(SMI_Query(SMI_Q_SYS_PID, size, &n), SMI_ERR_PARAM);
	CHECK_EQ(SMI_Query(SMI_Q_SYS_PID, 0, NULL), SMI_ERR_PARAM);
	CHECK_SMI(SMI_Query(SMI_Q_SMI_REGION_SGMT_ID, 999, &n));
	CHECK_EQ(n, -1);
	CHECK_EQ(SMI_Query(SMI_Q_SMI_REGION_SIZE, 999, &bytes), SMI_ERR_PARAM);
	smi_stop();
}

TEST(queries_1) { ranks_run(1, 1, queries); }
TEST(queries_2) { ranks_run(2, 1, queries); }
TEST(queries_16_on_4) { ranks_run(16, 4, queries); }

/* ---- time and files ---- */

TEST(time_goes_on)
{
	double t = SMI_Wtime();
	int s, us;
	uint64_t ticks = 0, later;
	long wticks = SMI_Wticks();

	SMI_Get_ticks(&ticks);
	CHECK(ticks >= (uint64_t)wticks);
	CHECK_SMI(SMI_Get_timer(&s, &us));
	CHECK(s > 1000000 && us >= 0 && us < 1000000);
	usleep(2000);
	CHECK_SMI(SMI_Get_timespan(&s, &us));
	CHECK(s > 0 || us >= 2000);
	CHECK(SMI_Wtime() >= t + 0.002);
	SMI_Get_ticks(&later);
	CHECK(later >= ticks + 2000000);
	CHECK(SMI_Wticks() >= wticks + 2000000);
}

/* Programs call SMI_Init_direct() without a prototype. */
smi_error_t SMI_Init_direct(void *args);

static void init_direct(void)
{
	int n, err = SMI_Init_direct(NULL);

	smi_skip_sockets(err);
	CHECK_SMI(err);
	CHECK_SMI(SMI_Proc_size(&n));
	CHECK_EQ(n, 2);
	CHECK_SMI(SMI_Barrier());
	CHECK_SMI(SMI_Finalize());
}

TEST(it_starts_by_the_name_without_a_prototype) { ranks_run(2, 2, init_direct); }

/* The fabric of these tests has adapter 0 only. */
static void adapter_of_the_environment(void)
{
	CHECK_EQ(setenv("SMI_USE_ADAPTER", "1", 1), 0);
	CHECK(SMI_Init(NULL, NULL));
	CHECK_EQ(SMI_Barrier(), SMI_ERR_NOINIT);
}

TEST(an_adapter_of_the_environment_that_does_not_exist_is_an_error)
{
	ranks_run(2, 2, adapter_of_the_environment);
}

static void redirected(void)
{
	char out[PATH_MAX], line[PATH_MAX + 16], want[128];
	FILE *f;

	smi_start();
	snprintf(out, sizeof(out), "%s/out", test_dir());
	CHECK_EQ(SMI_Redirect_IO(SMI_IO_ASIS, NULL, SMI_IO_FILE, NULL, SMI_IO_ASIS, NULL),
		 SMI_ERR_PARAM);
	CHECK_SMI(SMI_Redirect_IO(SMI_IO_ASIS, NULL, SMI_IO_FILE, out, SMI_IO_ASIS, NULL));
	CHECK_SMI(SMI_Redirect_IO(SMI_IO_FILE, out, SMI_IO_ASIS, NULL, SMI_IO_ASIS, NULL));
	printf("I am %d\n", rank);
	smi_stop();
	snprintf(line, sizeof(line), "%s.%d", out, rank);
	snprintf(want, sizeof(want), "I am %d\n", rank);
	f = fopen(line, "r");
	CHECK(f && fgets(line, sizeof(line), f));
	CHECK(!strcmp(line, want));
	fclose(f);
}

TEST(output_goes_to_a_file_of_each_process)
{
	ranks_run(3, 1, redirected);
}

/* Sockets connect the team, but they cannot map regions. */
static void over_sockets(void)
{
	test_use_net("unix", 4 * (1 + ranks_rank()));
	CHECK_EQ(SMI_Init(NULL, NULL), SMI_ERR_NODEVICE);
}

TEST(sockets_are_refused)
{
	test_needs_shm();
	ranks_run(2, 2, over_sockets);
}

/* ---- abnormal ends ---- */

static int *ended;			/* in shared memory: number of processes in note_end() */

/* Count the call, and exit with 0: the watchdog would exit with an error after its callback. */
static void note_end(void)
{
	__atomic_add_fetch(ended, 1, __ATOMIC_SEQ_CST);
	_exit(0);
}

enum {
	IN_BARRIER, IN_SIGNAL, IN_RECV, IN_COUNTER, IN_NOTHING
};

static void wait_for_the_dead(int how)
{
	int in, id = 0;

	switch (how) {
	case IN_BARRIER:
		SMI_Barrier();
		break;
	case IN_SIGNAL:
		SMI_Signal_wait(SMI_SIGNAL_ANY);
		break;
	case IN_RECV:
		SMI_Recv(&in, sizeof(in), 1);
		break;
	case IN_COUNTER:
		SMI_Wait_individual_PC(id, 1, 1);
	}
	/* the call may return an error before the watchdog acts */
	for (;;)
		pause();
}

static void die(void *arg)
{
	int id;

	smi_start();
	smi_region(SMI_SHM_BLOCKED, 64u << 10, 0, &id);
	CHECK_SMI(SMI_Watchdog_callback(note_end));
	CHECK_SMI(SMI_Init_PC(&id));
	CHECK_SMI(SMI_Barrier());
	if (rank == 1)
		raise(SIGKILL);
	wait_for_the_dead(*(int *)arg);
}

static void run_death(int how, unsigned int n, unsigned int on)
{
	ended = test_shared(sizeof(*ended));
	ranks_run_arg(n, on, die, &how, true);
	CHECK_EQ(*ended, n - 1);
}

TEST(a_death_ends_those_in_a_barrier) { run_death(IN_BARRIER, 16, 4); }
TEST(a_death_ends_those_that_wait_for_a_signal) { run_death(IN_SIGNAL, 2, 2); }
TEST(a_death_ends_those_that_receive) { run_death(IN_RECV, 8, 1); }
TEST(a_death_ends_those_that_wait_for_a_counter) { run_death(IN_COUNTER, 4, 2); }
TEST(a_death_ends_those_that_compute) { run_death(IN_NOTHING, 2, 1); }

/* The stopped process is silent. The first process kills it, so that the test can end. */
static int stopped_pid;

static void note_silence(void)
{
	if (!rank) {
		WAIT_UNTIL(*(int volatile *)ended == size - 2, TEST_WAIT_MS);
		kill(stopped_pid, SIGKILL);
	}
	note_end();
}

static void stop(void *arg)
{
	(void)arg;
	smi_start();
	CHECK_SMI(SMI_Query(SMI_Q_SYS_PID, 1, &stopped_pid));
	CHECK_SMI(SMI_Watchdog_callback(note_silence));
	CHECK_SMI(SMI_Watchdog(1));
	CHECK_SMI(SMI_Barrier());
	if (rank == 1)
		raise(SIGSTOP);
	wait_for_the_dead(IN_NOTHING);
}

TEST(a_silent_process_counts_as_dead)
{
	ended = test_shared(sizeof(*ended));
	ranks_run_arg(4, 2, stop, NULL, true);
	CHECK_EQ(*ended, 3);
}

/* No process may wait for the silent process in a put. */
TEST(a_silent_process_counts_as_dead_where_teams_share_no_memory)
{
	setenv("SCI_TEAM_MEMORY", "none", 1);
	ended = test_shared(sizeof(*ended));
	ranks_run_arg(4, 2, stop, NULL, true);
	CHECK_EQ(*ended, 3);
}

static void abort_all(void *arg)
{
	(void)arg;
	smi_start();
	CHECK_SMI(SMI_Watchdog_callback(note_end));
	CHECK_SMI(SMI_Watchdog(SMI_WATCHDOG_DISABLE));
	CHECK_SMI(SMI_Barrier());
	if (rank == 2)
		SMI_Abort(-1);
	wait_for_the_dead(IN_NOTHING);
}

TEST(an_abort_ends_all)
{
	ended = test_shared(sizeof(*ended));
	ranks_run_arg(16, 4, abort_all, NULL, true);
	CHECK_EQ(*ended, 16);
}

/* Without a watchdog, calls return an error, and SMI_Finalize() does not hang. */
static void no_watchdog(void *arg)
{
	int in, mutex, id;

	(void)arg;
	smi_start();
	smi_region(SMI_SHM_BLOCKED, 64u << 10, 0, &id);
	CHECK_SMI(SMI_Watchdog(SMI_WATCHDOG_OFF));
	CHECK_SMI(SMI_Mutex_init(&mutex));
	CHECK_SMI(SMI_Init_PC(&id));
	if (rank == 1)
		CHECK_SMI(SMI_Mutex_lock(mutex));
	CHECK_SMI(SMI_Barrier());
	if (rank == 1)
		raise(SIGKILL);
	CHECK_EQ(SMI_Recv(&in, sizeof(in), 1), SMI_ERR_OTHER);
	CHECK_EQ(SMI_Signal_wait(SMI_SIGNAL_ANY), SMI_ERR_OTHER);
	CHECK_EQ(SMI_Wait_individual_PC(id, 1, 1), SMI_ERR_OTHER);
	CHECK_EQ(SMI_Barrier(), SMI_ERR_OTHER);
	if (rank == 0)
		CHECK_EQ(SMI_Mutex_lock(mutex), SMI_ERR_OTHER);
	CHECK(SMI_Finalize() != SMI_SUCCESS);
}

TEST(without_a_watchdog_calls_fail)
{
	ranks_run_arg(3, 1, no_watchdog, NULL, true);
}

/* One process sends signals, while another one waits for the dead. */
static void no_watchdog_in_traffic(void *arg)
{
	int *over = arg, in;

	smi_start();
	CHECK_SMI(SMI_Watchdog(SMI_WATCHDOG_OFF));
	CHECK_SMI(SMI_Barrier());
	if (rank == 1)
		raise(SIGKILL);
	if (rank == 0)
		CHECK_EQ(SMI_Recv(&in, sizeof(in), 1), SMI_ERR_OTHER);
	if (rank == 0)
		__atomic_store_n(over, 1, __ATOMIC_SEQ_CST);
	while (!__atomic_load_n(over, __ATOMIC_SEQ_CST)) {
		CHECK_SMI(SMI_Signal_send(0));
		test_pause();
	}
	CHECK(SMI_Finalize() != SMI_SUCCESS);
}

TEST(without_a_watchdog_a_receive_fails_while_signals_arrive)
{
	ranks_run_arg(3, 1, no_watchdog_in_traffic, test_shared(sizeof(int)), true);
}

/* Wait twice for the dead process: each of the other processes has tested for deaths by then. */
static void wait_for_tests(void)
{
	int in;

	for (int i = 0; i < 2; i++)
		CHECK_EQ(SMI_Recv(&in, sizeof(in), 1), SMI_ERR_OTHER);
}

/* Processes wait for a living process, while another one is dead. */
static void no_watchdog_among_the_living(void *arg)
{
	int in = 0, out[] = { 5, 6, 7 };

	(void)arg;
	smi_start();
	CHECK_SMI(SMI_Watchdog(SMI_WATCHDOG_OFF));
	CHECK_SMI(SMI_Barrier());
	if (rank == 1)
		raise(SIGKILL);
	if (rank == 2) {
		wait_for_tests();
		for (int i = 0; i < 2; i++) {
			CHECK_SMI(SMI_Recv(&in, sizeof(in), 0));
			CHECK_EQ(in, out[i]);
		}
		CHECK_SMI(SMI_Signal_send(3));
		CHECK_SMI(SMI_Send(&out[2], sizeof(in), 4));
	} else if (!rank) {
		CHECK_SMI(SMI_Send(&out[0], sizeof(in), 2));
		CHECK_SMI(SMI_Send(&out[1], sizeof(in), 2));
	} else if (rank == 3) {
		CHECK_SMI(SMI_Signal_wait(2));
	} else {
		CHECK_SMI(SMI_Recv(&in, sizeof(in), 2));
		CHECK_EQ(in, out[2]);
	}
	CHECK(SMI_Finalize() != SMI_SUCCESS);
}

TEST(without_a_watchdog_calls_that_wait_for_the_living_succeed)
{
	ranks_run_arg(5, 1, no_watchdog_among_the_living, NULL, true);
}

TEST(an_abort_alone_exits_with_its_code)
{
	int status;
	pid_t pid = test_fork();

	if (!pid) {
		smi_start();
		SMI_Abort(7);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

/* ---- Fortran ---- */

void smi_init_(int *error);
void smi_finalize_(int *error);
void smi_proc_rank_(int *n, int *error);
void smi_proc_size_(int *n, int *error);
void smi_node_rank_(int *n, int *error);
void smi_node_size_(int *n, int *error);
void smi_proc_to_node_(int *proc, int *n, int *error);
void smi_page_size_(int *n, int *error);
void smi_create_shreg_(int *type, smi_region_info_t *info, int *id, void **p, int *error);
void smi_free_shreg_(int *id, int *error);
void smi_adr_to_region_(void **adr, int *id, int *error);
void smi_init_shregmmu_(int *id, int *error);
void smi_imalloc_(int *size, int *id, void **adr, int *error);
void smi_cmalloc_(int *size, int *id, void **adr, int *error);
void smi_ifree_(void **adr, int *error);
void smi_cfree_(void **adr, int *error);
void smi_switch_to_replication_(int *id, int *mode, int *p1, int *p2, int *p3, int *error);
void smi_switch_to_sharing_(int *id, int *mode, int *p1, int *p2, int *error);
void smi_ensure_consistency_(int *id, int *mode, int *p1, int *p2, int *error);
void smi_mutex_init_(int *id, int *error);
void smi_mutex_init_with_locality_(int *id, int *proc, int *error);
void smi_mutex_destroy_(int *id, int *error);
void smi_mutex_lock_(int *id, int *error);
void smi_mutex_unlock_(int *id, int *error);
void smi_barrier_(int *error);
void smi_loop_init_(int *id, int *low, int *high, int *mode, int *error);
void smi_loop_free_(int *id, int *error);
void smi_loop_k_adaption_mode_(int *id, int *mode, int *dist, int *error);
void smi_evaluate_speed_(double *speeds, int *error);
void smi_use_evaluated_speed_(int *id, int *error);
void smi_set_loop_param_(int *id, double *k, int *min_local, int *min_remote, int *max_local,
			 int *max_remote, int *error);
void smi_set_loop_help_param_(int *id, int *dist, int *error);
void smi_get_timer_(int *s, int *us, int *error);
void smi_get_timespan_(int *s, int *us, int *error);
void smi_redirect_io_(int *err, void *errname, int *out, void *outname, int *in, void *inname,
		      int *error);
void smi_get_iterations_(int *id, int *status, int *low, int *high, int *error);

#define CHECK_FORTRAN(name, ...)					\
	do {								\
		int error = -1;						\
		smi_##name##_(__VA_ARGS__ &error);			\
		CHECK_EQ(error, SMI_SUCCESS);				\
	} while (0)

static void fortran(void)
{
	int n, me, type = SMI_SHM_UNDIVIDED, id, mutex, loop, low = 1, high = 100, status;
	int mode = SMI_PART_BLOCKED;
	int *sum;
	smi_region_info_t info;

	smi_init_(&n);
	smi_skip_sockets(n);
	CHECK_SMI(n);
	CHECK_FORTRAN(proc_rank, &me,);
	CHECK_FORTRAN(proc_size, &n,);
	CHECK_EQ(me, (int)ranks_rank());
	SMI_Init_reginfo(&info, 4096, 0, 0, SMI_ADPT_DEFAULT, 0, 0, NULL);
	CHECK_FORTRAN(create_shreg, &type, &info, &id, (void **)&sum,);
	CHECK_FORTRAN(mutex_init, &mutex,);
	CHECK_FORTRAN(loop_init, &loop, &low, &high, &mode,);
	do {
		CHECK_FORTRAN(get_iterations, &loop, &status, &low, &high,);
		CHECK_FORTRAN(mutex_lock, &mutex,);
		for (int i = low; i <= high; i++)
			*sum += i;
		CHECK_FORTRAN(mutex_unlock, &mutex,);
	} while (status != SMI_LOOP_READY);
	CHECK_FORTRAN(barrier,);
	CHECK_EQ(*sum, 5050);
	CHECK_FORTRAN(barrier,);
	CHECK_FORTRAN(free_shreg, &id,);
	CHECK_FORTRAN(finalize,);
}

/* Compare the results of Fortran names with those of the C calls. */
static void fortran_numbers(void)
{
	int n, mine, s, us, t, ut;

	CHECK_FORTRAN(node_rank, &n,);
	CHECK_SMI(SMI_Node_rank(&mine));
	CHECK_EQ(n, mine);
	s = (int)ranks_rank();
	CHECK_FORTRAN(proc_to_node, &s, &n,);
	CHECK_EQ(n, mine);
	CHECK_FORTRAN(node_size, &n,);
	CHECK_SMI(SMI_Node_size(&mine));
	CHECK_EQ(n, mine);
	CHECK_FORTRAN(page_size, &n,);
	CHECK_SMI(SMI_Page_size(&mine));
	CHECK_EQ(n, mine);
	CHECK_FORTRAN(get_timer, &s, &us,);
	CHECK_SMI(SMI_Get_timer(&t, &ut));
	CHECK(t > s || (t == s && ut >= us));
	CHECK(us >= 0 && us < 1000000);
	CHECK_FORTRAN(get_timespan, &s, &us,);
	CHECK(s >= 0 && us >= 0 && us < 1000000);
	n = SMI_IO_ASIS;
	CHECK_FORTRAN(redirect_io, &n, NULL, &n, NULL, &n, NULL,);
}

static void fortran_blocks(int id)
{
	int bytes = 512, found, first = 0;
	void *mine, *common;

	CHECK_FORTRAN(init_shregmmu, &id,);
	CHECK_FORTRAN(imalloc, &bytes, &id, &mine,);
	CHECK_FORTRAN(adr_to_region, &mine, &found,);
	CHECK_EQ(found, id);
	memset(mine, 1, (size_t)bytes);
	CHECK_FORTRAN(cmalloc, &bytes, &id, &common,);
	if (!ranks_rank())
		*(int *)common = 7;
	CHECK_FORTRAN(barrier,);
	first = *(int *)common;
	CHECK_EQ(first, 7);
	CHECK_FORTRAN(cfree, &common,);
	CHECK_FORTRAN(ifree, &mine,);
	smi_ifree_(&mine, &found);
	CHECK_EQ(found, SMI_ERR_PARAM);
}

/* Process 0 changes its copy of a replicated region, and the others get it. */
static void fortran_copies(int id, volatile int *word)
{
	int all = SMI_REP_EVERYTHING, source = SMI_SHR_SINGLE_SOURCE, none = SMI_SHR_NOTHING;
	int zero = 0;

	CHECK_FORTRAN(switch_to_replication, &id, &all, &zero, &zero, &zero,);
	*word = ranks_rank() ? 2 : 1;
	CHECK_FORTRAN(ensure_consistency, &id, &source, &zero, &zero,);
	CHECK_EQ(*word, 1);
	CHECK_FORTRAN(switch_to_sharing, &id, &none, &zero, &zero,);
	CHECK_FORTRAN(barrier,);
}

static void fortran_loop(void)
{
	int loop, low = 1, high = 100, mode = SMI_PART_ADAPTED_BLOCKED, adapt = SMI_ADAPT_EXPO, dist = 1;
	double k = 2.0, speed[RANKS_MAX];
	int least = 1, most = 50;

	CHECK_FORTRAN(loop_init, &loop, &low, &high, &mode,);
	CHECK_FORTRAN(set_loop_param, &loop, &k, &least, &least, &most, &most,);
	CHECK_FORTRAN(set_loop_help_param, &loop, &dist,);
	CHECK_FORTRAN(loop_k_adaption_mode, &loop, &adapt, &dist,);
	CHECK_FORTRAN(evaluate_speed, speed,);
	CHECK(speed[ranks_rank()] > 0);
	CHECK_FORTRAN(use_evaluated_speed, &loop,);
	CHECK_FORTRAN(loop_free, &loop,);
	CHECK_EQ(SMI_Loop_free(loop), SMI_ERR_PARAM);
}

static void fortran_rest(void)
{
	int n, type = SMI_SHM_UNDIVIDED, id, copied, mutex, last, place;
	smi_region_info_t info;
	int *words;

	smi_init_(&n);
	smi_skip_sockets(n);
	CHECK_SMI(n);
	fortran_numbers();
	SMI_Init_reginfo(&info, 65536, 0, 0, SMI_ADPT_DEFAULT, 0, 0, NULL);
	CHECK_FORTRAN(create_shreg, &type, &info, &id, (void **)&words,);
	fortran_blocks(id);
	SMI_Init_reginfo(&info, 65536, 0, 0, SMI_ADPT_DEFAULT, 0, 0, NULL);
	CHECK_FORTRAN(create_shreg, &type, &info, &copied, (void **)&words,);
	fortran_copies(copied, words);
	CHECK_FORTRAN(proc_size, &last,);
	last--;
	CHECK_FORTRAN(mutex_init_with_locality, &mutex, &last,);
	CHECK_SMI(SMI_Location_of_mutex(mutex, &place));
	CHECK_EQ(place, last);
	CHECK_FORTRAN(mutex_destroy, &mutex,);
	CHECK_EQ(SMI_Mutex_lock(mutex), SMI_ERR_PARAM);
	fortran_loop();
	CHECK_FORTRAN(finalize,);
}

TEST(fortran_rest_2) { ranks_run(2, 1, fortran_rest); }
TEST(fortran_rest_4_on_2) { ranks_run(4, 2, fortran_rest); }

TEST(fortran_2) { ranks_run(2, 1, fortran); }
TEST(fortran_8_on_2) { ranks_run(8, 2, fortran); }
