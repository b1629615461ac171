// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Wait for a thread with a semaphore. */
#include <stdio.h>
#include <deck.h>

static deck_sem_t *ready;

static void *work(void *arg)
{
	*(int *)arg = 42;
	deck_sem_post(ready);
	return NULL;
}

int main(void)
{
	deck_thread_t *thread;
	int n = 0;

	if (deck_sem_create(&ready, 0) || deck_thread_create(&thread, work, &n))
		return 1;
	deck_sem_wait(ready);
	printf("%d\n", n);
	deck_thread_join(thread, NULL);
	return deck_sem_destroy(ready);
}
