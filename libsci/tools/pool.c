// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* `sci pool`: memory that several machines map, for sci_pool(4). */

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "kmod/pool/pool.h"
#include "libsci/pio/pio.h"
#include "pool_file.h"

#define PROBE_SIZE	(1u << 20)	/* bytes to read for a check whether a file is in use */
#define SIZE_MIN	(64u << 10)

/* Return the bytes of a device DAX. */
static uint64_t device_size(dev_t dev)
{
	char path[64];
	uint64_t size = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/dev/char/%u:%u/size", major(dev), minor(dev));
	f = fopen(path, "re");
	if (!f)
		return 0;
	if (fscanf(f, "%" SCNu64, &size) != 1)
		size = 0;
	fclose(f);
	return size;
}

static uint64_t block_device_size(int fd)
{
	off_t end = lseek(fd, 0, SEEK_END);

	return end > 0 ? (uint64_t)end : 0;
}

/* Get the size of a pool. @create: bytes of a new file; 0: the file must exist. */
static int pool_file_size(struct pool_file *f, uint64_t create)
{
	struct stat st;
	int err;

	if (fstat(f->fd, &st))
		return tool_error("cannot examine %s: %s", f->path, strerror(errno));
	if (S_ISCHR(st.st_mode))
		f->size = device_size(st.st_rdev);
	else if (S_ISBLK(st.st_mode))
		f->size = block_device_size(f->fd);
	else
		f->size = (uint64_t)st.st_size;
	if (S_ISREG(st.st_mode) && !f->size && create) {
		/* reserve the memory now: later, a lack of memory would raise SIGBUS */
		err = posix_fallocate(f->fd, 0, (off_t)create);
		if (err)
			return tool_error("cannot give %s %" PRIu64 " bytes: %s", f->path,
					  create, strerror(err));
		f->size = create;
	}
	if (f->size < SIZE_MIN)
		return tool_error("%s: too small for a pool: %" PRIu64 " bytes%s", f->path,
				  f->size, f->size ? "" : " (--size gives a new file its size)");
	f->size &= ~(uint64_t)(POOL_ALIGN - 1);
	return TOOL_OK;
}

/* The cache of this machine may not be coherent with those of other machines. */
static void pool_flush_cache(const void *p, size_t n)
{
	sci_pio_cache_refresh(p, n);
}

/* Return the flags to open @path. The kernel refuses O_EXCL for a block device that is mounted. */
static int pool_open_flags(const char *path, bool write, uint64_t create)
{
	struct stat st;

	if (!write)
		return O_RDONLY | O_CLOEXEC;
	if (!stat(path, &st) && S_ISBLK(st.st_mode))
		return O_RDWR | O_CLOEXEC | O_EXCL;
	return O_RDWR | O_CLOEXEC | (create ? O_CREAT : 0);
}

int pool_file_open(struct pool_file *f, const char *path, bool write, uint64_t create)
{
	if (sci_pio_cache_init())
		pool_cache_hook = pool_flush_cache;
	*f = (struct pool_file){ .path = path };
	f->fd = open(path, pool_open_flags(path, write, create), 0600);
	if (f->fd < 0)
		return tool_error("cannot open %s: %s", path, strerror(errno));
	if (pool_file_size(f, create))
		return TOOL_FAILED;
	f->mem = mmap(NULL, f->size, PROT_READ | (write ? PROT_WRITE : 0), MAP_SHARED,
		      f->fd, 0);
	if (f->mem == MAP_FAILED) {
		f->mem = NULL;
		return tool_error("cannot map %s: %s", path, strerror(errno));
	}
	return TOOL_OK;
}

void pool_file_close(struct pool_file *f)
{
	if (f->mem)
		munmap(f->mem, f->size);
	if (f->fd >= 0)
		close(f->fd);
}

static bool pool_is_blank(const struct pool_file *f)
{
	const uint8_t *p = f->mem;
	uint64_t i, n = f->size < PROBE_SIZE ? f->size : PROBE_SIZE;

	assert(p);		/* an open file is mapped */
	for (i = 0; i < n; i++)
		if (p[i])
			return false;
	return true;
}

