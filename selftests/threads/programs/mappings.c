// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * usage: mappings parts|zero|fixed|shared|passed|protected|cancel|inherited|limit
 *
 * Maps and unmaps memory before the first thread and on two nodes. The output is the same as
 * natively.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE	4096u
#define UNIT	65536u			/* the heap's unit */
#define TAKEN	8

#define SHOW(expression) printf("%-60s %ld\n", #expression, (long)(expression))

static char *map(size_t len)
{
	char *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED) {
		perror("mmap");
		exit(1);
	}
	return p;
}

/* Return the number of bytes that are not @value. */
static long differ(const char *p, size_t len, int value)
{
	long n = 0;

	for (size_t i = 0; i < len; i++)
		n += p[i] != (char)value;
	return n;
}

/* Write to new blocks and mappings, which may not overlap the memory of the caller. */
static void memory_take(void)
{
	char *block[TAKEN], *mapping[TAKEN];

	for (int i = 0; i < TAKEN; i++) {
		block[i] = malloc(UNIT);
		mapping[i] = map(UNIT);
		if (block[i])
			memset(block[i], 99, UNIT);
		memset(mapping[i], 99, UNIT);
	}
	for (int i = 0; i < TAKEN; i++) {
		free(block[i]);
		munmap(mapping[i], UNIT);
	}
}

/* ---- parts of mappings ---- */

static void parts_unmap(void)
{
	char *p = map(UNIT);

	memset(p, 1, UNIT);
	SHOW(munmap(p, PAGE));
	memory_take();
	SHOW(differ(p + PAGE, UNIT - PAGE, 1));
	SHOW(munmap(p, PAGE));
	memory_take();
	SHOW(differ(p + PAGE, UNIT - PAGE, 1));
	SHOW(munmap(p + PAGE, UNIT - PAGE));
}

static void pages_unmap(void)
{
	char *p = map(2 * UNIT), *q[2 * UNIT / PAGE];
	long bad = 0;

	memset(p, 1, 2 * UNIT);
	for (int i = 0; i < (int)(2 * UNIT / PAGE); i++) {
		bad += munmap(p + i * PAGE, PAGE);
		q[i] = map(40000);
		memset(q[i], i, 40000);
		bad += differ(p + (i + 1) * PAGE, 2 * UNIT - (i + 1) * PAGE, 1);
	}
	for (int i = 0; i < (int)(2 * UNIT / PAGE); i++) {
		bad += differ(q[i], 40000, i);
		munmap(q[i], 40000);
	}
	SHOW(bad);
}

static void parts_map_again(void)
{
	char *p = map(2 * UNIT);

	SHOW(munmap(p, UNIT));
	SHOW(mmap(p, UNIT, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		  0) == p);
	memset(p, 1, UNIT);
	SHOW(munmap(p + UNIT, UNIT));
	memory_take();
	SHOW(differ(p, UNIT, 1));
	SHOW(munmap(p, UNIT));
}

static void resize(void)
{
	char *p = map(4 * UNIT);

	memset(p, 1, 4 * UNIT);
	SHOW(mremap(p, 4 * UNIT, UNIT + PAGE, 0) == p);
	memory_take();
	SHOW(differ(p, UNIT + PAGE, 1));
	p = mremap(p, UNIT + PAGE, 3 * UNIT, MREMAP_MAYMOVE);
	memset(p + UNIT + PAGE, 1, 2 * UNIT - PAGE);
	memory_take();
	SHOW(differ(p, 3 * UNIT, 1));
	/* the first page moves to another place */
	SHOW(mremap(p, PAGE, UNIT, MREMAP_MAYMOVE) != p);
	memory_take();
	SHOW(differ(p + PAGE, 3 * UNIT - PAGE, 1));
	SHOW(munmap(p + PAGE, 3 * UNIT - PAGE));
}

static void *parts(void *arg)
{
	parts_unmap();
	pages_unmap();
	parts_map_again();
	resize();
	return arg;
}

/* ---- new memory is zero ---- */

/* Make freed blocks that are not zero. */
static void dirty_make(size_t len)
{
	char *p[TAKEN];

	for (int i = 0; i < TAKEN; i++) {
		p[i] = malloc(len);
		if (p[i])
			memset(p[i], 0xff, len);
	}
	for (int i = 0; i < TAKEN; i++)
		free(p[i]);
}

/* Map @len bytes of a file with 50000 bytes 'x'. Show what the last page contains. */
static void file_map(size_t len)
{
	size_t end = (len + PAGE - 1) / PAGE * PAGE;
	FILE *f = tmpfile();
	char *p;

	for (int i = 0; i < 50000; i++)
		fputc('x', f);
	fflush(f);
	p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE, fileno(f), 0);
	SHOW(differ(p, len, 'x'));
	SHOW(differ(p + len, end - len, 'x'));
	SHOW(differ(p + len, end - len, 0));
	munmap(p, len);
	fclose(f);
}

