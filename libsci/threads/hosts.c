// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Start of nodes that share no memory. */

#include <errno.h>
#include <link.h>
#include <locale.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <time.h>

#include "hosts.h"

bool hosts_on, hosts_alone, hosts_span_done;
char **hosts_env;

noreturn void hosts_abort(void)
{
	for (;;)
		syscall(SYS_exit_group, 1);
}

/* ---- the same libraries at the same addresses ---- */

struct text {
	char *at;
	size_t room;
	unsigned int objects;
};

__attribute__((format(printf, 2, 3)))
static void text_add(struct text *t, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(t->at, t->room, fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= t->room)
		n = t->room ? (int)t->room - 1 : 0;
	t->at += n;
	t->room -= (size_t)n;
}

static void build_id_add(struct text *t, const char *note, size_t len)
{
	while (len >= sizeof(ElfW(Nhdr))) {
		ElfW(Nhdr) h;
		size_t name, all;

		memcpy(&h, note, sizeof(h));
		name = (h.n_namesz + 3u) & ~3u;
		all = sizeof(h) + name + ((h.n_descsz + 3u) & ~3u);
		if (all > len)
			return;
		for (size_t i = 0; h.n_type == NT_GNU_BUILD_ID && i < h.n_descsz; i++)
			text_add(t, "%02x", (uint8_t)note[sizeof(h) + name + i]);
		note += all;
		len -= all;
	}
}

/* Add a line about a library: its name, address, size in the file, and build id. */
static int object_describe(struct dl_phdr_info *info, size_t size, void *arg)
{
	const char *name = strrchr(info->dlpi_name, '/');
	struct text *t = arg;

	(void)size;
	if (memory_is_libsci_object(t->objects++))
		return 0;
	name = name ? name + 1 : info->dlpi_name;
	if (!strncmp(name, "linux-vdso", 10))
		return 0;		/* the kernel's, at another address on each kernel */
	text_add(t, "%s at %#lx", *name ? name : "the program", (unsigned long)info->dlpi_addr);
	for (unsigned int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type == PT_LOAD)
			text_add(t, " %lx", (unsigned long)p->p_filesz);
		if (p->p_type == PT_NOTE)
			build_id_add(t, (const char *)info->dlpi_addr + p->p_vaddr, p->p_memsz);
	}
	text_add(t, "\n");
	return 0;
}

/* Functions whose variant libc selects by the kind of CPU, at the start of the program. */
static const char *const variants[] = {
	"memcpy", "memmove", "memset", "memchr", "memcmp", "strlen", "strchr", "strcmp", "strcpy",
	"strstr", "strcasecmp", "wcslen",
};

static void objects_describe(char *buf, size_t len)
{
	struct text t = { buf, len, 0 };

	dl_iterate_phdr(object_describe, &t);
	for (size_t i = 0; i < sizeof(variants) / sizeof(variants[0]); i++)
		text_add(&t, "%s() for this kind of CPU at %p\n", variants[i],
			 dlsym(RTLD_NEXT, variants[i]));
}

/* Compare this node's libraries with those of node 0. Return 0, or -ENOEXEC after a message. */
static int objects_compare(const char *first)
{
	static char own[sizeof(((struct span_wire *)0)->objects)];
	const char *mine = own;

	objects_describe(own, sizeof(own));
	while (*first && *mine) {
		size_t a = strcspn(first, "\n"), b = strcspn(mine, "\n");

		if (a != b || memcmp(first, mine, a)) {
			world_say("node %u has '%.*s', but node %u has '%.*s': threads need the same files at the same addresses, and the same kind of CPU",
				  node_id(0), (int)a, first, node_id(self_node), (int)b, mine);
			return -ENOEXEC;
		}
		first += a + 1;
		mine += b + 1;
	}
	if (!*first && !*mine)
		return 0;
	world_say("node %u has not loaded the same libraries as node %u: '%.*s'",
		  node_id(self_node), node_id(0), (int)strcspn(*first ? first : mine, "\n"),
		  *first ? first : mine);
	return -ENOEXEC;
}

/* ---- the span ---- */

static struct span_wire span;

