// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* `sci recv`: see transfer.h. The receiver checks all data of a sender. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "outfile.h"
#include "transfer.h"

struct receiver {
	struct session s;
	struct transfer_hello hello;
	struct outfile out;
	char dir[PATH_MAX];
	const char *name;		/* NULL: standard output */
	uint64_t blocks, bytes;
	struct sha256_ctx sha;
	uint8_t digest[SHA256_DIGEST_SIZE];
	struct progress progress;
};

/* Report an error to the sender, and then to the user. */
#define refuse(x, status, ...)						\
	(session_status(&(x)->s, status), tool_error(__VA_ARGS__))

static int recv_file_error(struct receiver *x, int err, const char *what)
{
	enum session_status status = SESSION_IO;

	if (err == -EEXIST)
		return refuse(x, SESSION_EXISTS,
			      "%s/%s exists (--force replaces a file)",
			      x->dir, x->name);
	if (err == -ENOSPC || err == -EFBIG || err == -EDQUOT)
		status = SESSION_NOSPC;
	if (!x->name)
		return refuse(x, status, "cannot write to standard output: %s",
			      strerror(-err));
	return refuse(x, status, "cannot %s %s/%s: %s", what, x->dir, x->name,
		      strerror(-err));
}

/*
 * Check the name from the sender, and remove its directories. Return false if it is no file name.
 */
static bool name_is_safe(struct transfer_hello *h)
{
	const char *base;
	size_t i;

	if (!h->name_len || h->name_len > TRANSFER_NAME_MAX)
		return false;
	h->name[h->name_len] = '\0';
	if (strlen(h->name) != h->name_len)
		return false;
	base = strrchr(h->name, '/');
	base = base ? base + 1 : h->name;
	memmove(h->name, base, strlen(base) + 1);
	for (i = 0; h->name[i]; i++)
		if ((unsigned char)h->name[i] < ' ' || h->name[i] == 127)
			return false;
	/* refuse "..", and hidden files such as .profile */
	return h->name[0] && h->name[0] != '.';
}

static int name_refuse(struct receiver *x)
{
	char shown[TRANSFER_NAME_MAX + 1];

	x->hello.name[TRANSFER_NAME_MAX] = '\0';
	tool_printable(shown, sizeof(shown), x->hello.name);
	return refuse(x, SESSION_NAME,
		      *shown ? "the sender's file name '%s' is not acceptable (-o gives another)"
			     : "the sender gives the file no name%s (-o gives it one)",
		      shown);
}

static int output_open(struct receiver *x, bool force)
{
	int ret;

	if (x->name && !*x->name) {
		if (!name_is_safe(&x->hello))
			return name_refuse(x);
		x->name = x->hello.name;
	}
	ret = outfile_open(&x->out, x->dir, x->name, force);
	if (ret)
		return recv_file_error(x, ret, "create");
	if (x->hello.size == TRANSFER_UNKNOWN)
		return TOOL_OK;
	ret = outfile_reserve(&x->out, x->hello.size);
	return ret ? recv_file_error(x, ret, "make room for") : TOOL_OK;
}

static int recv_refuse_message(struct receiver *x)
{
	return refuse(x, SESSION_PROTOCOL, "the sender on node %u sends nonsense",
		      x->s.node);
}

static int block_wait(struct receiver *x)
{
	uint64_t seen;
	int ret;

	while ((seen = session_seen(&x->s)) == x->blocks) {
		if (session_seen_status(&x->s) != SESSION_NEW)
			return recv_refuse_message(x);
		ret = session_wait(&x->s, seen, SCI_INFINITE_TIMEOUT);
		if (ret)
			return tool_error("the sender on node %u %s: received %llu bytes, kept nothing",
					  x->s.node, session_strerror(ret),
					  (unsigned long long)x->bytes);
	}
	if (seen - x->blocks > TRANSFER_SLOTS)
		return recv_refuse_message(x);
	return TOOL_OK;
}

static int data_take(struct receiver *x, size_t len)
{
	const uint8_t *block = (uint8_t *)session_data(&x->s) +
			       transfer_block_at(x->blocks);
	int ret;

	if (x->hello.size != TRANSFER_UNKNOWN &&
	    len > x->hello.size - x->bytes)
		return recv_refuse_message(x);
	sha256_update(&x->sha, len, block);
	ret = outfile_write(&x->out, block, len);
	if (ret)
		return recv_file_error(x, ret, "write");
	x->bytes += len;
	progress_step(&x->progress, x->bytes);
	return TOOL_OK;
}

static int last_take(struct receiver *x, const struct transfer_slot *slot)
{
	int ret;

	transfer_digest(&x->sha, x->digest);
	if (slot->total != x->bytes || slot->len ||
	    (x->hello.size != TRANSFER_UNKNOWN && x->hello.size != x->bytes))
		return recv_refuse_message(x);
	if (memcmp(slot->digest, x->digest, sizeof(x->digest)))
		return refuse(x, SESSION_DIGEST,
			      "the checksum is wrong: kept nothing");
	ret = outfile_commit(&x->out, (mode_t)x->hello.mode);
	return ret ? recv_file_error(x, ret, "name") : TOOL_OK;
}

