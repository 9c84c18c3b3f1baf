#include "guarded.h"

#include <sys/mman.h>
#include <unistd.h>

#include <new>

namespace harness {
namespace {

char* reserve(std::size_t bytes) {
    void* start = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED) throw std::bad_alloc();
    return static_cast<char*>(start);
}

void makeReadable(char* start, std::size_t bytes) {
    if (mprotect(start, bytes, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
}

}  // namespace

GuardedMemory::GuardedMemory()
    : page_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))), pool_(reserve(2 * slots * page_)) {}

char* GuardedMemory::slot(std::size_t index) {
    char* start = pool_ + 2 * index * page_;
    if (index == readable_) {
        makeReadable(start, page_);
        ++readable_;
    }
    return start;
}

void* GuardedMemory::allocate(std::size_t bytes) {
    if (bytes > page_) {
        const std::size_t body = (bytes + page_ - 1) / page_ * page_;
        char* start = reserve(body + page_);
        makeReadable(start, body);
        large_.emplace_back(start, body + page_);
        return start + body - bytes;
    }
    if (used_ < slots) return slot(used_++) + page_ - bytes;
    unguarded_.push_back(::operator new(bytes));
    return unguarded_.back();
}

void GuardedMemory::release() {
    used_ = 0;
    for (const auto& [start, bytes] : large_) munmap(start, bytes);
    large_.clear();
    for (void* block : unguarded_) ::operator delete(block);
    unguarded_.clear();
}

}  // namespace harness
