/* bounded.h - what the programs for the bounded model checker share: values that it chooses, claims, and the contract of dms_checked.h
 *
 * A program includes the source that it is about, and is compiled with RANK, MOST_SIZE and PARTS. What any_...() gives is any value of its range.
 * Multiplications that say when they overflow divide, which a solver takes long for: their contract stands in for them, and checked.c proves
 * that they keep it.
 */
#include "dmlsplit.h"

#undef DMLSPLIT_MAX_RANK
#define DMLSPLIT_MAX_RANK RANK

#include <stdbool.h>
#include <stdint.h>

#define dms_mul_u64 dividing_mul_u64
#define dms_mul_i64 dividing_mul_i64
#include "dms_checked.h"
#undef dms_mul_u64
#undef dms_mul_i64

/* The runner asks two questions: whether all claims hold, and whether the end of the program is reached, where not, claims hold for no reason. */
#ifdef ASK_FOR_END
#define CLAIM(condition) ((void)(condition))
#define REACHED __ESBMC_assert(0, "the end is reached")
#else
#define CLAIM(condition) __ESBMC_assert(condition, #condition)
#define REACHED ((void)0)
#endif

uint64_t nondet_u64(void);
void __ESBMC_assume(_Bool);
void __ESBMC_assert(_Bool, const char *);

static uint64_t any_u64(void)
{
    const uint64_t value = nondet_u64();
    return value;
}

/* Of a power of two by its bits: a multiplication by few bits is small, where one by 64 that are assumed to be few is not. */
static uint64_t any_below(uint64_t bound)
{
    const uint64_t value = nondet_u64();
    if ((bound & (bound - 1)) == 0)
        return value & (bound - 1);
    __ESBMC_assume(value < bound);
    return value;
}

static bool dms_mul_u64(uint64_t a, uint64_t b, uint64_t *product)
{
    const unsigned __int128 exact = (unsigned __int128)a * b;
    if (exact > UINT64_MAX)
        return false;
    *product = (uint64_t)exact;
    return true;
}

static bool dms_mul_i64(int64_t a, uint64_t b, int64_t *product)
{
    const __int128 exact = (__int128)a * (__int128)b;
    if (exact > INT64_MAX || exact < -INT64_MAX)
        return false;
    *product = (int64_t)exact;
    return true;
}
