/* dms_verdict_found.h - the operator under judgement, and the first fault found in it */
#pragma once

#include "dms_operator.h"
#include "dms_verdict_target.h"

/* The aspects that a fault spoils for later rules; those of an operator come last. */
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

/* Members in the order of DirectML.h's structs, the operator's first. */
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

typedef struct dms_judged {
    dms_operator op;
    const dms_target *by;
    uint32_t counts;                    /* bit n: the operator accepts n dimensions */
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

/* The position of a tensor in its operator. */
typedef struct dms_slot {
    dms_member tensor;
    uint64_t part;                      /* DMLSPLIT_WHOLE: no entry of an array */
    bool is_output;
} dms_slot;

/* Records a fault; the verdict keeps the first one in descriptor order, and of two faults at one place the one
 * recorded first. refused: false if the build accepts the operator although it is unsafe. */
void dms_found(dms_judged *o, const char *rule, bool refused, dms_member tensor, uint64_t part, dms_member inside, uint32_t index);

/* Sets the rule and the place of *found to those of the fault that the verdict keeps; the rule is NULL if there is
 * no fault. */
void dms_describe_fault(const dms_judged *o, dmlsplit_verdict *found);

#ifdef DMS_TESTING
/* Called with every fault as it is found; may be NULL. Only the rule and the place of the verdict are set. */
extern void (*dms_each_fault)(const dmlsplit_verdict *fault);
#endif

/* Records a fault of the tensor at `at`, as dms_found does, that refuses the operator. index: the entry of the member `inside` that is at fault. */
static inline void dms_found_in_entry(dms_judged *o, const dms_slot *at, const char *rule, dms_member inside, uint32_t index)
{
    dms_found(o, rule, true, at->tensor, at->part, inside, index);
}

/* As above, for the member as a whole. */
static inline void dms_found_in(dms_judged *o, const dms_slot *at, const char *rule, dms_member inside)
{
    dms_found_in_entry(o, at, rule, inside, DMLSPLIT_NO_DIMENSION);
}
