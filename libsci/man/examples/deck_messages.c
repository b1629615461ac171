// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Pack values into a message, and unpack them. */
#include <stdio.h>
#include <deck.h>

int main(void)
{
	double x[3] = { 1, 2, 3 }, y[3];
	char name[16];
	deck_msg_t *msg;
	int ret = deck_msg_create(&msg, 100);

	if (ret)
		return 1;
	ret = deck_pack_string(msg, "three");
	ret = ret ? ret : deck_pack_double(msg, x, 3);
	ret = ret ? ret : deck_unpack_string(msg, name, sizeof(name));
	ret = ret ? ret : deck_unpack_double(msg, y, 3);
	if (!ret)
		printf("%s: %g %g %g\n", name, y[0], y[1], y[2]);
	deck_msg_destroy(msg);
	return ret ? 1 : 0;
}