/* Map @len bytes in freed memory. Then the mappings grow in their units of the heap. */
static void last_page_use(size_t len)
{
	size_t end = (len + PAGE - 1) / PAGE * PAGE;
	char *p[4 * TAKEN];
	long bad = 0;

	dirty_make(200000);
	for (int i = 0; i < 4 * TAKEN; i++) {
		p[i] = map(len);
		bad += differ(p[i], end, 0);
	}
	for (int i = 0; i < 4 * TAKEN; i++) {
		p[i] = mremap(p[i], len, UNIT, MREMAP_MAYMOVE);
		bad += differ(p[i], UNIT, 0);
		memset(p[i], 0xff, UNIT);
		bad += mremap(p[i], UNIT, end, 0) != p[i];
		p[i] = mremap(p[i], end, end + PAGE, MREMAP_MAYMOVE);
		bad += differ(p[i] + end, PAGE, 0);
		munmap(p[i], end + PAGE);
	}
	SHOW(bad);
}

static void *zero(void *arg)
{
	char *p = map(2 * UNIT);

	dirty_make(200000);
	for (size_t to = 3; to < 7; to++) {
		p = mremap(p, (to - 1) * UNIT, to * UNIT, MREMAP_MAYMOVE);
		SHOW(differ(p, to * UNIT, 0));
	}
	munmap(p, 6 * UNIT);
	last_page_use(40000);
	last_page_use(50001);
	dirty_make(200000);
	file_map(40000);
	file_map(50000);
	return arg;
}

/* ---- fixed addresses ---- */

