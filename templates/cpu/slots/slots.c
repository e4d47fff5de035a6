// slots: what becomes of slots between steps: reset, copy, materialize, truncate, invalidate. Cursors only.
//
// Flow     the requests in the order of the list; each leaves its slots' cursors and, where wanted, a move, by which
//          the layers' kernels copy or fold. The list ends at its first negative entry; places behind it get empty
//          moves.
// Tasks    One: 40 bytes are read and written per slot, and 32 of a move.
#include "rssm_config.h"

#include "abi/slots_request.h"

void slots(const rssm_slots_kernel_args *args, rssm_i64 task);

void slots(const rssm_slots_kernel_args *args, rssm_i64 task)
{
    rssm_u32 issues = 0;
    rssm_i32 has_ended = 0;
    if (task != 0) return;
    for (rssm_i32 place = 0; place < args->n_rows; place++) {
        rssm_slot_move move = rssm_slots_no_move();
        if (!has_ended) {
            const rssm_i32 request = args->requests ? args->requests[place] : place;
            has_ended = request < 0;
            if (!has_ended) issues |= rssm_slots_run(args, request, &move);
        }
        if (args->moves) args->moves[place] = move;
    }
    if (args->issues) *args->issues |= issues;
}
