// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Nodes meet in a directory, SCI_RUNDIR, instead of the network namespace: all calls work, and
 * files of dead processes are removed.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sisci_api.h>

#include "libsci/fabric/core/fabric.h"
#include "selftests/harness.h"

#define SIZE	8192u
#define ID	10u

static char rundir[128];

static void remove_rundir(void)
{
	DIR *dir = opendir(rundir);
	struct dirent *e;

	while (dir && (e = readdir(dir)))
		unlinkat(dirfd(dir), e->d_name, 0);
	if (dir)
		closedir(dir);
	rmdir(rundir);
}

/* Make the directory. Peers spawned later use it; only the test's process removes it. */
static void use_rundir(void)
{
	const char *tmp = getenv("TMPDIR");

	test_needs_shm();
	snprintf(rundir, sizeof(rundir), "%s/sci-rundir.XXXXXX",
		 tmp ? tmp : "/tmp");
	CHECK(mkdtemp(rundir) != NULL);
	setenv("SCI_RUNDIR", rundir, 1);
}

/* Count the names of @kind in the directory. */
static unsigned int count_names(const char *kind)
{
	DIR *dir = opendir(rundir);
	struct dirent *e;
	unsigned int n = 0;
	char part[16];

	CHECK(dir != NULL);
	snprintf(part, sizeof(part), ".%s.", kind);
	while ((e = readdir(dir)))
		n += e->d_name[0] != '.' && strstr(e->d_name, part);
	closedir(dir);
	return n;
}

static void check_empty(void)
{
	DIR *dir = opendir(rundir);
	struct dirent *e;
	unsigned int left = 0;

	CHECK(dir != NULL);
	while ((e = readdir(dir))) {
		if (e->d_name[0] == '.')
			continue;
		test_note("left: %s", e->d_name);
		left++;
	}
	closedir(dir);
	CHECK_EQ(left, 0);
}

static void own_everything(sci_desc_t sd)
{
	test_segment(sd, ID, SIZE, 0);
	test_interrupt(sd, ID);
	test_data_interrupt(sd, ID);
	test_segment(sd, ID + 1, SIZE, SCI_FLAG_BROADCAST);
}

/* Use each kind of object of @node. */
static void use_everything(sci_desc_t sd, unsigned int node)
{
	static char hello[] = "hello";
	sci_remote_data_interrupt_t rd;
	sci_remote_interrupt_t ri;
	sci_remote_segment_t r;
	sci_map_t map;

	r = test_connect(sd, node, ID);
	test_fill(test_map_remote(r, &map), SIZE, node);
	CHECK_OK(SCIUnmapSegment(map, 0, &err));
	CHECK_OK(SCIDisconnectSegment(r, 0, &err));
	ri = test_connect_interrupt(sd, node, ID);
	CHECK_OK(SCITriggerInterrupt(ri, 0, &err));
	CHECK_OK(SCIDisconnectInterrupt(ri, 0, &err));
	rd = test_connect_data_interrupt(sd, node, ID);
	CHECK_OK(SCITriggerDataInterrupt(rd, hello, 6, 0, &err));
	CHECK_OK(SCIDisconnectDataInterrupt(rd, 0, &err));
	CHECK_OK(SCIConnectSegment(sd, &r, DIS_BROADCAST_NODEID_GROUP_ALL,
				   ID + 1, 0, NULL, NULL, 0,
				   SCI_FLAG_BROADCAST, &err));
	CHECK_OK(SCIDisconnectSegment(r, 0, &err));
	CHECK_EQ(SCIProbeNode(sd, 0, node, 0, NULL), 1);
}

static void owner(struct peer *self, void *arg)
{
	sci_desc_t sd;

	(void)arg;
	peer_expect(self, "go");
	sd = test_open();
	own_everything(sd);
	peer_send(self, "ready");
	peer_expect(self, "end");
	SCITerminate();
}

TEST(everything_over_a_directory)
{
	struct peer *p;
	sci_desc_t sd;

	use_rundir();
	p = peer_spawn(8, owner, NULL);
	sd = test_open();
	CHECK_EQ(SCIProbeNode(sd, 0, 8, 0, NULL), 0);
	peer_send(p, "go");
	peer_expect(p, "ready");
	own_everything(sd);
	use_everything(sd, 8);
	use_everything(sd, 4);
	/* no name is in the network namespace */
	CHECK_EQ(count_sockets(), 0);
	CHECK_EQ(count_names("n"), 2);
	CHECK_EQ(count_names("s"), 4);
	CHECK_ERR(SCICreateSegment(sd, (sci_local_segment_t[]){ NULL }, ID,
				   SIZE, NULL, NULL, 0, &err),
		  SCI_ERR_SEGMENTID_USED);
	peer_send(p, "end");
	peer_join(p);
	CHECK_EQ(SCIProbeNode(sd, 0, 8, 0, NULL), 0);
	SCITerminate();
	check_empty();
	remove_rundir();
}

