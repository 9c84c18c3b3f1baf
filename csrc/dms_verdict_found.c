/* dms_verdict_found.c - collects the faults of an operator and keeps the first one in the order of the descriptor */
#include "dms_verdict_found.h"

/* In the order of dms_member. */
static const char *const member_names[] = {
    "", "InputTensor", "OutputCount", "OutputTensors", "InputCount", "InputTensors", "OutputTensor", "Axis",
    "Type", "Desc", "DataType", "Flags", "DimensionCount", "Sizes", "Strides", "TotalTensorSizeInBytes", "GuaranteedBaseOffsetAlignment",
};

static bool comes_before(const dms_judged *o, dms_member tensor, uint64_t part, dms_member inside, uint32_t index)
{
    if (o->rule == NULL || tensor != o->tensor)
        return o->rule == NULL || tensor < o->tensor;
    if (part + 1 != o->part + 1)        /* an array comes before its entries */
        return part + 1 < o->part + 1;
    if (inside != o->member)
        return inside < o->member;
    return index + 1 < o->index + 1;
}

void dms_describe_fault(const dms_judged *o, dmlsplit_verdict *found)
{
    const bool in_tensor = o->part != DMLSPLIT_WHOLE || o->tensor == INPUT_TENSOR || o->tensor == OUTPUT_TENSOR;
    found->rule = o->rule;
    found->tensor = o->rule == NULL || !in_tensor ? "" : member_names[o->tensor];
    found->member = o->rule == NULL ? "" : member_names[in_tensor ? o->member : o->tensor];
    found->part = o->rule == NULL ? DMLSPLIT_WHOLE : o->part;
    found->index = o->rule == NULL ? DMLSPLIT_NO_DIMENSION : o->index;
}

#ifdef DMS_TESTING
void (*dms_each_fault)(const dmlsplit_verdict *fault);

static void show(dms_judged fault)
{
    dmlsplit_verdict found = {.struct_size = sizeof found};
    dms_describe_fault(&fault, &found);
    if (dms_each_fault != NULL)
        dms_each_fault(&found);
}
#endif

void dms_found(dms_judged *o, const char *rule, bool refused, dms_member tensor, uint64_t part, dms_member inside, uint32_t index)
{
#ifdef DMS_TESTING
    show((dms_judged){.rule = rule, .tensor = tensor, .part = part, .member = inside, .index = index});
#endif
    o->refused |= refused;
    if (!comes_before(o, tensor, part, inside, index))
        return;
    o->rule = rule;
    o->tensor = tensor;
    o->part = part;
    o->member = inside;
    o->index = index;
}
