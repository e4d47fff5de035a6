// Shapes and layer counts are those of the published config.json files. Layers are the ones with a Mamba-2 mixer: not
// attention, MLP or expert layers of hybrids; every layer of Falcon-H1 (attention beside it) and of Zamba2 (a shared
// attention block before some).
#include "tuner/presets.h"

#include <string.h>
#include <strings.h>

#include "base/json.h"

// Weights of all of them are bf16, and none asks for a checkpoint below fp32.
#define SHAPE(architecture, H, P, N, G, layers)                                                                        \
    {                                                                                                                  \
        architecture, H, P, N, G, layers, RSSM_BF16, RSSM_F32                                                          \
    }

static const rssm_preset presets[] = {
    {"nemotron-3-nano-4b", "NVIDIA Nemotron 3 Nano 4B", SHAPE("nemotron_h", 96, 80, 128, 8, 21)},
    {"nemotron-3-nano-30b", "NVIDIA Nemotron 3 Nano 30B-A3B", SHAPE("nemotron_h", 64, 64, 128, 8, 23)},
    {"nemotron-3.5-lightning", "NVIDIA Nemotron 3.5 Lightning", SHAPE("nemotron_h", 64, 64, 128, 8, 23)},
    {"nemotron-3-super", "NVIDIA Nemotron 3 Super 120B-A12B", SHAPE("nemotron_h", 128, 64, 128, 8, 40)},
    {"nemotron-3-ultra", "NVIDIA Nemotron 3 Ultra 550B-A55B", SHAPE("nemotron_h", 256, 64, 128, 8, 48)},
    {"nemotron-h-8b", "NVIDIA Nemotron-H 8B", SHAPE("nemotron_h", 128, 64, 128, 8, 24)},
    {"nemotron-nano-9b-v2", "NVIDIA Nemotron Nano 9B v2", SHAPE("nemotron_h", 128, 80, 128, 8, 27)},
    {"codestral-mamba-7b", "Mistral Mamba-Codestral 7B", SHAPE("mamba2", 128, 64, 128, 8, 64)},
    {"bamba-9b", "IBM Bamba 9B", SHAPE("bamba", 128, 64, 128, 1, 29)},
    {"granite-4-h-micro", "IBM Granite 4.0 H Micro", SHAPE("granitemoehybrid", 64, 64, 128, 1, 36)},
    {"granite-4-h-tiny", "IBM Granite 4.0 H Tiny", SHAPE("granitemoehybrid", 48, 64, 128, 1, 36)},
    {"granite-4-h-small", "IBM Granite 4.0 H Small", SHAPE("granitemoehybrid", 128, 64, 128, 1, 36)},
    {"falcon-h1-0.5b", "TII Falcon-H1 0.5B", SHAPE("falcon_h1", 24, 64, 128, 1, 36)},
    {"falcon-h1-1.5b", "TII Falcon-H1 1.5B", SHAPE("falcon_h1", 48, 64, 256, 1, 24)},
    {"falcon-h1-1.5b-deep", "TII Falcon-H1 1.5B Deep", SHAPE("falcon_h1", 24, 64, 256, 1, 66)},
    {"falcon-h1-3b", "TII Falcon-H1 3B", SHAPE("falcon_h1", 32, 128, 256, 1, 32)},
    {"falcon-h1-7b", "TII Falcon-H1 7B", SHAPE("falcon_h1", 24, 128, 256, 1, 44)},
    {"falcon-h1-34b", "TII Falcon-H1 34B", SHAPE("falcon_h1", 32, 128, 256, 2, 72)},
    {"zamba2-1.2b", "Zyphra Zamba2 1.2B", SHAPE("zamba2", 64, 64, 128, 1, 38)},
    {"zamba2-2.7b", "Zyphra Zamba2 2.7B", SHAPE("zamba2", 80, 64, 64, 1, 54)},
    {"zamba2-7b", "Zyphra Zamba2 7B", SHAPE("zamba2", 112, 64, 64, 2, 81)},
    {"mamba2-130m", "State Spaces Mamba-2 130M", SHAPE("mamba_ssm", 24, 64, 128, 1, 24)},
    {"mamba2-780m", "State Spaces Mamba-2 780M", SHAPE("mamba_ssm", 48, 64, 128, 1, 48)},
    {"mamba2-2.7b", "State Spaces Mamba-2 2.7B", SHAPE("mamba_ssm", 80, 64, 128, 1, 64)},
};

enum { N_PRESETS = sizeof presets / sizeof presets[0] };

size_t rssm_preset_count(void)
{
    return N_PRESETS;
}

const rssm_preset *rssm_preset_at(size_t index)
{
    return &presets[index];
}

const rssm_preset *rssm_preset_find(const char *name)
{
    for (size_t i = 0; i < N_PRESETS; i++)
        if (strcasecmp(presets[i].name, name) == 0) return &presets[i];
    return NULL;
}

const char *rssm_preset_nearest(const char *name)
{
    const char *names[N_PRESETS + 1];
    const char *nearest;
    for (size_t i = 0; i < N_PRESETS; i++)
        names[i] = presets[i].name;
    names[N_PRESETS] = NULL;
    nearest = rssm_nearest_word(name, names);
    for (size_t i = 0; nearest == NULL && name[0] != '\0' && i < N_PRESETS; i++)
        if (strncasecmp(presets[i].name, name, strlen(name)) == 0) nearest = presets[i].name;
    return nearest;
}

void rssm_preset_table(rssm_str *out)
{
    rssm_str_printf(out, "%-24s %5s %8s %5s %6s %6s  %s\n", "preset", "heads", "head dim", "state", "groups", "layers",
                    "model");
    for (size_t i = 0; i < N_PRESETS; i++) {
        const rssm_model_config *c = &presets[i].config;
        rssm_str_printf(out, "%-24s %5u %8u %5u %6u ", presets[i].name, c->n_heads, c->head_dim, c->state_size,
                        c->n_groups);
        if (c->n_layers != 0)
            rssm_str_printf(out, "%6u", c->n_layers);
        else
            rssm_str_printf(out, "%6s", "?");
        rssm_str_printf(out, "  %s\n", presets[i].title);
    }
}
