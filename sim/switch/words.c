// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
#include <stdio.h>
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

bool words_read_lines(struct fabric *f, FILE *file, const char *path,
		      bool (*fn)(struct fabric *f, struct words *w,
				 struct answer *a), struct answer *a)
{
	unsigned int number = 0;
	char *line = NULL;
	struct words w;
	size_t room = 0;
	bool ok = true;

	while (ok && getline(&line, &room, file) >= 0) {
		snprintf(a->where, sizeof(a->where), "%.200s:%u: ", path,
			 ++number);
		ok = words_split(&w, line, a);
		if (ok && w.count)
			ok = fn(f, &w, a);
		words_free(&w);
	}
	free(line);
	a->where[0] = '\0';
	return ok;
}
