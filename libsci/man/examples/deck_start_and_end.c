// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Print a line in each process, in the order of ranks. */
#include <stdio.h>
#include <deck.h>

int main(int argc, char **argv)
{
	int ret = deck_init(&argc, &argv);

	for (int i = 0; !ret && i < deck_size(); i++) {
		if (i == deck_rank())
			printf("process %d of %d, node %d\n", i, deck_size(), deck_node(i));
		ret = deck_barrier();
	}
	return ret || deck_done() ? 1 : 0;
}