static void span_fill(void)
{
	const char *from, *to;

	if (!memory_find_pieces()) {
		world_say("cannot share memory: more than %u pieces", PIECES_MAX);
		hosts_abort();
	}
	for (unsigned int i = 0; memory_piece(i, &from, &to); i++) {
		span.pieces[i].from = (char *)(uintptr_t)from;
		span.pieces[i].to = (char *)(uintptr_t)to;
		span.pieces_n++;
	}
	objects_describe(span.objects, sizeof(span.objects));
	snprintf(span.locale, sizeof(span.locale), "%s", REAL(setlocale)(LC_ALL, NULL));
	span.descriptor = futex_descriptor;
	span.in = stdin;
	span.out = stdout;
	span.err = stderr;
	span.env = environ;
	for (int i = 1; i < 64; i++)
		REAL(sigaction)(i, NULL, &span.actions[i]);
}

/* Take the settings of node 0 that libc keeps in each process. Return 0 or -errno. */
static int span_apply(void)
{
	stdin = span.in;
	stdout = span.out;
	stderr = span.err;
	environ = span.env;
	if (!REAL(setlocale)(LC_ALL, span.locale)) {
		world_say("node %u does not have the locale %s", node_id(self_node), span.locale);
		return -ENOENT;
	}
	for (int i = 1; i < 64; i++)
		if (i != SIGSYS && i != SIGKILL && i != SIGSTOP)
			REAL(sigaction)(i, &span.actions[i], NULL);
	return 0;
}

static int span_explain(int ret)
{
	if (ret == -EPERM)
		world_say("node %u: userfaultfd(2) is not permitted: threads on several machines need root, or vm.unprivileged_userfaultfd = 1",
			  node_id(self_node));
	else if (ret && ret != -ENOEXEC)
		world_say("node %u cannot share memory: %s", node_id(self_node), strerror(-ret));
	return ret;
}

bool hosts_span(void)
{
	int ret;

	span_fill();
	ret = link_bcast(&span, sizeof(span));
	ret = ret ? ret : link_agree(span_explain(page_open(&span)));
	if (!ret && !futex_share())
		ret = -EPERM;
	/* from here on this node answers requests for pages */
	ret = link_agree(ret);
	if (ret)
		hosts_abort();
	world->node[0].pid = (pid_t)syscall(SYS_getpid);
	hosts_span_done = true;
	if (!service_start())
		hosts_abort();
	ret = link_agree(0);
	if (ret)
		hosts_abort();
	return true;
}

static noreturn void hosts_follow(void)
{
	int ret = link_bcast(&span, sizeof(span));

	if (ret)
		for (;;)
			pause();	/* node 0 has gone: link.c ends this process */
	ret = objects_compare(span.objects);
	if (!ret)
		ret = span_explain(page_open(&span));
	if (link_agree(ret))
		link_leave();
	for (uint32_t i = 0; i < span.pieces_n; i++)
		memory_piece_add(span.pieces[i].from, span.pieces[i].to);
	futex_descriptor = span.descriptor;
	if (link_agree(futex_share() ? 0 : -EPERM))
		link_leave();
	hosts_span_done = true;
	world->node[self_node].pid = (pid_t)syscall(SYS_getpid);
	if (link_agree(span_apply()) || !service_start())
		link_leave();
	for (;;)
		pause();
}

/* ---- start ---- */

void hosts_open(void (*follow)(void))
{
	int ret;

	/* futexes of a child at the addresses of this program would raise SIGSYS: see futex.c */
	personality((unsigned long)personality(0xffffffff) & ~(unsigned long)ADDR_NO_RANDOMIZE);
	home_loads = true;
	hosts_alone = true;
	memory_libsci_loads(true);
	ret = link_open();
	ret = ret ? ret : sleep_open();
	memory_libsci_loads(false);
	home_loads = false;
	if (!ret && self_node) {
		follow();
		hosts_follow();
	}
	if (!ret)
		return;
	world_say("cannot connect the nodes: %s", strerror(-ret));
	for (;;)
		syscall(SYS_exit_group, 1);
}

void hosts_report(void *arg)
{
	const struct node *n = &world->node[self_node];
	struct timespec ts = { 0 };

	(void)arg;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	world_say("node %u: %u threads created, %ld.%03ld s of CPU time", node_id(self_node),
		  atomic_load(&n->created), (long)ts.tv_sec, ts.tv_nsec / 1000000);
}
