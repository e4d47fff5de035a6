#include "tuner/model.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "tuner/model_config.h"
#include "tuner/presets.h"

static bool is_folder(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

static bool looks_like_path(const char *text)
{
    const size_t n = strlen(text);
    return strchr(text, '/') != NULL || (n >= 5 && strcmp(text + n - 5, ".json") == 0) || rssm_file_exists(text) ||
           is_folder(text);
}

// What to call the model of a file: the folder of a config.json, else the file without its ending.
static void name_of_path(const char *path, char out_name[RSSM_MODEL_NAME_MAX])
{
    static const char generic[] = "/config.json", ending[] = ".json";
    const size_t      n_generic = sizeof generic - 1, n_ending = sizeof ending - 1;
    size_t            begin, end = strlen(path);
    if (end > n_generic && strcmp(path + end - n_generic, generic) == 0)
        end -= n_generic;
    else if (end > n_ending && strcmp(path + end - n_ending, ending) == 0)
        end -= n_ending;
    while (end > 1 && path[end - 1] == '/')
        end--;
    begin = end;
    while (begin > 0 && path[begin - 1] != '/')
        begin--;
    snprintf(out_name, RSSM_MODEL_NAME_MAX, "%.*s", (int)(end - begin), path + begin);
}

static rssm_status read_config_file(const char *path, const rssm_model_options *options, rssm_model_config *out_config,
                                    rssm_diag *diag)
{
    rssm_status st;
    rssm_str    file = {0};
    char       *text = NULL;
    size_t      n = 0;
    rssm_str_puts(&file, path);
    if (is_folder(path)) rssm_str_puts(&file, path[strlen(path) - 1] == '/' ? "config.json" : "/config.json");
    RSSM_TRY(rssm_str_check(&file, diag));
    RSSM_TRY(rssm_file_read(rssm_str_c(&file), RSSM_CONFIG_MAX_BYTES, &text, &n, diag));
    RSSM_TRY(rssm_model_config_parse(text, n, rssm_str_c(&file), options, out_config, diag));
done:
    rssm_free(text);
    rssm_str_free(&file);
    return st;
}

static rssm_status fail_no_preset(const char *name, rssm_diag *diag)
{
    const char *near = rssm_preset_nearest(name);
    return RSSM_FAIL(diag, RSSM_E_NOT_FOUND,
                     "no preset and no file is called '%.80s'%s%s%s; `--model help` lists the presets, and a path to a "
                     "Hugging Face config.json works too",
                     name, near == NULL ? "" : " (did you mean ", near == NULL ? "" : near, near == NULL ? "" : "?)");
}

// One rank's heads and groups. With h = heads / tp on a rank and r = heads / groups in a group, rank k has the heads
// k h .. (k + 1) h - 1. They are whole groups on every rank if and only if r divides h (tp divides the groups), and
// lie within one group on every rank if and only if h divides r (tp is a multiple of the groups): look at the ranks
// around the first group's end. Otherwise the ranks differ in how many groups they touch, or split one unevenly.
static rssm_status slice(const char *name, uint32_t n_heads, uint32_t n_groups, uint32_t tp, rssm_problem *problem,
                         rssm_diag *diag)
{
    if (tp == 0 || n_heads % tp != 0)
        return RSSM_FAIL(diag, RSSM_E_INVALID_ARGUMENT,
                         "%s has %u Mamba-2 heads, which do not divide over tp = %u; use a divisor of %u", name,
                         n_heads, tp, n_heads);
    if (n_groups % tp != 0 && tp % n_groups != 0)
        return RSSM_FAIL(diag, RSSM_E_INVALID_ARGUMENT,
                         "tp = %u and the %u groups of %s do not divide one another, so that a rank's %u heads would "
                         "straddle groups unevenly; use a divisor or a multiple of %u",
                         tp, n_groups, name, n_heads / tp, n_groups);
    problem->n_heads = n_heads / tp;
    problem->n_groups = n_groups % tp == 0 ? n_groups / tp : 1;
    return RSSM_OK;
}

static uint32_t choose(uint32_t option, uint32_t config, uint32_t usual)
{
    if (option != RSSM_MODEL_FROM_CONFIG) return option;
    return config != RSSM_MODEL_FROM_CONFIG ? config : usual;
}

rssm_status rssm_model_load(const char *preset_or_path, const rssm_model_options *options, rssm_model *out_model,
                            rssm_diag *diag)
{
    rssm_status        st;
    const rssm_preset *preset = rssm_preset_find(preset_or_path);
    rssm_model_config  c;
    rssm_model         m = {.tp = options->tp, .n_shapes = 1};
    rssm_problem       p = RSSM_PROBLEM_INIT;

    if (preset != NULL) {
        c = preset->config;
        snprintf(m.name, sizeof m.name, "%s", preset->name);
    } else if (looks_like_path(preset_or_path)) {
        RSSM_TRY(read_config_file(preset_or_path, options, &c, diag));
        name_of_path(preset_or_path, m.name);
    } else {
        return fail_no_preset(preset_or_path, diag);
    }
    RSSM_TRY(slice(m.name, c.n_heads, c.n_groups, options->tp, &p, diag));
    p.recurrence = RSSM_MAMBA2;
    p.head_dim = c.head_dim;
    p.state_size = c.state_size;
    p.window = options->window;
    p.max_tokens = options->max_tokens;
    p.activation_dtype = choose(options->activation_dtype, c.activation_dtype, RSSM_BF16);
    p.checkpoint_dtype = choose(options->checkpoint_dtype, c.checkpoint_dtype, RSSM_F32);
    p.dt_dtype = choose(options->dt_dtype, RSSM_MODEL_FROM_CONFIG, p.activation_dtype);
    p.parameter_dtype = choose(options->parameter_dtype, RSSM_MODEL_FROM_CONFIG, RSSM_F32);
    snprintf(m.architecture, sizeof m.architecture, "%s", c.architecture);
    m.shapes[0] = (rssm_model_shape){p, c.n_layers};
    *out_model = m;
done:
    return st;
}
