// See cuda_fixture.h.
#include "cuda_fixture.h"

#include <criterion/criterion.h>
#include <string.h>

const rssm_geometry scale_geometry = {.grid = {{0, 2}, {1, 0}, {1, 0}}, .block = {128, 1, 1}};

static void run_scale(const void *args, const fake_cuda_launch *launch, void *user)
{
    const scale_args *a = args;

    (void)launch, (void)user;
    for (int i = 0; i < a->n; i++)
        a->x[i] *= a->factor;
}

void fixture_open(fixture *f, int n_gpus)
{
    const fake_cuda_gpu gpus[] = {FAKE_CUDA_H200, FAKE_CUDA_H200, FAKE_CUDA_H200, FAKE_CUDA_H200};
    rssm_diag           diag = {0};

    memset(f, 0, sizeof *f);
    fake_cuda_install(gpus, n_gpus);
    fake_cuda_register(&(fake_cuda_kernel){
        .entry = "scale", .args_bytes = sizeof(scale_args), .run = run_scale, .registers = 40, .ns = 3000});
    f->n_cubin = fake_cuda_cubin("sm_90a", "scale,other", f->cubin, sizeof f->cubin);
    cr_assert(rssm_cuda_find_devices(f->devices, 4, &f->n_devices, &diag) == RSSM_OK, "%s", diag.text);
    cr_assert(f->n_devices == (uint32_t)n_gpus);
}

void fixture_close(fixture *f)
{
    rssm_cuda_release_devices(f->devices, f->n_devices);
    cr_expect(strcmp(fake_cuda_leaks(), "") == 0, "held: %s", fake_cuda_leaks());
    cr_expect(strcmp(fake_cuda_violation(), "") == 0, "violation: %s", fake_cuda_violation());
    fake_cuda_remove();
}

rssm_kernel fixture_load(fixture *f)
{
    rssm_kernel kernel;
    rssm_diag   diag = {0};

    cr_assert(rssm_cuda_kernel_load(&f->devices[0], f->cubin, f->n_cubin, "scale", &scale_geometry, sizeof(scale_args),
                                    &kernel, &diag) == RSSM_OK,
              "%s", diag.text);
    return kernel;
}
