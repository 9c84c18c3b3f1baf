/* dms_verdict_tensor.c - the rules about a tensor, in the order of the registry */
#include "dms_verdict_tensor.h"

#include "dms_verdict_layout.h"

/* Records a fault that the build accepts although it is unsafe. */
static void unsafe(dms_judged *o, const dms_slot *at, const char *rule, dms_member inside)
{
    dms_found(o, rule, false, at->tensor, at->part, inside, DMLSPLIT_NO_DIMENSION);
}

/* True if an earlier dimension has the stride of d, and both have more than one element. */
static bool repeats_a_stride(const DML_BUFFER_TENSOR_DESC *t, uint32_t d)
{
    for (uint32_t e = 0; e < d && t->Sizes[d] > 1; e++)
        if (t->Sizes[e] > 1 && t->Strides[e] == t->Strides[d])
            return true;
    return false;
}

static void judge_strides(dms_judged *o, const dms_slot *at, const DML_BUFFER_TENSOR_DESC *t, uint32_t *spoilt)
{
    for (uint32_t d = 0; d < t->DimensionCount; d++)
        if (t->Strides[d] == 0 && t->Sizes[d] > 1) {
            dms_found_in_entry(o, at, "tensor/output-stride-zero", STRIDES_MEMBER, d);
            *spoilt |= LAYOUT;
        }
    if ((*spoilt & LAYOUT) != 0)
        return;
    for (uint32_t d = 1; d < t->DimensionCount; d++)
        if (repeats_a_stride(t, d)) {
            dms_found_in_entry(o, at, "tensor/output-strides-equal", STRIDES_MEMBER, d);
            *spoilt |= LAYOUT;
        }
}

/* Judges the addresses of an output's elements, once its strides by themselves are valid. */
static void judge_span(dms_judged *o, const dms_slot *at, const DML_BUFFER_TENSOR_DESC *t, uint64_t count, uint64_t extent, uint32_t *spoilt)
{
    if (count > extent) {
        dms_found_in(o, at, "tensor/output-span-too-small", STRIDES_MEMBER);
        *spoilt |= LAYOUT;
    } else if ((*spoilt & DATA_TYPE) == 0 && count > dms_counted_extent(o->by->arithmetic, t, extent)) {
        dms_found_in(o, at, "tensor/output-span-wraps", STRIDES_MEMBER);
        *spoilt |= LAYOUT | SPAN;
    } else if (!dms_is_nested(t) && dms_elements_overlap(t)) {
        unsafe(o, at, "tensor/output-elements-overlap", STRIDES_MEMBER);
    }
}

static void judge_total(dms_judged *o, const dms_slot *at, const DML_BUFFER_TENSOR_DESC *t, uint64_t extent, uint32_t *spoilt)
{
    const uint32_t bits = dms_element_bits(t->DataType);
    const uint64_t total = t->TotalTensorSizeInBytes;
    uint64_t exact = 0, counted = 0;
    const bool fits = dms_implied_size(extent, bits, &exact);
    if ((*spoilt & SPAN) == 0 && !fits && !dms_is_release(o->by)) {
        dms_found_in(o, at, "tensor/implied-size-too-large", TOTAL_MEMBER);
        *spoilt |= TOTAL;
    }
    if ((*spoilt & TOTAL) != 0)
        return;
    if (!dms_counted_size(o->by->arithmetic, t, extent, &counted) || total < counted) {
        dms_found_in(o, at, "tensor/total-size-too-small", TOTAL_MEMBER);
        *spoilt |= TOTAL;
        return;
    }
    if ((*spoilt & SPAN) == 0 && o->by->arithmetic != EXACT && (!fits || total < exact))
        unsafe(o, at, "tensor/implied-size-wraps", TOTAL_MEMBER);
}

/* Judges the members after Sizes. *spoilt: aspects of earlier members that are faulty; count: the number of
 * elements, if Sizes are valid. */
