// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * `sci run --pmix`: the server side of libpmix, for ranks that are MPI programs
 *
 * All ranks are on one machine, so libpmix itself answers the ranks. Its files are in a directory,
 * which both the agent and the guard remove, because one of these processes may be killed. A thread
 * of libpmix answers the ranks. The agent calls libpmix only before it starts the ranks and after
 * their end.
 */
#include <dlfcn.h>
#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launch.h"
#include "tool.h"

static int file_remove(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path) && errno != ENOENT ? -1 : 0;
}

void pmix_directory_remove(const char *dir)
{
	if (*dir)
		nftw(dir, file_remove, 16, FTW_DEPTH | FTW_PHYS);
}

#if __has_include(<pmix_server.h>)
#include <pmix_server.h>

#define JOB_INFOS	12u
#define RANK_INFOS	6u

/* The functions of libpmix that this file uses. */
static struct {
	__typeof__(PMIx_server_init) *init;
	__typeof__(PMIx_server_register_nspace) *add_job;
	__typeof__(PMIx_server_register_client) *add_rank;
	__typeof__(PMIx_server_setup_fork) *environment;
	__typeof__(PMIx_server_deregister_client) *remove_rank;
	__typeof__(PMIx_server_deregister_nspace) *remove_job;
} pmix;

static pmix_nspace_t nspace;
static unsigned int n_ranks;		/* number of ranks that libpmix knows */
static const char *directory = "";	/* directory of the server's files */

static const char *pmix_load(void)
{
	static const struct {
		const char *name;
		void **fn;
	} symbols[] = {
		{ "PMIx_server_init", (void **)&pmix.init },
		{ "PMIx_server_register_nspace", (void **)&pmix.add_job },
		{ "PMIx_server_register_client", (void **)&pmix.add_rank },
		{ "PMIx_server_setup_fork", (void **)&pmix.environment },
		{ "PMIx_server_deregister_client", (void **)&pmix.remove_rank },
		{ "PMIx_server_deregister_nspace", (void **)&pmix.remove_job },
	};
	/* RTLD_GLOBAL: components of libpmix need its symbols */
	void *lib = dlopen("libpmix.so.2", RTLD_NOW | RTLD_GLOBAL);

	for (size_t i = 0; lib && i < sizeof(symbols) / sizeof(symbols[0]); i++) {
		*symbols[i].fn = dlsym(lib, symbols[i].name);
		if (!*symbols[i].fn)
			lib = NULL;
	}
	return lib ? NULL : dlerror();
}

/* Complete a fence with the data of all ranks, which are on this machine and have all joined. */
static pmix_status_t pmix_serve_fence(const pmix_proc_t procs[], size_t nprocs,
				      const pmix_info_t info[], size_t ninfo, char *data,
				      size_t len, pmix_modex_cbfunc_t done, void *arg)
{
	(void)procs;
	(void)nprocs;
	(void)info;
	(void)ninfo;
	done(PMIX_SUCCESS, data, len, arg, NULL, NULL);
	return PMIX_SUCCESS;
}

/* Return an error: libpmix itself registers files to remove, but only if this function exists. */
static pmix_status_t pmix_serve_job_control(const pmix_proc_t *from, const pmix_proc_t to[],
					    size_t nto, const pmix_info_t info[], size_t ninfo,
					    pmix_info_cbfunc_t done, void *arg)
{
	(void)from;
	(void)to;
	(void)nto;
	(void)info;
	(void)ninfo;
	(void)done;
	(void)arg;
	return PMIX_ERR_NOT_SUPPORTED;
}

static pmix_server_module_t module = {
	.fence_nb = pmix_serve_fence, .job_control = pmix_serve_job_control,
};

static void info_number(pmix_info_t **at, const char *key, pmix_data_type_t type, uint32_t n)
{
	pmix_info_t *i = (*at)++;

	strcpy(i->key, key);
	i->value.type = type;
	if (type == PMIX_UINT16)
		i->value.data.uint16 = (uint16_t)n;
	else
		i->value.data.uint32 = n;	/* PMIX_UINT32 or PMIX_PROC_RANK */
}

static void info_string(pmix_info_t **at, const char *key, char *s)
{
	pmix_info_t *i = (*at)++;

	strcpy(i->key, key);
	i->value.type = PMIX_STRING;
	i->value.data.string = s;
}

static void rank_infos(pmix_info_t **at, pmix_data_array_t *array, pmix_info_t *infos,
		       const struct agent_job *job, unsigned int i, char *dir)
{
	pmix_info_t *end = infos;

	info_number(&end, PMIX_RANK, PMIX_PROC_RANK, job->ranks[i].rank);
	info_number(&end, PMIX_APPNUM, PMIX_UINT32, 0);
	info_number(&end, PMIX_LOCAL_RANK, PMIX_UINT16, i);
	info_number(&end, PMIX_NODE_RANK, PMIX_UINT16, i);
	info_number(&end, PMIX_NODEID, PMIX_UINT32, 0);
	info_string(&end, PMIX_PROCDIR, dir);
	*array = (pmix_data_array_t){ .type = PMIX_INFO, .array = infos,
				      .size = (size_t)(end - infos) };
	strcpy((*at)->key, PMIX_PROC_DATA);
	(*at)->value.type = PMIX_DATA_ARRAY;
	(*at)->value.data.darray = array;
	(*at)++;
}

