# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
threads_SONAME := libsci-threads.so.0

# Only the shared library replaces functions of libc: tests of the rest link the archive.
THREADS_OBJ := $(call obj,libsci/threads/interpose/*.c)
# The tests run these programs, which do not use the library.
THREADS_PROGRAMS := $(patsubst %.o,%,$(call obj,selftests/threads/programs/*.c))

define threads_RULES
$(B)/$(threads_SONAME): $(THREADS_OBJ)
# initfirst: see streams_begin()
$(B)/$(threads_SONAME): override LDFLAGS += -Wl,--as-needed -Wl,-z,initfirst
# -fexceptions: exceptions of the program's functions run handlers of pthread_cleanup_push()
$(THREADS_OBJ): override CFLAGS += -ftls-model=initial-exec -fno-builtin -fexceptions
$(THREADS_PROGRAMS): %: %.o
	$$(call say,LINK)
	$(Q)$$(LINK) $$^ -lm
$(patsubst %.o,%,$(call obj,selftests/threads/*.c)): | $(THREADS_PROGRAMS)
endef
