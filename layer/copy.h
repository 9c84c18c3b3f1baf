/* copy.h - descriptors, copied with all that they point to
 *
 * A program's mistake may be a pointer to memory that cannot be read, or a count that leads there. The real library may refuse before it
 * looks; so nothing here reads what may not be there.
 */
#pragma once

#include "dmlsplit_directml.h"

#include <stdbool.h>

/* Copies memory; false, and perhaps a part of it, where some of it cannot be read. What was found to be readable is taken to be so until the thread
 * calls layer_forget: for the time of one call of the program. */
bool layer_read(const void *from, void *to, size_t bytes);
void layer_forget(void);

typedef struct layer_copy {
    DML_OPERATOR_DESC desc;
    bool whole;                         /* everything was there, and no count too large to be meant; otherwise what is missing is NULL */
    size_t left;                        /* bytes that it may still take */
    struct layer_block *blocks;
} layer_copy;

/* A copy of an operator's descriptor; NULL where there is no memory for it, or no descriptor. */
layer_copy *layer_copy_operator(const DML_OPERATOR_DESC *desc);

typedef struct layer_graph {
    DML_GRAPH_DESC desc;                /* its Nodes and edges, and what they point to, are copies */
    bool whole;
    struct layer_block *blocks;
} layer_graph;

/* A copy of a graph without what its nodes and names point to. */
layer_graph *layer_copy_graph(const DML_GRAPH_DESC *desc);

void layer_free_copy(layer_copy *copy);
void layer_free_graph(layer_graph *graph);