/* Return "raw:0,1,2", or NULL. "raw:" marks a list, which libpmix would read as a pattern. */
static char *rank_list(const struct agent_job *job)
{
	char *list = NULL;
	size_t len;
	FILE *f = open_memstream(&list, &len);

	if (f)
		fprintf(f, "raw:");
	for (unsigned int i = 0; f && i < job->nranks; i++)
		fprintf(f, "%s%u", i ? "," : "", job->ranks[i].rank);
	return f && !fclose(f) ? list : NULL;
}

/* Register the ranks of the job with libpmix, and the values that ranks query. */
static pmix_status_t job_add(const struct agent_job *job, char *dir)
{
	unsigned int n = job->nranks;
	pmix_info_t *job_info = calloc(JOB_INFOS + n, sizeof(*job_info)), *at = job_info;
	pmix_info_t *info = calloc(RANK_INFOS * n, sizeof(*info));
	pmix_data_array_t *arrays = calloc(n, sizeof(*arrays));
	char *list = rank_list(job), host[256] = "raw:";
	pmix_status_t ret = PMIX_ERR_NOMEM;

	gethostname(host + 4, sizeof(host) - 5);
	if (job_info && info && arrays && list) {
		info_string(&at, PMIX_NODE_MAP, host);
		info_string(&at, PMIX_PROC_MAP, list);
		info_string(&at, PMIX_LOCAL_PEERS, list + 4);
		info_string(&at, PMIX_TMPDIR, dir);
		info_string(&at, PMIX_NSDIR, dir);
		info_number(&at, PMIX_JOB_SIZE, PMIX_UINT32, job->size);
		info_number(&at, PMIX_UNIV_SIZE, PMIX_UINT32, job->size);
		info_number(&at, PMIX_MAX_PROCS, PMIX_UINT32, job->size);
		info_number(&at, PMIX_LOCAL_SIZE, PMIX_UINT32, n);
		info_number(&at, PMIX_NUM_NODES, PMIX_UINT32, 1);
		info_number(&at, PMIX_JOB_NUM_APPS, PMIX_UINT32, 1);
		for (unsigned int i = 0; i < n; i++)
			rank_infos(&at, &arrays[i], info + RANK_INFOS * i, job, i, dir);
		/* without a callback, add_job() waits */
		ret = pmix.add_job(nspace, (int)n, job_info, (size_t)(at - job_info), NULL,
				   NULL);
	}
	free(list);
	free(arrays);
	free(info);
	free(job_info);
	return ret;
}

static bool pmix_is_done(pmix_status_t status)
{
	return status == PMIX_SUCCESS || status == PMIX_OPERATION_SUCCEEDED;
}

const char *pmix_start(const struct agent_job *job, char dir[PATH_MAX])
{
	const char *tmp = getenv("TMPDIR"), *error = pmix_load();
	pmix_info_t info[2] = { 0 }, *at = info;

	if (error)
		return error;
	directory = dir;
	snprintf(dir, PATH_MAX, "%s/sci-pmix.XXXXXX", tmp && *tmp ? tmp : "/tmp");
	if (!mkdtemp(dir)) {
		*dir = '\0';
		return strerror(errno);
	}
	/*
	 * Open MPI 4 looks for a PMIx server only if it knows the launcher. JSM_JSRUN_PORT belongs
	 * to jsrun, a launcher that is only a PMIx server.
	 */
	setenv("JSM_JSRUN_PORT", "0", 0);
	info_string(&at, PMIX_SERVER_TMPDIR, dir);
	info_string(&at, PMIX_SYSTEM_TMPDIR, dir);
	if (!pmix_is_done(pmix.init(&module, info, 2)))
		return "libpmix cannot start a server";
	snprintf(nspace, sizeof(nspace), "sci-%d-%s", getpid(), strrchr(dir, '.') + 1);
	return pmix_is_done(job_add(job, dir)) ? NULL : "libpmix does not take the job";
}

int pmix_rank_environment(unsigned int rank, char ***env)
{
	pmix_proc_t proc = { .rank = rank };

	memcpy(proc.nspace, nspace, sizeof(nspace));
	n_ranks = rank >= n_ranks ? rank + 1 : n_ranks;
	if (!pmix_is_done(pmix.add_rank(&proc, getuid(), getgid(), NULL, NULL, NULL)) ||
	    !pmix_is_done(pmix.environment(&proc, env)))
		return -EIO;
	return 0;
}

/* Remove a rank's files, even if libpmix has not noticed its end yet. */
static void rank_remove(unsigned int rank)
{
	pmix_proc_t proc = { .rank = rank };

	memcpy(proc.nspace, nspace, sizeof(nspace));
	pmix.remove_rank(&proc, NULL, NULL);
}

void pmix_stop(void)
{
	for (unsigned int i = 0; i < n_ranks; i++)
		rank_remove(i);
	if (*nspace)
		pmix.remove_job(nspace, NULL, NULL);
	pmix_directory_remove(directory);
}

#else

const char *pmix_start(const struct agent_job *job, char dir[PATH_MAX])
{
	(void)job;
	(void)dir;
	return "sci was built without pmix_server.h (install libpmix-dev, build again)";
}

int pmix_rank_environment(unsigned int rank, char ***env)
{
	(void)rank;
	(void)env;
	return -ENOSYS;
}

void pmix_stop(void)
{
}

#endif
