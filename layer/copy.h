/* copy.h - descriptors, copied with all that they point to
 *
 * A faulty program may pass a pointer to unreadable memory, or a count that leads there. The real library may refuse the call before it reads
 * them, so every read here is checked first.
 */
#pragma once

#include "dmlsplit_directml.h"

#include <stdbool.h>

/* Copies memory. Returns false, perhaps after copying a part, if some of it cannot be read. Memory that was found to be readable counts as readable
 * until the thread calls layer_forget, at the end of the program's call. */
bool layer_read(const void *from, void *to, size_t bytes);
void layer_forget(void);

typedef struct layer_copy {
    DML_OPERATOR_DESC desc;
    bool whole;                         /* everything was readable, with no implausible count; otherwise what is missing is NULL */
    size_t left;                        /* bytes that it may still take */
    struct layer_block *blocks;
} layer_copy;

/* Returns a copy of an operator's descriptor; NULL if out of memory, or if there is no descriptor. */
layer_copy *layer_copy_operator(const DML_OPERATOR_DESC *desc);

typedef struct layer_graph {
    DML_GRAPH_DESC desc;                /* its Nodes and edges, and what they point to, are copies */
    bool whole;
    struct layer_block *blocks;
} layer_graph;

/* Returns a copy of a graph without what its nodes and names point to; NULL if out of memory. */
layer_graph *layer_copy_graph(const DML_GRAPH_DESC *desc);

void layer_free_copy(layer_copy *copy);
void layer_free_graph(layer_graph *graph);
