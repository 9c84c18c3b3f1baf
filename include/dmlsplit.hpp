/* dmlsplit.hpp - dmlsplit.h for C++17: owning plans, spans, results in place of exceptions
 *
 * Header only, over the C library; what a function promises is said in dmlsplit.h. Nothing throws: a function that can fail returns a result,
 * which holds a value or an error (as std::expected does), and everything is noexcept. Include dmlsplit_directml.h (and, before it, DirectML.h)
 * first for plans of DirectML's descriptors.
 */
#ifndef DMLSPLIT_HPP
#define DMLSPLIT_HPP

#include "dmlsplit.h"

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

namespace dmlsplit {

/* A view of values that lie one after the other: of a vector, an array, a std::span or anything else with data() and size(). */
template <class T>
class span {
public:
    constexpr span() noexcept = default;
    constexpr span(T *data, std::size_t size) noexcept : data_(data), size_(size) {}
    template <class U, std::size_t N, class = std::enable_if_t<std::is_convertible_v<U (*)[], T (*)[]>>>
    constexpr span(U (&array)[N]) noexcept : data_(array), size_(N) {}
    template <class Container, class = std::enable_if_t<std::is_convertible_v<decltype(std::declval<Container &>().data()), T *>>>
    constexpr span(Container &&values) noexcept : data_(values.data()), size_(values.size()) {}

    constexpr T *data() const noexcept { return data_; }
    constexpr std::size_t size() const noexcept { return size_; }
    constexpr bool empty() const noexcept { return size_ == 0; }
    constexpr T *begin() const noexcept { return data_; }
    constexpr T *end() const noexcept { return data_ + size_; }
    constexpr T &operator[](std::size_t i) const noexcept { return data_[i]; }

private:
    T *data_ = nullptr;
    std::size_t size_ = 0;
};

/* A status that is not DMLSPLIT_OK, and the tensor and dimension to blame. */
struct error {
    dmlsplit_status status = DMLSPLIT_OK;
    dmlsplit_fault fault = {DMLSPLIT_WHOLE, DMLSPLIT_NO_DIMENSION};

    const char *message() const noexcept { return dmlsplit_status_string(status); }
};

/* A value or an error. Which of the two is asked before either is taken. */
template <class T>
class [[nodiscard]] result {
public:
    result(T value) noexcept : value_(std::move(value)) {}
    result(dmlsplit::error failed) noexcept : error_(failed) {}

    bool has_value() const noexcept { return error_.status == DMLSPLIT_OK; }
    explicit operator bool() const noexcept { return has_value(); }
    T &operator*() & noexcept { return assert(has_value()), value_; }
    const T &operator*() const & noexcept { return assert(has_value()), value_; }
    T &&operator*() && noexcept { return assert(has_value()), std::move(value_); }
    T *operator->() noexcept { return assert(has_value()), &value_; }
    const T *operator->() const noexcept { return assert(has_value()), &value_; }
    const dmlsplit::error &error() const noexcept { return error_; }

private:
    T value_{};
    dmlsplit::error error_;
};

template <>
class [[nodiscard]] result<void> {
public:
    result() noexcept = default;
    result(dmlsplit::error failed) noexcept : error_(failed) {}

