// Every SQL statement that the library runs, by name, but for the migrations. X(NAME, text).
#ifndef RSSM_DB_STATEMENTS_H
#define RSSM_DB_STATEMENTS_H

// A trial with all it refers to, in the order in which rows.c reads it.
#define RSSM_TEXT_TRIAL_COLUMNS                                                                                        \
    "SELECT t.id, d.key, d.text, d.name, d.arch, e.driver, e.compiler, e.tool, p.key, p.text, o.text, t.bucket, "      \
    "t.mode, c.template, c.version, c.config, t.source_hash, t.build_key, t.status, t.reason, t.tainted, "             \
    "t.median_ns, t.mad_ns, t.min_ns, t.n_samples, t.bytes_per_step, t.max_error, t.registers, t.shared_bytes, "       \
    "t.spill_bytes, t.created, EXISTS(SELECT 1 FROM binary b WHERE b.build_key = t.build_key) " RSSM_TEXT_TRIAL_TABLES

#define RSSM_TEXT_TRIAL_TABLES                                                                                         \
    "FROM trial t JOIN device_class d ON d.id = t.device JOIN env e ON e.id = t.env "                                  \
    "JOIN problem p ON p.id = t.problem JOIN policy o ON o.id = t.policy JOIN candidate c ON c.id = t.candidate "

// ?1 problem key, ?2 device key, ?3 arch, ?4 policy, ?5 bucket or 0. Two forms, so that the usual one has an index.
#define RSSM_TEXT_IN_PROBLEM "WHERE t.problem = (SELECT id FROM problem WHERE key = ?1) "
#define RSSM_TEXT_IN_ALL "WHERE ?1 IS NULL "
#define RSSM_TEXT_FILTER                                                                                               \
    "AND (?2 IS NULL OR d.key = ?2) AND (?3 IS NULL OR d.arch = ?3) AND (?4 IS NULL OR o.text = ?4) "                  \
    "AND (?5 = 0 OR t.bucket = ?5) "

// ?6 an rssm_db_outcome.
#define RSSM_TEXT_OUTCOME "AND (?6 = 0 OR (?6 = 1) = (t.status = 0)) ORDER BY t.id"

// Rule W1 of winners.h.
#define RSSM_TEXT_ELIGIBLE                                                                                             \
    "AND t.status = 0 AND t.tainted = 0 AND t.id = (SELECT max(n.id) FROM trial n WHERE n.problem = t.problem "        \
    "AND n.device = t.device AND n.bucket = t.bucket AND n.mode = t.mode AND n.candidate = t.candidate "               \
    "AND n.policy = t.policy AND n.build_key = t.build_key AND n.tainted = 0) ORDER BY t.id"

#define RSSM_TEXT_SUMMARY                                                                                              \
    "SELECT p.key, p.text, d.key, d.text, d.name, d.arch, t.bucket, t.mode, count(*), sum(t.status <> 0), "            \
    "sum(t.tainted) " RSSM_TEXT_TRIAL_TABLES

#define RSSM_TEXT_SUMMARY_ORDER                                                                                        \
    "GROUP BY t.problem, t.device, t.bucket, t.mode ORDER BY p.text, d.name, d.key, t.bucket, t.mode DESC"