static bool pool_has_active_slot(const struct pool *p)
{
	u32 slot;

	for (slot = 0; slot < p->form.slots; slot++)
		if (pool_slot_word(p, slot) & POOL_SLOT_ACTIVE)
			return true;
	return false;
}

/* Return the node id of a live node of @p; 0: none. Wait only if a node has not left. */
static unsigned int pool_find_live_node(const struct pool *p)
{
	struct timespec half = {
		.tv_sec = (time_t)(p->form.lease / 2 / 1000000000),
		.tv_nsec = (long)(p->form.lease / 2 % 1000000000),
	};
	u64 beats[POOL_SLOTS_MAX];
	u32 slot;

	if (!pool_has_active_slot(p))
		return 0;
	for (slot = 0; slot < p->form.slots; slot++)
		beats[slot] = pool_get64(pool_beat_word(p, slot));
	/* a node renews its heartbeat four times in a lease */
	nanosleep(&half, NULL);
	for (slot = 0; slot < p->form.slots; slot++)
		if (pool_slot_word(p, slot) & POOL_SLOT_ACTIVE &&
		    pool_get64(pool_beat_word(p, slot)) != beats[slot])
			return pool_slot_node(slot);
	return 0;
}

static int format_check_unused(const struct pool_file *f, bool force)
{
	struct pool p = { 0 };
	unsigned int node;
	int ret = pool_open(&p, f->mem, f->size);

	if (!ret && !force)
		return tool_error("%s is a pool already (--force formats it again)", f->path);
	if (!ret) {
		node = pool_find_live_node(&p);
		if (node)
			return tool_error("%s is in use: node %u has a heartbeat", f->path, node);
	}
	if (!force && !pool_is_blank(f))
		return tool_error("%s looks used: it does not begin with zeros (--force formats it all the same)",
				  f->path);
	return TOOL_OK;
}

static int pool_run_format(const struct tool_command *self, int argc, char **argv)
{
	uint64_t size = 0, nodes = 16, chunk = 65536, id = 0;
	unsigned int lease = 3000, quarantine = 30000;
	bool force = false, incoherent = false;
	const struct tool_option options[] = {
		{ .letter = 's', .name = "size", .kind = TOOL_SIZE, .value = &size,
		  .min = SIZE_MIN, .max = 1ull << 46, .arg = "SIZE",
		  .help = "create the file with this size" },
		{ .letter = 'n', .name = "nodes", .kind = TOOL_NUMBER, .value = &nodes,
		  .min = 1, .max = POOL_SLOTS_MAX, .arg = "N",
		  .help = "machines that can share the pool (16)" },
		{ .letter = 'c', .name = "chunk", .kind = TOOL_SIZE, .value = &chunk,
		  .min = POOL_CHUNK_MIN, .max = POOL_CHUNK_MAX, .arg = "SIZE",
		  .help = "smallest piece of memory, a power of two (64K)" },
		{ .letter = 'l', .name = "lease", .kind = TOOL_SECONDS, .value = &lease,
		  .arg = "SECONDS", .help = "time without a heartbeat until nodes expel a node (3)" },
		{ .letter = 'q', .name = "quarantine", .kind = TOOL_SECONDS,
		  .value = &quarantine, .arg = "SECONDS",
		  .help = "time for which its memory is not used (30)" },
		{ .name = "incoherent", .kind = TOOL_FLAG, .value = &incoherent,
		  .help = "the caches of the machines are not coherent" },
		{ .name = "force", .kind = TOOL_FLAG, .value = &force,
		  .help = "format a file that is not empty" },
		{ 0 },
	};
	int first = tool_parse(self, argc, argv, options, true), ret;
	struct pool_file f = { .fd = -1 };
	struct pool p = { 0 };

	if (argc - first != 1)
		tool_usage(self, "want one file or device");
	if (getrandom(&id, sizeof(id), 0) != sizeof(id))
		return tool_error("no random numbers: %s", strerror(errno));
	ret = pool_file_open(&f, argv[first], true, size);
	if (!ret)
		ret = format_check_unused(&f, force);
	if (!ret && pool_format(f.mem, f.size, (u32)chunk, (u32)nodes, lease, quarantine, id,
				incoherent ? POOL_INCOHERENT : 0))
		ret = tool_error("%s: no pool can be made so: %s", argv[first],
				 !lease ? "the lease is shorter than 1 ms" :
				 quarantine < lease ? "the quarantine is shorter than the lease" :
				 chunk & (chunk - 1) ? "--chunk is not a power of two" :
				 "too small for so many nodes");
	if (!ret && !pool_open(&p, f.mem, f.size))
		printf("%s: %u chunks of %u bytes for %u nodes\n", argv[first],
		       p.form.chunks, p.form.chunk_size, p.form.slots);
	pool_file_close(&f);
	return ret ? ret : tool_finish();
}

