/* dms_verdict.c - the verdict on a Split or Join: the rules that the Python package has, as far as C structs can break them
 *
 * Each rule stands here in the order of the registry, with what it needs and what it spoils for those after it. Tests hold the verdicts against
 * the registry's on every recorded descriptor and build, and on random ones.
 */
#include "dmlsplit_directml.h"

#include "dms_text.h"

#include <stdbool.h>
#include <string.h>

/* Differences of two places of one tensor take 66 bits. Where a compiler has no such integers, a tensor that reaches over 2^61 elements counts as
 * one whose overlap is undecided. */
#if defined(__SIZEOF_INT128__)
__extension__ typedef __int128 wide;
#define FARTHEST UINT64_MAX
#else
typedef int64_t wide;
#define FARTHEST (UINT64_MAX >> 3)
#endif

#define MOST_DIMENSIONS 8               /* DML_TENSOR_DIMENSION_COUNT_MAX1 */
#define SEARCH_STEPS 20000              /* of the search for an overlap */

/* ---- Targets ---- */

/* With how many bits, and of what, a build computes the size that strides imply. */
typedef enum arithmetic { EXACT, BYTES_32, INDEX_32, BYTES_64, BITS_64 } arithmetic;

typedef struct target {
    const char *name;                   /* of a release; NULL: a feature level */
    const char *directml;               /* the version, of a release that it names */
    uint32_t level;
    uint32_t split_counts, join_counts; /* bit n: n dimensions are taken */
    uint32_t data_types;                /* bit n: DML_TENSOR_DATA_TYPE n is taken */
    arithmetic arithmetic;
    bool whole_elements;                /* the bound of the total drops a part of an element */
    bool walks_sizes;                   /* a split's sizes are compared before anything says that the pointers to them are not NULL */
    bool reads_input_first;             /* a split's input is read before OutputCount is */
    uint32_t invalid_argument;
} target;

static const target targets[] = {
#include "dms_targets.inc"
};

#define TARGET_COUNT ((uint32_t)(sizeof targets / sizeof targets[0]))

static bool is_release(const target *by)
{
    return by->name != NULL;
}

static const target *find_target(uint32_t number)
{
    if (number >= DMLSPLIT_RELEASE)
        return number - DMLSPLIT_RELEASE < TARGET_COUNT && is_release(&targets[number - DMLSPLIT_RELEASE])
                   ? &targets[number - DMLSPLIT_RELEASE] : NULL;
    for (uint32_t i = 0; i < TARGET_COUNT; i++)
        if (!is_release(&targets[i]) && targets[i].level == number)
            return &targets[i];
    return NULL;
}

uint32_t dmlsplit_find_release(const char *name)
{
    for (uint32_t i = 0; name != NULL && i < TARGET_COUNT; i++)
        if (is_release(&targets[i]) && (strcmp(targets[i].name, name) == 0 ||
                                        (targets[i].directml != NULL && strcmp(targets[i].directml, name) == 0)))
            return DMLSPLIT_RELEASE + i;
    return 0;
}

/* ---- What is judged, and what was found ---- */

/* What a fault spoils for the rules that follow; those of an operator last. */
enum {
    DESC = 1u << 0,
    READABLE = 1u << 1,
    DATA_TYPE = 1u << 2,
    FLAGS = 1u << 3,
    DIMENSION_COUNT = 1u << 4,
    SIZES = 1u << 5,
    POSITIVE = 1u << 6,
    ELEMENT_COUNT = 1u << 7,
    LAYOUT = 1u << 8,
    SPAN = 1u << 9,
    TOTAL = 1u << 10,
    ALIGNMENT = 1u << 11,
    ARRAY = 1u << 12,
    AXIS = 1u << 13,
    DIMENSIONS = DESC | DIMENSION_COUNT | SIZES,
    EXTENT = DIMENSIONS | POSITIVE | DATA_TYPE
};

/* Members in the order of DirectML.h's structs, those of the operator first. */
typedef enum member {
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
} member;

