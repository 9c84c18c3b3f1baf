/* dms_verdict.c - the verdict on a Split or Join: the rules that the Python package has, as far as C structs can break them
 *
 * dms_verdict_found.c keeps the first fault, dms_verdict_tensor.c has the rules about a tensor, dms_verdict_layout.c
 * the arithmetic that they need, dms_verdict_target.c the differences between feature levels and releases. This file
 * has the rules about an operator, and the interface. Rules are in the order of the registry, each with the aspects
 * that it needs and those that it spoils for later rules. Tests compare the verdicts with the registry's for every
 * recorded descriptor and build, and for random ones.
 */
#include "dms_struct.h"
#include "dms_text.h"
#include "dms_verdict_layout.h"
#include "dms_verdict_tensor.h"

/* A rule about a split and the corresponding rule about a join have the same slug. */
#define RULE(slug) (o->op.split ? "split/" slug : "join/" slug)

static void of_operator(dms_judged *o, const char *rule, dms_member tensor)
{
    dms_found(o, rule, true, tensor, DMLSPLIT_WHOLE, NO_MEMBER, DMLSPLIT_NO_DIMENSION);
}

static dms_member whole_of(const dms_judged *o)
{
    return o->op.split ? INPUT_TENSOR : OUTPUT_TENSOR;
}

static dms_member array_of(const dms_judged *o)
{
    return o->op.split ? OUTPUT_TENSORS : INPUT_TENSORS;
}

static const DML_BUFFER_TENSOR_DESC *desc_of(const DML_TENSOR_DESC *tensor)
{
    return tensor != NULL ? tensor->Desc : NULL;
}

/* ---- What a release does before it looks at the tensors one by one ---- */

static void crash(dms_judged *o, dms_member tensor, uint64_t part, dms_member inside)
{
    o->crashes = true;
    o->crash_tensor = tensor;
    o->crash_part = part;
    dms_found(o, RULE("crash"), true, tensor, part, inside, DMLSPLIT_NO_DIMENSION);
}

/* True if the number of elements is negative in a build's arithmetic for a join: signed, 32 bits. */
static bool counts_negative(const DML_BUFFER_TENSOR_DESC *t)
{
    uint32_t product = 1;
    for (uint32_t d = 0; d < t->DimensionCount; d++)
        product *= t->Sizes[d];
    return product > INT32_MAX;
}

/* The build compares the sizes of all parts with those of the whole, unchecked; if they differ, or add up to too
 * much, it refuses before reading further. */
static void walk_sizes(dms_judged *o, const DML_BUFFER_TENSOR_DESC *whole)
{
    const dms_member whole_member = whole_of(o), array_member = array_of(o);
    uint64_t total = 0;
    for (uint32_t i = 0; i < o->op.count; i++) {
        const DML_BUFFER_TENSOR_DESC *t = o->op.parts[i].Desc;
        if (t == NULL) {
            crash(o, array_member, i, DESC_MEMBER);
            return;
        }
        const uint32_t dimensions = o->op.split ? whole->DimensionCount : t->DimensionCount;
        if (t->Sizes == NULL && dimensions > 0) {
            crash(o, array_member, i, SIZES_MEMBER);
            return;
        }
        if (!o->op.split && counts_negative(t))
            return;
        for (uint32_t d = 0; d < dimensions; d++) {
            if (d >= t->DimensionCount) {               /* the build may read past the array's end */
                crash(o, array_member, i, SIZES_MEMBER);
                return;
            }
            if (d == o->op.axis) {
                total += t->Sizes[d];
                if (total > UINT32_MAX)
                    return;
            } else if (whole->Sizes == NULL || d >= whole->DimensionCount) {
                crash(o, whole_member, DMLSPLIT_WHOLE, SIZES_MEMBER);
                return;
            } else if (t->Sizes[d] != whole->Sizes[d]) {
                return;
            }
        }
    }
    if (whole->Sizes == NULL)
        crash(o, whole_member, DMLSPLIT_WHOLE, SIZES_MEMBER);
}

