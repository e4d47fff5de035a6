// The arena's image: host writes, poison, transfers, and the comparison of every byte. See world.h.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tests/lifecycle/world.h"

rssm_status life_wrong(life_world *w, const char *format, ...)
{
    char    text[900];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return RSSM_FAIL(w->diag, RSSM_E_WRONG_RESULT, "%s", text);
}

rssm_status life_expect_ok(life_world *w, rssm_status status, const char *call)
{
    if (status == RSSM_OK) return RSSM_OK;
    if (w->diag->code == status && w->diag->text[0]) return status;
    return RSSM_FAIL(w->diag, status, "%s returns %s", call, rssm_status_name(status));
}

// -------------------------------------------------------------------------------------------------------- host writes

void life_dirty(life_world *w, size_t offset, size_t n)
{
    if (n == 0) return;
    if (w->n_dirty > 0) {
        life_interval *last = &w->dirty[w->n_dirty - 1];
        if (offset >= last->from && offset <= last->to + 64) { // near enough to go along
            if (offset + n > last->to) last->to = offset + n;
            return;
        }
    }
    if (w->n_dirty == LIFE_DIRTY_MAX) {
        w->dirty[0] = (life_interval){0, w->n_bytes};
        w->n_dirty = 1;
        return;
    }
    w->dirty[w->n_dirty++] = (life_interval){offset, offset + n};
}

void life_write(life_world *w, size_t offset, const void *bytes, size_t n)
{
    memcpy(w->image + offset, bytes, n);
    life_dirty(w, offset, n);
}

void life_write_entry(life_world *w, life_array which, size_t i, const void *bytes)
{
    const life_tensor *t = &w->arrays[which];
    life_write(w, t->offset + i * t->element_bytes, bytes, t->element_bytes);
}

// Every two bytes are a NaN of both 16-bit formats, and every four one of fp32; another pattern each time.
void life_poison(life_world *w, size_t offset, size_t n)
{
    const uint64_t nan_bits = 0xff81ff81ff81ff81u;
    unsigned char *to = w->image + offset;
    size_t         i = 0;
    for (; i + 8 <= n; i += 8) {
        const uint64_t v = (w->salt += 0x9e3779b97f4a7c15u) | nan_bits;
        memcpy(to + i, &v, 8);
    }
    if (i < n) {
        const uint64_t v = (w->salt += 0x9e3779b97f4a7c15u) | nan_bits;
        memcpy(to + i, &v, n - i);
    }
    life_dirty(w, offset, n);
}

void life_poison_array(life_world *w, life_array which)
{
    life_poison(w, w->arrays[which].offset, w->arrays[which].bytes);
}

void life_poison_run(life_world *w, const life_tensor *t, int64_t outer, int64_t head, int64_t record)
{
    life_poison(w, life_at(t, outer, head, record), life_run_bytes(t));
}

void life_poison_record(life_world *w, int32_t slot, int32_t record)
{
    for (int i = 0; i < LIFE_LAYERS; i++) {
        const life_tensor *rings[] = {&w->layers[i].x_ring, &w->layers[i].B_ring, &w->layers[i].dt_ring};
        for (int r = 0; r < 3; r++) {
            for (int64_t head = 0; head < rings[r]->n_heads; head++)
                life_poison_run(w, rings[r], slot, head, record);
        }
    }
}

void life_poison_checkpoint(life_world *w, int32_t slot)
{
    for (int i = 0; i < LIFE_LAYERS; i++) {
        const life_tensor *t = &w->layers[i].state;
        life_poison(w, life_at(t, slot, 0, 0), (size_t)(t->n_heads * t->n_records) * life_run_bytes(t));
    }
}

// ---------------------------------------------------------------------------------------------------------- transfers

