// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Start a thread, and take its result. */
#include <stdio.h>
#include <deck.h>

static void *twice(void *arg)
{
	*(int *)arg *= 2;
	return arg;
}

int main(void)
{
	deck_thread_t *thread;
	void *result;
	int n = 21;

	if (deck_thread_create(&thread, twice, &n) || deck_thread_join(thread, &result))
		return 1;
	printf("%d\n", *(int *)result);
	return 0;
}