/* ---- dead processes ---- */

TEST(files_of_the_dead_are_recycled)
{
	struct peer *p[3];
	static struct recorder rec;
	sci_remote_segment_t r;
	sci_desc_t sd;

	use_rundir();
	for (int i = 0; i < 3; i++)
		p[i] = peer_spawn(8, owner, NULL);
	sd = test_open();
	for (int i = 0; i < 3; i++) {
		peer_send(p[i], "go");
		peer_expect(p[i], "ready");
		use_everything(sd, 8);
		recorder_init(&rec);
		r = test_connect_cb(sd, 8, ID, &rec);
		peer_kill(p[i], SIGKILL);
		CHECK_EQ(recorder_get(&rec, 0).reason, SCI_CB_LOST);
		CHECK_OK(SCIDisconnectSegment(r, 0, &err));
		CHECK_ERR(SCIConnectSegment(sd, &r, 8, ID, 0, NULL, NULL, 0, 0,
					    &err), SCI_ERR_NO_SUCH_SEGMENT);
		CHECK_EQ(SCIProbeNode(sd, 0, 8, 0, NULL), 0);
	}
	/* the probes have removed names of dead nodes */
	CHECK_EQ(count_names("n"), 1);
	SCITerminate();
	remove_rundir();
}

static bool dies_before_rename;

/* Replace renameat2(). */
int renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned int flags)
{
	if (dies_before_rename)
		raise(SIGKILL);
	return (int)syscall(SYS_renameat2, from_dir, from, to_dir, to, flags);
}

static void die_before_rename(struct peer *self, void *arg)
{
	(void)self;
	(void)arg;
	dies_before_rename = true;
	test_open();
}

/* Make the files with temporary names older by @seconds. */
static void make_older(time_t seconds)
{
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, { time(NULL) - seconds, 0 } };
	DIR *dir = opendir(rundir);
	struct dirent *e;

	CHECK(dir != NULL);
	while ((e = readdir(dir)))
		if (strstr(e->d_name, ".t."))
			CHECK_EQ(utimensat(dirfd(dir), e->d_name, times, 0), 0);
	closedir(dir);
}

TEST(a_temporary_file_of_the_dead_is_removed)
{
	struct peer *p;
	sci_desc_t sd;

	use_rundir();
	p = peer_spawn(8, die_before_rename, NULL);
	WAIT_UNTIL(count_names("t"), TEST_WAIT_MS);
	peer_kill(p, SIGKILL);
	sd = test_open();
	/* a young file may belong to a process that binds its name now */
	CHECK_EQ(SCIProbeNode(sd, 0, 8, 0, NULL), 0);
	CHECK_EQ(count_names("t"), 1);
	make_older(3600);
	CHECK_EQ(SCIProbeNode(sd, 0, 8, 0, NULL), 0);
	SCITerminate();
	check_empty();
	remove_rundir();
}

struct loop {
	_Atomic bool stop;
	_Atomic int owners;
	_Atomic unsigned int won, lost;
};

static void die_at_once(struct peer *self, void *arg)
{
	(void)self;
	(void)arg;
	own_everything(test_open());
	raise(SIGKILL);
}

TEST(many_deaths_leave_few_files)
{
	sci_desc_t sd;

	use_rundir();
	for (int i = 0; i < 40; i++) {
		struct peer *p = peer_spawn(8, die_at_once, NULL);

		peer_kill(p, SIGKILL);
	}
	sd = test_open();
	CHECK_EQ(SCIProbeNode(sd, 0, 8, 0, NULL), 0);
	CHECK_EQ(count_names("n"), 1);
	CHECK(count_names("s") <= 2);
	SCITerminate();
	remove_rundir();
}

/* A name has at most one owner while several processes compete for it. */
static void claimant(struct peer *self, void *arg)
{
	sci_desc_t sd = test_open();
	struct loop *l = arg;

	(void)self;
	while (!atomic_load(&l->stop)) {
		sci_local_segment_t s;
		sci_error_t e;

		SCICreateSegment(sd, &s, ID, 4096, NULL, NULL, 0, &e);
		if (e) {
			CHECK_EQ(e, SCI_ERR_SEGMENTID_USED);
			atomic_fetch_add(&l->lost, 1);
			continue;
		}
		CHECK_EQ(atomic_fetch_add(&l->owners, 1), 0);
		atomic_fetch_add(&l->won, 1);
		atomic_fetch_sub(&l->owners, 1);
		CHECK_OK(SCIRemoveSegment(s, 0, &err));
	}
	SCITerminate();
}

