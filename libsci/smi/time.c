// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Time, redirection of standard files, and the calls for trace output. */

#include "libsci/smi/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

SMI_API double SMI_Wtime(void)
{
	return (double)sci_now_ns() * 1e-9;
}

SMI_API long SMI_Wticks(void)
{
	return (long)sci_now_ns();
}

SMI_API void SMI_Get_ticks(void *u64)
{
	uint64_t now = sci_now_ns();

	if (u64)
		memcpy(u64, &now, sizeof(now));
}

static _Atomic uint64_t last_us;

SMI_API smi_error_t SMI_Get_timer(int *s, int *us)
{
	struct timespec now;

	if (!s || !us)
		return SMI_ERR_PARAM;
	clock_gettime(CLOCK_REALTIME, &now);
	*s = (int)now.tv_sec;
	*us = (int)(now.tv_nsec / 1000);
	atomic_store(&last_us, sci_now_ns() / 1000);
	return SMI_SUCCESS;
}

SMI_API smi_error_t SMI_Get_timespan(int *s, int *us)
{
	uint64_t now = sci_now_ns() / 1000, span;

	if (!s || !us)
		return SMI_ERR_PARAM;
	span = now - atomic_exchange(&last_us, now);
	*s = (int)(span / 1000000);
	*us = (int)(span % 1000000);
	return SMI_SUCCESS;
}

/* ---- standard files ---- */

static int stream_redirect(int fd, int flags, const char *path)
{
	int file = open(path, flags | O_CLOEXEC, 0666), err;

	if (file < 0)
		return 2000 + errno;
	err = dup2(file, fd) < 0 ? 2000 + errno : SMI_SUCCESS;
	close(file);
	return err;
}

static int stream_redirect_rank(int fd, const char *name, char separator)
{
	char path[4096];
	int n = snprintf(path, sizeof(path), "%s%c%d", name, separator, smi.rank);

	if (n < 0 || (size_t)n >= sizeof(path))
		return SMI_ERR_PARAM;
	return stream_redirect(fd, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, path);
}

int smi_output_redirect(void)
{
	const char *out = getenv("SMI_STDOUT"), *err = getenv("SMI_STDERR");
	int ret = out && *out ? stream_redirect_rank(STDOUT_FILENO, out, '_') : SMI_SUCCESS;

	return !ret && err && *err ? stream_redirect_rank(STDERR_FILENO, err, '_') : ret;
}

SMI_API smi_error_t SMI_Redirect_IO(int err, void *errname, int out, void *outname,
				    int in, void *inname)
{
	static _Atomic bool done;
	int ret = SMI_SUCCESS;

	SMI_REFUSE((err == SMI_IO_FILE && !errname) ||
		   (out == SMI_IO_FILE && !outname) || (in == SMI_IO_FILE && !inname));
	if (atomic_exchange(&done, true))
		return SMI_SUCCESS;
	fflush(stdout);
	fflush(stderr);
	if (err == SMI_IO_FILE)
		ret = stream_redirect_rank(STDERR_FILENO, errname, '.');
	if (!ret && out == SMI_IO_FILE)
		ret = stream_redirect_rank(STDOUT_FILENO, outname, '.');
	if (!ret && in == SMI_IO_FILE)
		ret = stream_redirect(STDIN_FILENO, O_RDONLY, inname);
	return ret;
}

/* Do nothing: this library has no trace output. Use perf or ltrace to trace its calls. */
SMI_API smi_error_t SMI_Debug(int on)
{
	(void)on;
	return smi_check_up();
}

SMI_API smi_error_t SMI_Debug_time(int on) __attribute__((alias("SMI_Debug")));
