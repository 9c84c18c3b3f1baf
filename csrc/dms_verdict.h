/* dms_verdict.h - what the files of the verdict share: the target, the descriptor, the first fault found, the layout of a tensor
 *
 * dms_verdict.c has the interface and the rules of an operator, dms_verdict_tensor.c those of a tensor, dms_verdict_layout.c the arithmetic that
 * they need, dms_verdict_target.c what differs between feature levels and releases.
 */
#pragma once

#include "dms_c_only.h"
#include "dmlsplit_directml.h"

#include <stdbool.h>

#define DMS_MOST_DIMENSIONS 8           /* DML_TENSOR_DIMENSION_COUNT_MAX1 */

/* ---- Targets ---- */

/* In what unit and with how many bits a build computes the size that strides imply. */
typedef enum dms_arithmetic { EXACT, BYTES_32, INDEX_32, BYTES_64, BITS_64 } dms_arithmetic;

typedef struct dms_target {
    const char *name;                   /* of a release; NULL: a feature level */
    const char *directml;               /* the version, of a release that it names */
    uint32_t level;
    uint32_t split_counts, join_counts; /* bit n: n dimensions are taken */
    uint32_t data_types;                /* bit n: DML_TENSOR_DATA_TYPE n is taken */
    dms_arithmetic arithmetic;
    bool whole_elements;                /* the bound of the total drops a part of an element */
    bool walks_sizes;                   /* compares the sizes of a split before it checks the pointers to them */
    bool reads_input_first;             /* a split's input is read before OutputCount is */
    uint32_t invalid_argument;
} dms_target;

/* Returns the target of a number of the interface, or NULL. */
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

/* ---- The operator under judgement, and the findings ---- */

/* The aspects that a fault spoils for the rules that follow; those of an operator last. */
enum {
    DESC = 1u << 0,
    READABLE = 1u << 1,
    DATA_TYPE = 1u << 2,
    DIMENSION_COUNT = 1u << 3,
    SIZES = 1u << 4,
    POSITIVE = 1u << 5,
    ELEMENT_COUNT = 1u << 6,
    LAYOUT = 1u << 7,
    SPAN = 1u << 8,
    TOTAL = 1u << 9,
    ARRAY = 1u << 10,
    AXIS = 1u << 11,
    DIMENSIONS = DESC | DIMENSION_COUNT | SIZES
};

/* Members in the order of DirectML.h's structs, those of the operator first. */
typedef enum dms_member {
    NO_MEMBER,
    INPUT_TENSOR,
    OUTPUT_COUNT,
    OUTPUT_TENSORS,
    INPUT_COUNT,
    INPUT_TENSORS,
    OUTPUT_TENSOR,
    AXIS_MEMBER,
    TYPE,
    DESC_MEMBER,
    DATA_TYPE_MEMBER,
    FLAGS_MEMBER,
    DIMENSION_COUNT_MEMBER,
    SIZES_MEMBER,
    STRIDES_MEMBER,
    TOTAL_MEMBER,
    ALIGNMENT_MEMBER
} dms_member;

/* Split and Join alike: a whole and an array of parts. */
typedef struct dms_operator {
    bool split;
    const DML_TENSOR_DESC *whole, *parts;
    uint32_t count, axis;
} dms_operator;

/* Returns a view of the descriptor: pointers into it, nothing is read through them. */
static inline dms_operator dms_read_split(const DML_SPLIT_OPERATOR_DESC *desc)
{
    const dms_operator read = {true, desc->InputTensor, desc->OutputTensors, desc->OutputCount, desc->Axis};
    return read;
}

static inline dms_operator dms_read_join(const DML_JOIN_OPERATOR_DESC *desc)
{
    const dms_operator read = {false, desc->OutputTensor, desc->InputTensors, desc->InputCount, desc->Axis};
    return read;
}

typedef struct dms_judged {
    dms_operator op;
    const dms_target *by;
    uint32_t counts;                    /* of dimensions, taken by the operator */
    uint32_t whole_spoilt, spoilt;
    /* The findings. */
    bool refused, crashes;
    const char *rule;                   /* NULL: nothing yet */
    dms_member tensor, member;          /* the operator's member, or the tensor's and one in it */
    uint64_t part;
    uint32_t index;
    dms_member crash_tensor;            /* where it crashes */
    uint64_t crash_part;
} dms_judged;

/* Where a tensor stands in its operator. */
typedef struct dms_place {
    dms_member tensor;
    uint64_t part;                      /* DMLSPLIT_WHOLE: no entry of an array */
    bool is_output;
} dms_place;

/* Records a fault; the verdict keeps the first one in descriptor order, and of two faults at one place the one recorded first. refused: false if the build
 * accepts what is unsafe. */
void dms_found(dms_judged *o, const char *rule, bool refused, dms_member tensor, uint64_t part, dms_member inside, uint32_t index);

#ifdef DMS_TESTING
/* Called with every fault as it is found; may be NULL. Of the verdict only the rule and the place are set. */
extern void (*dms_each_fault)(const dmlsplit_verdict *fault);
#endif

/* Records a fault of the tensor at `at`, as dms_found does, that refuses the operator. index: the entry of the member `inside` that is at fault. */
static inline void dms_found_in_entry(dms_judged *o, const dms_place *at, const char *rule, dms_member inside, uint32_t index)
{
    dms_found(o, rule, true, at->tensor, at->part, inside, index);
}

/* The same of the member as a whole. */
static inline void dms_found_in(dms_judged *o, const dms_place *at, const char *rule, dms_member inside)
{
    dms_found_in_entry(o, at, rule, inside, DMLSPLIT_NO_DIMENSION);
}

/* Applies the rules of a tensor. spoilt: aspects that must not be read. Returns spoilt plus the aspects that these rules found broken. */
uint32_t dms_judge_tensor(dms_judged *o, const dms_place *at, const DML_TENSOR_DESC *tensor, uint32_t spoilt);

/* ---- Layouts: of tensors whose Sizes are there, and above 0 but for the count ---- */

/* Returns the bits of an element; 0 if the type is unknown. */
uint32_t dms_element_bits(uint32_t data_type);

/* Returns the number of elements; UINT64_MAX if there are more than UINT32_MAX. */
uint64_t dms_element_count(const DML_BUFFER_TENSOR_DESC *t);

/* Returns the elements from the first to the last one addressed, both included. count: the tensor's elements, at most UINT32_MAX. */
uint64_t dms_exact_extent(const DML_BUFFER_TENSOR_DESC *t, uint64_t count);

/* Returns the extent as a build counts it, in elements. exact: what dms_exact_extent returned. */
uint64_t dms_counted_extent(dms_arithmetic arithmetic, const DML_BUFFER_TENSOR_DESC *t, uint64_t exact);

/* Sets *bytes to the bytes of `extent` elements, rounded up to 4. Returns false if they exceed 64 bits. */
bool dms_implied_size(uint64_t extent, uint32_t bits, uint64_t *bytes);

/* Sets *bytes to the implied size of a tensor with this exact extent, as a build computes it. Returns false if it exceeds 64 bits. */
bool dms_counted_size(dms_arithmetic arithmetic, const DML_BUFFER_TENSOR_DESC *t, uint64_t exact, uint64_t *bytes);

/* True if each dimension steps over all that later dimensions reach, as in most layouts: no two elements share a place, and strides differ and are not 0. */
bool dms_is_nested(const DML_BUFFER_TENSOR_DESC *t);

/* Returns true if two elements share a place; false also if the search ends undecided, which is no fault. Strides of sizes above 1 are not 0. */
bool dms_elements_overlap(const DML_BUFFER_TENSOR_DESC *t);
