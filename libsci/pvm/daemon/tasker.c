// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * A tasker: a task that starts tasks in place of the daemon, such as a debugger. A task
 * that it has started enrols with the cookie that it finds in PVMEPID.
 */

#include <stdlib.h>
#include <string.h>

#include "libsci/pvm/daemon/daemon.h"

#define COOKIE_BASE	(1 << 24)	/* no process has such a number */

/* A message in XDR that grows. */
struct text {
	uint8_t *data;
	size_t len;
};

int tasker;

int tasker_set(int tid)
{
	if (tasker && tasker != tid)
		return PvmAlready;
	tasker = tid;
	return 0;
}

static uint8_t *text_room(struct text *x, size_t len)
{
	uint8_t *data = realloc(x->data, x->len + len);

	if (!data)
		abort();
	memset(data + x->len, 0, len);
	x->data = data;
	x->len += len;
	return data + x->len - len;
}

static void text_word(struct text *x, uint32_t v)
{
	put_word(text_room(x, 4), v);
}

/* NAME=VALUE, or a string alone. */
static void text_str(struct text *x, const char *s, const char *value)
{
	size_t n = strlen(s), all = n + (value ? strlen(value) + 1 : 0) + 1;
	uint8_t *to;

	text_word(x, (uint32_t)all);
	to = text_room(x, (all + 3) & ~(size_t)3);
	memcpy(to, s, n);
	if (value) {
		to[n] = '=';
		memcpy(to + n + 1, value, all - n - 2);
	}
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
	/* the name of the program is not among them */
	text_word(&x, argc - 1);
	for (uint32_t i = 1; i < argc; i++)
		text_str(&x, argv[i], NULL);
	text_word(&x, nenv);
	for (int i = 0; env[i]; i += 2)
		text_str(&x, env[i], env[i + 1]);
	text_str(&x, "PVMEPID", cookie);
	message_send(tasker, (int)(TID_DAEMON | TID_OF_HOST(own_host)), 0, SM_STTASK,
		     x.data, x.len);
	free(x.data);
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
	struct task *t = task_find(body_i32(b));

	/* one that has enrolled ends with its socket */
	if (t && t->cookie)
		task_end(t);
}
