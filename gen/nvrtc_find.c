// Finds and loads NVRTC, and hashes its file. See nvrtc.h.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "gen/nvrtc_library.h"

static const char *const library_names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
enum { N_LIBRARY_NAMES = sizeof library_names / sizeof library_names[0] };

// ----------------------------------------------------------------------------------------------------------- loading

// Why each place was not it, for the one message at the end.
typedef struct search {
    rssm_str    tried;
    rssm_nvrtc *nvrtc;
} search;

static void note(search *s, const char *place, const char *why)
{
    rssm_str_printf(&s->tried, "%s%s (%s)", s->tried.length ? ", " : "", place, why);
}

static bool fill_functions(rssm_nvrtc *nvrtc, void *library)
{
    bool is_complete = true;

#define FILL(name, parameters)                                                                                         \
    *(void **)&nvrtc->name = dlsym(library, #name);                                                                    \
    is_complete = is_complete && nvrtc->name;
    RSSM_NVRTC_FUNCTION_LIST(FILL)
#undef FILL
    *(void **)&nvrtc->nvrtcGetErrorString = dlsym(library, "nvrtcGetErrorString");
    return is_complete && nvrtc->nvrtcGetErrorString;
}

static bool try_library(search *s, const char *path)
{
    void   *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    Dl_info info;

    if (!library) {
        note(s, path, strchr(path, '/') && !rssm_file_exists(path) ? "no such file" : dlerror());
        return false;
    }
    if (!fill_functions(s->nvrtc, library)) {
        note(s, path, "not a complete NVRTC");
    } else if (s->nvrtc->nvrtcVersion(&s->nvrtc->major, &s->nvrtc->minor) != 0 || s->nvrtc->major < RSSM_NVRTC_OLDEST) {
        note(s, path, "older than NVRTC 12");
    } else if (dladdr(*(void **)&s->nvrtc->nvrtcVersion, &info) && info.dli_fname) {
        s->nvrtc->path = rssm_strdup(info.dli_fname);
        return s->nvrtc->path != NULL; // loaded for good: NVRTC does not survive being unloaded
    }
    dlclose(library);
    return false;
}

static bool try_folder(search *s, const char *folder)
{
    rssm_str path = {0};
    bool     is_found = false, is_any = false;

    for (size_t i = 0; i < N_LIBRARY_NAMES && !is_found; ++i) {
        rssm_str_clear(&path);
        rssm_str_printf(&path, "%s/%s", folder, library_names[i]);
        if (path.failed || !rssm_file_exists(path.data)) continue;
        is_any = true;
        is_found = try_library(s, path.data);
    }
    if (!is_any) note(s, folder, "no libnvrtc there");
    rssm_str_free(&path);
    return is_found;
}

rssm_status rssm_nvrtc_load(const char *path, const char *const *folders, size_t n_folders, rssm_nvrtc *nvrtc,
                            rssm_diag *diag)
{
    rssm_status st = RSSM_OK;
    search      s = {.nvrtc = nvrtc};
    struct stat info;
    bool        is_found = false;

    if (path) {
        is_found = stat(path, &info) == 0 && S_ISDIR(info.st_mode) ? try_folder(&s, path) : try_library(&s, path);
    } else {
        for (size_t i = 0; i < n_folders && !is_found; ++i)
            is_found = try_folder(&s, folders[i]);
        for (size_t i = 0; i < N_LIBRARY_NAMES && !is_found; ++i)
            is_found = try_library(&s, library_names[i]);
    }
    if (!is_found) {
        st = RSSM_FAIL(diag, RSSM_E_NO_COMPILER,
                       "NVRTC was not found; install the CUDA toolkit or the Python package nvidia-cuda-nvrtc and name "
                       "the library or its folder in RSSM_NVRTC; tried %s",
                       rssm_str_c(&s.tried));
    }
    rssm_str_free(&s.tried);
    return st;
}

// ----------------------------------------------------------------------------------------------------------- hashing

// The library has 100 MB and never changes while it is loaded, so its hash is computed once per process.
enum { HASH_CACHE_SIZE = 8 };
static struct {
    pthread_mutex_t lock; // guards: entries, n
    size_t          n;
    struct {
        dev_t           device;
        ino_t           inode;
        off_t           size;
        struct timespec changed;
        rssm_hash       hash;
    } entries[HASH_CACHE_SIZE];
} cache = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool find_cached(const struct stat *info, rssm_hash *out_hash)
{
    bool is_found = false;

    pthread_mutex_lock(&cache.lock);
    for (size_t i = 0; i < cache.n && !is_found; ++i) {
        is_found = cache.entries[i].device == info->st_dev && cache.entries[i].inode == info->st_ino &&
                   cache.entries[i].size == info->st_size && cache.entries[i].changed.tv_sec == info->st_ctim.tv_sec &&
                   cache.entries[i].changed.tv_nsec == info->st_ctim.tv_nsec;
        if (is_found) *out_hash = cache.entries[i].hash;
    }
    pthread_mutex_unlock(&cache.lock);
    return is_found;
}

static void add_cached(const struct stat *info, const rssm_hash *hash)
{
    pthread_mutex_lock(&cache.lock);
    if (cache.n < HASH_CACHE_SIZE) {
        cache.entries[cache.n].device = info->st_dev;
        cache.entries[cache.n].inode = info->st_ino;
        cache.entries[cache.n].size = info->st_size;
        cache.entries[cache.n].changed = info->st_ctim;
        cache.entries[cache.n++].hash = *hash;
    }
    pthread_mutex_unlock(&cache.lock);
}

static rssm_status hash_stream(int file, const char *path, rssm_hash *out_hash, rssm_diag *diag)
{
    enum { CHUNK = 1 << 20 };
    rssm_status st = RSSM_OK;
    rssm_hasher hasher;
    char       *chunk = rssm_alloc(CHUNK);
    ssize_t     n = -1;

    if (!chunk) return RSSM_FAIL(diag, RSSM_E_NO_MEMORY, "no memory to read %s", path);
    rssm_hasher_init(&hasher);
    while ((n = read(file, chunk, CHUNK)) > 0 || (n < 0 && errno == EINTR)) {
        if (n > 0) rssm_hasher_raw(&hasher, chunk, (size_t)n);
    }
    if (n < 0) st = RSSM_FAIL(diag, RSSM_E_IO, "%s cannot be read: %s", path, strerror(errno));
    if (st == RSSM_OK) *out_hash = rssm_hasher_end(&hasher);
    rssm_free(chunk);
    return st;
}

rssm_status rssm_nvrtc_hash_file(const char *path, rssm_hash *out_hash, rssm_diag *diag)
{
    rssm_status st;
    struct stat info;
    int         file = open(path, O_RDONLY | O_CLOEXEC);

    if (file < 0 || fstat(file, &info) != 0) {
        st = RSSM_FAIL(diag, RSSM_E_IO, "%s cannot be opened: %s", path, strerror(errno));
        goto done;
    }
    if (find_cached(&info, out_hash)) {
        st = RSSM_OK;
        goto done;
    }
    RSSM_TRY(hash_stream(file, path, out_hash, diag));
    add_cached(&info, out_hash);
done:
    if (file >= 0) close(file);
    return st;
}
