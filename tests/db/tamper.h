// SQL past the library, as someone with a shell would run it.
#ifndef RSSM_TESTS_DB_TAMPER_H
#define RSSM_TESTS_DB_TAMPER_H

// Runs a script on the file (made where missing); the test fails if that fails.
void tamper(const char *path, const char *script);

// Runs a script and returns SQLite's result code, with the message in `message` (200 bytes).
int tamper_try(const char *path, const char *script, char *message);

// The first column of the first row as text, "" where there is no row. Static; the next call overwrites it.
const char *tamper_ask(const char *path, const char *query);

// Runs a script in a process that is killed with the connection open.
void tamper_and_die(const char *path, const char *script);

#endif
