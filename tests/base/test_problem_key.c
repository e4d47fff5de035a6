// base/problem.h: the canonical text and the key, which databases hold.
#include <criterion/criterion.h>
#include <string.h>

#include "base/problem.h"

// Nemotron-3-Super on one device: 128 heads of 64 over 128 columns in 8 groups.
static rssm_problem super_problem(void)
{
    rssm_problem p = RSSM_PROBLEM_INIT;

    p.n_heads = 128;
    p.n_groups = 8;
    p.head_dim = 64;
    p.state_size = 128;
    return p;
}

static rssm_problem nano_4b_problem(void)
{
    rssm_problem p = super_problem();

    p.n_heads = 96;
    p.head_dim = 80;
    return p;
}

static void text_of(const rssm_problem *p, char *out_text, size_t n)
{
    rssm_problem normal;
    rssm_str     s = {0};

    cr_assert_eq(rssm_problem_normalise(p, &normal, NULL), RSSM_OK);
    rssm_problem_text(&normal, &s);
    cr_assert_lt(s.length, n);
    strcpy(out_text, rssm_str_c(&s));
    rssm_str_free(&s);
}

// Databases hold these texts: a change here is a change of format.
Test(problem_key, texts_are_golden)
{
    rssm_problem p = nano_4b_problem();
    char         text[512];

    text_of(&p, text, sizeof text);
    cr_assert_str_eq(text, "mamba2 H=96 G=8 P=80 N=128 L=16 T=1 R=16 act=bf16 dt=bf16 param=f32 checkpoint=f32 "
                           "round=nearest softplus=1 mode=shared read=none philox=0 flags=0");
    p.recurrence = RSSM_KDA;
    p.max_tokens = 4;
    p.checkpoint_mode = RSSM_CHECKPOINT_SEPARATE;
    p.checkpoint_dtype = RSSM_F16;
    p.read_dtype = RSSM_NVFP4;
    p.rounding = RSSM_STOCHASTIC;
    p.dt_softplus = 0;
    text_of(&p, text, sizeof text);
    cr_assert_str_eq(text, "kda H=96 G=8 P=80 N=128 L=16 T=4 R=20 act=bf16 dt=bf16 param=f32 checkpoint=f16 "
                           "round=stochastic softplus=0 mode=separate read=nvfp4 philox=7 flags=0");
}

Test(problem_key, the_key_is_golden)
{
    rssm_problem p = nano_4b_problem();
    char         hex[65];

    cr_assert_eq(rssm_problem_normalise(&p, &p, NULL), RSSM_OK);
    const rssm_hash key = rssm_problem_key(&p);
    rssm_hash_hex(&key, hex);
    cr_assert_str_eq(hex, "816e54cce67327aa3ea2df38cdaf0009fe65a04f66546259a219300d7639b64e");
}

// Every field alone changes both the text and the key.
Test(problem_key, text_and_key_tell_every_field)
{
    rssm_problem variants[24];
    char         texts[24][512];
    rssm_hash    keys[24];
    size_t       n = 0;
    rssm_problem base = super_problem();

    base.ring_length = 64;
    base.checkpoint_dtype = RSSM_F16;
#define VARIANT(...)                                                                                                   \
    do {                                                                                                               \
        variants[n] = base;                                                                                            \
        rssm_problem *v = &variants[n++];                                                                              \
        __VA_ARGS__;                                                                                                   \
    } while (0)
    VARIANT((void)v);
    VARIANT(v->recurrence = RSSM_GDN);
    VARIANT(v->recurrence = RSSM_KDA);
    VARIANT(v->n_heads = 64);
    VARIANT(v->n_groups = 4);
    VARIANT(v->head_dim = 128);
    VARIANT(v->state_size = 64);
    VARIANT(v->window = 8);
    VARIANT(v->max_tokens = 2);
    VARIANT(v->ring_length = 32);
    VARIANT(v->activation_dtype = v->dt_dtype = RSSM_F16);
    VARIANT(v->dt_dtype = RSSM_F32);
    VARIANT(v->parameter_dtype = RSSM_BF16);
    VARIANT(v->checkpoint_dtype = RSSM_BF16);
    VARIANT(v->checkpoint_mode = RSSM_CHECKPOINT_SEPARATE, v->read_dtype = RSSM_FP8_E4M3);
    VARIANT(v->checkpoint_mode = RSSM_CHECKPOINT_SEPARATE, v->read_dtype = RSSM_INT8);
    VARIANT(v->rounding = RSSM_STOCHASTIC);
    VARIANT(v->rounding = RSSM_STOCHASTIC, v->philox_rounds = 10);
    VARIANT(v->dt_softplus = 0);
    VARIANT(v->flags = RSSM_PROBLEM_EAGER_16BIT);
#undef VARIANT
    for (size_t i = 0; i < n; i++) {
        cr_assert_eq(rssm_problem_normalise(&variants[i], &variants[i], NULL), RSSM_OK, "variant %zu", i);
        text_of(&variants[i], texts[i], sizeof texts[i]);
        keys[i] = rssm_problem_key(&variants[i]);
    }
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < n; k++) {
            cr_assert_eq(strcmp(texts[i], texts[k]) == 0, i == k, "%s", texts[i]);
            cr_assert_eq(rssm_hash_equal(&keys[i], &keys[k]), i == k, "%s", texts[i]);
        }
    }
}
