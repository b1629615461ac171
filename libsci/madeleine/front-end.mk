# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
madeleine_SONAME := libmadeleine.so.0
madeleine_MAP := libsci/madeleine/madeleine.map
madeleine_LIBS := -lm
madeleine_BINS := mad-run

# mad-run has the library's parser of session files.
define madeleine_RULES
$(B)/mad-run: $(call obj,libsci/madeleine/tools/*.c) $(B)/libmadeleine.a $(B)/libsci.a
	$$(call say,LINK)
	$(Q)$$(LINK) $$^ $$(LIBS) -lm
endef
