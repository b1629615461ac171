// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Test loading and unloading of modules. SCI_MODULES is the folder of sci.ko and
 * sci_loop.ko, SCI_LOOP_OPTIONS the parameters of sci_loop.ko; --rounds=N (20).
 */
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sci_test.h"

static int insert(const char *module, const char *given)
{
	char path[512];
	int fd, ret;

	snprintf(path, sizeof(path), "%s/%s.ko", getenv("SCI_MODULES"), module);
	fd = SYS(open(path, O_RDONLY | O_CLOEXEC));
	if (fd < 0)
		return fd;
	ret = SYS(syscall(SYS_finit_module, fd, given, 0));
	close(fd);
	return ret;
}

static int delete(const char *module)
{
	return SYS(syscall(SYS_delete_module, module, O_NONBLOCK));
}

static bool loaded(const char *module)
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/module/%s/initstate", module);
	return !access(path, F_OK);
}

static const char *loop_options(void)
{
	const char *given = getenv("SCI_LOOP_OPTIONS");

	return given ? given : "nodes=4";
}

/* Set if sci_pci was loaded before the test: load() then loads it again. */
static bool with_pci;

static void unload_pci(void)
{
	if (loaded("sci_pci"))
		WAIT_UNTIL(!delete("sci_pci"));
}

static void load(void)
{
	char path[32];

	OK(insert("sci", ""));
	OK(insert("sci_loop", loop_options()));
	if (with_pci)
		OK(insert("sci_pci", ""));
	snprintf(path, sizeof(path), DEV_DIR "/sci%u", adapter_index(0));
	WAIT_UNTIL(!access(path, R_OK));
}

static void unload(void)
{
	/* the last release of a closed file may still be under way */
	unload_pci();
	WAIT_UNTIL(!delete("sci_loop"));
	WAIT_UNTIL(!delete("sci"));
	CHECK(!loaded("sci"));
	CHECK(access(SYSFS_DIR, F_OK));
	CHECK(access(LOOP_DIR, F_OK));
}

static void need_module(void)
{
	NEED_ROOT();
	if (!loaded("sci_loop"))
		SKIP("sci_loop is not a module, or not loaded");
}

static void need_modules(void)
{
	char path[512];
	glob_t cards;

	NEED_ROOT();
	if (!getenv("SCI_MODULES"))
		SKIP("SCI_MODULES does not say where modules are");
	snprintf(path, sizeof(path), "%s/sci_loop.ko", getenv("SCI_MODULES"));
	if (access(path, R_OK))
		SKIP("no %s", path);
	if (!glob("/sys/bus/pci/drivers/sci_pci/*:*", 0, NULL, &cards)) {
		globfree(&cards);
		SKIP("there are cards");
	}
	with_pci = loaded("sci_pci");
}

static void must_be_busy(void)
{
	FAILS_EITHER(delete("sci"), EAGAIN, EBUSY);
	FAILS_EITHER(delete("sci_loop"), EAGAIN, EBUSY);
	CHECK(loaded("sci_loop"));
}

/* ---- modules in use ---- */

TEST(an_open_adapter_holds_the_modules)
{
	struct sci_ioc_query q;
	int fd;

	need_module();
	fd = OK(adapter_open(0));
	must_be_busy();
	OK(adapter_query(fd, &q));
}

TEST(every_kind_of_object_holds_the_modules)
{
	need_module();
	for (unsigned int kind = 0; kind < KINDS; kind++) {
		struct world w = WORLD();
		int fd = w.fd[kind] < 0 ? -1 :
			 OK(SYS(fcntl(w.fd[kind], F_DUPFD_CLOEXEC, 0)));

		world_close(&w);
		if (fd < 0)
			continue;
		must_be_busy();
		close(fd);
	}
}

/* A map outlives its descriptor. Then the driver may be unloaded, but not the core. */
TEST(maps_hold_the_core)
{
	volatile uint32_t *map[3];
	struct pair p;

	need_modules();
	p = PAIR(PAGE);
	map[0] = MAP(p.importer, SCI_MMAP_STATUS, PAGE, PROT_READ);
	map[1] = p.here;
	map[2] = p.there;
	close(p.remote);
	close(p.local);
	close(p.importer);
	close(p.exporter);
	unload_pci();
	WAIT_UNTIL(!delete("sci_loop"));
	map[1][0] = 1;
	map[2][0] = 2;
	CHECK(((struct sci_status_page *)map[0])->down);
	for (unsigned int i = 0; i < ARRAY_SIZE(map); i++) {
		FAILS_EITHER(delete("sci"), EAGAIN, EBUSY);
		OK(sci_unmap(map[i], PAGE));
	}
	WAIT_UNTIL(!delete("sci"));
	load();
}