/* Judges what the build reads unchecked: it crashes, refuses or continues. Only null pointers and short arrays make
 * it crash. */
static void look_first(dms_judged *o)
{
    const bool walks = !o->op.split || o->by->walks_sizes;
    if (o->op.count == 0 && !(o->op.split && o->by->reads_input_first))
        return;
    uint32_t most = DMS_MOST_DIMENSIONS;
    while (!dms_takes(o->counts, most))
        most--;
    if (o->op.split && walks && o->op.axis >= most)
        return;
    const DML_BUFFER_TENSOR_DESC *whole = desc_of(o->op.whole);
    if (whole == NULL) {
        crash(o, whole_of(o), DMLSPLIT_WHOLE, o->op.whole == NULL ? NO_MEMBER : DESC_MEMBER);
        return;
    }
    if (o->op.count == 0 || !walks || (o->op.split ? !dms_takes(o->counts, whole->DimensionCount) : o->op.axis >= whole->DimensionCount))
        return;
    if (o->op.parts == NULL)
        crash(o, array_of(o), DMLSPLIT_WHOLE, NO_MEMBER);
    else
        walk_sizes(o, whole);
}

/* ---- Rules of an operator ---- */

/* Compares a part with the whole. Adds the part's size along the axis to *sum, or clears *all if that size is
 * unknown. */
static void compare_part(dms_judged *o, const dms_slot *at, const DML_BUFFER_TENSOR_DESC *part, uint32_t spoilt, uint64_t *sum, bool *all)
{
    const DML_BUFFER_TENSOR_DESC *whole = desc_of(o->op.whole);
    const uint32_t both = spoilt | o->whole_spoilt;
    if (!o->op.split && (spoilt & (DESC | SIZES | ELEMENT_COUNT)) == 0 && dms_element_count(part) > INT32_MAX)
        dms_found_in(o, at, "join/input-element-count-too-large", SIZES_MEMBER);
    if ((both & (DESC | DATA_TYPE)) == 0 && part->DataType != whole->DataType)
        dms_found_in(o, at, RULE("data-type-mismatch"), DATA_TYPE_MEMBER);
    if ((both & (DESC | DIMENSION_COUNT)) == 0 && part->DimensionCount != whole->DimensionCount) {
        dms_found_in(o, at, RULE("dimension-count-mismatch"), DIMENSION_COUNT_MEMBER);
        if (o->op.split)
            spoilt |= DIMENSION_COUNT;
    }
    /* A join's comparison of sizes comes before everything else, and covers the dimensions that both tensors have. */
    const uint32_t needed = o->op.split ? DIMENSIONS : DESC | SIZES;
    if ((spoilt & needed) != 0) {
        *all = false;
        return;
    }
    if (o->op.axis < part->DimensionCount)
        *sum += part->Sizes[o->op.axis];
    if ((o->whole_spoilt & needed) != 0 || (o->spoilt & AXIS) != 0)
        return;
    for (uint32_t d = 0; d < part->DimensionCount && d < whole->DimensionCount; d++)
        if (d != o->op.axis && part->Sizes[d] != whole->Sizes[d])
            dms_found_in_entry(o, at, RULE("size-mismatch"), SIZES_MEMBER, d);
}

/* Returns the aspects that the crash spoils. */
static uint32_t spoilt_by_crash(const dms_judged *o, dms_member tensor, uint64_t part, uint32_t what)
{
    return o->crashes && tensor == o->crash_tensor && part == o->crash_part ? what : 0;
}