static const char *const member_names[] = {
    "",         "InputTensor", "OutputCount", "OutputTensors", "InputCount",     "InputTensors", "OutputTensor",           "Axis", "Type",
    "Desc",     "DataType",    "Flags",       "DimensionCount", "Sizes",         "Strides",      "TotalTensorSizeInBytes",
    "GuaranteedBaseOffsetAlignment",
};

typedef struct judged {
    const target *by;
    bool split;
    const DML_TENSOR_DESC *whole, *parts;
    uint32_t count, axis;
    uint32_t counts;                    /* of dimensions, taken by the operator */
    uint32_t whole_spoilt, spoilt;
    /* What was found. */
    bool refused, crashes;
    const char *rule;                   /* NULL: nothing yet */
    member tensor, member;              /* the operator's member, or the tensor's and one in it */
    uint64_t part;
    uint32_t index;
} judged;

/* Where a fault lies. */
typedef struct place {
    member tensor;
    uint64_t part;                      /* DMLSPLIT_WHOLE: no entry of an array */
    bool is_output;
} place;

static bool comes_before(const judged *o, member tensor, uint64_t part, member inside, uint32_t index)
{
    if (o->rule == NULL || tensor != o->tensor)
        return o->rule == NULL || tensor < o->tensor;
    if (part + 1 != o->part + 1)        /* an array comes before its entries */
        return part + 1 < o->part + 1;
    if (inside != o->member)
        return inside < o->member;
    return index + 1 < o->index + 1;
}

/* Keeps the first fault in descriptor order; of two at one place the first found. */
static void found(judged *o, const char *rule, bool refused, member tensor, uint64_t part, member inside, uint32_t index)
{
    o->refused |= refused;
    if (!comes_before(o, tensor, part, inside, index))
        return;
    o->rule = rule;
    o->tensor = tensor;
    o->part = part;
    o->member = inside;
    o->index = index;
}

#define RULE(split_rule, join_rule) (o->split ? "split/" split_rule : "join/" join_rule)

static void of_tensor(judged *o, const place *at, const char *rule, member inside)
{
    found(o, rule, true, at->tensor, at->part, inside, DMLSPLIT_NO_DIMENSION);
}

static void of_entry(judged *o, const place *at, const char *rule, member inside, uint32_t index)
{
    found(o, rule, true, at->tensor, at->part, inside, index);
}

static void of_operator(judged *o, const char *rule, member tensor)
{
    found(o, rule, true, tensor, DMLSPLIT_WHOLE, NO_MEMBER, DMLSPLIT_NO_DIMENSION);
}

/* What a build accepts although it is unsafe. */
static void unsafe(judged *o, const place *at, const char *rule, member inside)
{
    found(o, rule, false, at->tensor, at->part, inside, DMLSPLIT_NO_DIMENSION);
}

/* ---- Layouts ---- */

/* Of an element; 0: the type is unknown. */
static uint32_t bits_of(uint32_t type)
{
    static const unsigned char bits[] = {0, 32, 16, 32, 16, 8, 32, 16, 8, 64, 64, 64, 4, 4};
    return type < sizeof bits ? bits[type] : 0;
}

/* The number of elements; UINT64_MAX where there are more than UINT32_MAX. */
static uint64_t element_count(const DML_BUFFER_TENSOR_DESC *t)
{
    uint64_t count = 1;
    for (uint32_t d = 0; d < t->DimensionCount; d++) {
        count *= t->Sizes[d];
        if (count > UINT32_MAX) {
            while (++d < t->DimensionCount)
                if (t->Sizes[d] == 0)
                    return 0;
            return UINT64_MAX;
        }
    }
    return count;
}

/* Elements from the first to the last one addressed. At most 2^32 - 1 elements reach less than 2^64 places. */
static uint64_t exact_extent(const DML_BUFFER_TENSOR_DESC *t, uint64_t count)
{
    uint64_t last = 0;
    if (t->Strides == NULL)
        return count;
    for (uint32_t d = 0; d < t->DimensionCount; d++)
        last += (uint64_t)(t->Sizes[d] - 1) * t->Strides[d];
    return last + 1;
}

