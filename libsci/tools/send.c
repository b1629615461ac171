// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* `sci send`: see transfer.h. */
#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "transfer.h"

#define CONNECT_MS	30000u
#define SILENCE_MS	30000u		/* ms after which a silent receiver has failed */
/* ms of a wait for a pipe between two checks of the receiver */
#define INPUT_SLICE_MS	100

struct sender {
	struct session s;
	int fd;
	const char *path, *name;	/* path here, and name proposed to the receiver */
	uint64_t size;			/* bytes, or TRANSFER_UNKNOWN */
	uint64_t sent;			/* bytes */
	uint64_t blocks;
	struct sha256_ctx sha;
	struct progress progress;
	uint8_t buf[TRANSFER_BLOCK];
};

static int send_lost(const struct sender *x, int err)
{
	return tool_error("the receiver on node %u %s", x->s.node,
			  session_strerror(err));
}

static int send_refused(const struct sender *x, enum session_status status)
{
	return tool_error("node %u refused the file: %s", x->s.node,
			  session_refusal(status));
}

/* Wait until the receiver has stored @blocks blocks. Return TOOL_FAILED if it has failed. */
static int blocks_wait_stored(struct sender *x, uint64_t blocks)
{
	enum session_status status;
	uint64_t stored;
	int ret;

	for (;;) {
		status = session_seen_status(&x->s);
		stored = session_seen(&x->s);
		if (status > SESSION_DONE)
			return send_refused(x, status);
		if (stored > x->blocks)
			return tool_error("node %u sends nonsense",
					  x->s.node);
		if (stored >= blocks)
			return TOOL_OK;
		ret = session_wait(&x->s, stored, SILENCE_MS);
		if (ret)
			return send_lost(x, ret);
	}
}

/* Wait for input. A pipe may be silent for long, so watch the receiver meanwhile. */
static int input_wait(struct sender *x)
{
	struct pollfd p = { .fd = x->fd, .events = POLLIN };

	while (x->size == TRANSFER_UNKNOWN && !poll(&p, 1, INPUT_SLICE_MS)) {
		if (session_seen_status(&x->s) > SESSION_DONE)
			return send_refused(x, session_seen_status(&x->s));
		if (session_gone(&x->s))
			return send_lost(x, -ECONNRESET);
	}
	return TOOL_OK;
}

