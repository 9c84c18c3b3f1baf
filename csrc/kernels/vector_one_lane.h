/* vector_one_lane.h - the operations on lanes, where shuffles cross the whole vector: it is one lane */

static inline DMS_TARGET vector load_lanes(const char *from, ptrdiff_t stride)
{
    (void)stride;
    return load(from);
}

static inline DMS_TARGET void store_lanes(char *to, size_t stride, vector v)
{
    (void)stride;
    store(to, v);
}

static inline DMS_TARGET vector load_each(const char *const *from)
{
    return load(from[0]);
}

static inline DMS_TARGET void store_each(char *const *to, vector v)
{
    store(to[0], v);
}

static inline DMS_TARGET vector load_table(const uint8_t *table)
{
    return load((const char *)table);
}

static inline DMS_TARGET void transpose_lanes(vector *v)
{
    (void)v;
}