/* value modulo 2^bits */
static uint64_t low_bits(uint64_t value, uint32_t bits)
{
    return bits < 64 ? value & ((UINT64_C(1) << bits) - 1) : value;
}

static uint32_t log2_of(uint32_t bits)  /* 4 to 64 */
{
    return bits == 4 ? 2 : bits == 8 ? 3 : bits == 16 ? 4 : bits == 32 ? 5 : 6;
}

/* The extent as a build counts it. */
static uint64_t counted_extent(const target *by, uint32_t bits, const DML_BUFFER_TENSOR_DESC *t, uint64_t exact)
{
    if (t->Strides == NULL)
        return exact;
    switch (by->arithmetic) {
    case BYTES_32: return low_bits(exact, 32);
    case INDEX_32: return low_bits(exact - 1, 32) + 1;
    case BYTES_64: return low_bits(exact, 67 - log2_of(bits));
    case BITS_64: return low_bits(exact, 64 - log2_of(bits));
    default: return exact;
    }
}

/* Bytes of so many elements, rounded up to 4; false where they exceed 64 bits. */
static bool implied_size(uint64_t extent, uint32_t bits, uint64_t *bytes)
{
    const uint32_t in_word = bits < 32 ? 32 / bits : 1, words = bits < 32 ? 1 : bits / 32;
    const uint64_t units = extent / in_word + (extent % in_word != 0);
    if (units > UINT64_MAX / 4 / words)
        return false;
    *bytes = units * words * 4;
    return true;
}

typedef struct step {
    uint64_t stride, steps;
    uint64_t reach;                     /* of the dimensions inside this one */
    uint64_t divisor;                   /* of their strides; 0: there is none */
} step;

typedef struct search {
    step dims[MOST_DIMENSIONS];         /* the innermost first */
    int32_t budget;
} search;

static wide floor_divide(wide a, wide b)
{
    return a / b - (a % b < 0);
}

static bool find(search *s, uint32_t left, wide total, bool nonzero);

static bool try_step(search *s, uint32_t left, wide total, bool nonzero, wide d)
{
    const step *at = &s->dims[left - 1];
    if (--s->budget < 0)
        return false;
    const wide rest = total + d * (wide)at->stride;
    const bool reachable = at->divisor != 0 ? rest % (wide)at->divisor == 0 : rest == 0;
    return reachable && find(s, left - 1, rest, nonzero || d != 0);
}

/* Whether some vector of differences of indices, not all 0, leads back to the same place. Those nearest to 0 are tried first. */
static bool find(search *s, uint32_t left, wide total, bool nonzero)
{
    if (left == 0)
        return nonzero && total == 0;
    const step *at = &s->dims[left - 1];
    const wide stride = (wide)at->stride, steps = (wide)at->steps, inner = (wide)at->reach;
    wide low = -floor_divide(total + inner, stride), high = floor_divide(inner - total, stride);
    if (low < (nonzero ? -steps : 0))
        low = nonzero ? -steps : 0;
    if (high > steps)
        high = steps;
    wide above = low > 0 ? low : 0;
    if (above > high)
        above = high;
    wide below = above - 1;
    for (; above <= high && s->budget >= 0; above++) {
        if (try_step(s, left, total, nonzero, above))
            return true;
        if (below >= low && s->budget >= 0 && try_step(s, left, total, nonzero, below--))
            return true;
    }
    for (; below >= low && s->budget >= 0; below--)
        if (try_step(s, left, total, nonzero, below))
            return true;
    return false;
}