    bool has_value() const noexcept { return error_.status == DMLSPLIT_OK; }
    explicit operator bool() const noexcept { return has_value(); }
    const dmlsplit::error &error() const noexcept { return error_; }

private:
    dmlsplit::error error_;
};

enum class direction : std::uint32_t { split = DMLSPLIT_SPLIT, join = DMLSPLIT_JOIN };

/* One whole, cut along axis into parts. Sizes and lengths in elements, strides in bytes; no strides: packed. */
struct geometry {
    dmlsplit::direction direction = direction::split;
    std::uint32_t element_size = 0;
    std::uint32_t axis = 0;
    std::uint32_t flags = 0;
    span<const std::uint64_t> sizes;
    span<const std::uint64_t> lengths;
    span<const std::int64_t> strides;           /* as many as sizes, or none */
    span<const std::int64_t> part_strides;      /* of one part after the other, or none */
};

/* Bytes from a base pointer: begin is not above 0, end is exclusive. */
struct byte_range {
    std::int64_t begin = 0;
    std::int64_t end = 0;
};

#ifdef DMLSPLIT_DIRECTML_H
/* What DirectML would say of a descriptor; target: a feature level, 0x3000 for 3_0, or what dmlsplit_find_release found. */
inline result<dmlsplit_verdict> validate(const DML_SPLIT_OPERATOR_DESC &desc, std::uint32_t target) noexcept
{
    dmlsplit_verdict verdict = {};
    verdict.struct_size = sizeof verdict;
    const dmlsplit_status status = dmlsplit_validate_split(&desc, target, &verdict);
    return status == DMLSPLIT_OK ? result<dmlsplit_verdict>(verdict) : result<dmlsplit_verdict>(error{status});
}

inline result<dmlsplit_verdict> validate(const DML_JOIN_OPERATOR_DESC &desc, std::uint32_t target) noexcept
{
    dmlsplit_verdict verdict = {};
    verdict.struct_size = sizeof verdict;
    const dmlsplit_status status = dmlsplit_validate_join(&desc, target, &verdict);
    return status == DMLSPLIT_OK ? result<dmlsplit_verdict>(verdict) : result<dmlsplit_verdict>(error{status});
}
#endif

/* A plan, owned: it can be moved, not copied. Any number of threads may run one. */
class plan {
public:
    plan() noexcept = default;
    plan(plan &&other) noexcept : plan_(std::exchange(other.plan_, nullptr)), direction_(other.direction_) {}
    plan &operator=(plan &&other) noexcept
    {
        std::swap(plan_, other.plan_);
        std::swap(direction_, other.direction_);
        return *this;
    }
    plan(const plan &) = delete;
    plan &operator=(const plan &) = delete;
    ~plan() { dmlsplit_plan_destroy(plan_); }

    static result<plan> create(const geometry &g) noexcept
    {
        const std::size_t rank = g.sizes.size(), parts = g.lengths.size();
        if (rank > DMLSPLIT_MAX_RANK || (!g.strides.empty() && g.strides.size() != rank))
            return error{DMLSPLIT_BAD_RANK};
        if (!g.part_strides.empty() && (rank == 0 || g.part_strides.size() % rank != 0 || g.part_strides.size() / rank != parts))
            return error{DMLSPLIT_BAD_PART};
        dmlsplit_geometry c = {};
        c.struct_size = sizeof c;
        c.direction = static_cast<std::uint32_t>(g.direction);
        c.element_size = g.element_size;
        c.rank = static_cast<std::uint32_t>(rank);
        c.axis = g.axis;
        c.flags = g.flags;
        c.part_count = parts;
        c.sizes = g.sizes.data();
        c.strides = g.strides.empty() ? nullptr : g.strides.data();
        c.lengths = g.lengths.data();
        c.part_strides = g.part_strides.empty() ? nullptr : g.part_strides.data();
        return made(g.direction, [&](dmlsplit_plan **made, dmlsplit_fault *fault) { return dmlsplit_plan_create(&c, made, fault); });
    }

#ifdef DMLSPLIT_DIRECTML_H
    static result<plan> create(const DML_SPLIT_OPERATOR_DESC &desc, std::uint32_t flags = 0) noexcept
    {
        return made(direction::split, [&](dmlsplit_plan **made, dmlsplit_fault *fault) {
            return dmlsplit_plan_create_dml_split(&desc, flags, made, fault);
        });
    }
    static result<plan> create(const DML_JOIN_OPERATOR_DESC &desc, std::uint32_t flags = 0) noexcept
    {
        return made(direction::join, [&](dmlsplit_plan **made, dmlsplit_fault *fault) {
            return dmlsplit_plan_create_dml_join(&desc, flags, made, fault);
        });
    }
    static result<plan> create(const DML_OPERATOR_DESC &desc, std::uint32_t flags = 0) noexcept
    {
        return made(desc.Type == DML_OPERATOR_JOIN ? direction::join : direction::split, [&](dmlsplit_plan **made, dmlsplit_fault *fault) {
            return dmlsplit_plan_create_dml(&desc, flags, made, fault);
        });
    }
#endif

