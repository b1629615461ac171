// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Test cards on a PCI bus: resets, removal, sleep, errors of the bus, and cards
 * that break the rules. Each test takes the first adapter away while it is in use,
 * and brings it back.
 *
 * SCI_MONITOR is a terminal with QEMU's monitor, in which the cards are card0,
 * card1 and so on. Tests of errors that only QEMU can cause need it.
 */
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <termios.h>
#include <unistd.h>

#include "sci_test.h"

#define PCI_DIR		"/sys/bus/pci"
#define DRIVER_DIR	PCI_DIR "/drivers/sci_pci"
#define POWER_DIR	"/sys/power"

/* Return the bus address of the card of adapter @i, such as "0000:01:00.0". Skip without one. */
static void card_of(unsigned int i, char address[64])
{
	char path[128], target[PATH_MAX] = "";
	const char *name;

	snprintf(path, sizeof(path), SYSFS_DIR "/sci%u/device", adapter_index(i));
	if (readlink(path, target, sizeof(target) - 1) < 0)
		target[0] = 0;
	name = strrchr(target, '/');
	if (!name)
		SKIP("the adapter is not a card");
	snprintf(address, 64, "%s", name + 1);
	snprintf(path, sizeof(path), DRIVER_DIR "/%s", address);
	if (access(path, F_OK))
		SKIP("the adapter is not a card");
}

static int card_write(const char *address, const char *file, const char *text)
{
	char path[192];

	snprintf(path, sizeof(path), PCI_DIR "/devices/%s/%s", address, file);
	return write_text(path, text);
}

/* ---- an adapter in use ---- */

struct scene {
	struct world w;
	struct sci_ioc_check before;	/* a snapshot of the error counts */
	unsigned int adapters;
	char card[64];			/* of the first adapter */
};

static struct scene scene_of(void)
{
	struct scene s = { .adapters = adapters() };

	NEED_ROOT();
	card_of(0, s.card);
	s.w = WORLD();
	WORD(s.w.pair.there, 0) = 1;
	OK(sci_check(s.w.pair.remote, &s.before));
	s.before.errors = s.before.out_errors;
	s.before.fatal = s.before.out_fatal;
	return s;
}

/* Check that all objects of the first adapter fail with ENODEV. */
static void all_is_gone(struct scene *s)
{
	struct pair *p = &s->w.pair;

	WAIT_UNTIL(sci_flush(p->remote) == -ENODEV);
	FAILS(sci_flush(p->importer), ENODEV);
	FAILS(sci_check(p->remote, &s->before), ENODEV);
	FAILS(intr_trigger(s->w.fd[KIND_RINTR]), ENODEV);
	if (s->w.fd[KIND_DMA] >= 0)
		FAILS(dma_move(s->w.fd[KIND_DMA], SCI_DMA_WAIT,
			       s->w.fd[KIND_LOCAL], p->remote, 4096), ENODEV);
	/* maps give no signal */
	WORD(p->there, 0) = 2;
	WORD(p->there, 1) = WORD(p->there, 0);
}

static bool all_there(unsigned int n)
{
	adapters_find();
	return adapters() == n;
}

/* Wait for a new adapter, and check that it works like the old one. */
static void all_is_back(const struct scene *s)
{
	WAIT_UNTIL(all_there(s->adapters));
	WAIT_UNTIL(nodes_answer());
	everything(1, 2);
}

static void scene_end(struct scene *s)
{
	world_close(&s->w);
	all_is_back(s);
}

/* ---- the bus ---- */

TEST(a_reset_by_hand)
{
	struct scene s = scene_of();

	OK(card_write(s.card, "reset", "1"));
	all_is_gone(&s);
	scene_end(&s);
}

TEST(many_resets_in_a_row)
{
	struct scene s = scene_of();

	for (unsigned int i = 0; i < 5; i++)
		OK(card_write(s.card, "reset", "1"));
	all_is_gone(&s);
	scene_end(&s);
}

TEST(unbound_and_bound)
{
	struct scene s = scene_of();

	OK(write_text(DRIVER_DIR "/unbind", s.card));
	all_is_gone(&s);
	CHECK(all_there(s.adapters - 1));
	OK(write_text(DRIVER_DIR "/bind", s.card));
	scene_end(&s);
}

