/* vector_one_lane.h - the words of the templates that tell lanes apart, where bytes are shuffled across the whole vector */

static inline DMS_TARGET vector load_lanes(const char *from, size_t step)
{
    (void)step;
    return load(from);
}

static inline DMS_TARGET void store_lanes(char *to, size_t step, vector v)
{
    (void)step;
    store(to, v);
}

static inline DMS_TARGET vector load_table(const uint8_t *table)
{
    return load((const char *)table);
}

static inline DMS_TARGET void turn_groups(vector *v)
{
    (void)v;
}