    explicit operator bool() const noexcept { return plan_ != nullptr; }
    const dmlsplit_plan *get() const noexcept { return plan_; }
    std::uint64_t part_count() const noexcept { return dmlsplit_plan_part_count(plan_); }
    std::uint64_t bytes() const noexcept { return dmlsplit_plan_bytes(plan_); }

    result<byte_range> whole_range() const noexcept
    {
        byte_range range;
        const dmlsplit_status status = dmlsplit_plan_whole_range(plan_, &range.begin, &range.end);
        return status == DMLSPLIT_OK ? result<byte_range>(range) : result<byte_range>(error{status});
    }
    result<byte_range> part_range(std::uint64_t part) const noexcept
    {
        byte_range range;
        const dmlsplit_status status = dmlsplit_plan_part_range(plan_, part, &range.begin, &range.end);
        return status == DMLSPLIT_OK ? result<byte_range>(range) : result<byte_range>(error{status});
    }

    /* Runs on so many threads, the caller's among them. DMLSPLIT_BAD_PART where there are not as many pointers as parts. */
    result<void> split(const void *whole, span<void *const> parts, std::uint32_t threads = 1) const noexcept
    {
        if (plan_ != nullptr && parts.size() != part_count())
            return error{DMLSPLIT_BAD_PART};
        return checked(dmlsplit_split_threads(plan_, whole, parts.data(), threads));
    }
    result<void> join(span<const void *const> parts, void *whole, std::uint32_t threads = 1) const noexcept
    {
        if (plan_ != nullptr && parts.size() != part_count())
            return error{DMLSPLIT_BAD_PART};
        return checked(dmlsplit_join_threads(plan_, parts.data(), whole, threads));
    }

    /* Whether the buffers are as far apart as a run needs: dmlsplit_plan_check_ranges. */
    result<void> check_ranges(const void *whole, span<const void *const> parts) const noexcept
    {
        error failed;
        if (plan_ != nullptr && parts.size() != part_count())
            return error{DMLSPLIT_BAD_PART};
        failed.status = dmlsplit_plan_check_ranges(plan_, whole, parts.data(), &failed.fault);
        return failed;
    }

    /* For threads of the caller's own: how many slices are worth it, and one of them. Each slice runs once, with the same buffers. */
    std::uint32_t slices(std::uint32_t most) const noexcept { return dmlsplit_plan_slices(plan_, most); }
    result<void> split_slice(const void *whole, span<void *const> parts, std::uint32_t index, std::uint32_t count) const noexcept
    {
        return run_slice(direction::split, whole, parts.data(), parts.size(), index, count);
    }
    result<void> join_slice(span<const void *const> parts, void *whole, std::uint32_t index, std::uint32_t count) const noexcept
    {
        return run_slice(direction::join, whole, parts.data(), parts.size(), index, count);
    }

    /* The kernels chosen, and why others were not; for people. May throw std::bad_alloc, as every string. */
    std::string describe() const
    {
        std::string text(dmlsplit_plan_describe(plan_, nullptr, 0), '\0');
        dmlsplit_plan_describe(plan_, text.data(), text.size() + 1);
        return text;
    }

private:
    plan(dmlsplit_plan *owned, direction way) noexcept : plan_(owned), direction_(way) {}

    template <class Create>
    static result<plan> made(direction way, Create create) noexcept
    {
        dmlsplit_plan *owned = nullptr;
        error failed;
        failed.status = create(&owned, &failed.fault);
        if (failed.status != DMLSPLIT_OK)
            return failed;
        return plan(owned, way);
    }

    static result<void> checked(dmlsplit_status status) noexcept
    {
        return status == DMLSPLIT_OK ? result<void>() : result<void>(error{status});
    }

    /* What the C function writes to is not const here: a plan of the other direction would write what it may only read. */
    result<void> run_slice(direction way, const void *whole, const void *parts, std::size_t part_count, std::uint32_t index,
                           std::uint32_t count) const noexcept
    {
        if (plan_ != nullptr && way != direction_)
            return error{DMLSPLIT_WRONG_DIRECTION};
        if (plan_ != nullptr && part_count != this->part_count())
            return error{DMLSPLIT_BAD_PART};
        return checked(dmlsplit_run_slice(plan_, whole, parts, index, count));
    }

    dmlsplit_plan *plan_ = nullptr;
    direction direction_ = direction::split;
};

}

#endif
