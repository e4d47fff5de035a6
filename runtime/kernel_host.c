// Loading of host kernels. See kernel.h.
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "runtime/kernel.h"

rssm_status rssm_kernel_load_host(const void *bytes, size_t n, const char *entry, rssm_kernel *out_kernel,
                                  rssm_diag *diag)
{
    rssm_status st = RSSM_OK;
    int         fd = -1;
    void       *handle = NULL, *symbol;
    char        path[64];

    RSSM_TRY(rssm_file_sealed(entry, bytes, n, &fd, diag));
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) {
        st = RSSM_FAIL(diag, RSSM_E_CORRUPT, "the stored kernel %s is not a library this system loads (%s); tune again",
                       entry, dlerror());
        goto done;
    }
    symbol = dlsym(handle, entry);
    if (symbol == NULL) {
        st = RSSM_FAIL(diag, RSSM_E_CORRUPT, "the stored library has no kernel named %s; tune again", entry);
        goto done;
    }
    memset(out_kernel, 0, sizeof *out_kernel);
    memcpy(&out_kernel->host_entry, &symbol, sizeof symbol);   // data to function pointer, as POSIX asks
    out_kernel->host_handle = handle;
    out_kernel->host_fd = fd;
    handle = NULL;
    fd = -1;
done:
    if (handle != NULL) dlclose(handle);
    if (fd >= 0) close(fd);
    return st;
}

void rssm_kernel_wrap_builtin(rssm_cpu_kernel *entry, rssm_kernel *out_kernel)
{
    memset(out_kernel, 0, sizeof *out_kernel);
    out_kernel->host_entry = entry;
    out_kernel->host_fd = -1;
}

void rssm_kernel_unload_host(rssm_kernel *kernel)
{
    if (kernel->host_handle == NULL) return;
    dlclose(kernel->host_handle);
    close(kernel->host_fd);
    memset(kernel, 0, sizeof *kernel);
}