TEST(removed_and_found_again)
{
	struct scene s = scene_of();

	OK(card_write(s.card, "remove", "1"));
	all_is_gone(&s);
	CHECK(all_there(s.adapters - 1));
	OK(write_text(PCI_DIR "/rescan", "1"));
	scene_end(&s);
}

static void unbind_when_told(struct peer *self, void *arg)
{
	peer_expect(self, "now");
	OK(write_text(DRIVER_DIR "/unbind", arg));
}

TEST(two_adapters_that_go_at_once)
{
	struct scene s;
	struct peer *peer[2];
	char card[2][64];

	NEED_ADAPTERS(2);
	s = scene_of();
	for (unsigned int i = 0; i < 2; i++) {
		card_of(i, card[i]);
		peer[i] = peer_spawn(unbind_when_told, card[i]);
	}
	for (unsigned int i = 0; i < 2; i++)
		peer_send(peer[i], "now");
	for (unsigned int i = 0; i < 2; i++)
		peer_join(peer[i]);
	all_is_gone(&s);
	FAILS(sci_flush(s.w.pair.exporter), ENODEV);
	WORD(s.w.pair.here, 0) = 1;
	CHECK(all_there(s.adapters - 2));
	for (unsigned int i = 0; i < 2; i++)
		OK(write_text(DRIVER_DIR "/bind", card[i]));
	scene_end(&s);
}

/* ---- sleep ---- */

/* Send all devices to sleep and wake them; the CPUs stay awake. */
static void sleep_and_wake(void)
{
	if (access(POWER_DIR "/pm_test", W_OK))
		SKIP("no %s", POWER_DIR "/pm_test");
	write_text("/sys/module/suspend/parameters/pm_test_delay", "0");
	OK(write_text(POWER_DIR "/pm_test", "devices"));
	OK(write_text(POWER_DIR "/state", "freeze"));
	OK(write_text(POWER_DIR "/pm_test", "none"));
}

TEST(the_machine_sleeps)
{
	struct scene s = scene_of();

	sleep_and_wake();
	all_is_gone(&s);
	scene_end(&s);
}

TEST(the_machine_sleeps_twice)
{
	struct scene s = scene_of();

	sleep_and_wake();
	all_is_gone(&s);
	sleep_and_wake();
	scene_end(&s);
}

/* ---- QEMU's monitor ---- */

static int monitor_open(void)
{
	const char *path = getenv("SCI_MONITOR");
	struct termios t;
	int fd;

	if (!path)
		SKIP("SCI_MONITOR does not say where QEMU's monitor is");
	fd = OK(SYS(open(path, O_RDWR | O_NOCTTY | O_CLOEXEC)));
	OK(SYS(tcgetattr(fd, &t)));
	cfmakeraw(&t);
	OK(SYS(tcsetattr(fd, TCSANOW, &t)));
	return fd;
}

/* Read the monitor's answer until @mark. */
static void monitor_read(int fd, const char *mark, char *answer, size_t size)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	size_t n = 0;

	while (n < size - 1) {
		CHECK(poll(&p, 1, TEST_WAIT_MS) == 1);
		n += OK(SYS(read(fd, answer + n, size - 1 - n)));
		answer[n] = 0;
		if (strstr(answer, mark))
			return;
	}
	FAIL("no end of the monitor's answer");
}

/* The monitor echoes commands. The echo does not contain the decimal number. */
#define MARK_SENT	"print/d 0xbeef\n"
#define MARK		"48879"

__attribute__((format(printf, 1, 2)))
static void monitor(const char *fmt, ...)
{
	static char answer[16384];
	int fd = monitor_open();
	char text[256];
	va_list ap;
	size_t n;

	va_start(ap, fmt);
	n = vsnprintf(text, sizeof(text) - sizeof(MARK_SENT), fmt, ap);
	va_end(ap);
	memcpy(text + n, "\n" MARK_SENT, sizeof("\n" MARK_SENT));
	tcflush(fd, TCIFLUSH);
	EQ(SYS(write(fd, text, strlen(text))), strlen(text));
	monitor_read(fd, MARK, answer, sizeof(answer));
	close(fd);
	if (strstr(answer, "Error") || strstr(answer, "unknown"))
		FAIL("the monitor says: %s", answer);
}

/* Return QEMU's name of the first adapter: node 4 is card0, node 8 is card1. */
static const char *qemu_card(void)
{
	static char name[16];

	snprintf(name, sizeof(name), "card%u", adapter_node(0) / 4 - 1);
	return name;
}

