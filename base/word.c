// The nearest word of a list, for "did you mean". Threads: thread-safe.
#include <string.h>

#include "base/json.h"

enum { LONGEST_WORD = 63 }; // longer words are never suggested: the distance table lives on the stack

static size_t smallest(size_t a, size_t b, size_t c)
{
    const size_t ab = a < b ? a : b;
    return ab < c ? ab : c;
}

// Levenshtein distance, one row of the table at a time. Both words are at most LONGEST_WORD long.
static size_t edit_distance(const char *a, const char *b)
{
    size_t       row[LONGEST_WORD + 1];
    const size_t n_a = strlen(a), n_b = strlen(b);

    for (size_t j = 0; j <= n_b; j++)
        row[j] = j;
    for (size_t i = 1; i <= n_a; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= n_b; j++) {
            const size_t above = row[j];
            row[j] = smallest(above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1]));
            diagonal = above;
        }
    }
    return row[n_b];
}

// Near: at most a third of the word's letters differ, and never more than three.
const char *rssm_nearest_word(const char *word, const char *const *list)
{
    const size_t n = strlen(word);
    const char  *nearest = NULL;
    size_t       limit = n / 3 < 1 ? 1 : n / 3 > 3 ? 3 : n / 3;

    if (n == 0 || n > LONGEST_WORD) return NULL;
    for (; *list; list++) {
        if (strlen(*list) > LONGEST_WORD) continue;
        const size_t distance = edit_distance(word, *list);
        if (distance <= limit && (!nearest || distance < limit)) {
            nearest = *list;
            limit = distance;
        }
    }
    return nearest;
}
