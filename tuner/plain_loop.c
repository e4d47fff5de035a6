// See plain_loop.h.
#include "tuner/plain_loop.h"

#include <math.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "tuner/statistics.h"

enum { SAMPLES = 5 };

// One head: S = S e^(A d) + d x B^T;  y = S C.
static void plain_head(int P, int N, float *S, const float *x, const float *B, const float *C, float d, float A, float *y)
{
    const float decay = expf(A * d);
    for (int p = 0; p < P; p++) {
        float sum = 0.0f;
        for (int n = 0; n < N; n++) {
            const float s = S[p * N + n] * decay + d * x[p] * B[n];
            S[p * N + n] = s;
            sum += s * C[n];
        }
        y[p] = sum;
    }
}

rssm_status rssm_plain_loop_measure(const rssm_problem *problem, uint64_t cache_bytes, double *out_ns, rssm_diag *diag)
{
    const int    P = (int)problem->head_dim, N = (int)problem->state_size, H = (int)problem->n_heads;
    const size_t state = (size_t)H * (size_t)P * (size_t)N;
    const size_t n_slots = 2 * cache_bytes / (state * sizeof(float)) + 2;
    double       samples[SAMPLES];
    rssm_status  st = RSSM_OK;
    float       *S = rssm_calloc(n_slots * state, sizeof *S);
    float       *vectors = rssm_calloc((size_t)(2 * P + 2 * N), sizeof *vectors);

    if (S == NULL || vectors == NULL) {
        st = RSSM_FAIL(diag, RSSM_E_NO_MEMORY, "no memory for the plain loop's states");
        goto done;
    }
    for (size_t i = 0; i < n_slots * state; i++) S[i] = (float)(i % 13) * 0.1f - 0.6f;
    for (int i = 0; i < 2 * P + 2 * N; i++) vectors[i] = (float)(i % 7) * 0.2f - 0.5f;
    for (int sample = 0; sample < SAMPLES; sample++) {
        const uint64_t begin = rssm_now_ns();
        for (size_t slot = 0; slot < n_slots; slot++)
            for (int h = 0; h < H; h++)
                plain_head(P, N, S + slot * state + (size_t)h * (size_t)P * (size_t)N, vectors, vectors + 2 * P,
                           vectors + 2 * P + N, 0.01f, -1.0f, vectors + P);
        samples[sample] = (double)(rssm_now_ns() - begin) / (double)n_slots;
    }
    *out_ns = rssm_statistics_of(samples, SAMPLES).median;
done:
    rssm_free(S);
    rssm_free(vectors);
    return st;
}
