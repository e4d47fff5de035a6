// What a device is: its public description, the numbers that manifests may use, and the key that trials are filed
// under. Two machines with the same key are taken to time alike.
#ifndef RSSM_RUNTIME_DEVICE_H
#define RSSM_RUNTIME_DEVICE_H

#include "base/hash.h"
#include "base/log.h"
#include "base/status.h"

enum { RSSM_MAX_DEVICE_FACTS = 16, RSSM_MAX_DEVICES = 33 };

typedef struct rssm_device_fact {
    const char *name;    // "dev.cores"; static
    int64_t     value;
} rssm_device_fact;

typedef struct rssm_device {
    rssm_device_info info;
    char             key_text[512];   // canonical; the class of machines, never one machine's serial number
    rssm_hash        key;             // SHA-256 of key_text
    char             driver[64];      // "" on the CPU; soft validity of a measurement
    rssm_device_fact facts[RSSM_MAX_DEVICE_FACTS];
    uint32_t         n_facts;
    int              ordinal;         // of the driver; -1 for the CPU
    void            *native;          // CUDA: rssm_cuda_context, which retains the primary context on first use
} rssm_device;

// The CPU this process runs on. Never fails: what the system does not tell is left at a safe value.
void rssm_device_describe_cpu(rssm_device *out_device);

// Adds a fact; asserts that there is room.
void rssm_device_add_fact(rssm_device *device, const char *name, int64_t value);

// Value of a fact, or 0.
int64_t rssm_device_fact_value(const rssm_device *device, const char *name);

#endif
