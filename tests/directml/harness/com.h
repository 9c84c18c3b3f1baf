// The few COM types that the harness needs. On Linux a COM interface is a C++ class whose virtual functions stand in
// the order of the public headers, called as any C++ member function is.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace harness {

using HResult = std::int32_t;

constexpr HResult hresult(std::uint32_t code) { return static_cast<HResult>(code); }

constexpr HResult ok = 0;
constexpr HResult notImplemented = hresult(0x80004001);
constexpr HResult noInterface = hresult(0x80004002);
constexpr HResult invalidArgument = hresult(0x80070057);

struct Guid {
    std::uint32_t data1;
    std::uint16_t data2, data3;
    std::uint8_t data4[8];

    bool operator==(const Guid& other) const { return std::memcmp(this, &other, sizeof other) == 0; }
};
static_assert(sizeof(Guid) == 16);

constexpr Guid iidUnknown = {0x00000000, 0x0000, 0x0000, {0xC0, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x46}};

class Unknown {
public:
    virtual HResult QueryInterface(const Guid& iid, void** object) = 0;
    virtual std::uint32_t AddRef() = 0;
    virtual std::uint32_t Release() = 0;

protected:
    ~Unknown() = default;  // never deleted through the interface
};

// Prints a call on one of the stand-ins where DMLSPLIT_HARNESS_TRACE is set; for finding out what a build asks of its
// device.
template <class... Args>
void trace(const char* format, Args... args) {
    static const bool enabled = std::getenv("DMLSPLIT_HARNESS_TRACE") != nullptr;
    if (enabled) {
        std::fprintf(stderr, format, args...);
        std::fputc('\n', stderr);
    }
}

}  // namespace harness
