/* pointers.c - what programs with arrays of operands take for granted: that ESBMC follows a pointer in an array's entry to the place where it points
 *
 * ESBMC 7.7 does not: it names values for which the claim would fail, though no execution has them. fold.c then shows nothing.
 */
#include "bounded.h"

typedef struct entry {
    const uint64_t *values;
} entry;

static uint64_t values[2];
static entry entries[2];

static bool all_are(const entry *all, uint64_t value)
{
    for (uint32_t i = 0; i < 2; i++)
        if (all[i].values[0] != value)
            return false;
    return true;
}

int main(void)
{
    const uint64_t value = any_u64();
    for (uint32_t i = 0; i < 2; i++) {
        values[i] = any_u64();
        entries[i].values = &values[i];
    }
    if (!all_are(entries, value))
        return 0;
    CLAIM(values[0] == value && values[1] == value);
    REACHED;
    return 0;
}
