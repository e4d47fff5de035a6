#include "tests/db/support.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"

scratch scratch_begin_on_disk(void)
{
    scratch s = {0};
    cr_assert_eq(rssm_folder_temporary("rssm_db", &s.folder, NULL), RSSM_OK);
    snprintf(s.path, sizeof(s.path), "%s/data/tuned.db", s.folder);
    return s;
}

scratch scratch_begin(void)
{
    if (access("/dev/shm", W_OK | X_OK) == 0) {
        setenv("TMPDIR", "/dev/shm", 1);
    }
    return scratch_begin_on_disk();
}

void scratch_end(scratch *s)
{
    rssm_folder_remove(s->folder);
    rssm_free(s->folder);
}

rssm_hash hash_of(int byte)
{
    rssm_hash h;
    memset(h.bytes, byte, sizeof(h.bytes));
    return h;
}

rssm_db_trial sample_trial(const char *config, double median_ns)
{
    return (rssm_db_trial){
        .device = {hash_of(1), "kind of device 1", "Device One", "x86-64-v4"},
        .env = {"driver 1", "clang 14", "0.1.0"},
        .problem = {hash_of(0x11), "mamba2 H=96"},
        .policy = "cold state",
        .bucket = 8,
        .mode = RSSM_DB_REPLAY,
        .template_name = "mamba2_step_rows",
        .template_version = 1,
        .config = config,
        .source_hash = hash_of(0x21),
        .build_key = hash_of(0x31),
        .status = RSSM_OK,
        .reason = "",
        .median_ns = median_ns,
        .mad_ns = median_ns / 100,
        .min_ns = median_ns * 0.9,
        .n_samples = 40,
        .bytes_per_step = 1e6,
        .max_error = 0.25,
        .registers = 64,
        .shared_bytes = 1024,
        .spill_bytes = 0,
        .created_s = 1700000000,
    };
}

rssm_db_binary sample_binary(int seed, size_t n)
{
    static unsigned char bytes[1 << 20];
    uint32_t             x = (uint32_t)seed * 2654435761u + 1;
    cr_assert_leq(n + 200, sizeof(bytes));
    memset(bytes, seed, 200);
    for (size_t i = 200; i < 200 + n; i++) {
        x = x * 1664525u + 1013904223u;
        bytes[i] = (unsigned char)(x >> 24);
    }
    return (rssm_db_binary){RSSM_DB_HOST, "x86-64-v4", hash_of(0x41), bytes, n + 200};
}

rssm_db *open_write(const char *path)
{
    rssm_db  *db = NULL;
    rssm_diag diag = {0};
    cr_assert_eq(rssm_db_open_write(path, &db, &diag), RSSM_OK, "%s", diag.text);
    return db;
}

rssm_db *open_read(const char *path)
{
    rssm_db  *db = NULL;
    rssm_diag diag = {0};
    cr_assert_eq(rssm_db_open_read(path, &db, &diag), RSSM_OK, "%s", diag.text);
    return db;
}

void record(rssm_db *db, const rssm_db_trial *trial, const rssm_db_binary *binary)
{
    rssm_diag diag = {0};
    cr_assert_eq(rssm_db_record(db, trial, binary, &diag), RSSM_OK, "%s", diag.text);
}

void make_database(const char *path, int n)
{
    rssm_db *db = open_write(path);
    for (int i = 0; i < n; i++) {
        char config[32];
        snprintf(config, sizeof(config), "K=%d", i);
        rssm_db_trial  trial = sample_trial(config, 100.0 + i);
        rssm_db_binary binary = sample_binary(i, 1000 + 100 * (size_t)i);
        trial.build_key = hash_of(0x80 + i);
        record(db, &trial, &binary);
    }
    rssm_db_close(db);
}

rssm_status try_read(const char *path, rssm_diag *diag)
{
    rssm_db    *db = NULL;
    rssm_status st = rssm_db_open_read(path, &db, diag);
    cr_assert_eq(db != NULL, st == RSSM_OK);
    rssm_db_close(db);
    return st;
}

rssm_status try_write(const char *path, rssm_diag *diag)
{
    rssm_db    *db = NULL;
    rssm_status st = rssm_db_open_write(path, &db, diag);
    cr_assert_eq(db != NULL, st == RSSM_OK);
    rssm_db_close(db);
    return st;
}

char *file_bytes(const char *path, size_t *out_n)
{
    FILE *f = fopen(path, "rb");
    cr_assert_not_null(f, "%s", path);
    fseek(f, 0, SEEK_END);
    long n = ftell(f);
    rewind(f);
    char *bytes = malloc((size_t)n + 1);
    cr_assert_eq(fread(bytes, 1, (size_t)n, f), (size_t)n);
    fclose(f);
    *out_n = (size_t)n;
    return bytes;
}

void file_put(const char *path, const void *bytes, size_t n)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    cr_assert_geq(fd, 0, "%s", path);
    cr_assert_eq(write(fd, bytes, n), (ssize_t)n);
    close(fd);
}

bool file_absent(const char *path, const char *suffix)
{
    char        name[600];
    struct stat info;
    snprintf(name, sizeof(name), "%s%s", path, suffix);
    return lstat(name, &info) != 0;
}

char *folder_listing(const char *folder)
{
    struct dirent **entries = NULL;
    char           *text = NULL;
    size_t          n_text = 0;
    FILE           *out = open_memstream(&text, &n_text);
    int             n = scandir(folder, &entries, NULL, alphasort);
    cr_assert_geq(n, 0);
    for (int i = 0; i < n; i++) {
        char        path[1024];
        struct stat info;
        snprintf(path, sizeof(path), "%s/%s", folder, entries[i]->d_name);
        if (lstat(path, &info) == 0 && S_ISREG(info.st_mode)) {
            fprintf(out, "%s %lld\n", entries[i]->d_name, (long long)info.st_size);
        }
        free(entries[i]);
    }
    free(entries);
    fclose(out);
    return text;
}

void become_nobody(const char *folder)
{
    enum { NOBODY = 65534 };
    struct dirent **entries = NULL;
    if (geteuid() != 0) {
        return;
    }
    int n = scandir(folder, &entries, NULL, NULL);
    for (int i = 0; i < n; i++) {
        char path[1024];
        snprintf(path, sizeof(path), "%s/%s", folder, entries[i]->d_name);
        if (strcmp(entries[i]->d_name, "..") != 0) {
            cr_assert_eq(lchown(path, NOBODY, NOBODY), 0);
        }
        free(entries[i]);
    }
    free(entries);
    cr_assert_eq(setegid(NOBODY), 0);
    cr_assert_eq(seteuid(NOBODY), 0);
}