rssm_status life_flush(life_world *w)
{
    rssm_status st = RSSM_OK;
    if (w->on_gpu && w->n_dirty > 1) { // one transfer costs less than many
        life_interval all = w->dirty[0];
        for (uint32_t i = 1; i < w->n_dirty; i++) {
            if (w->dirty[i].from < all.from) all.from = w->dirty[i].from;
            if (w->dirty[i].to > all.to) all.to = w->dirty[i].to;
        }
        w->dirty[0] = all;
        w->n_dirty = 1;
    }
    for (uint32_t i = 0; i < w->n_dirty; i++) {
        const life_interval *d = &w->dirty[i];
        RSSM_TRY(
            w->calls->upload(w->context, w->device, w->arena + d->from, w->image + d->from, d->to - d->from, w->diag));
    }
    w->n_dirty = 0;
done:
    return st;
}

rssm_status life_fetch(life_world *w, bool everything)
{
    rssm_status st;
    RSSM_TRY(w->calls->synchronise(w->context, w->device, w->diag));
    RSSM_TRY(w->calls->download(w->context, w->device, w->actual, w->arena, everything ? w->n_bytes : w->control_bytes,
                                w->diag));
done:
    return st;
}

void life_adopt(life_world *w, size_t offset, size_t n)
{
    memcpy(w->image + offset, w->actual + offset, n);
}

// --------------------------------------------------------------------------------------------------------- comparison

// Where in a tensor a byte lies; false: not in this one.
static bool name_place(const life_tensor *t, size_t at, char *out_text, size_t n)
{
    if (t->bytes == 0 || at < t->offset || at >= t->offset + t->bytes) return false;
    int64_t       left = (int64_t)((at - t->offset) / t->element_bytes);
    const int64_t outer = left / t->outer_stride;
    left -= outer * t->outer_stride;
    const bool    token_major = t->record_stride > t->head_stride;
    const int64_t first = token_major ? t->record_stride : t->head_stride;
    const int64_t second = token_major ? t->head_stride : t->record_stride;
    const int64_t a = first ? left / first : 0;
    left -= a * first;
    const int64_t b = second ? left / second : 0;
    left -= b * second;
    const int64_t head = token_major ? b : a, record = token_major ? a : b;
    const bool    inside = outer < t->n_outer && head < t->n_heads && record < t->n_records && left < t->n_dense;
    snprintf(out_text, n, "%s[%lld], head %lld, record %lld, element %lld%s", t->name, (long long)outer,
             (long long)head, (long long)record, (long long)left, inside ? "" : " (a gap between strides)");
    return true;
}

static void describe_place(life_world *w, size_t at, char *out_text, size_t n)
{
    for (int i = 0; i < LIFE_LAYERS; i++) {
        const life_layer  *l = &w->layers[i];
        const life_tensor *tensors[] = {&l->state, &l->x_ring, &l->B_ring, &l->dt_ring, &l->x, &l->z,      &l->B,
                                        &l->C,     &l->dt,     &l->out,    &l->A,       &l->D, &l->dt_bias};
        for (size_t t = 0; t < sizeof tensors / sizeof tensors[0]; t++) {
            char place[160];
            if (!name_place(tensors[t], at, place, sizeof place)) continue;
            snprintf(out_text, n, "layer %d %s", i, place);
            return;
        }
    }
    for (int i = 0; i < LIFE_N_ARRAYS; i++) {
        if (name_place(&w->arrays[i], at, out_text, n)) return;
    }
    snprintf(out_text, n, "the guard zone at byte %zu of the arena", at);
}

rssm_status life_compare(life_world *w, bool everything)
{
    const size_t n = everything ? w->n_bytes : w->control_bytes;
    char         place[200];
    size_t       at = 0;
    if (memcmp(w->image, w->actual, n) == 0) return RSSM_OK;
    while (w->image[at] == w->actual[at])
        at++;
    describe_place(w, at, place, sizeof place);
    return life_wrong(w, "%s holds byte %02x instead of %02x", place, w->actual[at], w->image[at]);
}
