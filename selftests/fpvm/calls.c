// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Tests the Fortran calls: the strings, which gfortran passes with a length and blanks. */

#include "selftests/pvm/machine.h"

void pvmfmytid_(int *tid);
void pvmfinitsend_(int *enc, int *mid);
void pvmfpack_(int *type, void *items, int *n, int *stride, int *info);
void pvmfunpack_(int *type, void *items, int *n, int *stride, int *info);
void pvmfsend_(int *tid, int *tag, int *info);
void pvmfrecv_(int *tid, int *tag, int *mid);
void pvmfbufinfo_(int *mid, int *bytes, int *tag, int *tid, int *info);
void pvmfjoingroup_(const char *group, int *inst, size_t len);
void pvmfgsize_(const char *group, int *size, size_t len);
void pvmfspawn_(const char *task, int *flag, const char *where, int *n, int *tids,
		int *numt, size_t tlen, size_t wlen);
void pvmfconfig_(int *nhost, int *narch, int *dtid, char *name, char *arch, int *speed,
		 int *info, size_t nlen, size_t alen);

static int child_main(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return 0;
}

TEST(strings_are_characters_without_a_zero)
{
	int me, enc = PvmDataDefault, mid, type = PVM_STR, n = 5, one = 1, info, tag = 3;
	int bytes, src;
	char got[8];

	machine_begin();
	pvmfmytid_(&me);
	pvmfinitsend_(&enc, &mid);
	pvmfpack_(&type, (char *)"hello there", &n, &one, &info);
	CHECK_EQ(info, 0);
	pvmfsend_(&me, &tag, &info);
	CHECK_EQ(info, 0);
	pvmfrecv_(&me, &tag, &mid);
	CHECK(mid > 0);
	pvmfbufinfo_(&mid, &bytes, &tag, &src, &info);
	CHECK(bytes == 8 && tag == 3 && src == me);
	pvmfunpack_(&type, got, &n, &one, &info);
	CHECK_EQ(info, 0);
	CHECK(!memcmp(got, "hello", 5));
	type = 55;
	pvmfpack_(&type, got, &n, &one, &info);
	CHECK_EQ(info, PvmBadParam);
	machine_end();
}

TEST(blanks_at_the_end_of_names_do_not_count)
{
	int inst, size, flag = PvmTaskDefault, one = 1, tid, n = 0, archs, dtid, speed, info;
	char name[12], arch[12];

	machine_begin();
	pvmfjoingroup_("g   ", &inst, 4);
	CHECK_EQ(inst, 0);
	pvmfgsize_("g", &size, 1);
	CHECK_EQ(size, 1);
	pvmfspawn_("no-such-program  ", &flag, "*", &one, &tid, &n, 17, 1);
	CHECK_EQ(n, 0);
	CHECK_EQ(tid, PvmNoFile);
	pvmfconfig_(&n, &archs, &dtid, name, arch, &speed, &info, 12, 12);
	CHECK(info == 1 && n == 1 && dtid == pvm_tidtohost(pvm_mytid()));
	CHECK(!memcmp(arch, "LINUX64     ", 12));
	machine_end();
}
