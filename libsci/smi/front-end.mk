# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SMI: shared regions for the processes of a program, in C and Fortran.
smi_SONAME := libsmi.so.0
smi_MAP := libsci/smi/smi.map
smi_BINS := smirun smicc

# smirun and smicc are scripts.
define smi_RULES
$(B)/smirun $(B)/smicc: $(B)/%: libsci/smi/%
	$(Q)cp $$< $$@
endef
