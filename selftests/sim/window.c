// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Test the direct window of the QEMU device, without a guest: QEMU runs no CPU, and its qtest
 * protocol accesses the card. The test needs a QEMU: scripts/check-window builds one.
 */
#include <stdarg.h>
#include <sys/mman.h>

#include "kmod/pci/regs.h"
#include "selftests/sim/switch.h"

#define PAGE		SCI_PCI_PAGE
#define CSR		UINT64_C(0xf0000000)	/* BAR 0 */
#define ATT		UINT64_C(0xf0100000)	/* BAR 1 */
#define WINDOW		UINT64_C(0xe0000000)	/* BAR 2 */
#define MEMORY		(1u << 20)		/* of the peer */

/* Places in the peer's memory. Each export has one page. */
enum { AT_TABLE = 0, AT_ROOTS = PAGE, AT_LEAVES = 2 * PAGE, AT_DATA = 64 * PAGE };

static int qtest = -1;
static pid_t qemu_pid;
static uint8_t *memory;
static int node8 = -1;

/* ---- QEMU ---- */

static void qtest_send(const char *text)
{
	size_t n = strlen(text);

	CHECK_EQ(send(qtest, text, n, MSG_NOSIGNAL), n);
}

/* Receive the answer to a command, and return its number, or 0 if it has none. */
static uint64_t qtest_answer(void)
{
	char line[128], *at = line;

	do {
		wait_readable(qtest);
		CHECK(at < line + sizeof(line) - 1);
		CHECK_EQ(recv(qtest, at, 1, 0), 1);
	} while (*at++ != '\n');
	*at = '\0';
	CHECK(!strncmp(line, "OK", 2));
	return strtoull(line + 2, NULL, 0);
}

__attribute__((format(printf, 1, 2)))
static uint64_t qtest_run(const char *fmt, ...)
{
	char line[128];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	qtest_send(line);
	return qtest_answer();
}

static uint32_t get(uint64_t at)
{
	return (uint32_t)qtest_run("readl 0x%llx\n", (unsigned long long)at);
}

static void put(uint64_t at, uint32_t value)
{
	qtest_run("writel 0x%llx 0x%x\n", (unsigned long long)at, value);
}

static void pci_put(unsigned int at, uint32_t value)
{
	qtest_run("outl 0xcf8 0x%x\n", 0x80001000u | at);
	qtest_run("outl 0xcfc 0x%x\n", value);
}

static void qemu_exec(int fd)
{
	char device[256];

	snprintf(device, sizeof(device),
		 "sci-pci,addr=2,node=4,data-path=direct,att-entries=256,att-page-size=4096,socket=%s",
		 in_dir("fabric"));
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	dup2(fd, STDIN_FILENO);
	dup2(fd, STDOUT_FILENO);
	execl(getenv("SCI_QEMU"), "qemu", "-accel", "qtest", "-qtest", "stdio", "-qtest-log",
	      "/dev/null", "-machine", "pc,memory-backend=ram", "-m", "16", "-object",
	      "memory-backend-memfd,id=ram,size=16M,share=on", "-nodefaults", "-display", "none",
	      "-device", device, NULL);
	_exit(98);
}

/* Start the daemon, and QEMU with a card, node 4. Wait for the card's link. */
static void card_start(void)
{
	int fds[2];

	if (!getenv("SCI_QEMU"))
		SKIP("SCI_QEMU names no QEMU with the device sci-pci");
	daemon_start(NULL);
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	qemu_pid = fork();
	CHECK(qemu_pid >= 0);
	if (!qemu_pid)
		qemu_exec(fds[1]);
	close(fds[1]);
	qtest = fds[0];
	pci_put(0x10, CSR);
	pci_put(0x14, ATT);
	pci_put(0x18, WINDOW);
	pci_put(0x04, 6);		/* memory and bus master */
	CHECK_EQ(get(CSR), SCI_PCI_ID_VALUE);
	put(CSR + SCI_PCI_CONTROL, SCI_PCI_CONTROL_ENABLE);
	WAIT_UNTIL(get(CSR + SCI_PCI_STATUS) & SCI_PCI_STATUS_LINK_UP, TEST_WAIT_MS);
}

static void card_stop(void)
{
	kill(qemu_pid, SIGKILL);
	CHECK_EQ(program_status(qemu_pid), -SIGKILL);
	close(qtest);
	daemon_stop();
}

/* Make an ATT entry. */
static void map_entry(uint32_t entry, uint16_t node, uint16_t export_id)
{
	uint64_t at = ATT + entry * SCI_PCI_ATT_ENTRY_SIZE;

	put(at, 0);
	put(at + SCI_PCI_ATT_EXPORT, export_id);
	put(at, SCI_PCI_ATT_VALID << 16 | node);
}

static uint64_t window(uint32_t entry)
{
	return WINDOW + entry * PAGE;
}

