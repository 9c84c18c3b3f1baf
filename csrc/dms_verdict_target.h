/* dms_verdict_target.h - feature levels and releases: the data that verdicts depend on */
#pragma once

#include "dms_c_only.h"
#include "dmlsplit_directml.h"

#include <stdbool.h>

/* The unit and the number of bits in which a build computes the size that strides imply. */
typedef enum dms_arithmetic { EXACT, BYTES_32, INDEX_32, BYTES_64, BITS_64 } dms_arithmetic;

typedef struct dms_target {
    const char *name;                   /* of a release; NULL: a feature level */
    const char *directml;               /* the version, of a release that it names */
    uint32_t level;
    uint32_t split_counts, join_counts; /* bit n: n dimensions are accepted */
    uint32_t data_types;                /* bit n: DML_TENSOR_DATA_TYPE n is accepted */
    dms_arithmetic arithmetic;
    bool whole_elements;                /* the lower bound of the total size drops a partial element */
    bool walks_sizes;                   /* compares the sizes of a split before checking the pointers to them */
    bool reads_input_first;             /* reads a split's input before OutputCount */
    uint32_t invalid_argument;
} dms_target;

/* Returns the target with this number of the public interface, or NULL. */
const dms_target *dms_find_target(uint32_t number);

/* True if the target is a release, false if it is a feature level. */
static inline bool dms_is_release(const dms_target *by)
{
    return by->name != NULL;
}

/* True if bit `number` of the set is set; false for numbers from 32 on. */
static inline bool dms_takes(uint32_t set, uint32_t number)
{
    return number < 32 && (set >> number & 1) != 0;
}
