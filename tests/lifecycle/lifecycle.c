// lifecycle: a model of a server's slots lives through random events, and everything the library does to cursors,
// rings, checkpoints and outputs is compared after every one of them. See game.h, and world.h for what it runs on.
//
//     lifecycle [--events N] [--seed S] [--device cpu|gpu|INDEX] [--variant NAME] [--threads N] [--compile]
//               [--partial] [--verbose]
//     lifecycle --self-test     breaks the calls in known ways and expects to find each
//
// Exit code 0: everything agreed, and every kind of event and traffic occurred (--partial: or not, in a run too short for
// that). On a failure one sentence, with what repeats it.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "tests/lifecycle/faults.h"
#include "tests/lifecycle/game.h"

static const life_variant variants[] = {
    // name, checkpoint, activation, dt, parameter; gate, skip, bias, softplus, token-major rings
    {"f32-bf16", RSSM_F32, RSSM_BF16, RSSM_BF16, RSSM_F32, true, true, true, true, false},
    {"f32-f32", RSSM_F32, RSSM_F32, RSSM_F32, RSSM_F32, false, true, true, true, true},
    {"bf16-bf16", RSSM_BF16, RSSM_BF16, RSSM_F32, RSSM_BF16, true, true, true, true, false},
    {"f32-f16", RSSM_F32, RSSM_F16, RSSM_F16, RSSM_F16, true, false, false, false, false},
    {"bf16-f32", RSSM_BF16, RSSM_F32, RSSM_F32, RSSM_F32, false, true, false, true, true},
    {"bf16-f16", RSSM_BF16, RSSM_F16, RSSM_F16, RSSM_F32, false, false, true, true, true},
};
enum { N_VARIANTS = sizeof variants / sizeof variants[0] };

typedef struct options {
    uint64_t    events, seed;
    uint32_t    threads; // 0: one per core
    const char *device, *variant;
    bool        compile, verbose, self_test, partial;
} options;

static bool parse(int argc, char **argv, options *o)
{
    *o = (options){.events = 102000, .seed = 1, .threads = 1, .device = "cpu"};
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--verbose") == 0) {
            o->verbose = true;
        } else if (strcmp(argv[i], "--compile") == 0) {
            o->compile = true;
        } else if (strcmp(argv[i], "--partial") == 0) {
            o->partial = true;
        } else if (strcmp(argv[i], "--self-test") == 0) {
            o->self_test = true;
        } else if (value && strcmp(argv[i], "--events") == 0) {
            o->events = strtoull(value, NULL, 10), i++;
        } else if (value && strcmp(argv[i], "--seed") == 0) {
            o->seed = strtoull(value, NULL, 10), i++;
        } else if (value && strcmp(argv[i], "--threads") == 0) {
            o->threads = (uint32_t)strtoul(value, NULL, 10), i++;
        } else if (value && strcmp(argv[i], "--device") == 0) {
            o->device = value, i++;
        } else if (value && strcmp(argv[i], "--variant") == 0) {
            o->variant = value, i++;
        } else {
            fprintf(stderr, "lifecycle: \"%s\" is not an option, or lacks its value\n", argv[i]);
            return false;
        }
    }
    return true;
}

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static rssm_status open_machine(const options *o, life_machine *out_machine, rssm_diag *diag)
{
    const bool           on_cpu = strcmp(o->device, "cpu") == 0, any_gpu = strcmp(o->device, "gpu") == 0;
    rssm_context_options co = RSSM_CONTEXT_OPTIONS_INIT;
    rssm_device_info     info = RSSM_DEVICE_INFO_INIT;
    rssm_status          st;

    co.database = "/nonexistent/lifecycle.db"; // what is built in or the manifests' defaults
    co.n_threads = o->threads;
    co.miss_policy = o->compile || !on_cpu ? RSSM_MISS_COMPILE : RSSM_MISS_BUILTIN;
    RSSM_TRY(rssm_context_open(&co, &out_machine->context, diag));
    const uint32_t n = rssm_device_count(out_machine->context); // GPUs first, the CPU last
    out_machine->calls = &life_library;
    out_machine->device = on_cpu ? n - 1 : any_gpu ? 0 : (uint32_t)strtoul(o->device, NULL, 10);
    if (out_machine->device >= n || (any_gpu && n < 2))
        return RSSM_FAIL(diag, RSSM_E_NO_DEVICE, "there is no device \"%s\" here", o->device);
    RSSM_TRY(rssm_device_get(out_machine->context, out_machine->device, &info));
    out_machine->is_gpu = info.backend != RSSM_CPU;
done:
    return st;
}

