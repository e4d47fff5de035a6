// Migrations and the comparison of schemas.
#include "db/schema.h"

#include <ctype.h>
#include <string.h>

#include "base/str.h"

enum { SCHEMA_LIMIT = 1 << 20 }; // bytes; ours has a hundredth of that

rssm_status rssm_schema_migrate(rssm_sql *sql, uint32_t from, uint32_t to, rssm_diag *diag)
{
    rssm_status st = RSSM_OK;
    rssm_str    ids = {0};
    for (uint32_t version = from; version < to; version++) {
        RSSM_TRY(rssm_sql_script(sql, rssm_schema_migrations[version], diag));
    }
    rssm_str_printf(&ids, "PRAGMA application_id = %d; PRAGMA user_version = %u;", RSSM_SCHEMA_APPLICATION_ID, to);
    RSSM_TRY(rssm_str_check(&ids, diag));
    RSSM_TRY(rssm_sql_script(sql, rssm_str_c(&ids), diag));
done:
    rssm_str_free(&ids);
    return st;
}

// Where the comment or quoted text that begins at p ends.
static const char *skip_token(const char *p, bool *out_is_comment)
{
    const char *end = NULL;
    *out_is_comment = true;
    if (p[0] == '-' && p[1] == '-') {
        end = strchr(p, '\n');
        return end != NULL ? end : p + strlen(p);
    }
    if (p[0] == '/' && p[1] == '*') {
        end = strstr(p + 2, "*/");
        return end != NULL ? end + 2 : p + strlen(p);
    }
    *out_is_comment = false;
    if (*p == '\'' || *p == '"' || *p == '`' || *p == '[') {
        end = strchr(p + 1, *p == '[' ? ']' : *p);
        return end != NULL ? end + 1 : p + strlen(p);
    }
    return p + 1;
}

// Comments dropped, runs of white space made one space. Quoted text is kept but for line breaks, which would forge a
// line of the listing.
static void append_normalised(rssm_str *out, const char *text)
{
    bool space = false;
    while (*text != '\0') {
        bool        is_comment = false;
        const char *end = isspace((unsigned char)*text) ? text + 1 : skip_token(text, &is_comment);
        if (is_comment || isspace((unsigned char)*text)) {
            space = true;
            text = end;
            continue;
        }
        if (space) {
            rssm_str_puts(out, " ");
            space = false;
        }
        for (; text < end; text++) {
            rssm_str_append(out, (unsigned char)*text < ' ' ? "?" : text, 1);
        }
    }
}

// One line per object: "type name\ttable\tstatement\n", sorted.
static rssm_status list_schema(rssm_sql *sql, rssm_str *out, rssm_diag *diag)
{
    rssm_status         st;
    rssm_sql_statement *s = NULL;
    RSSM_TRY(rssm_sql_start(sql, RSSM_SQL_SCHEMA, &s, diag));
    for (bool has_row = true;;) {
        RSSM_TRY(rssm_sql_step(s, &has_row, diag));
        if (!has_row) {
            break;
        }
        append_normalised(out, rssm_sql_text(s, 0));
        for (int column = 1; column < 4; column++) {
            rssm_str_puts(out, column == 1 ? " " : "\t");
            append_normalised(out, rssm_sql_text(s, column));
        }
        rssm_str_puts(out, "\n");
        if (!rssm_sql_row_is_sound(s) || out->length > SCHEMA_LIMIT) {
            st = RSSM_FAIL(diag, RSSM_E_CORRUPT, "the schema cannot be read; move the file away and tune again");
            goto done;
        }
    }
    RSSM_TRY(rssm_str_check(out, diag));
done:
    rssm_sql_reset(s);
    return st;
}

static rssm_status list_expected(uint32_t version, rssm_str *out, rssm_diag *diag)
{
    rssm_status st;
    rssm_sql   *sql = NULL;
    RSSM_TRY(rssm_sql_open("expected schema", RSSM_SQL_MEMORY, &sql, diag));
    RSSM_TRY(rssm_schema_migrate(sql, 0, version, diag));
    RSSM_TRY(list_schema(sql, out, diag));
done:
    rssm_sql_close(sql);
    return st;
}

// The first line of `lines` that `other` does not hold, up to its first tab; NULL where there is none.
static const char *find_unmatched(const char *lines, const char *other, int *out_n)
{
    while (*lines != '\0') {
        size_t      n = strcspn(lines, "\n") + 1;
        const char *p = other;
        while (*p != '\0' && strncmp(p, lines, n) != 0) {
            p += strcspn(p, "\n") + 1;
        }
        if (*p == '\0') {
            *out_n = (int)strcspn(lines, "\t");
            return lines;
        }
        lines += n;
    }
    return NULL;
}

// Whether some line begins with these n characters and a tab: an object of that type and name.
static bool has_object(const char *lines, const char *object, int n)
{
    for (; *lines != '\0'; lines += strcspn(lines, "\n") + 1) {
        if (strncmp(lines, object, (size_t)n) == 0 && lines[n] == '\t') {
            return true;
        }
    }
    return false;
}

rssm_status rssm_schema_check(rssm_sql *sql, uint32_t version, rssm_diag *diag)
{
    rssm_status st;
    rssm_str    found = {0}, expected = {0};
    const char *line = NULL;
    int         n = 0;

    RSSM_TRY(list_schema(sql, &found, diag));
    RSSM_TRY(list_expected(version, &expected, diag));
    if (strcmp(rssm_str_c(&found), rssm_str_c(&expected)) == 0) {
        goto done;
    }
    line = find_unmatched(rssm_str_c(&found), rssm_str_c(&expected), &n);
    if (line != NULL && !has_object(rssm_str_c(&expected), line, n)) {
        st = RSSM_FAIL(diag, RSSM_E_FOREIGN,
                       "it holds a %.*s, which is not part of schema %u; remove that or choose "
                       "another file",
                       n, line, version);
    } else if (line != NULL) {
        st = RSSM_FAIL(diag, RSSM_E_CORRUPT, "its %.*s is not that of schema %u; move the file away and tune again", n,
                       line, version);
    } else {
        line = find_unmatched(rssm_str_c(&expected), rssm_str_c(&found), &n);
        st = RSSM_FAIL(diag, RSSM_E_CORRUPT, "its %.*s is missing; move the file away and tune again",
                       line != NULL ? n : 6, line != NULL ? line : "schema");
    }
done:
    rssm_str_free(&found);
    rssm_str_free(&expected);
    return st;
}