static void judge(dms_judged *o)
{
    const dms_member array_member = array_of(o);
    const dms_slot whole_slot = {whole_of(o), DMLSPLIT_WHOLE, !o->op.split};
    if (dms_is_release(o->by))
        look_first(o);
    o->spoilt = spoilt_by_crash(o, array_member, DMLSPLIT_WHOLE, ARRAY);
    o->whole_spoilt = dms_judge_tensor(o, &whole_slot, o->op.whole, spoilt_by_crash(o, whole_slot.tensor, DMLSPLIT_WHOLE, DESC | READABLE));
    if (o->op.count == 0) {
        of_operator(o, o->op.split ? "split/output-count-zero" : "join/input-count-zero", o->op.split ? OUTPUT_COUNT : INPUT_COUNT);
        o->spoilt |= ARRAY;
    }
    if (o->op.parts == NULL && (o->spoilt & ARRAY) == 0) {
        of_operator(o, o->op.split ? "split/outputs-null" : "join/inputs-null", array_member);
        o->spoilt |= ARRAY;
    }
    const DML_BUFFER_TENSOR_DESC *whole = desc_of(o->op.whole);
    if ((o->whole_spoilt & DESC) == 0 && o->op.axis >= whole->DimensionCount) {
        of_operator(o, RULE("axis-out-of-range"), AXIS_MEMBER);
        o->spoilt |= AXIS;
    }
    uint64_t sum = 0;
    bool all = true;
    for (uint32_t i = 0; i < o->op.count && o->op.parts != NULL; i++) {
        const dms_slot at = {array_member, i, o->op.split};
        const uint32_t spoilt = dms_judge_tensor(o, &at, &o->op.parts[i], spoilt_by_crash(o, array_member, i, DESC | READABLE));
        compare_part(o, &at, o->op.parts[i].Desc, spoilt, &sum, &all);
    }
    const uint32_t needed = o->op.split ? DIMENSIONS : DESC | SIZES;
    if ((o->spoilt & (AXIS | ARRAY)) != 0 || (o->whole_spoilt & needed) != 0 || (o->op.split && !all) || o->op.axis >= whole->DimensionCount)
        return;
    /* Even if some inputs of a join are unknown, the known ones together may already be too large. */
    if (all ? sum != whole->Sizes[o->op.axis] : sum > whole->Sizes[o->op.axis])
        of_operator(o, RULE("axis-sizes-sum"), array_member);
}

/* ---- The interface ---- */

static bool has_struct_size(const dmlsplit_verdict *verdict)
{
    enum { FIRST = DMS_SIZE_UP_TO(dmlsplit_verdict, index) };  /* size in version 0.1.0, without padding */
    return dms_is_struct_size(verdict->struct_size, FIRST);
}

static dmlsplit_status answer(dms_judged *o, uint32_t target_number, dmlsplit_verdict *verdict)
{
    dmlsplit_verdict found;
    if (!has_struct_size(verdict))
        return DMLSPLIT_BAD_STRUCT_SIZE;
    o->by = dms_find_target(target_number);
    if (o->by == NULL)
        return DMLSPLIT_UNKNOWN_TARGET;
    o->counts = o->op.split ? o->by->split_counts : o->by->join_counts;
    judge(o);
    found.ok = o->rule == NULL;
    found.crashes = o->crashes;
    found.hresult = o->crashes || !o->refused ? 0 : o->by->invalid_argument;
    dms_describe_fault(o, &found);
    dms_give_struct(verdict, verdict->struct_size, &found, sizeof found);
    return DMLSPLIT_OK;
}

dmlsplit_status dmlsplit_validate_split(const DML_SPLIT_OPERATOR_DESC *desc, uint32_t target_number, dmlsplit_verdict *verdict)
{
    if (desc == NULL || verdict == NULL)
        return DMLSPLIT_NULL_POINTER;
    dms_judged o = {.op = dms_read_split(desc)};
    return answer(&o, target_number, verdict);
}

dmlsplit_status dmlsplit_validate_join(const DML_JOIN_OPERATOR_DESC *desc, uint32_t target_number, dmlsplit_verdict *verdict)
{
    if (desc == NULL || verdict == NULL)
        return DMLSPLIT_NULL_POINTER;
    dms_judged o = {.op = dms_read_join(desc)};
    return answer(&o, target_number, verdict);
}

size_t dmlsplit_verdict_path(const dmlsplit_verdict *verdict, char *buffer, size_t capacity)
{
    dms_text text = dms_text_start(buffer, capacity);
    if (verdict == NULL || !has_struct_size(verdict) || verdict->rule == NULL)
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