static int blocks_receive(struct receiver *x)
{
	struct transfer_slot slot;
	int ret;

	for (;;) {
		if (block_wait(x))
			return TOOL_FAILED;
		session_refresh_data(&x->s);
		memcpy(&slot, (char *)session_data(&x->s) +
		       transfer_slot_at(x->blocks), sizeof(slot));
		if (slot.flags & TRANSFER_LAST)
			return last_take(x, &slot);
		if (!slot.len || slot.len > TRANSFER_BLOCK || slot.flags)
			return recv_refuse_message(x);
		if (data_take(x, slot.len))
			return TOOL_FAILED;
		x->blocks++;
		ret = session_progress(&x->s, x->blocks);
		/* after the sender's end, first store all data that has arrived */
		if (ret && session_seen(&x->s) == x->blocks)
			return tool_error("the sender on node %u %s: received %llu bytes, kept nothing",
					  x->s.node, session_strerror(ret),
					  (unsigned long long)x->bytes);
	}
}

static int recv_receive(struct receiver *x, bool force)
{
	int ret;

	sha256_init(&x->sha);
	ret = output_open(x, force);
	if (ret)
		return ret;
	progress_begin(&x->progress, x->name ? x->name : "-", x->hello.size);
	ret = blocks_receive(x);
	progress_end(&x->progress);
	if (!ret && session_status(&x->s, SESSION_DONE))
		tool_error("the file is complete, but the sender is gone");
	return ret;
}

static int recv_serve(struct receiver *x, uint32_t id, unsigned int timeout, bool force,
		      bool verbose)
{
	size_t len = sizeof(x->hello);
	int ret;

	x->out.fd = x->out.dir = -1;
	ret = session_listen(&x->s, id, SESSION_CTL_SIZE + TRANSFER_RING);
	if (!ret)
		ret = session_accept(&x->s, SESSION_FILE, &x->hello, &len,
				     timeout);
	if (!ret && len != sizeof(x->hello))
		ret = recv_refuse_message(x);
	if (!ret)
		ret = recv_receive(x, force);
	outfile_close(&x->out);
	if (!ret && verbose && x->name)
		progress_report(&x->progress, "received", x->bytes, x->digest,
				x->s.resent);
	session_close(&x->s);
	return ret ? ret : tool_finish();
}

/* Split -o PATH into directory and name; "-" is standard output. */
static int target_set(struct receiver *x, const struct tool_command *self,
		      const char *path, const char *dir)
{
	const char *slash;

	x->name = "";			/* use the name from the sender */
	if (path && dir)
		tool_usage(self, "either -o or -d");
	if (path && !strcmp(path, "-")) {
		x->name = NULL;
		return TOOL_OK;
	}
	slash = path ? strrchr(path, '/') : NULL;
	if (path) {
		x->name = slash ? slash + 1 : path;
		if (!*x->name || !strcmp(x->name, ".") ||
		    !strcmp(x->name, ".."))
			tool_usage(self, "%s is a directory (-d)", path);
	}
	if (slash && slash - path < PATH_MAX)
		snprintf(x->dir, sizeof(x->dir), "%.*s",
			 slash == path ? 1 : (int)(slash - path), path);
	else
		snprintf(x->dir, sizeof(x->dir), "%s", dir ? dir : ".");
	return TOOL_OK;
}

int tool_recv(const struct tool_command *self, int argc, char **argv)
{
	uint64_t id = TRANSFER_ID;
	unsigned int timeout = SCI_INFINITE_TIMEOUT;
	const char *path = NULL, *dir = NULL;
	bool force = false, verbose = false;
	const struct tool_option options[] = {
		{ .letter = 'i', .name = "id", .kind = TOOL_NUMBER,
		  .value = &id, .max = UINT32_MAX, .arg = "N",
		  .help = "of the segment and data interrupt to offer" },
		{ .letter = 'o', .name = "output", .kind = TOOL_STRING,
		  .value = &path, .arg = "PATH",
		  .help = "name of the file; - is standard output" },
		{ .letter = 'd', .name = "directory", .kind = TOOL_STRING,
		  .value = &dir, .arg = "DIR",
		  .help = "where to put it, under the sender's name (.)" },
		{ .letter = 'f', .name = "force", .kind = TOOL_FLAG,
		  .value = &force, .help = "replace an existing file" },
		{ .letter = 't', .name = "timeout", .kind = TOOL_SECONDS,
		  .value = &timeout, .arg = "S",
		  .help = "how long to wait for a sender (for ever)" },
		{ .letter = 'v', .name = "verbose", .kind = TOOL_FLAG,
		  .value = &verbose, .help = "print rate and checksum" },
		{ 0 },
	};
	struct receiver *x;
	int ret;

	if (tool_parse(self, argc, argv, options, true) != argc)
		tool_usage(self, "takes no arguments");
	x = calloc(1, sizeof(*x));
	if (!x)
		return tool_error("out of memory");
	ret = target_set(x, self, path, dir);
	if (!ret)
		ret = recv_serve(x, (uint32_t)id, timeout, force, verbose);
	free(x);
	return ret;
}
