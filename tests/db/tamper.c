#include "tests/db/tamper.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int tamper_try(const char *path, const char *script, char *message)
{
    sqlite3 *db = NULL;
    char    *text = NULL;
    cr_assert_eq(sqlite3_open(path, &db), SQLITE_OK);
    int rc = sqlite3_exec(db, script, NULL, NULL, &text);
    snprintf(message, 200, "%s", text != NULL ? text : "");
    sqlite3_free(text);
    sqlite3_close(db);
    return rc;
}

void tamper(const char *path, const char *script)
{
    char message[200];
    int  rc = tamper_try(path, script, message);
    cr_assert_eq(rc, SQLITE_OK, "%s: %s", script, message);
}

const char *tamper_ask(const char *path, const char *query)
{
    static char   text[4096];
    sqlite3      *db = NULL;
    sqlite3_stmt *stmt = NULL;
    text[0] = '\0';
    cr_assert_eq(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    cr_assert_eq(sqlite3_prepare_v2(db, query, -1, &stmt, NULL), SQLITE_OK, "%s: %s", query, sqlite3_errmsg(db));
    if (sqlite3_step(stmt) == SQLITE_ROW) {
        snprintf(text, sizeof(text), "%s", (const char *)sqlite3_column_text(stmt, 0));
    }
    sqlite3_finalize(stmt);
    sqlite3_close(db);
    return text;
}

void tamper_and_die(const char *path, const char *script)
{
    int   status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        sqlite3 *db = NULL;
        if (sqlite3_open(path, &db) == SQLITE_OK && sqlite3_exec(db, script, NULL, NULL, NULL) == SQLITE_OK) {
            raise(SIGKILL);
        }
        _exit(1);
    }
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_assert(WIFSIGNALED(status), "%s", script);
}
