/* reverse_template.h - elements that lie backwards in the source
 *
 *     source   ....hgfedcba            a is read first
 *     target   abcdefgh....
 *
 * Included after vector_<isa>.h. Plain loops whose steps are constants: compilers make vectors of them that are reversed in registers.
 */

/* size is a constant. */
static DMS_TARGET DMS_ALWAYS_INLINE void reverse_piece(char *to, const char *from, size_t count, size_t size)
{
    from -= (count - 1) * size;         /* the last element */
    for (size_t i = 0; i < count; i++)
        memcpy(to + i * size, from + (count - 1 - i) * size, size);
}

static DMS_TARGET DMS_ALWAYS_INLINE void reverse(const dms_nest *nest, char *target, const char *source, size_t size)
{
    const uint64_t bytes = nest->loops[nest->rank - 1].size * size;
    uint64_t index[DMLSPLIT_MAX_RANK];
    dms_first(nest->rank, index);
    do
        for (uint64_t done = 0, piece; done < bytes; done += piece) {
            piece = bytes - done < DMS_REVERSED_PIECE ? bytes - done : DMS_REVERSED_PIECE;
            for (uint64_t at = 0; nest->stores.regime == DMS_CLAIMED && at < piece; at += DMS_LINE)
                DMS_CLAIM(target + done, DMS_REVERSED_PIECE + at);
            reverse_piece(target + done, source - done, (size_t)piece / size, size);
        }
    while (dms_next(nest->loops, nest->rank - 1, index, &target, &source));
}

DMS_TARGET void DMS_NAME(dms_run_reverse)(const dms_nest *nest, char *target, const char *source)
{
    switch (nest->run) {
    case 1: reverse(nest, target, source, 1); break;
    case 2: reverse(nest, target, source, 2); break;
    case 4: reverse(nest, target, source, 4); break;
    case 8: reverse(nest, target, source, 8); break;
    default: reverse(nest, target, source, 16); break;
    }
}
