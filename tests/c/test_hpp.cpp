/* test_hpp.cpp - dmlsplit.hpp: ownership, spans, results; the arithmetic is tested in C */
#ifdef HPP_FIRST
#include "dmlsplit.hpp"
#include "dmlsplit_directml.h"
#else
#include "dmlsplit_directml.h"

#include "dmlsplit.hpp"
#endif

#include <array>
#include <cstdio>
#include <cstring>
#include <vector>

static int failures;
#define CHECK(condition) ((condition) ? (void)0 : (void)(failures++, std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition)))

static dmlsplit::geometry rows(dmlsplit::span<const std::uint64_t> sizes, dmlsplit::span<const std::uint64_t> lengths)
{
    dmlsplit::geometry g;
    g.element_size = sizeof(float);
    g.sizes = sizes;
    g.lengths = lengths;
    return g;
}

static void splits_and_joins()
{
    const std::vector<std::uint64_t> sizes = {6, 2};
    const std::array<std::uint64_t, 3> lengths = {2, 1, 3};
    auto g = rows(sizes, lengths);
    auto split = dmlsplit::plan::create(g);
    CHECK(split);
    CHECK(split->part_count() == 3 && split->bytes() == 48);
    CHECK(split->part_range(2)->end == 24 && !split->part_range(3));
    CHECK(split->describe().size() > 0 && std::strlen(split->describe().c_str()) == split->describe().size());

    float whole[12], a[4], b[2], c[6], again[12];
    for (int i = 0; i < 12; i++)
        whole[i] = static_cast<float>(i);
    void *const parts[] = {a, b, c};
    CHECK(split->split(whole, parts, 2));
    CHECK(b[0] == 4 && c[5] == 11);
    CHECK(split->split(whole, dmlsplit::span<void *const>(parts, 2)).error().status == DMLSPLIT_BAD_PART);

    g.direction = dmlsplit::direction::join;
    dmlsplit::plan join = *dmlsplit::plan::create(g);
    const void *const read[] = {a, b, c};
    CHECK(join.join(read, again) && std::memcmp(whole, again, sizeof whole) == 0);
    CHECK(join.split(whole, parts).error().status == DMLSPLIT_WRONG_DIRECTION);

    std::memset(again, 0, sizeof again);
    CHECK(join.slices(8) == 1 && join.join_slice(read, again, 0, 1) && std::memcmp(whole, again, sizeof whole) == 0);
    CHECK(join.join_slice(read, again, 1, 1).error().status == DMLSPLIT_BAD_SLICE);
    CHECK(join.split_slice(whole, parts, 0, 1).error().status == DMLSPLIT_WRONG_DIRECTION);
    CHECK(split->split_slice(whole, parts, 0, 1) && split->join_slice(read, again, 0, 1).error().status == DMLSPLIT_WRONG_DIRECTION);
    CHECK(split->split_slice(whole, dmlsplit::span<void *const>(parts, 2), 0, 1).error().status == DMLSPLIT_BAD_PART);
    CHECK(split->check_ranges(whole, parts));
    void *const twice[] = {a, b, b};
    CHECK(split->check_ranges(whole, twice).error().status == DMLSPLIT_RANGES_INTERSECT && split->check_ranges(whole, twice).error().fault.part == 2);

    dmlsplit::plan moved = std::move(join);
    CHECK(moved && !join && join.part_count() == 0);
    join = std::move(moved);
    CHECK(join && !moved);
    CHECK(moved.split(whole, parts).error().status == DMLSPLIT_NULL_POINTER && !moved.whole_range());
}

static void failures_have_a_place()
{
    const std::uint64_t sizes[] = {6, 2}, lengths[] = {2, 5};
    const std::int64_t strides[] = {8};
    auto g = rows(sizes, lengths);
    const auto found = dmlsplit::plan::create(g);
    CHECK(!found && found.error().status == DMLSPLIT_LENGTH_SUM && found.error().fault.dimension == 0);
    CHECK(std::strlen(found.error().message()) > 0);
    g.strides = strides;
    CHECK(dmlsplit::plan::create(g).error().status == DMLSPLIT_BAD_RANK);
    g.strides = {};
    g.part_strides = strides;
    CHECK(dmlsplit::plan::create(g).error().status == DMLSPLIT_BAD_PART);
    CHECK(dmlsplit::plan::create(dmlsplit::geometry()).error().status != DMLSPLIT_OK);
}

static void directml()
{
    const std::uint32_t sizes[] = {1, 1, 4, 1}, half[] = {1, 1, 2, 1};
    DML_BUFFER_TENSOR_DESC x = {DML_TENSOR_DATA_TYPE_UINT8, DML_TENSOR_FLAG_NONE, 4, sizes, nullptr, 4, 0}, y = x;
    y.Sizes = half;
    const DML_TENSOR_DESC input = {DML_TENSOR_TYPE_BUFFER, &x};
    const DML_TENSOR_DESC outputs[] = {{DML_TENSOR_TYPE_BUFFER, &y}, {DML_TENSOR_TYPE_BUFFER, &y}};
    const DML_SPLIT_OPERATOR_DESC split = {&input, 2, outputs, 2};
    const DML_JOIN_OPERATOR_DESC join = {2, outputs, &input, 2};
    const DML_OPERATOR_DESC any = {DML_OPERATOR_JOIN, &join};
    CHECK(dmlsplit::plan::create(split)->bytes() == 4);
    CHECK(dmlsplit::plan::create(join) && dmlsplit::plan::create(any));
    CHECK(dmlsplit::validate(split, 0x6400)->ok && dmlsplit::validate(join, dmlsplit_find_release("1.8.0"))->ok);
    CHECK(dmlsplit::validate(split, 1).error().status == DMLSPLIT_UNKNOWN_TARGET);
    const DML_OPERATOR_DESC both[] = {{DML_OPERATOR_SPLIT, &split}, {DML_OPERATOR_JOIN, &join}, {DML_OPERATOR_INVALID, &split}};
    CHECK(dmlsplit::validate(both[0], 0x6400)->ok && dmlsplit::validate(both[1], 0x6400)->ok);
    CHECK(!dmlsplit::validate(both[0], 0x1000)->ok);
    CHECK(dmlsplit::validate(both[2], 0x6400).error().status == DMLSPLIT_BAD_DIRECTION);
    CHECK(!dmlsplit::validate(split, 0x1000)->ok);      /* no 8-bit types there */
    dmlsplit_verdict verdict = {};
    verdict.struct_size = sizeof verdict;
    CHECK(dmlsplit_validate(static_cast<const DML_OPERATOR_DESC *>(nullptr), 0x6400, &verdict) == DMLSPLIT_NULL_POINTER);
    CHECK(dmlsplit_validate(&any, 0x6400, nullptr) == DMLSPLIT_NULL_POINTER);
    x.TotalTensorSizeInBytes = 3;
    CHECK(dmlsplit::plan::create(split).error().status == DMLSPLIT_TOTAL_SIZE);
}

int main()
{
    splits_and_joins();
    failures_have_a_place();
    directml();
    return failures != 0;
}
