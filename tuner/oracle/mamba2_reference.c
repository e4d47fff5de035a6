// The Mamba-2 reference; formulas and bounds are explained in mamba2_reference.h.
#include "tuner/oracle/mamba2_reference.h"

#include <math.h>
#include <stddef.h>

#include "base/alloc.h"

static const double u = 0x1p-24;         // unit roundoff of fp32
static const double least = 0x1p-125;    // covers a subnormal fp32 factor that was flushed to zero
static const double two_parts = 0x1p-16; // of a weight split in two bf16 parts

double rssm_oracle_softplus(double v)
{
    return v > 0 ? v + log1p(exp(-v)) : log1p(exp(v));
}

static double sigmoid(double v)
{
    return v > 0 ? 1 / (1 + exp(-v)) : exp(v) / (1 + exp(v));
}

void rssm_oracle_sequence(const rssm_oracle_head *head, const rssm_oracle_tokens *tokens, double *state, double *out_y)
{
    const int P = head->head_dim, N = head->state_size;
    for (int k = 0; k < tokens->n; k++) {
        const double *x = tokens->x + (size_t)k * P, *B = tokens->B + (size_t)k * N, *C = tokens->C + (size_t)k * N;
        const double  v = tokens->dt[k] + head->dt_bias;
        const double  d = head->softplus ? rssm_oracle_softplus(v) : v;
        for (int p = 0; p < P; p++) {
            double y = head->D * x[p];
            for (int n = 0; n < N; n++) {
                double *s = &state[(size_t)p * N + n];
                *s = exp(head->A * d) * *s + d * x[p] * B[n];
                y += *s * C[n];
            }
            if (tokens->z) y *= tokens->z[(size_t)k * P + p] * sigmoid(tokens->z[(size_t)k * P + p]);
            out_y[(size_t)k * P + p] = y;
        }
    }
}

// Everything that takes part in a step, oldest first: the ring's records, then the tokens. `item` counts these.
typedef struct window {
    const rssm_oracle_head   *head;
    const rssm_oracle_ring   *ring;
    const rssm_oracle_tokens *tokens;
    double                   *d, *d_error;           // [items] processed dt; records are exact as they are stored
    double                    split_error;           // of the weights, relative: how a fold may represent them
    double                    decay, decay_error;    // of the checkpoint up to the item last weighed for
    double                   *weight, *weight_error; // [items] s_j, likewise
} window;

static size_t ring_row(const rssm_oracle_ring *ring, int item)
{
    return (size_t)((ring->start + item) % ring->length);
}

static const double *item_x(const window *w, int item)
{
    const size_t P = (size_t)w->head->head_dim;
    if (item < w->ring->n_records) return w->ring->x + ring_row(w->ring, item) * P;
    return w->tokens->x + (size_t)(item - w->ring->n_records) * P;
}

static const double *item_B(const window *w, int item)
{
    const size_t N = (size_t)w->head->state_size;
    if (item < w->ring->n_records) return w->ring->B + ring_row(w->ring, item) * N;
    return w->tokens->B + (size_t)(item - w->ring->n_records) * N;
}

static void process_dt(window *w)
{
    const int h = w->ring->n_records;
    for (int j = 0; j < h; j++) {
        w->d[j] = w->ring->dt[ring_row(w->ring, j)];
        w->d_error[j] = 0;
    }
    for (int k = 0; k < w->tokens->n; k++) {
        const double v = w->tokens->dt[k] + w->head->dt_bias;
        const double d = w->head->softplus ? rssm_oracle_softplus(v) : v;
        w->d[h + k] = d;
        w->d_error[h + k] =
            w->head->softplus ? 16 * u * d + 2 * u * fabs(v) * sigmoid(v) + least : 2 * u * fabs(v) + least;
    }
}

// Decay of the checkpoint and weights of the items 0 .. n_items-1, as the last of them sees them.
static void weigh_items(window *w, int n_items)
{
    const double A = w->head->A;
    double       longest = 0, exponent = 0, inherited = 0;

    for (int j = 0; j < n_items; j++)
        longest += fabs(A * w->d[j]);
    const double own = u * ((n_items / 2.0 + 6) * longest + 2 * n_items + 8);
    for (int j = n_items - 1; j >= 0; j--) {
        const double decay = exp(exponent);
        // Beyond an error of 1 in the exponent there is nothing to check: such decays are zero.
        const double relative = expm1(fmin(own + inherited, 1));
        w->weight[j] = w->d[j] * decay;
        w->weight_error[j] = fabs(w->weight[j]) * relative + decay * w->d_error[j] + least * (1 + fabs(w->d[j]));
        exponent += A * w->d[j];
        inherited += fabs(A) * w->d_error[j];
    }
    w->decay = exp(exponent);
    w->decay_error = w->decay * expm1(fmin(own + inherited, 1)) + least;
}

