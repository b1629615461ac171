// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
#include <stdlib.h>
#include <string.h>

#include "sim/switch/answer.h"
#include "sim/switch/words.h"

#define SPACE	" \t\r\n"

bool words_split(struct words *w, const char *line, struct answer *a)
{
	char *rest, *word;

	*w = (struct words){ .text = strndup(line, strcspn(line, "#")) };
	if (w->text)
		w->word = malloc((strlen(w->text) / 2 + 1) * sizeof(*w->word));
	if (!w->word)
		return answer_fail(a, "out of memory");
	for (word = strtok_r(w->text, SPACE, &rest); word;
	     word = strtok_r(NULL, SPACE, &rest))
		w->word[w->count++] = word;
	return true;
}

void words_free(struct words *w)
{
	free(w->word);
	free(w->text);
	*w = (struct words){ 0 };
}
