// Slots of several layers on the CPU for tests: every byte of every tensor is a random bit pattern, NaNs among them,
// and is compared after an operation with an image on which the test did the same element by element.
#ifndef RSSM_TESTS_SLOT_FIXTURE_H
#define RSSM_TESTS_SLOT_FIXTURE_H

#include <stdbool.h>

#include "include/replayssm.h"

enum { FIXTURE_LAYERS = 5, FIXTURE_TENSORS = 4, FIXTURE_STATE = 0, FIXTURE_X = 1, FIXTURE_B = 2, FIXTURE_DT = 3 };

typedef enum fixture_layout { FIXTURE_NATIVE, FIXTURE_TOKEN_MAJOR, FIXTURE_GAPS, FIXTURE_N_LAYOUTS } fixture_layout;

typedef struct fixture_tensor {
    char   *bytes, *data;       // allocation, and the first element in it
    size_t  n_bytes;
    int64_t n[4];               // slots, heads or groups, records, dense
    int64_t stride[3];          // elements; of slot, head, record
    int64_t element_bytes;
} fixture_tensor;

typedef struct fixture_image {
    char               *bytes[FIXTURE_LAYERS][FIXTURE_TENSORS];
    rssm_cursor_record *cursors;
} fixture_image;

typedef struct slot_fixture {
    rssm_context       *context;
    rssm_group         *group;
    rssm_layers        *layers;
    void               *table;
    rssm_problem        problems[2];
    uint32_t            n_problems, n_layers, n_slots, max_rows, device;
    rssm_cursor_record *cursors;
    float              *A;
    rssm_layer          layer[FIXTURE_LAYERS];
    fixture_tensor      tensor[FIXTURE_LAYERS][FIXTURE_TENSORS];
} slot_fixture;

// "H G P N act checkpoint", ring of R records with L = R, T = 1.
rssm_problem fixture_shape(uint32_t H, uint32_t G, uint32_t P, uint32_t N, uint32_t R, uint32_t act,
                           uint32_t checkpoint);

// Layer i has problem i % n_problems. Fails the test on any error.
void fixture_open_slots(slot_fixture *f, const rssm_problem *problems, uint32_t n_problems, uint32_t n_layers,
                        uint32_t n_slots, fixture_layout layout);
void fixture_close_slots(slot_fixture *f);
void fixture_randomise(slot_fixture *f, uint64_t seed);   // all bytes of all tensors; cursors: settled, any start and h

uint64_t fixture_random(void);
int32_t  fixture_below(int32_t n);

fixture_image fixture_image_of(const slot_fixture *f);
void          fixture_image_free(const slot_fixture *f, fixture_image *image);
void          fixture_expect_memory(const slot_fixture *f, const fixture_image *image, const char *when);
void          fixture_expect_cursors(const slot_fixture *f, const fixture_image *image, const char *when);

// Element 0 of a record (records = 1 for states: head and record 0) in memory, or in an image of it.
char *fixture_at(const slot_fixture *f, const fixture_image *image, uint32_t layer, int tensor, int64_t slot,
                 int64_t head, int64_t record);

// What a copy must do to the memory of an image: checkpoint, and n records from `start` on to index 0 on.
void fixture_model_copy(const slot_fixture *f, fixture_image *image, int32_t from, int32_t to, int32_t start,
                        int32_t n);

#endif
