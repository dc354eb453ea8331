/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "harness/build_config.h"

#include <stdlib.h>
#include <string.h>

#include "harness/base/mem.h"

#define PREFIX "CONFIG_"
#define NOT_SET " is not set"

/*
 * One line -> symbol (without the prefix) and value, both owned; false for other lines.
 * "CONFIG_X=value" and "# CONFIG_X is not set" are all that Kconfig itself understands.
 */
static bool parse_line(const char *line, size_t len, char **ret_symbol, char **ret_value)
{
	bool off = len > 2 && memcmp(line, "# ", 2) == 0;

	if (off) {
		line += 2;
		len -= 2;
	}
	if (len <= strlen(PREFIX) || memcmp(line, PREFIX, strlen(PREFIX)) != 0)
		return false;
	line += strlen(PREFIX);
	len -= strlen(PREFIX);
	while (len > 0 && (line[len - 1] == '\r' || line[len - 1] == ' '))
		len--;
	size_t name = 0;
	while (name < len && line[name] != '=' && line[name] != ' ')
		name++;
	if (off) {
		if (len - name != strlen(NOT_SET) ||
		    memcmp(line + name, NOT_SET, strlen(NOT_SET)) != 0)
			return false;
		*ret_value = kb_strdup("n");
	} else {
		if (name == len || line[name] != '=')
			return false;
		*ret_value = kb_strndup(line + name + 1, len - name - 1);
	}
	*ret_symbol = kb_strndup(line, name);
	return true;
}

/* Calls fn for each assignment of a text. */
static void each_line(const char *text, void (*fn)(void *ctx, char *symbol, char *value),
		      void *ctx)
{
	while (*text) {
		size_t len = strcspn(text, "\n");
		char *symbol, *value;

		if (parse_line(text, len, &symbol, &value))
			fn(ctx, symbol, value); /* takes both */
		text += len + (text[len] == '\n');
	}
}

struct wanted {
	const char *symbol;
	char *value; /* owned */
};

static void take_if_wanted(void *ctx, char *symbol, char *value)
{
	struct wanted *w = ctx;

	if (kb_streq(symbol, w->symbol)) {
		free(w->value);
		w->value = KB_STEAL(value);
	}
	free(symbol);
	free(value);
}

char *kb_config_get(const char *config, const char *symbol)
{
	struct wanted w = { symbol, NULL };

	if (kb_starts_with(symbol, PREFIX))
		w.symbol += strlen(PREFIX);
	each_line(config, take_if_wanted, &w);
	return w.value;
}

bool kb_config_is_set(const char *config, const char *symbol)
{
	KB_AUTO_FREE char *value = kb_config_get(config, symbol);

	return value && !kb_streq(value, "n");
}

struct table {
	struct entry {
		char *symbol, *value; /* owned */
	} *items;
	size_t count, cap;
};

static void add_entry(void *ctx, char *symbol, char *value)
{
	struct table *t = ctx;

	KB_GROW(t->items, t->count, t->cap);
	t->items[t->count++] = (struct entry){ symbol, value };
}

static void table_free(struct table *t)
{
	for (size_t i = 0; i < t->count; i++) {
		free(t->items[i].symbol);
		free(t->items[i].value);
	}
	free(t->items);
}

void kb_config_missing(const char *requested, const char *final, struct kb_strv *ret_symbols)
{
	KB_AUTO(table_free) struct table want = { 0 };

	each_line(requested, add_entry, &want);
	for (size_t i = 0; i < want.count; i++) {
		const struct entry *e = &want.items[i];
		bool replaced = false;

		for (size_t j = i + 1; j < want.count && !replaced; j++)
			replaced = kb_streq(want.items[j].symbol, e->symbol);
		if (replaced || kb_streq(e->value, "n"))
			continue;
		KB_AUTO_FREE char *got = kb_config_get(final, e->symbol);
		if (!kb_streq(got, e->value))
			kb_strv_add(ret_symbols, e->symbol);
	}
}