// The checkpoint after folding the first n_items.
static void fold(window *w, const double *checkpoint, int n_items, const rssm_oracle_answer *answer)
{
    const int    P = w->head->head_dim, N = w->head->state_size;
    const double steps = (n_items / 2.0 + 8) * u;

    weigh_items(w, n_items);
    for (int p = 0; p < P; p++) {
        const double *before = checkpoint + (size_t)p * N;
        double       *state = answer->state + (size_t)p * N, *bound = answer->state_bound + (size_t)p * N;
        for (int n = 0; n < N; n++) {
            state[n] = w->decay * before[n];
            bound[n] = fabs(before[n]) * (w->decay_error + w->decay * steps) + least;
        }
        for (int j = 0; j < n_items; j++) {
            const double *B = item_B(w, j);
            const double  x = item_x(w, j)[p];
            const double  a = w->weight[j] * x;
            const double  e = fabs(x) * (w->weight_error[j] + fabs(w->weight[j]) * (steps + w->split_error));
            for (int n = 0; n < N; n++) {
                state[n] += a * B[n];
                bound[n] += e * fabs(B[n]);
            }
        }
    }
}

static double dot(const double *a, const double *b, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

static double dot_of_magnitudes(const double *a, const double *b, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += fabs(a[i] * b[i]);
    return sum;
}

static void apply_gate(double z, double *y, double *bound)
{
    const double gate = z * sigmoid(z);
    *bound = fabs(gate) * *bound + (fabs(*y) + *bound) * (fabs(gate) * (12 + 2 * fabs(z)) * u + (1 + fabs(z)) * least) +
             least;
    *y *= gate;
}

// The output of token k, from the records and the tokens up to itself.
static void read_out(window *w, const double *checkpoint, int k, const rssm_oracle_answer *answer)
{
    const int     P = w->head->head_dim, N = w->head->state_size, n_items = w->ring->n_records + k + 1;
    const double  steps = (N / 8.0 + n_items / 2.0 + 12) * u;
    const double *C = w->tokens->C + (size_t)k * N;
    const double *x = w->tokens->x + (size_t)k * P;
    double       *y = answer->y + (size_t)k * P, *bound = answer->y_bound + (size_t)k * P;

    weigh_items(w, n_items);
    for (int p = 0; p < P; p++) {
        const double *before = checkpoint + (size_t)p * N;
        y[p] = w->decay * dot(before, C, N) + w->head->D * x[p];
        bound[p] = dot_of_magnitudes(before, C, N) * (w->decay_error + w->decay * steps) +
                   fabs(w->head->D * x[p]) * 8 * u + least;
    }
    for (int j = 0; j < n_items; j++) {
        const double *B = item_B(w, j), *x_j = item_x(w, j);
        const double  a = w->weight[j] * dot(B, C, N);
        const double  e =
            (w->weight_error[j] + fabs(w->weight[j]) * (steps + w->split_error)) * dot_of_magnitudes(B, C, N);
        for (int p = 0; p < P; p++) {
            y[p] += a * x_j[p];
            bound[p] += e * fabs(x_j[p]);
        }
    }
    for (int p = 0; p < P && w->tokens->z; p++)
        apply_gate(w->tokens->z[(size_t)k * P + p], &y[p], &bound[p]);
}

rssm_status rssm_oracle_step(const rssm_oracle_head *head, const double *checkpoint, const rssm_oracle_ring *ring,
                             const rssm_oracle_tokens *tokens, rssm_oracle_fold fold_what,
                             const rssm_oracle_answer *answer, rssm_diag *diag)
{
    const int    h = ring->n_records, n_items = h + tokens->n;
    const int    n_folded = fold_what == RSSM_ORACLE_FOLD_ALL ? n_items : fold_what == RSSM_ORACLE_FOLD_RECORDS ? h : 0;
    const size_t n = (size_t)n_items + 1; // never zero
    double      *block = rssm_calloc(4 * n, sizeof *block);

    if (!block) return RSSM_FAIL(diag, RSSM_E_NO_MEMORY, "no memory for a window of %d records", n_items);
    window w = {head, ring, tokens, block, block + n, 0, 0, 0, block + 2 * n, block + 3 * n};
    if (n_folded > 0 && head->narrow_checkpoint) w.split_error = two_parts;
    process_dt(&w);
    for (int k = 0; k < tokens->n; k++) {
        answer->dt[k] = w.d[h + k];
        answer->dt_bound[k] = w.d_error[h + k];
        read_out(&w, checkpoint, k, answer);
    }
    if (n_folded > 0) fold(&w, checkpoint, n_folded, answer);
    rssm_free(block);
    return RSSM_OK;
}
