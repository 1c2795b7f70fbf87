// NumPy's .npz archives: zip files whose entries are .npy files, stored or deflated; zip64 too.
// An entry is streamed and unpacked on the way; sizes and checksum are held against the archive's
// own directory.
//
// Tested by tests/data/npz_test.cc.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fcp/data/array.h"
#include "fcp/data/bytes.h"

namespace fcp {

// The entries' names, without ".npy".
std::vector<std::string> npz_entries(const std::string& path);

// The bytes of one entry, named with or without ".npy". An empty name means the only entry.
std::unique_ptr<ByteSource> open_npz_entry(const std::string& path, const std::string& entry);

Array read_npz(const std::string& path, const std::string& entry);

// The bytes of one .npy: "array.npy", "archive.npz:entry", or "archive.npz" with a single entry.
std::unique_ptr<ByteSource> open_array_bytes(const std::string& path);

// Where the colon of "archive.npz:entry" stands: behind the first part that is a file; npos where
// the whole is a file, or no part of it. Names of entries may have colons themselves.
size_t entry_colon(const std::string& path);

// Whether the file begins as a zip archive does.
bool is_npz(const std::string& path);

}  // namespace fcp