static uint64_t greatest_common_divisor(uint64_t a, uint64_t b)
{
    while (b != 0) {
        const uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Whether two elements lie at one place. false where the search ended before it could tell, too: that is no fault. Strides are not 0 where a
 * size is above 1. */
static bool overlaps(const DML_BUFFER_TENSOR_DESC *t)
{
    search s;
    uint32_t count = 0;
    for (uint32_t d = 0; d < t->DimensionCount; d++) {
        if (t->Sizes[d] == 1)
            continue;
        uint32_t at = count++;
        for (; at > 0 && s.dims[at - 1].stride > t->Strides[d]; at--)
            s.dims[at] = s.dims[at - 1];
        s.dims[at].stride = t->Strides[d];
        s.dims[at].steps = t->Sizes[d] - 1;
    }
    uint64_t reach = 0;
    bool nested = true;
    for (uint32_t i = 0; i < count; i++) {
        s.dims[i].reach = reach;
        nested = nested && s.dims[i].stride > reach;
        reach += s.dims[i].stride * s.dims[i].steps;
    }
    if (nested || reach > FARTHEST)
        return false;
    uint64_t divisor = 0;
    for (uint32_t i = 0; i < count; i++) {
        s.dims[i].divisor = divisor;
        divisor = greatest_common_divisor(s.dims[i].stride, divisor);
    }
    s.budget = SEARCH_STEPS;
    return find(&s, count, 0, false);
}

/* ---- Rules of a tensor ---- */

/* Whether every dimension steps over all that those after it reach, as in most layouts: no two elements meet, and no stride is 0 or another's. */
static bool is_nested(const DML_BUFFER_TENSOR_DESC *t)
{
    uint64_t reach = 0;
    for (uint32_t d = t->DimensionCount; d-- > 0;) {
        if (t->Sizes[d] == 1)
            continue;
        if (t->Strides[d] <= reach)
            return false;
        reach += (uint64_t)(t->Sizes[d] - 1) * t->Strides[d];
    }
    return true;
}

static void judge_strides(judged *o, const place *at, const DML_BUFFER_TENSOR_DESC *t, uint64_t count, uint64_t extent, uint32_t *spoilt)
{
    const bool nested = is_nested(t);
    for (uint32_t d = 0; d < t->DimensionCount && !nested; d++)
        if (t->Strides[d] == 0 && t->Sizes[d] > 1) {
            of_entry(o, at, "tensor/output-stride-zero", STRIDES_MEMBER, d);
            *spoilt |= LAYOUT;
        }
    for (uint32_t d = 1; d < t->DimensionCount && !nested && (*spoilt & LAYOUT) == 0; d++)
        for (uint32_t e = 0; e < d && t->Sizes[d] > 1; e++)
            if (t->Sizes[e] > 1 && t->Strides[e] == t->Strides[d]) {
                of_entry(o, at, "tensor/output-strides-equal", STRIDES_MEMBER, d);
                *spoilt |= LAYOUT;
                break;
            }
    if ((*spoilt & LAYOUT) == 0 && count > extent) {
        of_tensor(o, at, "tensor/output-span-too-small", STRIDES_MEMBER);
        *spoilt |= LAYOUT;
    }
    const uint32_t bits = bits_of(t->DataType);
    if ((*spoilt & (LAYOUT | DATA_TYPE)) == 0 && count > counted_extent(o->by, bits, t, extent)) {
        of_tensor(o, at, "tensor/output-span-wraps", STRIDES_MEMBER);
        *spoilt |= LAYOUT | SPAN;
    }
    if ((*spoilt & LAYOUT) == 0 && !nested && overlaps(t))
        unsafe(o, at, "tensor/output-elements-overlap", STRIDES_MEMBER);
}

static void judge_total(judged *o, const place *at, const DML_BUFFER_TENSOR_DESC *t, uint64_t extent, uint32_t *spoilt)
{
    const uint32_t bits = bits_of(t->DataType);
    const uint64_t total = t->TotalTensorSizeInBytes;
    uint64_t exact = 0, counted = 0;
    const bool fits = implied_size(extent, bits, &exact);
    if ((*spoilt & SPAN) == 0 && !fits && !is_release(o->by)) {
        of_tensor(o, at, "tensor/implied-size-too-large", TOTAL_MEMBER);
        *spoilt |= TOTAL;
    }
    if ((*spoilt & TOTAL) != 0)
        return;
    bool counts = implied_size(counted_extent(o->by, bits, t, extent), bits, &counted);
    if (t->Strides != NULL && o->by->arithmetic == BYTES_32) {
        counted = low_bits(counted_extent(o->by, bits, t, extent) * bits, 35);
        counted = (counted + 31) / 32 * 4;
        counts = true;
    }
    if (!counts || total < counted) {
        of_tensor(o, at, "tensor/total-size-too-small", TOTAL_MEMBER);
        *spoilt |= TOTAL;
        return;
    }
    if ((*spoilt & SPAN) == 0 && o->by->arithmetic != EXACT && (!fits || total < exact))
        unsafe(o, at, "tensor/implied-size-wraps", TOTAL_MEMBER);
}

/* What follows Sizes, of a tensor whose members up to there are as *spoilt says; count: its elements, where Sizes are not spoilt. */
static void judge_memory(judged *o, const place *at, const DML_BUFFER_TENSOR_DESC *t, uint64_t count, uint32_t *spoilt)
{
    if ((*spoilt & (DIMENSIONS | POSITIVE | ELEMENT_COUNT)) == 0) {
        const uint64_t extent = exact_extent(t, count);
        if (at->is_output && t->Strides != NULL)
            judge_strides(o, at, t, count, extent, spoilt);
        if ((*spoilt & DATA_TYPE) == 0)
            judge_total(o, at, t, extent, spoilt);
    }
    if ((*spoilt & (DATA_TYPE | ELEMENT_COUNT | TOTAL)) == 0) {
        const uint32_t bits = bits_of(t->DataType);
        const uint64_t limit = UINT64_C(0xffffffff) * bits / 8 + (o->by->whole_elements ? (bits - 1) / 8 : 0);
        if (t->TotalTensorSizeInBytes > limit)
            of_tensor(o, at, "tensor/total-size-too-large", TOTAL_MEMBER);
    }
    const uint32_t alignment = t->GuaranteedBaseOffsetAlignment;
    if ((alignment & (alignment - 1)) != 0)
        of_tensor(o, at, "tensor/alignment-not-power-of-two", ALIGNMENT_MEMBER);
    else if ((*spoilt & DATA_TYPE) == 0 && alignment > 0 && (uint64_t)alignment * 8 < bits_of(t->DataType))
        of_tensor(o, at, "tensor/alignment-below-element-size", ALIGNMENT_MEMBER);
    else if (alignment > 0 && alignment < 16)
        of_tensor(o, at, "tensor/alignment-below-16", ALIGNMENT_MEMBER);
}

static bool takes(uint32_t set, uint32_t value)
{
    return value < 32 && (set >> value & 1) != 0;
}

/* Returns what is spoilt of the tensor. */
static uint32_t judge_tensor(judged *o, const place *at, const DML_TENSOR_DESC *tensor, uint32_t spoilt)
{
    if (tensor == NULL) {
        if ((spoilt & READABLE) == 0)
            of_tensor(o, at, "tensor/null", NO_MEMBER);
        return spoilt | DESC;
    }
    if (tensor->Type != DML_TENSOR_TYPE_BUFFER)
        of_tensor(o, at, "tensor/type-not-buffer", TYPE);
    const DML_BUFFER_TENSOR_DESC *t = tensor->Desc;
    if (t == NULL && (spoilt & READABLE) == 0)
        of_tensor(o, at, "tensor/desc-null", DESC_MEMBER);
    if (t == NULL || (spoilt & DESC) != 0)
        return spoilt | DESC;

    uint64_t count = 0;
    if (bits_of(t->DataType) == 0) {
        of_tensor(o, at, "tensor/data-type-unknown", DATA_TYPE_MEMBER);
        spoilt |= DATA_TYPE;
    } else if (!takes(o->by->data_types, t->DataType)) {
        of_tensor(o, at, "tensor/data-type-not-supported", DATA_TYPE_MEMBER);
    }
    if ((uint32_t)t->Flags > DML_TENSOR_FLAG_OWNED_BY_DML)
        of_tensor(o, at, "tensor/flags-unknown", FLAGS_MEMBER);
    else if (at->is_output && t->Flags != DML_TENSOR_FLAG_NONE)
        of_tensor(o, at, "tensor/output-owned-by-dml", FLAGS_MEMBER);
    if (t->DimensionCount == 0 || t->DimensionCount > MOST_DIMENSIONS) {
        of_tensor(o, at, "tensor/dimension-count-out-of-range", DIMENSION_COUNT_MEMBER);
        spoilt |= DIMENSION_COUNT;
    } else if (!takes(o->counts, t->DimensionCount)) {
        of_tensor(o, at, "tensor/dimension-count-not-supported", DIMENSION_COUNT_MEMBER);
    }
    if (t->Sizes == NULL) {
        of_tensor(o, at, "tensor/sizes-null", SIZES_MEMBER);
        spoilt |= SIZES;
    }
    if ((spoilt & DIMENSIONS) == 0) {
        for (uint32_t d = 0; d < t->DimensionCount; d++)
            if (t->Sizes[d] == 0) {
                of_entry(o, at, "tensor/size-zero", SIZES_MEMBER, d);
                spoilt |= POSITIVE;
            }
        count = element_count(t);
        if (count > UINT32_MAX) {
            of_tensor(o, at, "tensor/element-count-too-large", SIZES_MEMBER);
            spoilt |= ELEMENT_COUNT;
        }
    }
    judge_memory(o, at, t, count, &spoilt);
    return spoilt;
}

/* ---- Rules of an operator ---- */

static const DML_BUFFER_TENSOR_DESC *desc_of(const DML_TENSOR_DESC *tensor)
{
    return tensor != NULL ? tensor->Desc : NULL;
}

/* A part against the whole. *sum adds its size on the axis; *all: whether that of every part is known. */
static void compare_part(judged *o, const place *at, const DML_BUFFER_TENSOR_DESC *part, uint32_t spoilt, uint64_t *sum, bool *all)
{
    const DML_BUFFER_TENSOR_DESC *whole = desc_of(o->whole);
    const uint32_t both = spoilt | o->whole_spoilt;
    if (!o->split && (spoilt & (DESC | SIZES | ELEMENT_COUNT)) == 0 && element_count(part) > INT32_MAX)
        of_tensor(o, at, "join/input-element-count-too-large", SIZES_MEMBER);
    if ((both & (DESC | DATA_TYPE)) == 0 && part->DataType != whole->DataType)
        of_tensor(o, at, RULE("data-type-mismatch", "data-type-mismatch"), DATA_TYPE_MEMBER);
    if ((both & (DESC | DIMENSION_COUNT)) == 0 && part->DimensionCount != whole->DimensionCount) {
        of_tensor(o, at, RULE("dimension-count-mismatch", "dimension-count-mismatch"), DIMENSION_COUNT_MEMBER);
        if (o->split)
            spoilt |= DIMENSION_COUNT;
    }
    /* A join's comparison of sizes comes before all else, and compares the dimensions that both tensors have. */
    const uint32_t needed = o->split ? DIMENSIONS : DESC | SIZES;
    if ((spoilt & needed) != 0) {
        *all = false;
        return;
    }
    if (o->axis < part->DimensionCount)
        *sum += part->Sizes[o->axis];
    if ((o->whole_spoilt & needed) != 0 || (o->spoilt & AXIS) != 0)
        return;
    for (uint32_t d = 0; d < part->DimensionCount && d < whole->DimensionCount; d++)
        if (d != o->axis && part->Sizes[d] != whole->Sizes[d]) {
            of_entry(o, at, RULE("size-mismatch", "size-mismatch"), SIZES_MEMBER, d);
            break;                      /* in descriptor order none comes before the first */
        }
}

/* What a release does before it looks at the tensors one by one: it ends the process, or refuses, or goes on. Everything that it reads
 * unchecked is there, but for null pointers and arrays that have fewer entries than it takes for granted. */
static void look_first(judged *o)
{
    const member whole_member = o->split ? INPUT_TENSOR : OUTPUT_TENSOR, array_member = o->split ? OUTPUT_TENSORS : INPUT_TENSORS;
    const bool walks = !o->split || o->by->walks_sizes;
    if (o->count == 0 && !(o->split && o->by->reads_input_first))
        return;
    uint32_t most = MOST_DIMENSIONS;
    while (!takes(o->counts, most))
        most--;
    if (o->split && walks && o->axis >= most)
        return;
    const DML_BUFFER_TENSOR_DESC *whole = desc_of(o->whole);
    member tensor = whole_member, inside = DESC_MEMBER;
    uint64_t part = DMLSPLIT_WHOLE;
    if (o->whole == NULL) {
        inside = NO_MEMBER;
        goto crash;
    }
    if (whole == NULL)
        goto crash;
    if (o->count == 0 || (o->split && walks ? !takes(o->counts, whole->DimensionCount) : o->axis >= whole->DimensionCount) || !walks)
        return;
    if (o->parts == NULL) {
        tensor = array_member;
        inside = NO_MEMBER;
        goto crash;
    }
    uint64_t total = 0;
    for (uint32_t i = 0; i < o->count; i++) {
        const DML_BUFFER_TENSOR_DESC *t = o->parts[i].Desc;
        tensor = array_member;
        part = i;
        inside = DESC_MEMBER;
        if (t == NULL)
            goto crash;
        const uint32_t dimensions = o->split ? whole->DimensionCount : t->DimensionCount;
        inside = SIZES_MEMBER;
        if (t->Sizes == NULL && dimensions > 0)
            goto crash;
        uint32_t product = 1;           /* of 32 bits, and taken for a signed number */
        for (uint32_t d = 0; d < dimensions && !o->split; d++)
            product *= t->Sizes[d];
        if (!o->split && product > INT32_MAX)
            return;
        for (uint32_t d = 0; d < dimensions; d++) {
            if (d >= t->DimensionCount) /* the build reads on: past the end, for all that is said of the array */
                goto crash;
            if (d == o->axis) {
                total += t->Sizes[d];
                if (total > UINT32_MAX)
                    return;
                continue;
            }
            if (whole->Sizes == NULL || d >= whole->DimensionCount) {
                tensor = whole_member;
                part = DMLSPLIT_WHOLE;
                goto crash;
            }
            if (t->Sizes[d] != whole->Sizes[d])
                return;
        }
    }
    if (whole->Sizes != NULL)
        return;
    tensor = whole_member;
    part = DMLSPLIT_WHOLE;
crash:
    o->crashes = true;
    found(o, RULE("crash", "crash"), true, tensor, part, inside, DMLSPLIT_NO_DIMENSION);
}

/* Whether the crash was found in this tensor, which spoils it. */
static uint32_t spoilt_by_crash(const judged *o, member tensor, uint64_t part, member first_tensor, uint64_t first_part)
{
    return o->crashes && tensor == first_tensor && part == first_part ? (uint32_t)(DESC | READABLE) : 0;
}

static void judge(judged *o)
{
    const member array_member = o->split ? OUTPUT_TENSORS : INPUT_TENSORS;
    const place whole_place = {o->split ? INPUT_TENSOR : OUTPUT_TENSOR, DMLSPLIT_WHOLE, !o->split};
    if (is_release(o->by))
        look_first(o);
    const member crash_tensor = o->tensor;
    const uint64_t crash_part = o->part;
    const bool array_crash = o->crashes && crash_tensor == array_member && crash_part == DMLSPLIT_WHOLE;
    o->spoilt = array_crash ? ARRAY : 0;

    o->whole_spoilt = judge_tensor(o, &whole_place, o->whole,
                                   spoilt_by_crash(o, whole_place.tensor, DMLSPLIT_WHOLE, crash_tensor, crash_part));
    if (o->count == 0) {
        of_operator(o, RULE("output-count-zero", "input-count-zero"), o->split ? OUTPUT_COUNT : INPUT_COUNT);
        o->spoilt |= ARRAY;
    }
    if (o->parts == NULL && (o->spoilt & ARRAY) == 0) {
        of_operator(o, RULE("outputs-null", "inputs-null"), array_member);
        o->spoilt |= ARRAY;
    }
    const DML_BUFFER_TENSOR_DESC *whole = desc_of(o->whole);
    if ((o->whole_spoilt & DESC) == 0 && o->axis >= whole->DimensionCount) {
        of_operator(o, RULE("axis-out-of-range", "axis-out-of-range"), AXIS_MEMBER);
        o->spoilt |= AXIS;
    }
    uint64_t sum = 0;
    bool all = true;
    for (uint32_t i = 0; i < o->count && o->parts != NULL; i++) {
        const place at = {array_member, i, o->split};
        const uint32_t spoilt = judge_tensor(o, &at, &o->parts[i], spoilt_by_crash(o, array_member, i, crash_tensor, crash_part));
        compare_part(o, &at, o->parts[i].Desc, spoilt, &sum, &all);
    }
    const uint32_t needed = o->split ? DIMENSIONS : DESC | SIZES;
    if ((o->spoilt & (AXIS | ARRAY)) != 0 || (o->whole_spoilt & needed) != 0 || (o->split && !all) || o->axis >= whole->DimensionCount)
        return;
    /* Where not all inputs of a join are known, they may be too large together already. */
    if (all ? sum != whole->Sizes[o->axis] : sum > whole->Sizes[o->axis])
        of_operator(o, RULE("axis-sizes-sum", "axis-sizes-sum"), array_member);
}

/* ---- The interface ---- */

static dmlsplit_status answer(judged *o, uint32_t target_number, dmlsplit_verdict *verdict)
{
    if (verdict->struct_size != sizeof *verdict)
        return DMLSPLIT_BAD_STRUCT_SIZE;
    o->by = find_target(target_number);
    if (o->by == NULL)
        return DMLSPLIT_UNKNOWN_TARGET;
    o->counts = o->split ? o->by->split_counts : o->by->join_counts;
    judge(o);
    const bool in_tensor = o->member != NO_MEMBER || o->part != DMLSPLIT_WHOLE || o->tensor == INPUT_TENSOR || o->tensor == OUTPUT_TENSOR;
    verdict->ok = o->rule == NULL;
    verdict->crashes = o->crashes;
    verdict->hresult = o->crashes || !o->refused ? 0 : o->by->invalid_argument;
    verdict->rule = o->rule;
    verdict->tensor = o->rule == NULL || !in_tensor ? "" : member_names[o->tensor];
    verdict->member = o->rule == NULL ? "" : member_names[in_tensor ? o->member : o->tensor];
    verdict->part = o->rule == NULL ? DMLSPLIT_WHOLE : o->part;
    verdict->index = o->rule == NULL ? DMLSPLIT_NO_DIMENSION : o->index;
    return DMLSPLIT_OK;
}

dmlsplit_status dmlsplit_validate_split(const DML_SPLIT_OPERATOR_DESC *desc, uint32_t target_number, dmlsplit_verdict *verdict)
{
    if (desc == NULL || verdict == NULL)
        return DMLSPLIT_NULL_POINTER;
    judged o = {0};
    o.split = true;
    o.whole = desc->InputTensor;
    o.parts = desc->OutputTensors;
    o.count = desc->OutputCount;
    o.axis = desc->Axis;
    return answer(&o, target_number, verdict);
}

dmlsplit_status dmlsplit_validate_join(const DML_JOIN_OPERATOR_DESC *desc, uint32_t target_number, dmlsplit_verdict *verdict)
{
    if (desc == NULL || verdict == NULL)
        return DMLSPLIT_NULL_POINTER;
    judged o = {0};
    o.whole = desc->OutputTensor;
    o.parts = desc->InputTensors;
    o.count = desc->InputCount;
    o.axis = desc->Axis;
    return answer(&o, target_number, verdict);
}

size_t dmlsplit_verdict_path(const dmlsplit_verdict *verdict, char *buffer, size_t capacity)
{
    dms_text text = dms_text_start(buffer, capacity);
    if (verdict == NULL || verdict->rule == NULL)
        return text.length;
    dms_text_add(&text, "%s", verdict->tensor);
    if (verdict->part != DMLSPLIT_WHOLE)
        dms_text_add(&text, "[%llu]", (unsigned long long)verdict->part);
    if (verdict->member[0] != '\0')
        dms_text_add(&text, "%s%s", text.length > 0 ? "." : "", verdict->member);
    if (verdict->index != DMLSPLIT_NO_DIMENSION)
        dms_text_add(&text, "[%lu]", (unsigned long)verdict->index);
    return text.length;
}