/* Reserve memory without rights, and get rights to a part of it by another mapping. */
static void reserved_map(void)
{
	char *p = mmap(NULL, 2 * UNIT, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	for (int i = 0; i < 2; i++) {
		SHOW(mmap(p, UNIT, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
			  -1, 0) == p);
		SHOW(differ(p, UNIT, 0));
		memset(p, 1, UNIT);
		SHOW(mprotect(p, UNIT, i ? PROT_READ : PROT_NONE));
		SHOW(madvise(p, UNIT, MADV_DONTNEED));
		SHOW(mprotect(p, UNIT, PROT_READ));
		SHOW(differ(p, UNIT, 0));
	}
	SHOW(munmap(p, 2 * UNIT));
}

/* Map a part of freed memory again. */
static void freed_map(size_t from, size_t len)
{
	char *p = map(4 * UNIT), *q = p + from;

	memset(p, 1, 4 * UNIT);
	SHOW(munmap(p, 4 * UNIT));
	SHOW(mmap(q, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
	     q);
	SHOW(differ(q, len, 0));
	memset(q, 1, len);
	memory_take();
	SHOW(differ(q, len, 1));
	SHOW(munmap(q, len));
	memory_take();
}

/* Move a mapping to a fixed address, and away from its pages. Both may fail. */
static void moved_map(void)
{
	char *p = map(2 * UNIT), *at = map(UNIT), *q;

	memset(p, 1, 2 * UNIT);
	q = mremap(p, UNIT, UNIT, MREMAP_MAYMOVE | MREMAP_FIXED, at);
	SHOW(q == MAP_FAILED || q == at);
	SHOW(differ(q == MAP_FAILED ? p : q, UNIT, 1));
	q = mremap(p + UNIT, UNIT, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, at);
	SHOW(q == MAP_FAILED || q == at);
	SHOW(differ(q == MAP_FAILED ? p + UNIT : q, PAGE, 1));
	SHOW(munmap(p, 2 * UNIT));
	p = map(UNIT);
	q = mremap(p, UNIT, UNIT, MREMAP_MAYMOVE | MREMAP_DONTUNMAP);
	SHOW(q != p);
	if (q != MAP_FAILED)
		munmap(q, UNIT);
	SHOW(munmap(p, UNIT));
	SHOW(munmap(at, UNIT));
}

/* A mapping that may not replace another one does not. */
static void *fixed(void *arg)
{
	char *p = map(2 * UNIT);

	memset(p, 1, 2 * UNIT);
	SHOW(mmap(p + UNIT, 2 * UNIT, PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED);
	SHOW(errno == EEXIST);
	SHOW(differ(p, 2 * UNIT, 1));
	SHOW(mmap(p + UNIT, UNIT, PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == p + UNIT);
	SHOW(differ(p, UNIT, 1));
	SHOW(differ(p + UNIT, UNIT, 0));
	SHOW(munmap(p, 2 * UNIT));
	reserved_map();
	freed_map(UNIT, 2 * UNIT);
	freed_map(PAGE, UNIT);
	moved_map();
	return arg;
}

/* ---- shared mappings of files ---- */

/* A file's memory lies inside of a mapping, and is unmapped alone or with what surrounds it. */
static void shared_inside(int fd)
{
	static char text[3 * UNIT];
	char *p = map(5 * UNIT);

	for (int i = 1; i <= 3; i += 2)
		SHOW(mmap(p + i * UNIT, UNIT, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
			  0) == p + i * UNIT);
	SHOW(differ(p + UNIT, UNIT, 'x'));
	SHOW(munmap(p + UNIT, UNIT));
	SHOW(munmap(p + 2 * UNIT, 3 * UNIT));
	SHOW(munmap(p, UNIT));
	memory_take();
	SHOW(pread(fd, text, sizeof(text), 0));
	SHOW(differ(text, sizeof(text), 'x'));
}

/* Memory around a file's memory is not needed, but the file is. */
static void shared_not_needed(int fd, int at)
{
	static char text[3 * UNIT];
	char *p = map(3 * UNIT);

	memset(p, 1, 3 * UNIT);
	SHOW(mmap(p + at * UNIT, UNIT, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) ==
	     p + at * UNIT);
	SHOW(madvise(p, 3 * UNIT, MADV_DONTNEED));
	SHOW(differ(p + at * UNIT, UNIT, 'x'));
	SHOW(differ(p + (1 - at) * UNIT, UNIT, 0));
	SHOW(differ(p + 2 * UNIT, UNIT, 0));
	SHOW(pread(fd, text, sizeof(text), 0));
	SHOW(differ(text, sizeof(text), 'x'));
	SHOW(munmap(p, 3 * UNIT));
}

/* A mapping shows and changes the file, also if it has grown. */
static void shared_grow(int fd)
{
	char *p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), c = 0;
	char *q = mremap(p, PAGE, 2 * PAGE, MREMAP_MAYMOVE);
	size_t len = q == MAP_FAILED ? PAGE : 2 * PAGE;

	q = q == MAP_FAILED ? p : q;
	SHOW(differ(q, len, 'x'));
	q[len - 1] = 'y';
	SHOW(pread(fd, &c, 1, (off_t)len - 1));
	SHOW(c);
	q[len - 1] = 'x';
	SHOW(munmap(q, len));
}

/* Parts of a mapping are unmapped or not needed, but the file keeps its contents. */
static void *shared(void *arg)
{
	int fd = memfd_create("mappings", 0);
	static char text[3 * UNIT];
	char *p;

	memset(text, 'x', sizeof(text));
	SHOW(write(fd, text, sizeof(text)));
	p = mmap(NULL, sizeof(text), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	SHOW(munmap(p + UNIT, UNIT));
	SHOW(munmap(p, PAGE));
	SHOW(munmap(p + 2 * UNIT + PAGE, UNIT - PAGE));
	SHOW(madvise(p + 2 * UNIT, PAGE, MADV_DONTNEED));
	SHOW(pread(fd, text, sizeof(text), 0));
	SHOW(differ(text, sizeof(text), 'x'));
	SHOW(differ(p + PAGE, UNIT - PAGE, 'x'));
	SHOW(differ(p + 2 * UNIT, PAGE, 'x'));
	shared_inside(fd);
	shared_not_needed(fd, 0);
	shared_not_needed(fd, 1);
	shared_grow(fd);
	close(fd);
	return arg;
}

/* ---- mappings that another thread uses ---- */

/* Map a unit of a file inside of other memory. */
static char *inside_map(int flags, int fd)
{
	char *p = map(4 * UNIT) + UNIT;

	SHOW(mmap(p, UNIT, PROT_READ | PROT_WRITE, flags | MAP_FIXED, fd, 0) == p);
	return p;
}

/* Each call uses the mappings of the call before, which was on another node. */
static void *passed(void *arg)
{
	static char *file, *copy, *shrunk;
	static int calls, fd;
	char c = 0;

	if (!calls++) {
		fd = memfd_create("mappings", 0);
		SHOW(ftruncate(fd, UNIT - PAGE / 2));
		file = inside_map(MAP_SHARED, fd);
		shrunk = map(4 * UNIT);
		SHOW(munmap(shrunk + 2 * UNIT, 2 * UNIT));
	} else if (calls == 2) {
		/* no page behind the mapping is in use */
		SHOW(mremap(shrunk, 2 * UNIT, 4 * UNIT, 0) == shrunk);
	}
	if (calls > 1)
		SHOW(differ(copy, UNIT, calls));
	SHOW(file[1]);
	file[1] = (char)(calls + 10);
	SHOW(pread(fd, &c, 1, 1));
	SHOW(c);
	copy = inside_map(MAP_PRIVATE, fd);
	SHOW(copy[1]);
	SHOW(differ(copy, UNIT, 0));
	memset(copy, calls + 1, UNIT);
	if (calls == 3) {
		SHOW(munmap(file - UNIT, 4 * UNIT));
		memory_take();
		SHOW(pread(fd, &c, 1, 0));
		SHOW(c);
	}
	return arg;
}

/* ---- mappings that grow ---- */

/* Return errno of a read from the byte at @p, or of a write to it; 0: it is permitted. */
static int touch(char *p, int writes)
{
	int fd[2], err = 0;

	if (pipe(fd) || write(fd[1], "x", 1) != 1)
		exit(1);
	if (writes ? read(fd[0], p, 1) != 1 : write(fd[1], p, 1) != 1)
		err = errno;
	close(fd[0]);
	close(fd[1]);
	return err;
}

static void protected_grow(char *p, size_t len, int prot)
{
	memset(p, 7, len);
	SHOW(mprotect(p, len, prot));
	p = mremap(p, len, 2 * len, MREMAP_MAYMOVE);
	SHOW(p != MAP_FAILED);
	for (int i = 0; i < 2; i++) {
		SHOW(touch(p, i));
		SHOW(touch(p + len, i));
	}
	SHOW(mprotect(p, 2 * len, PROT_READ | PROT_WRITE));
	SHOW(differ(p, len, 7));
	SHOW(differ(p + len, len, 0));
	SHOW(munmap(p, 2 * len));
}

static void *protected(void *arg)
{
	static const int prots[] = { PROT_NONE, PROT_READ, PROT_READ | PROT_WRITE };

	for (int i = 0; i < 3; i++) {
		char *p = map(UNIT), *behind = map(UNIT);

		protected_grow(map(PAGE), PAGE, prots[i]);
		protected_grow(p, UNIT, prots[i]);
		munmap(behind, UNIT);
	}
	return arg;
}

/* A mapping may refuse to grow, but must be the same on both nodes. */
static void *inherited_grow(void *arg)
{
	char *p = mremap(*(char **)arg, PAGE, 2 * PAGE, MREMAP_MAYMOVE);

	if (p != MAP_FAILED)
		*(char **)arg = p;
	return NULL;
}

static void inherited(void)
{
	int fd = memfd_create("mappings", 0);
	char *p;
	pthread_t t;

	SHOW(ftruncate(fd, 2 * PAGE));
	p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	p[1] = 7;
	SHOW(pthread_create(&t, NULL, inherited_grow, &p));
	SHOW(pthread_join(t, NULL));
	SHOW(p[1]);
	close(fd);
}

/* ---- threads that are cancelled ---- */

/* The calls are no cancellation points. */
static void *calls_make(void *arg)
{
	long *done = arg;
	int fd = (int)done[0];
	char *p, *q;

	p = mmap(NULL, UNIT, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_cancel(pthread_self());
	done[1] = !madvise(p, UNIT, MADV_DONTNEED);
	q = mmap(NULL, UNIT, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	done[2] = q != MAP_FAILED;
	munmap(p, UNIT);
	munmap(q, UNIT);
	done[3] = 1;
	pthread_testcancel();
	done[4] = 1;
	return NULL;
}

static void cancel(void)
{
	int fd = memfd_create("mappings", 0);
	static long done[5];
	void *result;
	pthread_t t;

	SHOW(ftruncate(fd, UNIT));
	/* the thread is on each of two nodes once */
	for (int i = 0; i < 2; i++) {
		memset(done, 0, sizeof(done));
		done[0] = fd;
		SHOW(pthread_create(&t, NULL, calls_make, done));
		SHOW(pthread_join(t, &result));
		SHOW(result == PTHREAD_CANCELED);
		for (int k = 1; k < 5; k++)
			SHOW(done[k]);
	}
	close(fd);
}

/* ---- the limit of memory ---- */

/* Mappings that fail need no memory. */
static void *limit(void *arg)
{
	int fd = open("/proc/self/exe", O_RDONLY);
	long good = 0;

	for (int i = 0; i < 600; i++)
		good += mmap(NULL, (size_t)1 << 30, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) !=
			MAP_FAILED;
	SHOW(good);
	SHOW(errno == EACCES);
	memory_take();
	close(fd);
	return arg;
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	void *(*all)(void *) = !strcmp(how, "parts") ? parts : !strcmp(how, "zero") ? zero :
			       !strcmp(how, "fixed") ? fixed : !strcmp(how, "passed") ? passed :
			       !strcmp(how, "limit") ? limit :
			       !strcmp(how, "protected") ? protected : shared;
	pthread_t t;

	if (!strcmp(how, "cancel") || !strcmp(how, "inherited")) {
		*how == 'c' ? cancel() : inherited();
		return 0;
	}

	/* the first thread is on the second node */
	all(NULL);
	if (pthread_create(&t, NULL, all, NULL) || pthread_join(t, NULL))
		return 1;
	all(NULL);
	return 0;
}
