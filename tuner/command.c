// See command.h.
#include "tuner/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/cuda_device.h"

static void log_to_stderr(void *user, rssm_log_level level, const char *text)
{
    (void)user;
    if (level <= RSSM_LOG_WARN) fprintf(stderr, "replayssm-tune: %s\n", text);
}

static rssm_status choose_device(const rssm_context *context, const char *wanted, uint32_t *out_device, rssm_diag *diag)
{
    const uint32_t n = context->n_devices;   // the CPU is the last
    char          *end;

    if (wanted == NULL) {
        *out_device = 0;
        return RSSM_OK;
    }
    if (strcmp(wanted, "cpu") == 0) {
        *out_device = n - 1;
        return RSSM_OK;
    }
    if (strcmp(wanted, "gpu") == 0) {
        *out_device = 0;
        if (n > 1) return RSSM_OK;
        rssm_device gpus[1];
        uint32_t    none = 0;
        rssm_diag   why = {0};
        rssm_cuda_find_devices(gpus, 0, &none, &why);   // says what is missing
        return RSSM_FAIL(diag, RSSM_E_NO_DEVICE, "no GPU can be used here (%s); --device cpu works", why.text);
    }
    const unsigned long index = strtoul(wanted, &end, 10);
    if (*wanted == '\0' || *end != '\0' || index >= n)
        return RSSM_FAIL(diag, RSSM_E_NO_DEVICE, "--device takes cpu, gpu or a number below %u, not '%s'", n, wanted);
    *out_device = (uint32_t)index;
    return RSSM_OK;
}

rssm_status rssm_command_open(const rssm_cli *cli, rssm_context **out_context, uint32_t *out_device, rssm_diag *diag)
{
    rssm_context_options options = RSSM_CONTEXT_OPTIONS_INIT;
    rssm_context        *context = NULL;
    rssm_status          st;

    options.database = cli->database;
    options.template_dir = cli->templates;
    options.n_threads = cli->threads;
    options.log = log_to_stderr;
    if ((st = rssm_context_open(&options, &context, diag)) != RSSM_OK) return st;
    if ((st = choose_device(context, cli->device, out_device, diag)) != RSSM_OK) {
        rssm_context_close(context);
        return st;
    }
    *out_context = context;
    return RSSM_OK;
}

uint32_t rssm_command_batches(const rssm_cli *cli, const rssm_device *device, uint32_t out_batches[RSSM_CLI_MAX_BATCHES])
{
    if (cli->n_batches > 0) {
        memcpy(out_batches, cli->batches, cli->n_batches * sizeof cli->batches[0]);
        return cli->n_batches;
    }
    const uint32_t last = device->info.backend == RSSM_CUDA ? 512 : 64;
    uint32_t       n = 0;
    for (uint32_t b = 1; b <= last; b *= 2) out_batches[n++] = b;
    return n;
}

void rssm_command_print(rssm_str *text)
{
    fputs(rssm_str_c(text), stdout);
    fflush(stdout);
    rssm_str_clear(text);
}
