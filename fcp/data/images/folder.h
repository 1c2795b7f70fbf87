// What lies in a folder, in an order that does not depend on the file system.
// Tested by tests/data/images/image_list_test.cc.
#pragma once

#include <string>
#include <vector>

namespace fcp {

struct FolderEntries {
  std::vector<std::string> files;    // names, sorted by bytes
  std::vector<std::string> folders;  // the same
};

bool is_folder(const std::string& path);

// Links are followed; names that begin with a dot are left out.
FolderEntries list_folder(const std::string& path);

// folder/name.
std::string path_in(const std::string& folder, const std::string& name);

// The file's name without folders and without its last ending: "a/b.c.png" gives "b.c".
std::string file_stem(const std::string& path);

// The lines of a text file, without line ends; empty lines at the end do not count.
std::vector<std::string> read_lines(const std::string& path);

}  // namespace fcp