/* Read a full block, or the rest of the input. *@len is 0 at the end. */
static int block_read(struct sender *x, size_t *len)
{
	size_t want = TRANSFER_BLOCK;
	ssize_t n;

	*len = 0;
	if (x->size - x->sent < want)
		want = (size_t)(x->size - x->sent);
	while (*len < want) {
		if (input_wait(x))
			return TOOL_FAILED;
		n = read(x->fd, x->buf + *len, want - *len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return tool_error("cannot read %s: %s", x->path,
					  strerror(errno));
		if (!n)
			break;
		*len += (size_t)n;
	}
	if (*len < want && x->size != TRANSFER_UNKNOWN)
		return tool_error("%s became shorter while it was sent",
				  x->path);
	return TOOL_OK;
}

static int slot_send(struct sender *x, const struct transfer_slot *slot)
{
	int ret = 0;

	if (x->blocks >= TRANSFER_SLOTS &&
	    blocks_wait_stored(x, x->blocks - TRANSFER_SLOTS + 1))
		return TOOL_FAILED;
	if (slot->len)
		ret = session_write(&x->s, SESSION_CTL_SIZE +
				    transfer_block_at(x->blocks), x->buf,
				    slot->len);
	if (!ret)
		ret = session_write(&x->s, SESSION_CTL_SIZE +
				    transfer_slot_at(x->blocks), slot,
				    sizeof(*slot));
	if (!ret)
		ret = session_progress(&x->s, x->blocks + 1);
	if (ret) {
		/* report the receiver's reason rather than the end of the connection */
		if (session_seen_status(&x->s) > SESSION_DONE)
			return send_refused(x, session_seen_status(&x->s));
		return send_lost(x, ret);
	}
	x->blocks++;
	return TOOL_OK;
}

static int data_send(struct sender *x)
{
	struct transfer_slot slot = { 0 };
	size_t len;

	for (;;) {
		if (block_read(x, &len))
			return TOOL_FAILED;
		if (!len)
			return TOOL_OK;
		sha256_update(&x->sha, len, x->buf);
		slot.len = (uint32_t)len;
		if (slot_send(x, &slot))
			return TOOL_FAILED;
		x->sent += len;
		progress_step(&x->progress, x->sent);
	}
}

static int blocks_send(struct sender *x, bool verbose)
{
	struct transfer_slot last = { .flags = TRANSFER_LAST };
	enum session_status status;
	int ret = 0;

	sha256_init(&x->sha);
	progress_begin(&x->progress, *x->name ? x->name : x->path, x->size);
	if (data_send(x))
		return TOOL_FAILED;
	last.total = x->sent;
	transfer_digest(&x->sha, last.digest);
	if (slot_send(x, &last))
		return TOOL_FAILED;
	while ((status = session_seen_status(&x->s)) == SESSION_GO && !ret)
		ret = session_wait(&x->s, session_seen(&x->s), SILENCE_MS);
	progress_end(&x->progress);
	if (status == SESSION_GO)
		return send_lost(x, ret);
	if (status != SESSION_DONE)
		return send_refused(x, status);
	if (verbose)
		progress_report(&x->progress, "sent", x->sent, last.digest,
				x->s.resent);
	return tool_finish();
}

static int session_send(struct sender *x, const char *node_name,
			const struct transfer_hello *hello, uint32_t id,
			unsigned int timeout, bool verbose)
{
	unsigned int node;
	int ret;

	x->name = hello->name;
	if (tool_join(&x->s.sd))
		return TOOL_FAILED;
	ret = tool_resolve_node(node_name, &node);
	if (!ret)
		ret = session_connect(&x->s, node, id, SESSION_FILE, hello,
				      sizeof(*hello), 0, timeout);
	if (!ret && x->s.their_size < SESSION_CTL_SIZE + TRANSFER_RING)
		ret = tool_error("segment 0x%x of node %u is no `sci recv`",
				 id, node);
	if (!ret)
		ret = blocks_send(x, verbose);
	progress_end(&x->progress);
	session_close(&x->s);
	return ret;
}

static int input_open(struct sender *x, const char *path,
		      struct transfer_hello *hello)
{
	struct stat st;

	x->path = path;
	x->fd = strcmp(path, "-") ? open(path, O_RDONLY | O_CLOEXEC) : 0;
	if (x->fd < 0 || fstat(x->fd, &st))
		return tool_error("cannot open %s: %s", path, strerror(errno));
	if (S_ISDIR(st.st_mode))
		return tool_error("%s is a directory", path);
	x->size = TRANSFER_UNKNOWN;
	if (S_ISREG(st.st_mode)) {
		off_t at = lseek(x->fd, 0, SEEK_CUR);

		x->size = at < st.st_size ? (uint64_t)(st.st_size - at) : 0;
	}
	hello->size = x->size;
	hello->mode = S_ISREG(st.st_mode) ? st.st_mode & 0777 : 0666;
	return TOOL_OK;
}

static int name_set(struct transfer_hello *hello, const char *path)
{
	const char *base = strrchr(path, '/');
	size_t len;

	base = base ? base + 1 : path;
	len = strlen(base);
	if (len > TRANSFER_NAME_MAX)
		return tool_error("the name %s is too long", base);
	memcpy(hello->name, base, len);
	hello->name_len = (uint32_t)len;
	return TOOL_OK;
}

int tool_send(const struct tool_command *self, int argc, char **argv)
{
	uint64_t id = TRANSFER_ID;
	unsigned int timeout = CONNECT_MS;
	const char *name = NULL;
	bool verbose = false;
	const struct tool_option options[] = {
		{ .letter = 'i', .name = "id", .kind = TOOL_NUMBER,
		  .value = &id, .max = UINT32_MAX, .arg = "N",
		  .help = "of the receiver's segment" },
		{ .letter = 'n', .name = "name", .kind = TOOL_STRING,
		  .value = &name, .arg = "NAME",
		  .help = "another name for the file there" },
		{ .letter = 't', .name = "timeout", .kind = TOOL_SECONDS,
		  .value = &timeout, .arg = "S",
		  .help = "how long to look for the receiver (30)" },
		{ .letter = 'v', .name = "verbose", .kind = TOOL_FLAG,
		  .value = &verbose, .help = "print rate and checksum" },
		{ 0 },
	};
	struct transfer_hello hello = { 0 };
	struct sender *x;
	int i, ret;

	i = tool_parse(self, argc, argv, options, true);
	if (argc - i != 2)
		tool_usage(self, "which file, and to which node?");
	if (!name)
		name = strcmp(argv[i], "-") ? argv[i] : "";
	x = calloc(1, sizeof(*x));
	if (!x)
		return tool_error("out of memory");
	ret = input_open(x, argv[i], &hello);
	if (!ret)
		ret = name_set(&hello, name);
	if (!ret)
		ret = session_send(x, argv[i + 1], &hello, (uint32_t)id,
				   timeout, verbose);
	free(x);
	return ret;
}