static unsigned int pool_count_chunks(const struct pool *p, u32 slot)
{
	unsigned int n = 0;
	u32 chunk;
	u64 word;

	for (chunk = 0; chunk < p->form.chunks; chunk++) {
		word = pool_get64(&pool_chunk(p, chunk)->word);
		n += (word >> POOL_CHUNK_SLOT_SHIFT & 0xff) == slot + 1;
	}
	return n;
}

static void pool_print(const struct pool *p)
{
	char name[POOL_NAME + 1], shown[POOL_NAME + 1];
	u32 slot;

	printf("pool %016" PRIx64 ", %u chunks of %u bytes, lease %.1f s, quarantine %.1f s%s\n",
	       (uint64_t)p->form.id, p->form.chunks, p->form.chunk_size,
	       (double)p->form.lease / 1e9, (double)p->form.quarantine / 1e9,
	       p->form.incoherent ? ", not coherent" : "");
	printf("%-6s %-8s %10s %8s  %s\n", "NODE", "STATE", "GENERATION", "CHUNKS", "HOST");
	for (slot = 0; slot < p->form.slots; slot++) {
		struct pool_slot *s = pool_slot(p, slot);
		u64 word = pool_slot_word(p, slot);
		unsigned int chunks = pool_count_chunks(p, slot);

		if (!word && !chunks)
			continue;
		pool_get_bytes(name, s->name, POOL_NAME);
		name[POOL_NAME] = '\0';
		printf("%-6u %-8s %10u %8u  %s\n", pool_slot_node(slot),
		       word & POOL_SLOT_ACTIVE ? "active" : "left", (u32)word, chunks,
		       tool_printable(shown, sizeof(shown), name));
	}
}

int pool_open_error(const struct pool_file *f, int err)
{
	return tool_error("%s: %s", f->path,
			  err == -ENODATA ? "not formatted (`sci pool format` does it)" :
			  err == -EPROTONOSUPPORT ? "formatted by another version" :
						    "its header is damaged, or the file was cut");
}

static int pool_run_show(const struct tool_command *self, int argc, char **argv)
{
	const struct tool_option options[] = { { 0 } };
	int first = tool_parse(self, argc, argv, options, true), ret, err;
	struct pool_file f = { .fd = -1 };
	struct pool p = { 0 };

	if (argc - first != 1)
		tool_usage(self, "want one file or device");
	ret = pool_file_open(&f, argv[first], false, 0);
	if (!ret) {
		err = pool_open(&p, f.mem, f.size);
		if (err)
			ret = pool_open_error(&f, err);
		else
			pool_print(&p);
	}
	pool_file_close(&f);
	return ret ? ret : tool_finish();
}

int tool_pool(const struct tool_command *self, int argc, char **argv)
{
	if (argc >= 2 && !strcmp(argv[1], "format"))
		return pool_run_format(self, argc - 1, argv + 1);
	if (argc >= 2 && !strcmp(argv[1], "show"))
		return pool_run_show(self, argc - 1, argv + 1);
	if (argc >= 2 && !strcmp(argv[1], "serve"))
		return pool_run_serve(self, argc - 1, argv + 1);
	if (argc >= 2 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")))
		return pool_run_format(self, argc, argv);
	tool_usage(self, "want `format`, `show` or `serve`");
}