// Names what never occurred; true: nothing.
static bool report_counts(const uint64_t *counts, const char *const *names, int n)
{
    bool complete = true;
    for (int i = 0; i < n; i++) {
        printf("%s%s %llu", i ? ", " : "  ", names[i], (unsigned long long)counts[i]);
        complete &= counts[i] > 0;
    }
    printf("\n");
    for (int i = 0; i < n; i++)
        if (counts[i] == 0) fprintf(stderr, "lifecycle: \"%s\" never occurred; play more events\n", names[i]);
    return complete;
}

static bool report_totals(const uint64_t *events, const uint64_t *traffic)
{
    static const char *const event_names[] = {
#define LIFE_EVENT_NAME(name, text, weight) text,
        LIFE_EVENT_LIST(LIFE_EVENT_NAME)
#undef LIFE_EVENT_NAME
    };
    static const char *const traffic_names[] = {
#define LIFE_TRAFFIC_NAME(name, text) text,
        LIFE_TRAFFIC_LIST(LIFE_TRAFFIC_NAME)
#undef LIFE_TRAFFIC_NAME
    };
    const bool all_events = report_counts(events, event_names, LIFE_N_EVENTS);
    return report_counts(traffic, traffic_names, LIFE_N_TRAFFIC) && all_events;
}

// One variant's share of the events, added to the totals.
static rssm_status play(const options *o, const life_machine *machine, const life_variant *variant, uint64_t n_events,
                        uint64_t *events, uint64_t *traffic)
{
    life_cluster  *c = rssm_calloc(1, sizeof *c);
    const uint64_t seed = o->seed * N_VARIANTS + (uint64_t)(variant - variants); // each variant has traffic of its own
    const double   began = now_s();
    rssm_diag      diag = {0};
    rssm_status    st;

    if (!c) return RSSM_E_NO_MEMORY;
    RSSM_TRY(life_cluster_create(c, machine, variant, seed, o->verbose, &diag));
    for (uint64_t i = 0; i < n_events; i++)
        RSSM_TRY(life_cluster_play(c));
    for (int h = 0; h < LIFE_HOSTS; h++) {
        for (int i = 0; i < LIFE_N_EVENTS; i++)
            events[i] += c->hosts[h].events[i];
        for (int i = 0; i < LIFE_N_TRAFFIC; i++)
            traffic[i] += c->hosts[h].traffic[i];
    }
    const double     seconds = now_s() - began;
    const life_work *k = &c->hosts[0].work;
    printf("%-10s %llu events in %.1f s (%.0f/s), %llu values; errors within %.2f (outputs), %.2f (checkpoints), %.2f "
           "(drift) of their "
           "bounds\n",
           variant->name, (unsigned long long)n_events, seconds, (double)n_events / seconds,
           (unsigned long long)(k->n_values + c->hosts[1].work.n_values), k->max_out, k->max_state, k->max_drift);
done:
    if (st != RSSM_OK)
        fprintf(stderr,
                "lifecycle: event %llu of variant %s: %s\n  again: lifecycle --device %s --variant %s --seed %llu "
                "--events %llu\n",
                (unsigned long long)c->event, variant->name, diag.text, o->device, variant->name,
                (unsigned long long)o->seed, (unsigned long long)c->event);
    life_cluster_destroy(c);
    rssm_free(c);
    return st;
}

int main(int argc, char **argv)
{
    uint64_t     events[LIFE_N_EVENTS] = {0}, traffic[LIFE_N_TRAFFIC] = {0};
    life_machine machine = {0};
    rssm_diag    diag = {0};
    bool         found = false;
    options      o;
    rssm_status  st;

    if (!parse(argc, argv, &o)) return RSSM_E_INVALID_ARGUMENT;
    if ((st = open_machine(&o, &machine, &diag)) != RSSM_OK) {
        fprintf(stderr, "lifecycle: %s\n", diag.text);
        goto done;
    }
    if (o.self_test && machine.is_gpu) {
        fprintf(stderr, "lifecycle: the self-test hands the library arrays of its own; play it with --device cpu\n");
        st = RSSM_E_UNSUPPORTED;
        goto done;
    }
    if (o.self_test) {
        st = life_self_test(&machine, &variants[0], o.seed, o.verbose);
        goto done;
    }
    for (int i = 0; i < N_VARIANTS; i++) {
        if (o.variant && strcmp(o.variant, variants[i].name) != 0) continue;
        found = true;
        const uint64_t share = o.variant ? o.events : (o.events + N_VARIANTS - 1) / N_VARIANTS;
        RSSM_TRY(play(&o, &machine, &variants[i], share, events, traffic));
    }
    if (!found) {
        fprintf(stderr, "lifecycle: \"%s\" is not a variant\n", o.variant);
        st = RSSM_E_INVALID_ARGUMENT;
        goto done;
    }
    if (!report_totals(events, traffic) && !o.partial) st = RSSM_E_WRONG_RESULT;
done:
    rssm_context_close(machine.context);
    return (int)st;
}