/* A dma-buf outlives its segment, as a map does. */
TEST(a_dmabuf_holds_the_core)
{
	volatile uint32_t *map;
	int opened, fd, buf;

	need_modules();
	opened = OK(adapter_open(0));
	fd = OK(segment_private(opened, PAGE));
	buf = segment_get_dmabuf(fd);
	if (buf == -EOPNOTSUPP)
		SKIP("no dma-bufs of segments");
	OK(buf);
	close(fd);
	close(opened);
	unload_pci();
	WAIT_UNTIL(!delete("sci_loop"));
	FAILS_EITHER(delete("sci"), EAGAIN, EBUSY);
	map = MAP(buf, 0, PAGE, RW);
	close(buf);
	map[0] = 1;
	FAILS_EITHER(delete("sci"), EAGAIN, EBUSY);
	OK(sci_unmap(map, PAGE));
	WAIT_UNTIL(!delete("sci"));
	load();
}

/* Return the number of modules that use symbols of @module. */
static long long holders(const char *module)
{
	char pattern[128];
	glob_t names;
	size_t n;

	snprintf(pattern, sizeof(pattern), "/sys/module/%s/holders/*", module);
	if (glob(pattern, 0, NULL, &names))
		return 0;
	n = names.gl_pathc;
	globfree(&names);
	return (long long)n;
}

/*
 * The core must stay until the file system of its objects is gone, not only until
 * the last file is released: the end of a file uses the file system after the
 * release.
 */
TEST(the_file_system_holds_the_core)
{
	need_module();
	CHECK(read_number("/sys/module/sci/refcnt") > holders("sci"));
}

/* ---- rounds ---- */

/* Hold a descriptor and a map of each kind until told to end. */
static void hold_a_world(struct peer *self, void *arg)
{
	(void)arg;
	peer_expect(self, "begin");
	WORLD();
	peer_send(self, "begun");
	peer_expect(self, "end");
}

/* Unload a module as soon as it is not busy. */
static void delete_at_once(const char *module)
{
	int ret;

	while ((ret = delete(module)))
		CHECK(ret == -EAGAIN || ret == -EBUSY);
}

/* After the last close the driver can be unloaded, then the core, without a wait. */
TEST(unloading_races_with_the_last_close)
{
	unsigned int n = (unsigned int)ksft_option("rounds", 20);

	need_modules();
	ksft_set_limit(60 + 6 * n);
	for (unsigned int i = 0; i < n; i++) {
		struct peer *peer = peer_spawn(hold_a_world, NULL);

		unload_pci();
		peer_send(peer, "begin");
		peer_expect(peer, "begun");
		peer_send(peer, "end");
		delete_at_once("sci_loop");
		delete_at_once("sci");
		peer_join(peer);
		load();
	}
}

TEST(the_core_is_held_by_its_driver)
{
	need_module();
	FAILS_EITHER(delete("sci"), EAGAIN, EBUSY);
}

TEST(loading_and_unloading)
{
	unsigned int n = (unsigned int)ksft_option("rounds", 20);

	need_modules();
	ksft_set_limit(60 + 3 * n);
	for (unsigned int i = 0; i < n; i++) {
		unload();
		load();
	}
}

TEST(unloading_after_use)
{
	unsigned int n = (unsigned int)ksft_option("rounds", 20);

	need_modules();
	ksft_set_limit(60 + 6 * n);
	for (unsigned int i = 0; i < n; i++) {
		everything(i, 2);
		unload();
		load();
	}
}

static void use_until_killed(struct peer *self, void *arg)
{
	(void)arg;
	peer_expect(self, "begin");
	WORLD();
	peer_send(self, "begun");
	for (;;)
		everything(1, 1);
}

TEST(unloading_after_a_kill)
{
	struct peer *peer[10];

	need_modules();
	for (unsigned int i = 0; i < ARRAY_SIZE(peer); i++)
		peer[i] = peer_spawn(use_until_killed, NULL);
	for (unsigned int i = 0; i < ARRAY_SIZE(peer); i++) {
		peer_send(peer[i], "begin");
		peer_expect(peer[i], "begun");
		peer_kill(peer[i]);
		unload();
		load();
	}
}

TEST(the_driver_alone)
{
	need_modules();
	for (unsigned int i = 0; i < 5; i++) {
		WAIT_UNTIL(!delete("sci_loop"));
		EQ(insert("sci_loop", loop_options()), 0);
	}
	everything(1, 1);
}

/* A refused parameter leaves nothing behind. */
TEST(options_that_can_not_be)
{
	static const char *const bad[] = {
		"nodes=0", "nodes=-1", "nodes=65", "nodes=100000", "nodes=x",
		"nodes=", "att_entries=0", "att_page_size=4095",
		"att_page_size=0", "max_segment=0",
	};

	need_modules();
	WAIT_UNTIL(!delete("sci_loop"));
	for (unsigned int i = 0; i < ARRAY_SIZE(bad); i++) {
		int ret = insert("sci_loop", bad[i]);

		if (ret != -EINVAL)
			FAIL("%s: %s", bad[i], ksft_errname(-ret));
		CHECK(!loaded("sci_loop"));
	}
	/* the kernel ignores an unknown parameter and logs it */
	OK(insert("sci_loop", "nodes=2 no_such_option=1"));
	WAIT_UNTIL(!delete("sci_loop"));
	OK(insert("sci_loop", loop_options()));
	everything(1, 1);
}
