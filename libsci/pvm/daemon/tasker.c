// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * A tasker is a task that starts tasks in place of the daemon, for example a debugger. A task that
 * the tasker has started enrols with the cookie in PVMEPID.
 */

#include <stdlib.h>
#include <string.h>

#include "libsci/pvm/daemon/daemon.h"
#include "libsci/pvm/daemon/text.h"

#define COOKIE_BASE	(1 << 24)	/* larger than the id of any process */

int tasker;

int tasker_set(int tid)
{
	if (tasker && tasker != tid)
		return PvmAlready;
	tasker = tasker ? 0 : tid;
	return 0;
}

void tasker_start(struct task *t, char *const *argv, const char *const *env, int flags)
{
	struct text x = { 0 };
	uint32_t argc = 0, nenv = 1;
	char cookie[16];

	while (argv[argc])
		argc++;
	for (int i = 0; env[i]; i += 2)
		nenv++;
	t->cookie = COOKIE_BASE | (t->tid & (int)TID_LOCAL_MASK);
	snprintf(cookie, sizeof(cookie), "%d", t->cookie);
	text_word(&x, (uint32_t)t->tid);
	text_word(&x, (uint32_t)flags);
	text_str(&x, argv[0], NULL);
	/* argc does not count the name of the program */
	text_word(&x, argc - 1);
	for (uint32_t i = 1; i < argc; i++)
		text_str(&x, argv[i], NULL);
	text_word(&x, nenv);
	for (int i = 0; env[i]; i += 2)
		text_str(&x, env[i], env[i + 1]);
	text_str(&x, "PVMEPID", cookie);
	text_send(&x, tasker, 0, SM_STTASK, 0);
}

void tasker_ended(int tid)
{
	struct list *l, *next;

	if (!tasker || tid != tasker)
		return;
	tasker = 0;
	list_for_each_safe(l, next, &tasks) {
		struct task *t = container_of(l, struct task, link);

		if (t->tid && t->cookie)
			task_end(t);
	}
}

void tasker_told(struct body *b)
{
	struct task *t = task_find(text_read_word(b));

	/* a task that has enrolled ends with its socket */
	if (t && t->cookie)
		task_end(t);
}