TEST(a_name_has_one_owner)
{
	struct loop *l = test_shared(sizeof(*l));
	struct peer *p[4];

	use_rundir();
	for (int i = 0; i < 4; i++)
		p[i] = peer_spawn(8, claimant, l);
	/* the time limit is the length of the test */
	HAPPENS(atomic_load(&l->owners) > 1, 6000);
	atomic_store(&l->stop, true);
	for (int i = 0; i < 4; i++)
		peer_join(p[i]);
	test_note("won %u times, lost %u times", atomic_load(&l->won),
		  atomic_load(&l->lost));
	CHECK(atomic_load(&l->won) > 100);
	check_empty();
	remove_rundir();
}

/* The same in the abstract namespace. */
TEST(a_name_has_one_owner_without_a_directory)
{
	struct loop *l = test_shared(sizeof(*l));
	struct peer *p[4];

	for (int i = 0; i < 4; i++)
		p[i] = peer_spawn(8, claimant, l);
	HAPPENS(atomic_load(&l->owners) > 1, 2000);
	atomic_store(&l->stop, true);
	for (int i = 0; i < 4; i++)
		peer_join(p[i]);
	CHECK(atomic_load(&l->won) > 100);
}

/*
 * Files at the path of a name. A socket without a listener is removed; files of other kinds
 * belong to another program.
 */
static void name_of(char *path, size_t room, char kind, unsigned int node)
{
	snprintf(path, room, "%s/sci.%s.%c.%u.%08x", rundir, test_cluster(),
		 kind, node, ID);
}

static void stale_file_make(const char *path)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	CHECK((size_t)snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", path) <
	      sizeof(sa.sun_path));
	CHECK_EQ(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	close(fd);
}

TEST(other_files_in_the_way)
{
	sci_local_segment_t s = NULL;
	sci_remote_segment_t r = NULL;
	char path[256];
	sci_desc_t sd;
	int file;

	use_rundir();
	sd = test_open();
	name_of(path, sizeof(path), 's', 4);
	file = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
	CHECK(file >= 0);
	CHECK_EQ(write(file, "mine", 4), 4);
	test_segment(sd, ID + 1, SIZE, 0);	/* starts the service thread, which stays */
	leak_check_begin();
	/* connect() fails on a file as on a dead socket: both results are correct */
	SCICreateSegment(sd, &s, ID, SIZE, NULL, NULL, 0, NULL);
	if (s)
		CHECK_OK(SCIRemoveSegment(s, 0, &err));
	leak_check_end();
	unlink(path);
	CHECK_EQ(mkdir(path, 0700), 0);
	CHECK(ERR_OF(SCICreateSegment(sd, &s, ID, SIZE, NULL, NULL, 0, &err)));
	CHECK(ERR_OF(SCIConnectSegment(sd, &r, 4, ID, 0, NULL, NULL, 0, 0,
				       &err)));
	CHECK_EQ(rmdir(path), 0);
	CHECK_EQ(symlink("/nonexistent/x", path), 0);
	CHECK(ERR_OF(SCIConnectSegment(sd, &r, 4, ID, 0, NULL, NULL, 0, 0,
				       &err)));
	unlink(path);
	stale_file_make(path);
	test_segment(sd, ID, SIZE, 0);
	test_connect(sd, 4, ID);
	SCITerminate();
	close(file);
	remove_rundir();
}

/* ---- two threads find a stale file ---- */

static struct {
	_Atomic bool removing;		/* the lister is about to remove the file */
	_Atomic bool locked, refused;	/* results of the creator's lock */
	_Atomic bool unlocked;		/* the lister has released its lock */
	_Atomic bool created;
} race;

static _Thread_local bool lists, creates;

/* Replace flock(): after a refusal the creator tries again when the lister has finished. */
int flock(int fd, int op)
{
	int ret = (int)syscall(SYS_flock, fd, op);

	if (lists && op == LOCK_UN)
		atomic_store(&race.unlocked, true);
	if (creates && !ret)
		atomic_store(&race.locked, true);
	if (creates && ret) {
		atomic_store(&race.refused, true);
		WAIT_UNTIL(atomic_load(&race.unlocked), TEST_WAIT_MS);
		errno = EWOULDBLOCK;
	}
	return ret;
}

