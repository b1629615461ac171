// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Each process posts a number to a mail box of rank 0. */
#include <stdio.h>
#include <deck.h>

int main(int argc, char **argv)
{
	deck_mbox_t *box;
	deck_msg_t *msg;
	int n, sum = 0, ret;

	if (deck_init(&argc, &argv) || deck_msg_create(&msg, sizeof(n)))
		return 1;
	if (deck_rank() == 0)
		ret = deck_mbox_create(&box, "sum");
	else
		ret = deck_mbox_find(&box, "sum", 10000);
	if (!ret) {
		n = deck_rank() + 1;
		deck_pack_int(msg, &n, 1);
		ret = deck_mbox_post(box, msg);
	}
	for (int i = 0; !ret && deck_rank() == 0 && i < deck_size(); i++) {
		ret = deck_mbox_retrv(box, msg);
		if (!ret && !deck_unpack_int(msg, &n, 1))
			sum += n;
	}
	if (!ret && deck_rank() == 0)
		printf("%d\n", sum);
	deck_barrier();
	deck_mbox_destroy(box);
	deck_msg_destroy(msg);
	return ret || deck_done() ? 1 : 0;
}
