/* staged_template.h - a stream of bytes, collected in the first-level cache and stored past the caches as whole lines, wherever it begins
 *
 * Included after vector_<isa>.h. What is added goes to bytes + fill; drained lines leave the rest of one at the front.
 *
 *     bytes   ..aaaaaa|bbbbbbbb|bbb.....     .. not ours   a: the first line, by ordinary stores   b: streamed, then three bytes kept
 */
#ifndef STAGED_TEMPLATE_H
#define STAGED_TEMPLATE_H

typedef struct dms_staged {
    char *line;                         /* where bytes[0] goes: a multiple of 64 */
    size_t begin, fill;                 /* bytes [begin, fill) wait; those before begin are not ours */
    char *bytes;                        /* a multiple of 64; room for a line more than is added at once */
} dms_staged;

static inline dms_staged DMS_NAME(start_staged)(char *to, char *bytes)
{
    dms_staged s;
    s.begin = s.fill = (uintptr_t)to % DMS_LINE;
    s.line = to - s.begin;
    s.bytes = bytes;
    return s;
}

/* After size bytes have been added. */
static inline DMS_TARGET void DMS_NAME(drain)(dms_staged *s, size_t size)
{
    size_t at = 0;
    s->fill += size;
    if (s->begin > 0 && s->fill >= DMS_LINE) {
        dms_copy_short(s->line + s->begin, s->bytes + s->begin, DMS_LINE - s->begin);
        s->begin = 0;
        at = DMS_LINE;
    }
    for (; s->fill - at >= DMS_LINE; at += DMS_LINE)
        for (size_t i = 0; i < DMS_LINE; i += VECTOR)
            stream(s->line + at + i, load(s->bytes + at + i));
    s->line += at;
    s->fill -= at;
    dms_copy_short(s->bytes, s->bytes + at, at > 0 ? s->fill : 0);
}

static inline void DMS_NAME(finish_staged)(const dms_staged *s)
{
    dms_copy_short(s->line + s->begin, s->bytes + s->begin, s->fill - s->begin);
}
#endif
