// advance: commits every row's last step, opens this one, and leaves one descriptor per row.
//
// Flow     1 all rows: commit the slot's pending step (RSSM_ADVANCE_COMMIT)
//          2 all rows: open this step (RSSM_ADVANCE_OPEN). Rows that fold are placed from the front, the others from
//          the
//            back; turning the latter round leaves both parts in row order
//          Both passes are complete over the batch: so of two rows that name one slot the second finds the first one's
//          step pending and is refused, instead of committing it.
// Epochs   A row whose epoch is not its slot's belongs to a new sequence: it is not committed, and open resets the
// slot. Rows     A null row (slot == pad_slot), a slot out of range and a refused row get a null descriptor: step
// writes zeros
//          to its output and touches nothing else. Where a packed row has no token, its descriptor's token is -1:
//          its place in the batch is another row's.
// Tasks    One. It only moves cursors: 40 bytes read and 32 written per row.
#include "rssm_config.h"

#include "abi/advance.h"

// A slot is the pad value, in range, or an issue.
static rssm_i32 is_live(const rssm_advance_kernel_args *args, rssm_i32 row)
{
    const rssm_i32 slot = args->slots[row];
    return slot != args->pad_slot && slot >= 0 && slot < args->n_slots;
}

static rssm_u32 slot_issue(const rssm_advance_kernel_args *args, rssm_i32 row)
{
    return args->slots[row] != args->pad_slot && !is_live(args, row) ? RSSM_ISSUE_SLOT_RANGE : 0;
}

// Debug only, O(n) per row: an earlier row names the same slot.
static rssm_i32 is_duplicate(const rssm_advance_kernel_args *args, rssm_i32 row)
{
    if (!(args->flags & RSSM_ADVANCE_CHECK_SLOTS)) return 0;
    for (rssm_i32 i = 0; i < row; i++) {
        if (args->slots[i] == args->slots[row]) return 1;
    }
    return 0;
}

static rssm_u32 epoch_of(const rssm_advance_kernel_args *args, const rssm_cursor *c, rssm_i32 row)
{
    return args->epochs ? args->epochs[row] : c->epoch;
}

static rssm_u32 commit_row(const rssm_advance_kernel_args *args, rssm_i32 row)
{
    if (!is_live(args, row) || is_duplicate(args, row)) return 0;
    rssm_cursor *c = &args->cursors[args->slots[row]];
    if (c->epoch != epoch_of(args, c, row)) return 0;
    return rssm_cursor_commit(c, &args->window, args->accepted ? args->accepted[row] : c->pending_t);
}

static rssm_u32 open_row(const rssm_advance_kernel_args *args, rssm_i32 row, rssm_descriptor *d)
{
    const rssm_i32 slot = args->slots[row];
    const rssm_i32 given = args->tokens ? args->tokens[row] : args->window.T;
    const rssm_i32 t = args->cu_seqlens ? args->cu_seqlens[row + 1] - args->cu_seqlens[row] : given;
    const rssm_i32 first = args->cu_seqlens ? args->cu_seqlens[row] : row * args->window.T;
    const rssm_i32 token = args->cu_seqlens && t <= 0 ? -1 : first;
    rssm_u32       issues;

    rssm_descriptor_null(d, token);
    if (!is_live(args, row)) {
        issues = slot_issue(args, row);
    } else if (is_duplicate(args, row)) {
        issues = RSSM_ISSUE_DUPLICATE_SLOT;
    } else {
        rssm_cursor   *c = &args->cursors[slot];
        const rssm_i32 forced = args->forced && args->forced[row];
        issues = rssm_cursor_open(c, &args->window, slot, token, t, forced, epoch_of(args, c, row), d);
    }
    if (args->cu_seqlens) rssm_descriptor_own(d, t);
    return issues;
}

static void reverse(rssm_descriptor *first, rssm_i32 n)
{
    for (rssm_i32 i = 0, j = n - 1; i < j; i++, j--) {
        const rssm_descriptor d = first[i];
        first[i] = first[j];
        first[j] = d;
    }
}

static rssm_u32 open_rows(const rssm_advance_kernel_args *args)
{
    rssm_u32 issues = 0;
    rssm_i32 n_folding = 0;
    rssm_i32 n_others = 0;
    for (rssm_i32 row = 0; row < args->n_rows; row++) {
        rssm_descriptor d;
        issues |= open_row(args, row, &d);
        if (d.mode >= RSSM_MODE_FOLD_HISTORY) {
            args->descriptors[n_folding++] = d;
        } else {
            args->descriptors[args->n_rows - ++n_others] = d;
        }
    }
    reverse(args->descriptors + n_folding, n_others);
    return issues;
}

void advance(const rssm_advance_kernel_args *args, rssm_i64 task);

void advance(const rssm_advance_kernel_args *args, rssm_i64 task)
{
    rssm_u32 issues = 0;
    if (task != 0) return;
    if (args->flags & RSSM_ADVANCE_COMMIT) {
        for (rssm_i32 row = 0; row < args->n_rows; row++)
            issues |= slot_issue(args, row) | commit_row(args, row);
    }
    if (args->flags & RSSM_ADVANCE_OPEN) issues |= open_rows(args);
    if (args->issues) *args->issues |= issues;
}
