#include "apps/experiments/share_cells.h"

#include <nlohmann/json.hpp>

#include "fcp/distributed/packing.h"

namespace fcp {

std::vector<CellResult> share_cells(const std::vector<CellTask>& tasks, const RunOptions& run,
                                    Communicator& ranks) {
  const auto size = static_cast<size_t>(ranks.size());
  std::vector<CellTask> own;
  for (auto i = static_cast<size_t>(ranks.rank()); i < tasks.size(); i += size) {
    own.push_back(tasks[i]);
  }
  Packer packer;
  for (const CellResult& result : run_cells(own, run)) {
    packer.add(result.rows.dump());
    packer.add(std::vector<double>{result.seconds});
    packer.add(result.left_out);
  }
  const std::vector<std::string> packed = ranks.gather(packer.take());
  std::vector<CellResult> results(packed.empty() ? 0 : tasks.size());
  for (size_t rank = 0; rank < packed.size(); ++rank) {
    Unpacker unpacker(packed[rank]);
    for (size_t i = rank; i < tasks.size(); i += size) {
      results[i].rows = Json::parse(unpacker.text());
      results[i].seconds = unpacker.numbers<double>().at(0);
      results[i].left_out = unpacker.text();
    }
  }
  return results;
}

}  // namespace fcp