static void judge_memory(dms_judged *o, const dms_slot *at, const DML_BUFFER_TENSOR_DESC *t, uint64_t count, uint32_t *spoilt)
{
    const bool has_layout = at->is_output && t->Strides != NULL;
    if ((*spoilt & (DIMENSIONS | POSITIVE)) == 0 && has_layout)
        judge_strides(o, at, t, spoilt);
    if ((*spoilt & (DIMENSIONS | POSITIVE | ELEMENT_COUNT)) == 0) {
        const uint64_t extent = dms_exact_extent(t, count);
        if ((*spoilt & LAYOUT) == 0 && has_layout)
            judge_span(o, at, t, count, extent, spoilt);
        if ((*spoilt & DATA_TYPE) == 0)
            judge_total(o, at, t, extent, spoilt);
    }
    if ((*spoilt & (DATA_TYPE | ELEMENT_COUNT | TOTAL)) == 0) {
        const uint32_t bits = dms_element_bits(t->DataType);
        const uint64_t limit = UINT64_C(0xffffffff) * bits / 8 + (o->by->whole_elements ? (bits - 1) / 8 : 0);
        if (t->TotalTensorSizeInBytes > limit)
            dms_found_in(o, at, "tensor/total-size-too-large", TOTAL_MEMBER);
    }
    const uint32_t alignment = t->GuaranteedBaseOffsetAlignment;
    if ((alignment & (alignment - 1)) != 0)
        dms_found_in(o, at, "tensor/alignment-not-power-of-two", ALIGNMENT_MEMBER);
    else if ((*spoilt & DATA_TYPE) == 0 && alignment > 0 && (uint64_t)alignment * 8 < dms_element_bits(t->DataType))
        dms_found_in(o, at, "tensor/alignment-below-element-size", ALIGNMENT_MEMBER);
    else if (alignment > 0 && alignment < 16)
        dms_found_in(o, at, "tensor/alignment-below-16", ALIGNMENT_MEMBER);
}

uint32_t dms_judge_tensor(dms_judged *o, const dms_slot *at, const DML_TENSOR_DESC *tensor, uint32_t spoilt)
{
    if (tensor == NULL) {
        if ((spoilt & READABLE) == 0)
            dms_found_in(o, at, "tensor/null", NO_MEMBER);
        return spoilt | DESC;
    }
    if (tensor->Type != DML_TENSOR_TYPE_BUFFER)
        dms_found_in(o, at, "tensor/type-not-buffer", TYPE);
    const DML_BUFFER_TENSOR_DESC *t = tensor->Desc;
    if (t == NULL && (spoilt & READABLE) == 0)
        dms_found_in(o, at, "tensor/desc-null", DESC_MEMBER);
    if (t == NULL || (spoilt & DESC) != 0)
        return spoilt | DESC;

    uint64_t count = 0;
    if (dms_element_bits(t->DataType) == 0) {
        dms_found_in(o, at, "tensor/data-type-unknown", DATA_TYPE_MEMBER);
        spoilt |= DATA_TYPE;
    } else if (!dms_takes(o->by->data_types, t->DataType)) {
        dms_found_in(o, at, "tensor/data-type-not-supported", DATA_TYPE_MEMBER);
    }
    if ((uint32_t)t->Flags > DML_TENSOR_FLAG_OWNED_BY_DML)
        dms_found_in(o, at, "tensor/flags-unknown", FLAGS_MEMBER);
    else if (at->is_output && t->Flags != DML_TENSOR_FLAG_NONE)
        dms_found_in(o, at, "tensor/output-owned-by-dml", FLAGS_MEMBER);
    if (t->DimensionCount == 0 || t->DimensionCount > DMS_MOST_DIMENSIONS) {
        dms_found_in(o, at, "tensor/dimension-count-out-of-range", DIMENSION_COUNT_MEMBER);
        spoilt |= DIMENSION_COUNT;
    } else if (!dms_takes(o->counts, t->DimensionCount)) {
        dms_found_in(o, at, "tensor/dimension-count-not-supported", DIMENSION_COUNT_MEMBER);
    }
    if (t->Sizes == NULL) {
        dms_found_in(o, at, "tensor/sizes-null", SIZES_MEMBER);
        spoilt |= SIZES;
    }
    if ((spoilt & DIMENSIONS) == 0) {
        for (uint32_t d = 0; d < t->DimensionCount; d++)
            if (t->Sizes[d] == 0) {
                dms_found_in_entry(o, at, "tensor/size-zero", SIZES_MEMBER, d);
                spoilt |= POSITIVE;
            }
        count = dms_element_count(t);
        if (count > UINT32_MAX) {
            dms_found_in(o, at, "tensor/element-count-too-large", SIZES_MEMBER);
            spoilt |= ELEMENT_COUNT;
        }
    }
    judge_memory(o, at, t, count, &spoilt);
    return spoilt;
}
