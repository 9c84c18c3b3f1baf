/* transpose_kernels.h - the kernels transpose and columns of an instruction set
 *
 * Included after vector_<isa>.h and turn_tile(tile, size), which is compiled for each size; SQUARE and STAGE are members of dms_turner.
 */
static DMS_TARGET void DMS_NAME(turn)(dms_tile *tile)
{
    switch (tile->element_size) {
    case 1: DMS_NAME(turn_tile)(tile, 1); break;
    case 2: DMS_NAME(turn_tile)(tile, 2); break;
    case 4: DMS_NAME(turn_tile)(tile, 4); break;
    case 8: DMS_NAME(turn_tile)(tile, 8); break;
    default: DMS_NAME(turn_tile)(tile, 16); break;
    }
}

static const dms_turner DMS_NAME(turner) = {DMS_NAME(turn), SQUARE, true, STAGE};

const char *DMS_NAME(dms_accept_transpose)(const dms_nest *nest)
{
    return dms_refuse_transpose(nest);
}

DMS_TARGET void DMS_NAME(dms_run_transpose)(const dms_nest *nest, char *target, const char *source)
{
    dms_transpose(nest, target, source, &DMS_NAME(turner));
    LEAVE(dms_is_streamed(&nest->stores));
}

const char *DMS_NAME(dms_accept_columns)(const dmlsplit_plan *plan)
{
    return dms_refuse_columns(plan);
}

DMS_TARGET void DMS_NAME(dms_run_columns)(const dmlsplit_plan *plan, const dms_buffers *buffers, uint64_t first, uint64_t last)
{
    dms_transpose_columns(plan, buffers, first, last, &DMS_NAME(turner));
    LEAVE(dms_is_streamed(&plan->turns));
}
