// Small kernels with one defect each, which `broken` switches on. Valid as C11 and C++17.
//
// Each case is a device function of its name in barriers.cu, memory.cu or async.cu; the line that must be reported
// carries the comment "reported: NAME" (of a race, either side may be the later one). Unless its comment says otherwise
// a case reads `in`, writes `out`, and the correct kernel leaves out[i] = in[i] + 1 for the first n words.
#ifndef RSSM_SIMT_KERNELS_CASES_H
#define RSSM_SIMT_KERNELS_CASES_H

typedef struct case_args {
    unsigned *in, *out; // [n]
    unsigned *counter;  // one word, zero
    unsigned  n;
    int       which, broken;
} case_args;

// X(name, defect, blocks, threads)
#define BARRIER_CASES(X)                                                                                               \
    X(warp_skips_barrier, SIMT_DIVERGENT_BARRIER, 1, 64)                                                               \
    X(lanes_skip_barrier, SIMT_DIVERGENT_BARRIER, 1, 64)                                                               \
    X(lanes_at_two_barriers, SIMT_DIVERGENT_BARRIER, 1, 32)                                                            \
    X(lane_skips_warp_barrier, SIMT_DIVERGENT_BARRIER, 1, 32)                                                          \
    X(shuffle_after_exit, SIMT_ABSENT_LANE, 1, 32)                                                                     \
    X(shuffle_in_branch, SIMT_ABSENT_LANE, 1, 32)                                                                      \
    X(shuffle_from_unmasked, SIMT_ABSENT_LANE, 1, 32)                                                                  \
    X(caller_not_in_mask, SIMT_ABSENT_LANE, 1, 32)                                                                     \
    X(matrix_in_branches, SIMT_ABSENT_LANE, 1, 32)                                                                     \
    X(vote_of_too_many, SIMT_ABSENT_LANE, 1, 32)                                                                       \
    X(named_barrier_count, SIMT_DIVERGENT_BARRIER, 1, 96)                                                              \
    X(named_barrier_alone, SIMT_DEADLOCK, 1, 64)

#define MEMORY_CASES(X)                                                                                                \
    X(read_before_barrier, SIMT_SHARED_RACE, 1, 64)                                                                    \
    X(write_before_readers_end, SIMT_SHARED_RACE, 1, 64)                                                               \
    X(two_writers, SIMT_SHARED_RACE, 1, 64)                                                                            \
    X(lanes_without_barrier, SIMT_SHARED_RACE, 1, 32)                                                                  \
    X(static_shared, SIMT_SHARED_RACE, 1, 64)                                                                          \
    X(bytes_of_one_word, SIMT_SHARED_RACE, 1, 64)                                                                      \
    X(consumer_ahead, SIMT_SHARED_RACE, 1, 64)                                                                         \
    X(matrix_before_barrier, SIMT_SHARED_RACE, 1, 64)                                                                  \
    X(plain_beside_atomic, SIMT_GLOBAL_RACE, 2, 32)                                                                    \
    X(blocks_share_output, SIMT_GLOBAL_RACE, 2, 32)                                                                    \
    X(reads_unwritten_shared, SIMT_UNINITIALISED, 1, 32)                                                               \
    X(reads_last_blocks_shared, SIMT_UNINITIALISED, 2, 32)                                                             \
    X(reads_unwritten_global, SIMT_UNINITIALISED, 1, 32)                                                               \
    X(behind_buffer, SIMT_OUT_OF_BOUNDS, 1, 32)                                                                        \
    X(before_buffer, SIMT_OUT_OF_BOUNDS, 1, 32)                                                                        \
    X(vector_over_end, SIMT_OUT_OF_BOUNDS, 1, 32)                                                                      \
    X(behind_shared, SIMT_OUT_OF_BOUNDS, 1, 32)                                                                        \
    X(null_pointer, SIMT_OUT_OF_BOUNDS, 1, 32)                                                                         \
    X(struct_over_end, SIMT_OUT_OF_BOUNDS, 1, 32)                                                                      \
    X(wrong_space, SIMT_OUT_OF_BOUNDS, 1, 32)                                                                          \
    X(misaligned_load, SIMT_MISALIGNED, 1, 32)                                                                         \
    X(misaligned_vector, SIMT_MISALIGNED, 1, 32)                                                                       \
    X(misaligned_word, SIMT_MISALIGNED, 1, 32)                                                                         \
    X(misaligned_matrix_row, SIMT_MISALIGNED, 1, 32)                                                                   \
    X(before_dependency, SIMT_DEPENDENCY, 1, 32)                                                                       \
    X(overwrites_before_dependency, SIMT_DEPENDENCY, 1, 32)

#define ASYNC_CASES(X)                                                                                                 \
    X(copy_read_early, SIMT_ASYNC_UNWAITED, 1, 32)                                                                     \
    X(copy_waits_for_older, SIMT_ASYNC_UNWAITED, 1, 32)                                                                \
    X(copy_not_committed, SIMT_ASYNC_UNWAITED, 1, 32)                                                                  \
    X(copy_seen_by_others, SIMT_SHARED_RACE, 1, 64)                                                                    \
    X(copy_source_changes, SIMT_ASYNC_UNWAITED, 1, 32)                                                                 \
    X(copy_over_readers, SIMT_SHARED_RACE, 1, 64)                                                                      \
    X(copy_left_behind, SIMT_ASYNC_UNWAITED, 1, 32)                                                                    \
    X(copy_misaligned, SIMT_MISALIGNED, 1, 32)                                                                         \
    X(bulk_read_early, SIMT_ASYNC_UNWAITED, 1, 64)                                                                     \
    X(bulk_wrong_parity, SIMT_ASYNC_UNWAITED, 1, 64)                                                                   \
    X(bulk_second_parity, SIMT_MBARRIER, 1, 64)                                                                        \
    X(bulk_few_bytes, SIMT_ASYNC_UNWAITED, 1, 64)                                                                      \
    X(bulk_many_bytes, SIMT_DEADLOCK, 1, 64)                                                                           \
    X(bulk_no_fence, SIMT_PROXY, 1, 64)                                                                                \
    X(bulk_over_writes, SIMT_PROXY, 1, 64)                                                                             \
    X(bulk_store_no_fence, SIMT_PROXY, 1, 64)                                                                          \
    X(bulk_store_reused, SIMT_ASYNC_UNWAITED, 1, 64)                                                                   \
    X(bulk_odd_size, SIMT_MISALIGNED, 1, 64)                                                                           \
    X(mbarrier_not_initialised, SIMT_MBARRIER, 1, 64)                                                                  \
    X(mbarrier_before_barrier, SIMT_MBARRIER, 1, 64)                                                                   \
    X(mbarrier_extra_arrival, SIMT_MBARRIER, 1, 64)                                                                    \
    X(mbarrier_missing_arrival, SIMT_DEADLOCK, 1, 64)                                                                  \
    X(mbarrier_spin, SIMT_DEADLOCK, 1, 64)                                                                             \
    X(ring_wrong_parity, SIMT_DEADLOCK, 1, 64)

#endif
