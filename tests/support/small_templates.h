// A copy of the CPU templates whose tunables have at most two values, so that a whole tune takes seconds.
#ifndef RSSM_TESTS_SMALL_TEMPLATES_H
#define RSSM_TESTS_SMALL_TEMPLATES_H

void test_small_templates(const char *folder);

#endif
