/* dms_kernels.c - the kernel table and the choice from it */
#include "dms_kernel.h"

#define DMS_GROUP(name, isa, accept) {#name, isa, accept, dms_run_##name, NULL, NULL, NULL, NULL},
#define DMS_STRETCH(name, isa, accept) {#name, isa, accept, dms_run_small_rows, NULL, NULL, dms_copy_##name, NULL},
#define DMS_TABLE(name, isa, accept) {#name, isa, accept, dms_run_small_rows, NULL, NULL, dms_copy_##name, dms_prepare_##name},
#define DMS_NEST(name, isa, accept) {#name, isa, NULL, NULL, accept, dms_run_##name, NULL, NULL},
#define DMS_KERNEL(kind, name, isa, accept) DMS_##kind(name, isa, accept)
const dms_kernel dms_kernel_table[DMS_KERNEL_COUNT] = {
#include "dms_kernels.inc"
};

#ifdef DMS_TESTING
uint64_t dms_kernel_runs[DMS_KERNEL_COUNT], dms_plan_steps;
#endif

static bool is_available(const dms_kernel *kernel)
{
    return (kernel->isa & ~dms_cpu_isa()) == 0;
}

/* Gives the kernel to the shapes that have none yet. Returns how many still have none, with the reason of the first of these. */
static uint64_t assign(dmlsplit_plan *plan, const dms_kernel *kernel, const char **refusal)
{
    uint64_t left = 0;
    for (uint64_t i = 0; i < plan->shape_count; i++) {
        dms_shape *shape = &plan->shapes[i];
        if (shape->kernel != NULL)
            continue;
        const char *reason = kernel->accept_nest(&shape->nest);
        if (reason == NULL) {
            shape->kernel = kernel;
            continue;
        }
        left++;
        if (*refusal == NULL)
            *refusal = reason;
    }
    return left;
}

dmlsplit_status dms_choose_kernels(dmlsplit_plan *plan, const char *name)
{
    uint64_t left = plan->shape_count;  /* shapes without a kernel; where a group kernel was found they get theirs for slices */
    for (uint32_t i = 0; i < DMS_KERNEL_COUNT && left > 0; i++) {
        const dms_kernel *kernel = &dms_kernel_table[i];
        const bool is_open = plan->group == NULL;
        const char *refusal = NULL;
        if (name != NULL && strcmp(name, kernel->name) != 0)
            continue;
        if (!is_available(kernel))
            refusal = "this CPU lacks its instructions";
        else if (kernel->accept_nest != NULL)
            left = assign(plan, kernel, &refusal);
        else if (is_open && (refusal = kernel->accept_group(plan)) == NULL)
            plan->group = kernel;
        if (is_open)
            plan->refusals[i] = refusal;
    }
    if (plan->group == NULL)            /* left over by one that was asked for by name: the last line of the table accepts everything */
        return left > 0 ? DMLSPLIT_KERNEL_REFUSED : DMLSPLIT_OK;
    if (plan->group->prepare_group == NULL)
        return DMLSPLIT_OK;
    plan->tables = plan->group->prepare_group(plan);
    return plan->tables != NULL ? DMLSPLIT_OK : DMLSPLIT_OUT_OF_MEMORY;
}

dmlsplit_status dms_check_kernel_name(const char *name)
{
    if (name == NULL)
        return DMLSPLIT_OK;
    for (uint32_t i = 0; i < DMS_KERNEL_COUNT; i++)
        if (strcmp(name, dms_kernel_table[i].name) == 0)
            return DMLSPLIT_OK;
    return DMLSPLIT_UNKNOWN_KERNEL;
}

uint32_t dmlsplit_kernel_count(void)
{
    return DMS_KERNEL_COUNT;
}

const char *dmlsplit_kernel_name(uint32_t index)
{
    return index < DMS_KERNEL_COUNT ? dms_kernel_table[index].name : NULL;
}

const char *dmlsplit_kernel_isa(uint32_t index)
{
    return index < DMS_KERNEL_COUNT ? dms_isa_name(dms_kernel_table[index].isa) : NULL;
}

int dmlsplit_kernel_available(uint32_t index)
{
    return index < DMS_KERNEL_COUNT && is_available(&dms_kernel_table[index]);
}