/* Replace unlinkat(): the lister removes the file when the creator has the file or must wait. */
int unlinkat(int dir, const char *name, int flags)
{
	if (lists) {
		atomic_store(&race.removing, true);
		WAIT_UNTIL(atomic_load(&race.created) ||
			   (atomic_load(&race.refused) && !atomic_load(&race.locked)),
			   TEST_WAIT_MS);
	}
	return (int)syscall(SYS_unlinkat, dir, name, flags);
}

static int segment_ignore(void *arg, const struct sci_segment_info *s)
{
	(void)arg;
	(void)s;
	return 0;
}

static void *lister(void *arg)
{
	struct sci_fabric *f = arg;

	lists = true;
	CHECK_EQ(f->ops->query.segments(f, segment_ignore, NULL), 0);
	return NULL;
}

static void no_event(void *owner, const struct sci_event *ev)
{
	(void)owner;
	(void)ev;
}

TEST(threads_do_not_remove_each_others_names)
{
	const struct sci_lseg_param param = { .id = ID, .size = SIZE, .event = no_event };
	struct sci_fabric *f;
	struct sci_lseg *s;
	pthread_t thread;
	char path[256];

	use_rundir();
	CHECK_EQ(sci_fabric_open(&f), 0);
	name_of(path, sizeof(path), 's', 4);
	stale_file_make(path);
	CHECK_EQ(pthread_create(&thread, NULL, lister, f), 0);
	WAIT_UNTIL(atomic_load(&race.removing), TEST_WAIT_MS);
	creates = true;
	CHECK_EQ(f->ops->lseg.create(f, &param, &s), 0);
	creates = false;
	atomic_store(&race.created, true);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	CHECK_EQ(access(path, F_OK), 0);
	f->ops->lseg.destroy(s);
	sci_fabric_close(f);
	check_empty();
	remove_rundir();
}

/* ---- a directory that others use, too ---- */

static void creator(struct peer *self, void *arg)
{
	sci_local_segment_t s;
	sci_desc_t sd = test_open();

	(void)arg;
	peer_send(self, "open");
	peer_expect(self, "create");
	/* the call may fail, but must return */
	SCICreateSegment(sd, &s, ID, SIZE, NULL, NULL, 0, NULL);
	peer_send(self, "created");
}

TEST(a_lock_on_the_directory_holds_nobody_up)
{
	struct peer *p;
	int fd;

	use_rundir();
	p = peer_spawn(8, creator, NULL);
	peer_expect(p, "open");
	fd = open(rundir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK_EQ(flock(fd, LOCK_EX), 0);
	peer_send(p, "create");
	peer_expect(p, "created");
	close(fd);
	peer_join(p);
	remove_rundir();
}

/* A process that is stopped in any call does not block other processes. */
static void churn(struct peer *self, void *arg)
{
	struct loop *l = arg;
	sci_desc_t sd = test_open();

	(void)self;
	while (!atomic_load(&l->stop)) {
		CHECK_OK(SCIRemoveSegment(test_segment(sd, ID, 4096, 0), 0,
					  &err));
		atomic_fetch_add(&l->won, 1);
	}
}

TEST(a_stopped_process_holds_nobody_up)
{
	struct loop *l = test_shared(sizeof(*l));
	struct peer *p;
	sci_desc_t sd;

	use_rundir();
	p = peer_spawn(8, churn, l);
	sd = test_open();
	WAIT_UNTIL(atomic_load(&l->won), TEST_WAIT_MS);
	for (int i = 0; i < 300; i++) {
		uint64_t began = test_now_ms();

		peer_stop(p);
		CHECK_OK(SCIRemoveSegment(test_segment(sd, ID, 4096, 0), 0,
					  &err));
		CHECK(test_now_ms() - began < 10000);
		peer_continue(p);
		WAIT_UNTIL(({ unsigned int was = atomic_load(&l->won);
			      test_pause();
			      atomic_load(&l->won) != was; }), TEST_WAIT_MS);
	}
	atomic_store(&l->stop, true);
	peer_join(p);
	SCITerminate();
	remove_rundir();
}

/* ---- modes ---- */

static void other_user(struct peer *self, void *arg)
{
	const sci_error_t *want = arg;
	sci_remote_segment_t r;
	sci_desc_t sd;

	peer_become(65534, 65534);
	sd = test_open();
	peer_expect(self, "connect");
	CHECK_ERR(SCIConnectSegment(sd, &r, 4, ID, 0, NULL, NULL, 0, 0, &err),
		  *want);
	peer_send(self, "done");
}

static void check_mode(const char *mode, sci_error_t want)
{
	struct peer *p;

	if (geteuid())
		SKIP("only root can become another user");
	use_rundir();
	CHECK_EQ(chmod(rundir, 01777), 0);
	p = peer_spawn(8, other_user, &want);
	setenv("SCI_MODE", mode, 1);
	test_segment(test_open(), ID, SIZE, 0);
	peer_send(p, "connect");
	peer_expect(p, "done");
	peer_join(p);
	SCITerminate();
	remove_rundir();
}

TEST(mode_0600_refuses_others)
{
	check_mode("0600", SCI_ERR_CONNECTION_REFUSED);
}

TEST(mode_0666_lets_others_in)
{
	check_mode("0666", SCI_ERR_OK);
}

TEST(mode_0644_lets_others_read)
{
	check_mode("0644", SCI_ERR_OK);
}

/* ---- unusable directories ---- */

TEST(directories_that_are_none)
{
	static const char *const bad[] = {
		"/nonexistent/rundir", "/dev/null", "/proc/self/exe"
	};

	test_needs_shm();
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		setenv("SCI_RUNDIR", bad[i], 1);
		leak_check_begin();
		CHECK_ERR(SCIInitialize(0, &err), SCI_ERR_ILLEGAL_PARAMETER);
		leak_check_end();
	}
	setenv("SCI_RUNDIR", "", 1);
	test_open();
	CHECK(count_sockets() > 0);
}