/* Return the error count behind a barrier. */
static uint32_t barrier(void)
{
	get(CSR + SCI_PCI_USER_BARRIER);
	return get(CSR + SCI_PCI_USER_ERRORS);
}

/* ---- a peer: node 8 ---- */

static void node8_send_exports(uint64_t base, uint32_t entries)
{
	struct frame_exports e = {
		.head = { .kind = FRAME_EXPORTS, .node = 8 },
		.base = base, .entries = entries,
	};

	send_frame(node8, &e, sizeof(e));
}

static void node8_start(uint32_t entries)
{
	struct frame_attach f = attach_frame(8);
	int fd = memfd_create("sci-window-test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	CHECK(fd >= 0);
	CHECK_EQ(ftruncate(fd, MEMORY), 0);
	CHECK_EQ(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(memory != MAP_FAILED);
	f.direct = 1;
	f.ranges = 1;
	f.range[0].size = MEMORY;
	node8 = unix_socket("fabric", SOCK_SEQPACKET);
	send_with(node8, &f, sizeof(f), &fd, 1);
	close(fd);
	node8_send_exports(AT_TABLE, entries);
}

static void node8_stop(void)
{
	close(node8);
	munmap(memory, MEMORY);
}

static void node8_put(uint64_t at, uint64_t value)
{
	memcpy(memory + at, &value, sizeof(value));
}

/* Export the page at @page as number @id, in @slot of the table. */
static void export_make(uint16_t id, uint32_t slot, uint64_t page)
{
	uint64_t at = AT_TABLE + slot * SCI_PCI_EXPORT_ENTRY_SIZE;
	uint64_t root = AT_ROOTS + slot * 8, leaf = AT_LEAVES + slot * PAGE;

	node8_put(leaf, page);
	node8_put(root, leaf);
	node8_put(at + SCI_PCI_EXPORT_ROOT, root);
	node8_put(at + SCI_PCI_EXPORT_LENGTH, PAGE);
	node8_put(at, (SCI_PCI_EXPORT_VALID | SCI_PCI_EXPORT_READ | SCI_PCI_EXPORT_WRITE) << 16 |
		     id);
}

/* ---- tests ---- */

TEST(a_table_of_one_entry)
{
	card_start();
	node8_start(1);
	export_make(5, 0, AT_DATA);
	node8_put(AT_DATA, 77);
	map_entry(0, 8, 5);
	WAIT_UNTIL(get(window(0)) == 77, TEST_WAIT_MS);
	put(window(0) + 4, 78);
	CHECK_EQ(memory[AT_DATA + 4], 78);
	node8_stop();
	card_stop();
}

/* A page of an export that the adapter cannot show: stores are lost, so they are errors. */
TEST(pages_outside_the_memory_of_the_peer)
{
	uint32_t errors;

	card_start();
	node8_start(16);
	export_make(0, 0, AT_DATA);
	export_make(1, 1, MEMORY);
	node8_put(AT_DATA, 77);
	map_entry(0, 8, 0);
	WAIT_UNTIL(get(window(0)) == 77, TEST_WAIT_MS);
	errors = barrier();		/* it may have been read before the table had arrived */
	map_entry(1, 8, 1);
	CHECK_EQ(barrier(), errors);
	put(window(1), 78);
	CHECK_EQ(barrier(), errors + 1);
	CHECK_EQ(get(CSR + SCI_PCI_ERROR_CODE), SCI_PCI_ERR_NODE);
	CHECK_EQ(get(CSR + SCI_PCI_ERROR_NODE), 8);
	CHECK_EQ(barrier(), errors + 1);
	/* the whole table is there */
	node8_send_exports(MEMORY, 16);
	WAIT_UNTIL(get(window(0)) == 0, TEST_WAIT_MS);
	CHECK_EQ(barrier(), errors + 2);
	node8_stop();
	card_stop();
}

/* The next user of an entry must not read what an earlier user has stored. */
TEST(private_pages_end_with_the_entry)
{
	card_start();
	map_entry(0, 12, 5);		/* a node that does not exist */
	put(window(0), 0x5ec2e7);
	CHECK_EQ(get(window(0)), 0x5ec2e7);
	map_entry(0, 12, 6);
	CHECK_EQ(get(window(0)), 0);
	card_stop();
}

/*
 * The peers may know the card before the card knows them, and unmap its memory later than the
 * card leaves.
 */
TEST(an_invalidation_without_a_link_takes_a_second)
{
	uint64_t begin;

	card_start();
	put(CSR + SCI_PCI_CMD_ARG, 5);
	begin = test_now_ms();
	put(CSR + SCI_PCI_CONTROL, 0);
	put(CSR + SCI_PCI_CMD, SCI_PCI_CMD_INVALIDATE);
	WAIT_UNTIL(get(CSR + SCI_PCI_CMD_STATUS) == SCI_PCI_CMD_DONE, TEST_WAIT_MS);
	CHECK(test_now_ms() - begin >= 999);
	card_stop();
}
