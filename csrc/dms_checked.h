/* dms_checked.h - integer arithmetic that detects overflow
 *
 * Deliberately portable: it runs only when plans are created, and MSVC has no __builtin_mul_overflow. Functions that
 * return bool return false, and leave *product alone, if the exact value does not fit.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Sets *product to a * b. */
static inline bool dms_mul_u64(uint64_t a, uint64_t b, uint64_t *product)
{
    if (b != 0 && a > UINT64_MAX / b)
        return false;
    *product = a * b;
    return true;
}

/* Returns the magnitude as an unsigned number: INT64_MIN has no positive counterpart. */
static inline uint64_t dms_abs_i64(int64_t a)
{
    return a < 0 ? 0 - (uint64_t)a : (uint64_t)a;
}

/* Sets *product to a * b. INT64_MIN counts as an overflow, so that whatever fits can also be negated. */
static inline bool dms_mul_i64(int64_t a, uint64_t b, int64_t *product)
{
    uint64_t magnitude;
    if (!dms_mul_u64(dms_abs_i64(a), b, &magnitude) || magnitude > (uint64_t)INT64_MAX)
        return false;
    *product = a < 0 ? -(int64_t)magnitude : (int64_t)magnitude;
    return true;
}