TEST(a_directory_nobody_may_write_to)
{
	test_needs_shm();
	setenv("SCI_RUNDIR", "/proc/self", 1);
	leak_check_begin();
	CHECK(ERR_OF(SCIInitialize(0, &err)));
	leak_check_end();
}

TEST(a_directory_with_a_long_path)
{
	char path[400];
	struct peer *p;

	use_rundir();
	snprintf(path, sizeof(path), "%s/%0120d", rundir, 0);
	CHECK_EQ(mkdir(path, 0700), 0);
	setenv("SCI_RUNDIR", path, 1);
	p = peer_spawn(8, owner, NULL);
	peer_send(p, "go");
	peer_expect(p, "ready");
	use_everything(test_open(), 8);
	peer_send(p, "end");
	peer_join(p);
	SCITerminate();
	rmdir(path);
	remove_rundir();
}

/* ---- network namespaces ---- */

static void elsewhere(struct peer *self, void *arg)
{
	bool meets = *(bool *)arg;
	sci_remote_segment_t r;
	sci_desc_t sd;

	CHECK_EQ(unshare(CLONE_NEWNET), 0);
	peer_expect(self, "go");
	sd = test_open();
	own_everything(sd);
	if (meets) {
		use_everything(sd, 4);
	} else {
		CHECK_ERR(SCIConnectSegment(sd, &r, 4, ID, 0, NULL, NULL, 0, 0,
					    &err), SCI_ERR_NO_SUCH_SEGMENT);
		CHECK_EQ(SCIProbeNode(sd, 0, 4, 0, NULL), 0);
	}
	peer_send(self, "ready");
	peer_expect(self, "end");
	SCITerminate();
}

static void needs_namespaces(void)
{
	pid_t pid = fork();
	int status;

	CHECK(pid >= 0);
	if (!pid)
		_exit(unshare(CLONE_NEWNET) != 0);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	if (status)
		SKIP("no right to make namespaces");
}

static void check_namespaces(bool meets)
{
	struct peer *p = peer_spawn(8, elsewhere, &meets);
	sci_remote_segment_t r;
	sci_desc_t sd;

	sd = test_open();
	own_everything(sd);
	peer_send(p, "go");
	peer_expect(p, "ready");
	if (meets) {
		use_everything(sd, 8);
	} else {
		CHECK_ERR(SCIConnectSegment(sd, &r, 8, ID, 0, NULL, NULL, 0, 0,
					    &err), SCI_ERR_NO_SUCH_SEGMENT);
		CHECK_EQ(SCIProbeNode(sd, 0, 8, 0, NULL), 0);
	}
	peer_send(p, "end");
	peer_join(p);
	SCITerminate();
}

TEST(namespaces_that_share_a_directory)
{
	needs_namespaces();
	use_rundir();
	check_namespaces(true);
	remove_rundir();
}

TEST(namespaces_that_share_nothing)
{
	test_needs_shm();
	needs_namespaces();
	check_namespaces(false);
}