#define RSSM_SQL_LIST(X)                                                                                               \
    X(BEGIN_READ, "BEGIN")                                                                                             \
    X(BEGIN_WRITE, "BEGIN IMMEDIATE")                                                                                  \
    X(COMMIT, "COMMIT")                                                                                                \
    X(ROLLBACK, "ROLLBACK")                                                                                            \
    X(APPLICATION_ID, "PRAGMA application_id")                                                                         \
    X(USER_VERSION, "PRAGMA user_version")                                                                             \
    X(PAGE_COUNT, "PRAGMA page_count")                                                                                 \
    X(PAGE_SIZE, "PRAGMA page_size")                                                                                   \
    X(JOURNAL_WAL, "PRAGMA journal_mode = WAL")                                                                        \
    X(JOURNAL_DELETE, "PRAGMA journal_mode = DELETE")                                                                  \
    X(SYNCHRONOUS, "PRAGMA synchronous = FULL")                                                                        \
    X(CHECKS_OFF, "PRAGMA ignore_check_constraints = ON")                                                              \
    X(CHECKS_ON, "PRAGMA ignore_check_constraints = OFF")                                                              \
    X(QUICK_CHECK, "PRAGMA quick_check(1)")                                                                            \
    X(SCHEMA, "SELECT type, name, tbl_name, ifnull(sql, '') FROM sqlite_schema ORDER BY type, name, tbl_name")         \
    X(DEVICE_ADD, "INSERT OR IGNORE INTO device_class(key, text, name, arch) VALUES(?1, ?2, ?3, ?4)")                  \
    X(DEVICE_ID, "SELECT id FROM device_class WHERE key = ?1 AND text = ?2 AND name = ?3 AND arch = ?4")               \
    X(ENV_ADD, "INSERT OR IGNORE INTO env(driver, compiler, tool) VALUES(?1, ?2, ?3)")                                 \
    X(ENV_ID, "SELECT id FROM env WHERE driver = ?1 AND compiler = ?2 AND tool = ?3")                                  \
    X(POLICY_ADD, "INSERT OR IGNORE INTO policy(text) VALUES(?1)")                                                     \
    X(POLICY_ID, "SELECT id FROM policy WHERE text = ?1")                                                              \
    X(PROBLEM_ADD, "INSERT OR IGNORE INTO problem(key, text) VALUES(?1, ?2)")                                          \
    X(PROBLEM_ID, "SELECT id FROM problem WHERE key = ?1 AND text = ?2")                                               \
    X(CANDIDATE_ADD, "INSERT OR IGNORE INTO candidate(template, version, config) VALUES(?1, ?2, ?3)")                  \
    X(CANDIDATE_ID, "SELECT id FROM candidate WHERE template = ?1 AND version = ?2 AND config = ?3")                   \
    X(TRIAL_ADD,                                                                                                       \
      "INSERT INTO trial(device, env, policy, problem, candidate, bucket, mode, source_hash, build_key, status, "      \
      "reason, tainted, median_ns, mad_ns, min_ns, n_samples, bytes_per_step, max_error, registers, shared_bytes, "    \
      "spill_bytes, created) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, "      \
      "?18, ?19, ?20, ?21, ?22)")                                                                                      \
    X(TRIAL_KNOWN,                                                                                                     \
      "SELECT t.status, t.tainted, t.median_ns " RSSM_TEXT_TRIAL_TABLES                                                \
      "WHERE p.key = ?1 AND d.key = ?2 AND t.bucket = ?3 AND t.mode = ?4 AND c.template = ?5 AND c.version = ?6 "      \
      "AND c.config = ?7 AND o.text = ?8 AND e.driver = ?9 AND e.compiler = ?10 AND e.tool = ?11 "                     \
      "AND t.source_hash = ?12 AND t.build_key = ?13 ORDER BY t.tainted, t.id DESC LIMIT 1")                           \
    X(TRIALS_OF_PROBLEM, RSSM_TEXT_TRIAL_COLUMNS RSSM_TEXT_IN_PROBLEM RSSM_TEXT_FILTER RSSM_TEXT_OUTCOME)              \
    X(TRIALS, RSSM_TEXT_TRIAL_COLUMNS RSSM_TEXT_IN_ALL RSSM_TEXT_FILTER RSSM_TEXT_OUTCOME)                             \
    X(ELIGIBLE_OF_PROBLEM, RSSM_TEXT_TRIAL_COLUMNS RSSM_TEXT_IN_PROBLEM RSSM_TEXT_FILTER RSSM_TEXT_ELIGIBLE)           \
    X(ELIGIBLE, RSSM_TEXT_TRIAL_COLUMNS RSSM_TEXT_IN_ALL RSSM_TEXT_FILTER RSSM_TEXT_ELIGIBLE)                          \
    X(SUMMARY_OF_PROBLEM, RSSM_TEXT_SUMMARY RSSM_TEXT_IN_PROBLEM RSSM_TEXT_FILTER RSSM_TEXT_SUMMARY_ORDER)             \
    X(SUMMARY, RSSM_TEXT_SUMMARY RSSM_TEXT_IN_ALL RSSM_TEXT_FILTER RSSM_TEXT_SUMMARY_ORDER)                            \
    X(BINARY_GET, "SELECT kind, arch, layout_hash, sha, raw_len, data FROM binary WHERE build_key = ?1")               \
    X(BINARY_PUT,                                                                                                      \
      "INSERT INTO binary(build_key, kind, arch, layout_hash, sha, raw_len, data) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7) " \
      "ON CONFLICT(build_key) DO UPDATE SET kind = excluded.kind, arch = excluded.arch, "                              \
      "layout_hash = excluded.layout_hash, sha = excluded.sha, raw_len = excluded.raw_len, data = excluded.data")      \
    X(QUARANTINE_ADD, "INSERT OR REPLACE INTO quarantine(kind, key, reason, created) VALUES('binary', ?1, ?2, ?3)")    \
    X(QUARANTINE_DROP, "DELETE FROM quarantine WHERE kind = 'binary' AND key = ?1")

#endif
