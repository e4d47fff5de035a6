// base/dtype.h: the table and its spellings.
#include <criterion/criterion.h>

#include "base/dtype.h"

Test(dtype, every_name_parses_back)
{
    for (uint32_t dtype = RSSM_F32; dtype <= RSSM_NVFP4; dtype++) {
        uint32_t parsed = 99;
        cr_assert(rssm_dtype_parse(rssm_dtype_name(dtype), &parsed));
        cr_assert_eq(parsed, dtype);
    }
}

Test(dtype, sizes_and_typedefs)
{
    const struct {
        uint32_t    dtype, bytes;
        const char *spelling;
    } rows[] = {{RSSM_F32, 4, "float"},         {RSSM_BF16, 2, "rssm_bf16"}, {RSSM_F16, 2, "rssm_f16"},
                {RSSM_FP8_E4M3, 1, "rssm_fp8"}, {RSSM_INT8, 1, "rssm_int8"}, {RSSM_NVFP4, 0, "rssm_nvfp4"}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        cr_assert_eq(rssm_dtype_bytes(rows[i].dtype), rows[i].bytes);
        cr_assert_str_eq(rssm_dtype_typedef(rows[i].dtype), rows[i].spelling);
    }
    cr_assert_str_eq(rssm_dtype_name(6), "?");
    cr_assert_eq(rssm_dtype_bytes(UINT32_MAX), 0);
}

Test(dtype, aliases_and_unknown_names)
{
    const struct {
        const char *name;
        uint32_t    dtype;
    } aliases[] = {{"fp32", RSSM_F32}, {"float32", RSSM_F32}, {"bfloat16", RSSM_BF16},
                   {"fp16", RSSM_F16}, {"float16", RSSM_F16}, {"half", RSSM_F16}};
    const char *const unknown[] = {"", "f", "F32", "f32 ", "f64", "?"};
    uint32_t          dtype;

    for (size_t i = 0; i < sizeof aliases / sizeof aliases[0]; i++) {
        cr_assert(rssm_dtype_parse(aliases[i].name, &dtype));
        cr_assert_eq(dtype, aliases[i].dtype);
    }
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
        dtype = 77;
        cr_assert_not(rssm_dtype_parse(unknown[i], &dtype));
        cr_assert_eq(dtype, 77, "untouched on failure");
    }
}