/* ---- errors of the bus ---- */

TEST(an_error_that_does_no_harm)
{
	struct scene s = scene_of();

	monitor("pcie_aer_inject_error -c %s RCVR", qemu_card());
	OK(sci_flush(s.w.pair.remote));
	OK(intr_trigger(s.w.fd[KIND_RINTR]));
	scene_end(&s);
}

TEST(a_fatal_error_of_the_bus)
{
	struct scene s = scene_of();

	monitor("pcie_aer_inject_error %s MALF_TLP", qemu_card());
	all_is_gone(&s);
	scene_end(&s);
}

/* A reset consumes the saved state of the bus, which recovery needs. */
TEST(a_fatal_error_after_a_reset)
{
	struct scene s = scene_of();

	OK(card_write(s.card, "reset", "1"));
	all_is_gone(&s);
	WAIT_UNTIL(all_there(s.adapters));
	monitor("pcie_aer_inject_error %s MALF_TLP", qemu_card());
	scene_end(&s);
}

/* ---- cards that break the rules ---- */

/* Open the kernel log at its end. */
static int log_open(void)
{
	int fd = OK(SYS(open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC)));

	OK(SYS(lseek(fd, 0, SEEK_END)));
	return fd;
}

static bool log_says(int fd, const char *text)
{
	static char line[8192];
	ssize_t n;

	while ((n = read(fd, line, sizeof(line) - 1)) > 0 || errno == EPIPE) {
		line[n > 0 ? n : 0] = 0;
		if (strstr(line, text))
			return true;
	}
	return false;
}

static void fault(const char *name)
{
	monitor("qom-set %s fault %s", qemu_card(), name);
}

/*
 * Cause fault @name, then call @step, which makes the driver notice. The driver
 * must give the card up and log @why. A reset brings back the repaired card.
 */
static void gives_up(const char *name, int (*step)(struct scene *s),
		     const char *why)
{
	struct scene s = scene_of();
	int log = log_open(), ret;

	fault(name);
	ret = step(&s);
	ksft_note("%s: %s", name, ksft_errname(ret < 0 ? -ret : 0));
	WAIT_UNTIL(log_says(log, why));
	all_is_gone(&s);
	fault("none");
	OK(card_write(s.card, "reset", "1"));
	scene_end(&s);
}

static int step_flush(struct scene *s)
{
	int ret = sci_flush(s->w.pair.remote);

	/* stores may be lost: then sci_check() reports it, or the adapter is gone */
	if (!ret && !sci_check(s->w.pair.remote, &s->before))
		CHECK(s->before.out_result != SCI_CHECK_OK);
	return ret;
}

static int step_trigger(struct scene *s)
{
	int ret = intr_trigger(s->w.fd[KIND_RINTR]);

	CHECK(ret < 0);
	return ret;
}

static int step_dma(struct scene *s)
{
	int ret;

	NEED_CAP(SCI_CAP_DMA);
	ret = dma_move(s->w.fd[KIND_DMA], SCI_DMA_WAIT, s->w.fd[KIND_LOCAL],
		       s->w.pair.remote, 4096);
	CHECK(ret < 0);
	return ret;
}

TEST(a_barrier_without_an_end)
{
	gives_up("barrier", step_flush, "a store barrier has no end");
}

TEST(a_command_without_an_end)
{
	gives_up("command", step_trigger, "a command has no end");
}

TEST(a_transfer_that_does_not_begin)
{
	gives_up("dma", step_dma, "DMA has no end");
}

TEST_LIMIT(a_transfer_that_only_seems_to_go_on, 300)
{
	gives_up("dma-busy", step_dma, "DMA has no end");
}

TEST(a_card_that_reads_as_ones)
{
	gives_up("ones", step_flush, "it does not answer");
}

/* A mailbox that states too much room loses messages, but the driver keeps the card. */
TEST(a_mailbox_that_lies)
{
	struct scene s = scene_of();

	fault("mailbox");
	adapter_probe(s.w.pair.importer, s.w.pair.node);
	fault("none");
	WAIT_UNTIL(!adapter_probe(s.w.pair.importer, s.w.pair.node));
	OK(sci_flush(s.w.pair.remote));
	scene_end(&s);
}
