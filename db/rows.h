// Reading trials from one database into rows that may already hold those of another.
#ifndef RSSM_DB_ROWS_H
#define RSSM_DB_ROWS_H

#include "db/sqlite.h"
#include "db/winners.h"

// Where rows come from and which are wanted.
typedef struct rssm_row_source {
    rssm_db    *db;
    const char *layer; // static or otherwise outliving the rows
    uint32_t    layer_index;
    bool        eligible_only; // rule W1; query->outcome is ignored
} rssm_row_source;

// Appends; on failure `rows` is as it was, but for memory in its arena.
rssm_status rssm_rows_collect(const rssm_row_source *source, const rssm_db_query *query, rssm_db_usable_fn *usable,
                              void *user, rssm_db_rows *rows, rssm_diag *diag);

// Keeps the best row of each problem, device, bucket and mode: that of the most local layer that has any, by rules W2
// and W3. Takes and leaves memory as it is.
void rssm_rows_select(rssm_db_rows *rows);

// Orders by problem key, device key, bucket and mode; 0 where all are equal.
int rssm_rows_compare_group(const rssm_db_row *a, const rssm_db_row *b);

// The parameters ?1 .. ?5 of the filter in statements.h.
void rssm_rows_bind_filter(rssm_sql_statement *s, const rssm_db_query *query);

// A text column, copied unless it equals `previous` (may be NULL), which is then shared. NULL: out of memory.
const char *rssm_rows_text(rssm_arena *arena, rssm_sql_statement *s, int column, const char *previous);

// A blob column of 32 bytes; false where it is not that.
bool rssm_rows_hash(rssm_sql_statement *s, int column, rssm_hash *out_hash);

// "replay" or "eager"; false for anything else.
bool rssm_rows_mode(const char *name, rssm_db_mode *out_mode);

#endif
